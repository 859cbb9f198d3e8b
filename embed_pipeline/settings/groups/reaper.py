"""The stuck-job reaper: which database it sweeps, how often, and the lease of each stage.

Nothing is checked while REAPER_DATABASE_URL is unset, because other programs use names that begin
with `QUEUE_` and `JOB_` too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from pydantic import SecretStr

from embed_pipeline.settings.parsing.addresses import postgres_url
from embed_pipeline.settings.parsing.kinds import (
    DAY_MS,
    DAY_SEC,
    FLAG,
    decimal,
    duration,
    secret,
    whole,
)
from embed_pipeline.settings.parsing.variables import Findings, parse, setting
from embed_pipeline.telemetry.redaction import register_secret

DATABASE_URL = "REAPER_DATABASE_URL"
SHORTEST_LEASE = timedelta(seconds=30)
"""Two heartbeats: a worker that misses one of them keeps its job."""
DEFAULT_BASE, DEFAULT_MAX = timedelta(seconds=30), timedelta(minutes=10)
"""The missing one of BASE and MAX where only one is set: the ends of the ladder."""

_LEASE = duration("seconds", 30, DAY_SEC)
_FACTOR = decimal(0.1, 100)
_ATTEMPTS = whole("attempts", 1, 100)
_BACKOFF = duration("milliseconds", 1, DAY_MS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaperSettings:
    """Leases include their SLA factor; `backoff_base` and `backoff_ceiling` are both set or not."""

    database_url: SecretStr = setting(
        DATABASE_URL,
        secret("a postgresql:// URL with a host; sslmode=require or stronger beyond loopback"),
        "The PostgreSQL database with the tables jobs, asr_jobs and job_events. The reaper exists"
        " only when this is set, and only then are the variables below checked.",
    )
    allow_plaintext: bool = setting(
        "REAPER_ALLOW_PLAINTEXT",
        FLAG,
        "Allow a connection to another machine without TLS: password and jobs can be read on the"
        " way.",
        default="false",
    )
    interval: timedelta = setting(
        "REAPER_INTERVAL_SEC",
        duration("seconds", 1, DAY_SEC),
        "How often the reaper sweeps.",
        default="60",
    )
    batch_size: int = setting(
        "REAPER_BATCH_SIZE",
        whole("rows", 1, 10_000),
        "How many rows one transaction of a sweep takes.",
        default="500",
    )
    queue_max_attempts: int = setting(
        "QUEUE_MAX_ATTEMPTS",
        _ATTEMPTS,
        "How often a job may be picked up, where its row's max_attempts is NULL.",
        default="5",
    )
    max_attempts: int = setting(
        "JOB_MAX_ATTEMPTS",
        _ATTEMPTS,
        "Overrides QUEUE_MAX_ATTEMPTS.",
        shown="QUEUE_MAX_ATTEMPTS",
    )
    queue_backoff_base: timedelta | None = setting(
        "QUEUE_RETRY_BACKOFF_MS_BASE",
        _BACKOFF,
        "The first wait after a lost worker; doubles with every attempt. With it or"
        " QUEUE_RETRY_BACKOFF_MS_MAX set, doubling replaces the ladder of 30 s, 2 min, 10 min.",
        shown="none; 30000 (or the maximum, if less) when only the maximum is set",
    )
    queue_backoff_ceiling: timedelta | None = setting(
        "QUEUE_RETRY_BACKOFF_MS_MAX",
        _BACKOFF,
        "The longest wait.",
        shown="none; 600000 (or the base, if more) when only the base is set",
    )
    backoff_base: timedelta | None = setting(
        "JOB_RETRY_BACKOFF_MS_BASE",
        _BACKOFF,
        "Overrides QUEUE_RETRY_BACKOFF_MS_BASE.",
        shown="QUEUE_RETRY_BACKOFF_MS_BASE",
    )
    backoff_ceiling: timedelta | None = setting(
        "JOB_RETRY_BACKOFF_MS_MAX",
        _BACKOFF,
        "Overrides QUEUE_RETRY_BACKOFF_MS_MAX.",
        shown="QUEUE_RETRY_BACKOFF_MS_MAX",
    )
    lease_clip: timedelta = setting(
        "JOB_LEASE_SEC_CLIP", _LEASE, "How long a clip worker may stay silent.", default="300"
    )
    lease_asr: timedelta = setting(
        "JOB_LEASE_SEC_ASR", _LEASE, "How long an ASR worker may stay silent.", default="900"
    )
    lease_burnin: timedelta = setting(
        "JOB_LEASE_SEC_BURNIN", _LEASE, "How long a burn-in worker may stay silent.", default="900"
    )
    lease_default: timedelta = setting(
        "JOB_LEASE_SEC_DEFAULT",
        _LEASE,
        "The same for rows of another stage or of none.",
        default="900",
    )
    factor: float = setting(
        "JOB_SLA_FACTOR",
        _FACTOR,
        "Multiplies every lease: 2 on machines half as fast.",
        default="1",
    )
    factor_clip: float | None = setting(
        "JOB_SLA_FACTOR_CLIP", _FACTOR, "Overrides JOB_SLA_FACTOR for clip.", shown="JOB_SLA_FACTOR"
    )
    factor_asr: float | None = setting(
        "JOB_SLA_FACTOR_ASR", _FACTOR, "Overrides JOB_SLA_FACTOR for ASR.", shown="JOB_SLA_FACTOR"
    )
    factor_burnin: float | None = setting(
        "JOB_SLA_FACTOR_BURNIN",
        _FACTOR,
        "Overrides JOB_SLA_FACTOR for burn-in.",
        shown="JOB_SLA_FACTOR",
    )
    heartbeat_interval: timedelta = setting(
        "JOB_HEARTBEAT_SEC",
        duration("seconds", 10, 15),
        "How often a worker extends the lease of its job.",
        default="12",
    )


def reaper_settings(environ: Mapping[str, str], findings: Findings) -> ReaperSettings | None:
    if not environ.get(DATABASE_URL, "").strip():
        return None
    given = parse(ReaperSettings, environ, findings)
    _check_url(given, findings)
    base, ceiling = _backoff(given, findings)
    return replace(
        given,
        max_attempts=given.max_attempts or given.queue_max_attempts,
        backoff_base=base,
        backoff_ceiling=ceiling,
        lease_clip=_lease("CLIP", given.lease_clip, given.factor_clip or given.factor, findings),
        lease_asr=_lease("ASR", given.lease_asr, given.factor_asr or given.factor, findings),
        lease_burnin=_lease(
            "BURNIN", given.lease_burnin, given.factor_burnin or given.factor, findings
        ),
        lease_default=_lease("DEFAULT", given.lease_default, given.factor, findings),
    )


def _check_url(given: ReaperSettings, findings: Findings) -> None:
    url = postgres_url(given.database_url.get_secret_value())
    if url is None:
        findings.refuse(
            DATABASE_URL,
            "be postgresql:// followed by a host (or ?host= and the folder of a socket), with a"
            " known sslmode if any and with @ # / ? and blanks in names and passwords"
            " percent-encoded",
        )
        return
    register_secret(url.password or "")  # the driver's errors may show it without its URL
    if not url.is_loopback and not url.is_encrypted:
        findings.require_encryption(
            DATABASE_URL,
            "set sslmode=require, verify-ca or verify-full",
            permission="REAPER_ALLOW_PLAINTEXT",
            allowed=given.allow_plaintext,
            cargo="password and jobs",
        )


def _backoff(
    given: ReaperSettings, findings: Findings
) -> tuple[timedelta | None, timedelta | None]:
    """Both or neither: without them the ladder applies."""
    base = given.backoff_base or given.queue_backoff_base
    ceiling = given.backoff_ceiling or given.queue_backoff_ceiling
    if base is None and ceiling is None:
        return None, None
    if base is not None and ceiling is not None and base > ceiling:
        role = "JOB" if given.backoff_ceiling else "QUEUE"
        findings.refuse(
            f"{role}_RETRY_BACKOFF_MS_MAX",
            f"be at least the base, which is {_ms(base)} milliseconds, got '{_ms(ceiling)}'",
        )
    ceiling = ceiling or max(DEFAULT_MAX, base or DEFAULT_MAX)
    return base or min(DEFAULT_BASE, ceiling), ceiling


def _lease(stage: str, lease: timedelta, factor: float, findings: Findings) -> timedelta:
    if lease * factor < SHORTEST_LEASE:
        findings.refuse(
            f"JOB_LEASE_SEC_{stage}",
            f"make at least {SHORTEST_LEASE.seconds} seconds with its SLA factor,"
            f" got {lease.total_seconds():g} × {factor:g}",
        )
    return lease * factor


def _ms(value: timedelta) -> int:
    return value // timedelta(milliseconds=1)
