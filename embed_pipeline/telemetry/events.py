"""The table of all log events: name, level, message, facts.

Names are `noun.verb_past`. A message may quote facts in braces; a missing one is shown as "?".
A line has those of its facts that apply. docs/logs.md is generated from this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from logging import CRITICAL, ERROR, INFO, WARNING
from types import MappingProxyType
from typing import Final, NamedTuple


class EventKind(NamedTuple):
    level: int
    sentence: str
    facts: tuple[str, ...] = ()


_ERROR = ("error_type", "error_class", "stack")
_TROUBLE = ("operation", *_ERROR, "worker_id", "model", "rate_limiter")
_ATTEMPT = ("attempt", "max_attempts", "cache", "observations")
_JOB = ("job_id", "entity_name", *_ATTEMPT, *_TROUBLE)

EVENTS: Final[Mapping[str, EventKind]] = MappingProxyType(
    {
        # jobs and leases
        "jobs.adopted": EventKind(
            INFO, "Adopted {count} jobs that another program had written.", ("count", "job_ids")
        ),
        "jobs.leased": EventKind(INFO, "Leased {count} jobs.", ("worker_id", "count", "probe")),
        "jobs.released": EventKind(
            INFO, "Released {count} unstarted jobs.", ("worker_id", "count")
        ),
        "jobs.deferred": EventKind(
            WARNING,
            "Deferred {count} started jobs without counting an attempt.",
            ("count", "job_ids", "entity_names", "attempts", *_TROUBLE),
        ),
        "jobs.recovered": EventKind(
            INFO,
            "Recovered {count} jobs with an expired lease.",
            ("count", "failed", "job_ids", "previous_owners"),
        ),
        "jobs.silent": EventKind(
            WARNING,
            "{count} processing jobs had no heartbeat for too long: their worker may be gone.",
            ("count", "job_ids", "workers", "silent_for"),
        ),
        "jobs.retried": EventKind(
            INFO, "Returned {count} failed jobs to pending.", ("count", "category", "job_ids")
        ),
        "jobs.cancelled": EventKind(INFO, "Cancelled {count} pending jobs.", ("count", "job_ids")),
        "jobs.cleaned_up": EventKind(
            INFO,
            "Deleted {count} finished jobs older than the retention.",
            ("count", "completed", "failed", "events"),
        ),
        "job.deferred": EventKind(
            WARNING, "Deferred the started job without counting an attempt.", _JOB
        ),
        "job.failed": EventKind(ERROR, "Job failed permanently.", _JOB),
        "job.retry_planned": EventKind(WARNING, "Attempt failed; the job will be retried.", _JOB),
        "lease.lost": EventKind(
            WARNING,
            "Lost the lease of {count} jobs to another worker or to recovery.",
            ("worker_id", "count", "job_ids", "job_id"),
        ),
        "lease.refused": EventKind(
            INFO, "Lease refused: {reason}.", ("worker_id", "reason", "until")
        ),
        "heartbeat.missed": EventKind(
            WARNING,
            "No heartbeat for too long: the worker may be gone.",
            ("worker_id", "silent_for"),
        ),
        "heartbeat.failed": EventKind(
            WARNING, "Heartbeat could not be written.", ("worker_id", "job_id", *_ERROR)
        ),
        "recovery.failed": EventKind(ERROR, "Recovery failed; the next pass tries again.", _ERROR),
        # health, switch, breakers, budget
        "health.degraded": EventKind(
            WARNING, "{consecutive_failures} consecutive failures.", ("consecutive_failures",)
        ),
        "health.critical": EventKind(CRITICAL, "Every run that leases jobs dies.", ("reason",)),
        "health.recovered": EventKind(
            INFO,
            "A job succeeded after {consecutive_failures} consecutive failures.",
            ("consecutive_failures",),
        ),
        "queue.halted": EventKind(
            CRITICAL,
            "Queue halted until it is resumed: {reason}.",
            ("reason", "worker_id", "job_ids"),
        ),
        "queue.paused": EventKind(INFO, "Queue paused: {reason}.", ("reason",)),
        "queue.resumed": EventKind(INFO, "Queue resumed: {reason}.", ("reason",)),
        "breaker.opened": EventKind(
            WARNING,
            "Breaker of {breaker} opened until {until}: {reason}.",
            ("breaker", "reason", "until"),
        ),
        "breaker.closed": EventKind(INFO, "Breaker of {breaker} closed.", ("breaker",)),
        "limiter.exhausted": EventKind(
            INFO,
            "Rate limit of {provider} used up until {until}.",
            ("worker_id", "provider", "until"),
        ),
        "limiter.grant_outdated": EventKind(
            WARNING,
            "Rate limit grant expired before it was used: the queue database is slow.",
            ("provider",),
        ),
        "limiter.paused": EventKind(
            INFO, "Rate limiter for {provider} paused until {until}.", ("provider", "until")
        ),
        # entities and models
        "entities.created": EventKind(INFO, "Created {count} entities.", ("count", "existing")),
        "entities.discovered": EventKind(
            INFO,
            "Discovered {count} entities that need an embedding.",
            ("count", "examined", "new_jobs", "parked", "left"),
        ),
        "entities.audited": EventKind(
            INFO,
            "Audited {count} entities: {marked} need an embedding, {repaired} labels were wrong.",
            ("count", "marked", "repaired", "complete"),
        ),
        "entities.refreshed": EventKind(
            INFO, "Queued {count} entities that were named.", ("count", "unchanged", "unknown")
        ),
        "entity.erased": EventKind(INFO, "Erased an entity and {count} jobs of it.", ("count",)),
        "entities.queue_unavailable": EventKind(
            WARNING,
            "Entities were stored but not queued; discovery will queue them.",
            ("count", *_ERROR),
        ),
        "model.registered": EventKind(
            INFO, "Registered {model} as the first model of the graph.", ("model", "dimensions")
        ),
        "load.row_refused": EventKind(
            WARNING, "Row {line} could not be loaded: {reason}.", ("line", "reason")
        ),
        # the stuck-job reaper
        "reaper.swept": EventKind(
            INFO, "Sweep requeued or failed {count} stuck jobs.", ("count", "metrics")
        ),
        "reaper.jobs_requeued": EventKind(
            WARNING,
            "Requeued {count} jobs of {table} with an expired lease.",
            ("table", "count", "job_ids", "workers"),
        ),
        "reaper.jobs_failed": EventKind(
            ERROR,
            "Failed {count} jobs of {table}: lease expired and no attempts left.",
            ("table", "count", "job_ids", "workers"),
        ),
        "reaper.rows_left_alone": EventKind(
            WARNING,
            "Skipped {count} rows of {table} in processing without lease or heartbeat.",
            ("table", "count"),
        ),
        "reaper.rows_refused": EventKind(
            ERROR,
            "Constraints or triggers of {table} refused to change {count} rows.",
            ("table", "count", "job_ids", *_ERROR),
        ),
        "reaper.sweep_failed": EventKind(
            ERROR, "Sweep of {table} failed; the next one tries again.", ("table", *_ERROR)
        ),
        "reaper.count_failed": EventKind(
            WARNING, "Counters of a sweep could not be stored.", _ERROR
        ),
        "reaper.schema_extended": EventKind(INFO, "Extended {table}.", ("table", "statement")),
        "reaper.started": EventKind(
            INFO, "Reaper started; sweeps every {interval} seconds.", ("interval",)
        ),
        "reaper.stopped": EventKind(INFO, "Reaper stopped after {count} sweeps.", ("count",)),
        # runs
        "batch.measured": EventKind(
            INFO,
            "Batch finished: {leased} jobs leased, {embedded} embedded.",
            # And the counts of the worker's report, which is their only list.
            ("worker_id", "model", "seconds", "per_second"),
        ),
        "op.failed": EventKind(ERROR, "Op {operation} failed.", ("operation", *_ERROR)),
        "look.failed": EventKind(
            WARNING, "Sensor check failed; the next tick tries again.", _ERROR
        ),
        "run.interrupted": EventKind(
            WARNING, "Run interrupted; it finishes the requests it has sent.", ("worker_id",)
        ),
        "message.refused": EventKind(
            WARNING, "Answered a message of an MCP client that cannot be read.", ("reason",)
        ),
        "request.refused": EventKind(
            WARNING, "Refused an HTTP request of an MCP client: {reason}.", ("reason", "client")
        ),
        "tool.failed": EventKind(ERROR, "Tool {tool} failed because of a bug.", ("tool", *_ERROR)),
        "store.network_mount": EventKind(
            WARNING,
            "{folder} is on a network mount ({filesystem}): SQLite files serve one machine only.",
            ("folder", "filesystem"),
        ),
        "clock.differs": EventKind(
            WARNING,
            "The wall clock is {ahead} s ahead of the queue's, which counts from the boot.",
            ("ahead",),
        ),
        "store.apoc_missing": EventKind(
            WARNING, "APOC is not installed; cleanup deletes in small transactions of its own."
        ),
        "settings.noted": EventKind(WARNING, "Note about a setting."),
    }
)
