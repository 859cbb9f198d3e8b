"""The tables, their columns as values, and which table holds the jobs of a stage."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from embed_pipeline.errors import RequestError
from embed_pipeline.reaper.policy import SILENT_LEASES, LeaseState, Stage, StageLeases, ends_at

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")  # an index name adds up to 23 letters


@dataclass(frozen=True, slots=True)
class JobTable:
    """`unstaged` is what a row without a stage is to a worker that picks it up."""

    name: str
    unstaged: Stage

    def __post_init__(self) -> None:
        if not _IDENTIFIER.fullmatch(self.name):
            raise RequestError(
                f"{self.name!r} is no table name: letters, digits and underscores, at most 40."
            )


JOBS = JobTable("jobs", unstaged=Stage.CLIP)
ASR_JOBS = JobTable("asr_jobs", unstaged=Stage.ASR)
TABLES = (JOBS, ASR_JOBS)
EVENTS = "job_events"


def table_of(stage: str) -> JobTable:
    return ASR_JOBS if stage == Stage.ASR else JOBS


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckRow:
    """A row as the sweep found it; `key` is its id in the table's own type."""

    key: Any
    holding: LeaseState
    locked_by: str | None
    lease_token: str | None
    now: datetime

    def overdue(self, leases: StageLeases) -> timedelta:
        end = ends_at(self.holding, leases)
        return timedelta(0) if end is None else self.now - end


def stuck_row_of(row: Mapping[str, Any]) -> StuckRow:
    return StuckRow(
        key=row["id"],
        holding=LeaseState(
            stage=row["stage"],
            attempt_count=row["attempt_count"],
            max_attempts=row["max_attempts"],
            lease_expires_at=row["lease_expires_at"],
            last_heartbeat_at=row["last_heartbeat_at"],
        ),
        locked_by=row["locked_by"],
        lease_token=row["lease_token"],
        now=row["now"],
    )


def silence_parameters(leases: StageLeases) -> dict[str, float]:
    """For the statement that knows the rule of silence, in seconds."""
    silences = {
        "clip": leases.clip,
        "asr": leases.asr,
        "burnin": leases.burnin,
        "default": leases.default,
        "shortest": leases.shortest,
    }
    return {name: (SILENT_LEASES * lease).total_seconds() for name, lease in silences.items()}
