"""What Dagster loads. Bad settings stop it here, with a sentence each as the last lines."""

import dagster as dg

from embed_pipeline.defs.build import build_definitions
from embed_pipeline.settings import LogFormat, load_settings
from embed_pipeline.telemetry import configure, emit

_settings = load_settings()
# Lines of JSON on stderr also where a terminal is attached: the same ones go into the run's log.
_format = LogFormat.JSON if _settings.logging.format is LogFormat.AUTO else _settings.logging.format
configure(level=_settings.logging.level, format=_format)
for _note in _settings.notes:
    emit("settings.noted", message=_note)

defs: dg.Definitions = build_definitions(_settings)
