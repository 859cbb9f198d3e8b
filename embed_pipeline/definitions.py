"""What Dagster loads. Invalid settings stop it here; their sentences are the last lines shown."""

import dagster as dg

from embed_pipeline.defs.build import build_definitions
from embed_pipeline.settings import LogFormat, load_settings
from embed_pipeline.telemetry import configure, emit

_settings = load_settings()
# JSON lines on stderr even on a terminal, for machines. The log of a run in the UI is for people.
_format = LogFormat.JSON if _settings.logging.format is LogFormat.AUTO else _settings.logging.format
configure(level=_settings.logging.level, format=_format)
for _note in _settings.notes:
    emit("settings.noted", message=_note)

defs: dg.Definitions = build_definitions(_settings)
