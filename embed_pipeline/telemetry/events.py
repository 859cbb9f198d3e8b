"""The table of everything that is ever logged: name, level, sentence, facts.

Names are `noun.verb_past`. A sentence may quote facts in braces; one that is not given reads "?".
Of the facts a line has those that apply. docs/logs.md is made from this table.
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
            INFO, "Took in {count} jobs that another program had written.", ("count", "job_ids")
        ),
        "jobs.leased": EventKind(INFO, "Leased {count} jobs.", ("worker_id", "count", "probe")),
        "jobs.released": EventKind(
            INFO, "Gave {count} unstarted jobs back.", ("worker_id", "count")
        ),
        "jobs.deferred": EventKind(
            WARNING,
            "Gave {count} started jobs back without an attempt.",
            ("count", "job_ids", "entity_names", "attempts", *_TROUBLE),
        ),
        "jobs.recovered": EventKind(
            INFO,
            "Recovered {count} jobs of vanished workers.",
            ("count", "failed", "job_ids", "previous_owners"),
        ),
        "jobs.retried": EventKind(
            INFO, "Gave {count} failed jobs a fresh start.", ("count", "category", "job_ids")
        ),
        "jobs.cancelled": EventKind(INFO, "Cancelled {count} pending jobs.", ("count", "job_ids")),
        "jobs.cleaned_up": EventKind(
            INFO,
            "Deleted {count} ended jobs past retention.",
            ("count", "completed", "failed", "events"),
        ),
        "job.failed": EventKind(
            ERROR,
            "A job failed for good.",
            _JOB,
        ),
        "job.retry_planned": EventKind(
            WARNING,
            "An attempt failed; the job will be tried again.",
            _JOB,
        ),
        "lease.lost": EventKind(
            WARNING,
            "The lease of {count} jobs was lost to somebody else.",
            ("worker_id", "count", "job_ids", "job_id"),
        ),
        "lease.refused": EventKind(
            INFO, "The queue gives out no jobs now.", ("worker_id", "reason", "until")
        ),
        "heartbeat.missed": EventKind(
            WARNING, "No heartbeat for too long: a worker may be gone.", ("worker_id", "silent_for")
        ),
        "heartbeat.failed": EventKind(
            WARNING, "A heartbeat could not be written.", ("worker_id", "job_id", *_ERROR)
        ),
        "recovery.failed": EventKind(
            ERROR, "Recovery failed; it is tried again at its next turn.", _ERROR
        ),
        # health, switch, breakers, budget
        "health.degraded": EventKind(
            WARNING, "{consecutive_failures} failures in a row.", ("consecutive_failures",)
        ),
        "health.critical": EventKind(CRITICAL, "Every run that takes jobs dies.", ("reason",)),
        "health.recovered": EventKind(
            INFO, "A success ended the row of failures.", ("consecutive_failures",)
        ),
        "queue.halted": EventKind(
            CRITICAL, "The queue is halted until a person resumes it.", ("reason",)
        ),
        "queue.paused": EventKind(INFO, "The queue was paused.", ("reason",)),
        "queue.resumed": EventKind(INFO, "The queue was resumed.", ("reason",)),
        "breaker.opened": EventKind(
            WARNING, "{breaker} does not answer; everybody waits.", ("breaker", "reason", "until")
        ),
        "breaker.closed": EventKind(INFO, "{breaker} answers again.", ("breaker",)),
        "limiter.exhausted": EventKind(
            INFO, "The budget of this interval is used up.", ("worker_id", "provider", "until")
        ),
        "limiter.grant_outdated": EventKind(
            WARNING,
            "A grant was old before it could be used: the queue's database is slow.",
            ("provider",),
        ),
        "limiter.paused": EventKind(
            INFO, "Nobody gets any of its budget until then.", ("provider", "until")
        ),
        # entities and models
        "entities.created": EventKind(INFO, "Created {count} entities.", ("count", "existing")),
        "entities.discovered": EventKind(
            INFO,
            "Found {count} entities that need an embedding.",
            ("count", "examined", "new_jobs", "parked"),
        ),
        "entities.queue_unavailable": EventKind(
            WARNING,
            "Entities were saved but not queued; discovery will queue them.",
            ("count", *_ERROR),
        ),
        "model.registered": EventKind(
            INFO, "{model} is the graph's first model.", ("model", "dimensions")
        ),
        "load.row_refused": EventKind(WARNING, "A row could not be loaded.", ("line", "reason")),
        # the stuck-job reaper
        "reaper.swept": EventKind(
            INFO, "A sweep gave {count} stuck jobs their verdict.", ("count", "metrics")
        ),
        "reaper.jobs_requeued": EventKind(
            WARNING,
            "Requeued {count} jobs of {table} whose worker went silent.",
            ("table", "count", "job_ids", "workers"),
        ),
        "reaper.jobs_failed": EventKind(
            ERROR,
            "Failed {count} jobs of {table}: no attempt of theirs was finished.",
            ("table", "count", "job_ids", "workers"),
        ),
        "reaper.rows_left_alone": EventKind(
            WARNING,
            "{count} rows of {table} are processing without lease or heartbeat.",
            ("table", "count"),
        ),
        "reaper.rows_refused": EventKind(
            ERROR,
            "The rules of {table} do not let the reaper change {count} rows.",
            ("table", "count", "job_ids", *_ERROR),
        ),
        "reaper.sweep_failed": EventKind(
            ERROR, "The sweep of {table} failed; the next one tries again.", ("table", *_ERROR)
        ),
        "reaper.count_failed": EventKind(
            WARNING, "The counters of a sweep could not be stored.", _ERROR
        ),
        "reaper.schema_extended": EventKind(INFO, "Extended {table}.", ("table", "statement")),
        "reaper.started": EventKind(INFO, "Sweeps every {interval} seconds.", ("interval",)),
        "reaper.stopped": EventKind(INFO, "Stopped after {count} sweeps.", ("count",)),
        # runs
        "batch.measured": EventKind(
            INFO,
            "One batch is done.",
            (
                "worker_id",
                "model",
                "leased",
                "embedded",
                "reused",
                "superseded",
                "failed",
                "retried",
                "released",
                "deferred",
                "lost",
                "requests",
                "tokens",
                "truncated",
                "seconds",
                "per_second",
            ),
        ),
        "op.failed": EventKind(ERROR, "The op {operation} failed.", ("operation", *_ERROR)),
        "look.failed": EventKind(
            WARNING, "A sensor could not look; its next tick tries again.", _ERROR
        ),
        "run.interrupted": EventKind(
            WARNING, "The run was interrupted and finishes what it has.", ("worker_id",)
        ),
        "tool.failed": EventKind(ERROR, "A tool for agents broke: a bug.", ("tool", *_ERROR)),
        "store.apoc_missing": EventKind(WARNING, "No APOC: cleanup deletes in small transactions of its own."),
        "settings.noted": EventKind(WARNING, "A setting deserves attention."),
    }
)
