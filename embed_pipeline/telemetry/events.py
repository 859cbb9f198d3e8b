"""The table of everything that is ever logged: name, level, sentence.

Names are `noun.verb_past`. A sentence may quote facts in braces; one that is not given reads "?".
"""

from __future__ import annotations

from collections.abc import Mapping
from logging import CRITICAL, ERROR, INFO, WARNING
from types import MappingProxyType
from typing import Final, NamedTuple


class EventKind(NamedTuple):
    level: int
    sentence: str


EVENTS: Final[Mapping[str, EventKind]] = MappingProxyType(
    {
        # jobs and leases
        "jobs.enqueued": EventKind(INFO, "Jobs were put into the queue."),
        "jobs.adopted": EventKind(INFO, "Took in {count} jobs that another program had written."),
        "jobs.leased": EventKind(INFO, "Leased {count} jobs."),
        "jobs.released": EventKind(INFO, "Gave {count} unstarted jobs back."),
        "jobs.completed": EventKind(INFO, "Completed {count} jobs."),
        "jobs.deferred": EventKind(WARNING, "Gave {count} started jobs back without an attempt."),
        "jobs.recovered": EventKind(INFO, "Recovered {count} jobs of vanished workers."),
        "jobs.retried": EventKind(INFO, "Gave {count} failed jobs a fresh start."),
        "jobs.cancelled": EventKind(INFO, "Cancelled {count} pending jobs."),
        "jobs.cleaned_up": EventKind(INFO, "Deleted {count} ended jobs past retention."),
        "job.failed": EventKind(ERROR, "A job failed for good."),
        "job.retry_planned": EventKind(WARNING, "An attempt failed; the job will be tried again."),
        "job.superseded": EventKind(INFO, "The text changed meanwhile; its new version is queued."),
        "lease.lost": EventKind(WARNING, "The lease of {count} jobs was lost to somebody else."),
        "lease.refused": EventKind(INFO, "The queue gives out no jobs now."),
        "heartbeat.missed": EventKind(WARNING, "No heartbeat for too long: a worker may be gone."),
        "heartbeat.failed": EventKind(WARNING, "A heartbeat could not be written."),
        "recovery.failed": EventKind(ERROR, "Recovery failed; it is tried again at its next turn."),
        # health, switch, breakers, budget
        "health.degraded": EventKind(WARNING, "{consecutive_failures} failures in a row."),
        "health.critical": EventKind(CRITICAL, "Every run that takes jobs dies."),
        "health.recovered": EventKind(INFO, "A success ended the row of failures."),
        "queue.halted": EventKind(CRITICAL, "The queue is halted until a person resumes it."),
        "queue.paused": EventKind(INFO, "The queue was paused."),
        "queue.resumed": EventKind(INFO, "The queue was resumed."),
        "breaker.opened": EventKind(WARNING, "{breaker} does not answer; everybody waits."),
        "breaker.closed": EventKind(INFO, "{breaker} answers again."),
        "limiter.exhausted": EventKind(INFO, "The budget of this interval is used up."),
        "limiter.grant_outdated": EventKind(
            WARNING, "A grant was old before it could be used: the queue's database is slow."
        ),
        "limiter.paused": EventKind(INFO, "Nobody gets any of its budget until then."),
        "provider.fell_back": EventKind(WARNING, "Another provider steps in."),
        # entities and models
        "entities.created": EventKind(INFO, "Created {count} entities."),
        "entities.discovered": EventKind(INFO, "Found {count} entities that need an embedding."),
        "entities.queue_unavailable": EventKind(
            WARNING, "Entities were saved but not queued; discovery will queue them."
        ),
        "model.registered": EventKind(INFO, "The graph's first model was registered."),
        "load.row_refused": EventKind(WARNING, "A row could not be loaded."),
        # the stuck-job reaper
        "reaper.swept": EventKind(INFO, "A sweep gave {count} stuck jobs their verdict."),
        "reaper.jobs_requeued": EventKind(
            WARNING, "Requeued {count} jobs of {table} whose worker went silent."
        ),
        "reaper.jobs_failed": EventKind(
            ERROR, "Failed {count} jobs of {table}: no attempt of theirs was finished."
        ),
        "reaper.rows_left_alone": EventKind(
            WARNING, "{count} rows of {table} are processing without lease or heartbeat."
        ),
        "reaper.rows_refused": EventKind(
            ERROR, "The rules of {table} do not let the reaper change {count} rows."
        ),
        "reaper.sweep_failed": EventKind(
            ERROR, "The sweep of {table} failed; the next one tries again."
        ),
        "reaper.count_failed": EventKind(WARNING, "The counters of a sweep could not be stored."),
        "reaper.schema_extended": EventKind(INFO, "Extended {table}."),
        "reaper.started": EventKind(INFO, "Sweeps every {interval} seconds."),
        "reaper.stopped": EventKind(INFO, "Stopped after {count} sweeps."),
        # runs
        "batch.measured": EventKind(INFO, "One batch is done."),
        "op.failed": EventKind(ERROR, "The op {operation} failed."),
        "look.failed": EventKind(WARNING, "A sensor could not look; its next tick tries again."),
        "run.interrupted": EventKind(WARNING, "The run was interrupted and finishes what it has."),
        "tool.failed": EventKind(ERROR, "A tool for agents broke: a bug."),
        "store.apoc_missing": EventKind(WARNING, "No APOC: cleanup uses Cypher's own batches."),
        "settings.noted": EventKind(WARNING, "A setting deserves attention."),
    }
)
