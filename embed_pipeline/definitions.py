"""What Dagster loads. Bad settings stop it here, with a sentence each as the last lines."""

import dagster as dg

from embed_pipeline.defs.build import build_definitions
from embed_pipeline.settings import load_settings
from embed_pipeline.telemetry import emit

_settings = load_settings()
for _note in _settings.notes:
    emit("settings.noted", message=_note)

defs: dg.Definitions = build_definitions(_settings)
