"""The stuck-job reaper: which database it sweeps, how often, and the patience of each stage.

Nothing here is judged while REAPER_DATABASE_URL is unset: `QUEUE_` and `JOB_` are names that other
programs use too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, ClassVar

from pydantic import SecretStr

from embed_pipeline.settings.findings import Findings
from embed_pipeline.settings.kinds import Flag, Kind, Whole
from embed_pipeline.settings.postgres import postgres_url
from embed_pipeline.settings.queue import DAY_MS, milliseconds
from embed_pipeline.settings.shape import ReaperSettings
from embed_pipeline.settings.variables import Variables, parse, setting
from embed_pipeline.telemetry.redaction import register_secret

DATABASE_URL = "REAPER_DATABASE_URL"
SPECIAL = "@ # / ? and blanks"
DAY_SEC = 86_400
SHORTEST_LEASE = timedelta(seconds=30)
"""Two heartbeats: a worker that misses one of them keeps its job."""
DEFAULT_BASE_MS, DEFAULT_MAX_MS = 30_000, 600_000
"""What the other of BASE and MAX is when only one is set: the ends of the ladder."""


@dataclass(frozen=True, slots=True)
class DatabaseUrl(Kind):
    """A connection URL, which may carry a password; empty is unset."""

    secret: ClassVar[bool] = True
    echo: ClassVar[bool] = False

    @property
    def allowed(self) -> str:
        return "a postgresql:// URL with a host; sslmode=require or stronger beyond loopback"

    def parse(self, text: str) -> str | None:
        return text.strip() or None


@dataclass(frozen=True, slots=True)
class Factor(Kind):
    low: float
    high: float

    @property
    def allowed(self) -> str:
        return f"a number from {self.low:g} to {self.high:g}"

    def parse(self, text: str) -> float:
        # float() also takes "1_0", "nan", "1e3" and other scripts' digits.
        if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", text.strip()):
            raise ValueError
        number = float(text)
        if not self.low <= number <= self.high:
            raise ValueError
        return number


_LEASE = Whole("seconds", 30, DAY_SEC)
_FACTOR = Factor(0.1, 100)
_ATTEMPTS = Whole("attempts", 1, 100)
_BACKOFF = Whole("milliseconds", 1, DAY_MS)


class ReaperVariables(Variables):
    database_url: Annotated[SecretStr | None, DatabaseUrl()] = setting(
        DATABASE_URL,
        "The PostgreSQL database with the tables jobs, asr_jobs and job_events. The reaper exists"
        " only when this is set, and only then are the variables below looked at.",
    )
    allow_plaintext: Annotated[bool, Flag()] = setting(
        "REAPER_ALLOW_PLAINTEXT",
        "Allow a connection to another machine without TLS: password and jobs travel readable.",
        default=False,
    )
    interval_sec: Annotated[int, Whole("seconds", 1, DAY_SEC)] = setting(
        "REAPER_INTERVAL_SEC", "How often the reaper sweeps.", default=60
    )
    batch_size: Annotated[int, Whole("rows", 1, 10_000)] = setting(
        "REAPER_BATCH_SIZE", "How many rows one transaction of a sweep takes.", default=500
    )
    queue_max_attempts: Annotated[int, _ATTEMPTS] = setting(
        "QUEUE_MAX_ATTEMPTS",
        "How often a job may be picked up, where its row's max_attempts is NULL.",
        default=5,
    )
    job_max_attempts: Annotated[int | None, _ATTEMPTS] = setting(
        "JOB_MAX_ATTEMPTS", "Overrides QUEUE_MAX_ATTEMPTS.", shown="QUEUE_MAX_ATTEMPTS"
    )
    queue_backoff_base_ms: Annotated[int | None, _BACKOFF] = setting(
        "QUEUE_RETRY_BACKOFF_MS_BASE",
        "The first wait after a lost worker; doubles with every attempt. With it or"
        " QUEUE_RETRY_BACKOFF_MS_MAX set, doubling replaces the ladder of 30 s, 2 min, 10 min.",
        shown="none; 30000 (or the maximum, if less) when only the maximum is set",
    )
    queue_backoff_max_ms: Annotated[int | None, _BACKOFF] = setting(
        "QUEUE_RETRY_BACKOFF_MS_MAX",
        "The longest wait.",
        shown="none; 600000 (or the base, if more) when only the base is set",
    )
    job_backoff_base_ms: Annotated[int | None, _BACKOFF] = setting(
        "JOB_RETRY_BACKOFF_MS_BASE",
        "Overrides QUEUE_RETRY_BACKOFF_MS_BASE.",
        shown="QUEUE_RETRY_BACKOFF_MS_BASE",
    )
    job_backoff_max_ms: Annotated[int | None, _BACKOFF] = setting(
        "JOB_RETRY_BACKOFF_MS_MAX",
        "Overrides QUEUE_RETRY_BACKOFF_MS_MAX.",
        shown="QUEUE_RETRY_BACKOFF_MS_MAX",
    )
    lease_clip_sec: Annotated[int, _LEASE] = setting(
        "JOB_LEASE_SEC_CLIP", "How long a clip worker may stay silent.", default=300
    )
    lease_asr_sec: Annotated[int, _LEASE] = setting(
        "JOB_LEASE_SEC_ASR", "How long an ASR worker may stay silent.", default=900
    )
    lease_burnin_sec: Annotated[int, _LEASE] = setting(
        "JOB_LEASE_SEC_BURNIN", "How long a burn-in worker may stay silent.", default=900
    )
    lease_default_sec: Annotated[int, _LEASE] = setting(
        "JOB_LEASE_SEC_DEFAULT", "The same for rows of another stage or of none.", default=900
    )
    factor: Annotated[float, _FACTOR] = setting(
        "JOB_SLA_FACTOR", "Multiplies every lease: 2 on machines half as fast.", default=1
    )
    factor_clip: Annotated[float | None, _FACTOR] = setting(
        "JOB_SLA_FACTOR_CLIP", "Overrides JOB_SLA_FACTOR for clip.", shown="JOB_SLA_FACTOR"
    )
    factor_asr: Annotated[float | None, _FACTOR] = setting(
        "JOB_SLA_FACTOR_ASR", "Overrides JOB_SLA_FACTOR for ASR.", shown="JOB_SLA_FACTOR"
    )
    factor_burnin: Annotated[float | None, _FACTOR] = setting(
        "JOB_SLA_FACTOR_BURNIN", "Overrides JOB_SLA_FACTOR for burn-in.", shown="JOB_SLA_FACTOR"
    )
    heartbeat_sec: Annotated[int, Whole("seconds", 10, 15)] = setting(
        "JOB_HEARTBEAT_SEC", "How often a worker extends the lease of its job.", default=12
    )


def reaper_settings(environ: Mapping[str, str], findings: Findings) -> ReaperSettings | None:
    if not environ.get(DATABASE_URL, "").strip():
        return None
    given = parse(ReaperVariables, environ, findings)
    assert given.database_url is not None, "it is set, and any text passes"
    _check_url(given.database_url.get_secret_value(), given.allow_plaintext, findings)
    base, ceiling = _backoff(given, findings)
    return ReaperSettings(
        database_url=given.database_url,
        interval=timedelta(seconds=given.interval_sec),
        batch_size=given.batch_size,
        max_attempts=given.job_max_attempts or given.queue_max_attempts,
        backoff_base=base,
        backoff_ceiling=ceiling,
        lease_clip=_lease("CLIP", given.lease_clip_sec, given.factor_clip, given, findings),
        lease_asr=_lease("ASR", given.lease_asr_sec, given.factor_asr, given, findings),
        lease_burnin=_lease("BURNIN", given.lease_burnin_sec, given.factor_burnin, given, findings),
        lease_default=_lease("DEFAULT", given.lease_default_sec, None, given, findings),
        heartbeat_interval=timedelta(seconds=given.heartbeat_sec),
    )


def _check_url(text: str, allow_plaintext: bool, findings: Findings) -> None:
    url = postgres_url(text)
    if url is None:
        findings.refuse(
            DATABASE_URL,
            "be postgresql:// followed by a host (or ?host= and the folder of a socket), with a"
            f" known sslmode if any and with {SPECIAL} in names and passwords percent-encoded",
        )
        return
    register_secret(url.password or "")  # the driver knows it apart from its URL
    if url.is_loopback or url.is_encrypted:
        return
    if allow_plaintext:
        findings.note(
            "REAPER_ALLOW_PLAINTEXT is true: password and jobs may travel unencrypted to"
            f" {DATABASE_URL}."
        )
    else:
        findings.refuse(
            DATABASE_URL,
            "set sslmode=require, verify-ca or verify-full because its host is not loopback"
            " (REAPER_ALLOW_PLAINTEXT=true allows plain text)",
        )


def _backoff(
    given: ReaperVariables, findings: Findings
) -> tuple[timedelta | None, timedelta | None]:
    """Both or neither: without them the ladder holds."""
    base = given.job_backoff_base_ms or given.queue_backoff_base_ms
    ceiling = given.job_backoff_max_ms or given.queue_backoff_max_ms
    if base is None and ceiling is None:
        return None, None
    if base is not None and ceiling is not None and base > ceiling:
        findings.refuse(
            "JOB_RETRY_BACKOFF_MS_MAX"
            if given.job_backoff_max_ms
            else "QUEUE_RETRY_BACKOFF_MS_MAX",
            f"be at least the base, which is {base} milliseconds, got '{ceiling}'",
        )
    ceiling_ms = ceiling or max(DEFAULT_MAX_MS, base or 0)
    base_ms = base or min(DEFAULT_BASE_MS, ceiling_ms)
    return milliseconds(base_ms), milliseconds(ceiling_ms)


def _lease(
    stage: str, seconds: int, own_factor: float | None, given: ReaperVariables, findings: Findings
) -> timedelta:
    factor = given.factor if own_factor is None else own_factor
    lease = timedelta(seconds=seconds) * factor
    if lease < SHORTEST_LEASE:
        findings.refuse(
            f"JOB_LEASE_SEC_{stage}",
            f"make at least {SHORTEST_LEASE.seconds} seconds with its SLA factor,"
            f" got {seconds} × {factor:g}",
        )
    return lease
