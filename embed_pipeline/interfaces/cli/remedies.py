"""The command for each remedy."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from embed_pipeline.domain.diagnosis import Remedy
from embed_pipeline.domain.entity import Entity

COMMANDS: Mapping[Remedy, str] = {
    Remedy.CREATE: "embed-pipeline load FILE",
    Remedy.UPDATE: "embed-pipeline load FILE",
    Remedy.DISCOVER: "embed-pipeline discover",
    Remedy.FORCE: "embed-pipeline force --key KEY",
    Remedy.RETRY_FAILED: "embed-pipeline failed, then retry-failed",
    Remedy.RUN: "embed-pipeline run",
    Remedy.RESUME: "embed-pipeline resume",
    Remedy.RECOVER: "embed-pipeline recover",
    Remedy.SEARCH_MORE: "embed-pipeline search QUERY --limit 50",
    Remedy.FIX_SETTINGS: "embed-pipeline doctor",
}


def command_for(remedy: Remedy, entity: Entity | None = None) -> str:
    """`entity` is what the remedy is for; its key is quoted for the shell."""
    command = COMMANDS[remedy]
    return command if entity is None else command.replace("KEY", shlex.quote(entity.uid))
