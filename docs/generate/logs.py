"""docs/logs.md: all log events, from their table."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from embed_pipeline.telemetry.events import EVENTS, EventKind
from embed_pipeline.telemetry.facts import LONGEST_STACK, LONGEST_TEXT, MOST_ITEMS, camel_case
from embed_pipeline.worker.report import COUNTS

_PREFACE = f"""\
# Logs

Each log line is an event with facts, written by the standard logger `embed_pipeline`: as JSON, or
as text on a terminal (`EMBED_LOG_FORMAT`, `EMBED_LOG_LEVEL`). In the log of a Dagster run a line is
its message with the facts behind it, for people; the process's stderr beside it has the JSON.

```json
{{"timestamp": "2026-01-31T12:00:00.000Z", "level": "info", "event": "jobs.leased",
 "message": "Leased 250 jobs.", "workerId": "…", "count": 250, "probe": false}}
```

`timestamp`, `level`, `event` and `message` are in every line; the message is the one below, or that
of the error. A line has those of its fields that apply. Times are ISO 8601, durations are seconds.
Texts are cut after {LONGEST_TEXT:,} characters, stacks after
{LONGEST_STACK:,}, and lists after {MOST_ITEMS} items. Secrets and vectors are never logged.

Each change of jobs is also stored as an event in the queue, in the same transaction, so a lost log
loses no history.

## Events

| Event | Level | Message | Fields |
|---|---|---|---|
"""

_FIELDS = """
## Fields

| Field | Meaning |
|---|---|
"""

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ahead": "Seconds; negative if it is behind.",
        "attempt": "Which attempt of the job this was.",
        "attempts": "How many attempts each of the jobs has had.",
        "breaker": "The name of the breaker: a provider, or `graph`.",
        "cache": "`miss`: there was no vector to reuse.",
        "category": "Only failed jobs of this category; null: of any.",
        "client": "The address that the request came from.",
        "complete": "Whether the round came to the end of the graph.",
        "completed": "How many of them had been completed.",
        "consecutive_failures": "How many failures followed each other.",
        "count": "The number in the message.",
        "deferred": "Jobs returned after their request had been sent, without counting an attempt.",
        "dimensions": "How many numbers a vector of the model has.",
        "embedded": "Jobs whose text was sent to the provider.",
        "entity_name": "The name of the job's entity.",
        "entity_names": "The names of the jobs' entities.",
        "error_class": "The class of the error.",
        "error_type": "TRANSIENT, PERMANENT or CRITICAL.",
        "events": "How many events of the queue were deleted with them.",
        "examined": "How many entities were read.",
        "existing": "How many existed before and were not changed.",
        "failed": "How many of them failed permanently.",
        "filesystem": "The type of the mount.",
        "folder": "The folder of the SQLite files.",
        "interval": "Seconds from the start of a sweep to the next one's.",
        "job_id": "The job.",
        "job_ids": "The jobs.",
        "leased": "Jobs leased.",
        "left": "About so many entities that a bound left without a job.",
        "line": "The row's line in the file.",
        "lost": "Jobs whose lease was lost to another worker or to recovery.",
        "marked": "Entities whose vector has to be made again.",
        "max_attempts": "How many attempts the job has.",
        "metrics": "The figures of the sweep, as in [reaper](reaper.md#what-operators-see).",
        "model": "The model, as `provider/name@dimensions`.",
        "new_jobs": "How many jobs were queued for them.",
        "nothing_to_embed": "Jobs whose text was emptied meanwhile: completed without a request.",
        "observations": "What the entity's text is made of.",
        "operation": "What was being done.",
        "parked": "How many have a failed job, which only a person revives.",
        "per_second": "Completed jobs per second; null if there was none.",
        "previous_owners": "The workers that had held them.",
        "probe": "Whether the lease tests a provider after an outage.",
        "provider": "The provider.",
        "rate_limiter": "What was left of the shared budget.",
        "reason": "Why.",
        "released": "Jobs returned before they were started.",
        "repaired": "Entities whose labels were not what their properties say.",
        "requests": "Requests sent to the provider.",
        "retried": "Jobs that failed and will be tried again.",
        "reused": "Jobs that needed no request because a vector could be reused.",
        "seconds": "How long it took.",
        "silent_for": "Seconds since the last heartbeat.",
        "stack": "Where the error happened.",
        "statement": "The SQL that was run.",
        "superseded": "Jobs whose text changed meanwhile; the new version is queued.",
        "table": "The table of SQL jobs.",
        "tokens": "Tokens sent to the provider.",
        "tool": "The tool that was called.",
        "truncated": "Texts that were cut to the provider's limit.",
        "unchanged": "How many have the vector of their text.",
        "unknown": "How many names no entity has.",
        "until": "When it ends.",
        "worker_id": "Who holds or held the lease; in Dagster the id of the run.",
        "workers": "The workers that hold or held the jobs.",
    }
)


def logs_markdown() -> str:
    events = "".join(_line(name, kind) for name, kind in EVENTS.items())
    fields = "".join(
        f"| `{camel_case(name)}` | {meaning} |\n" for name, meaning in MEANINGS.items()
    )
    return _PREFACE + events + _FIELDS + fields


def _line(name: str, kind: EventKind) -> str:
    level = logging.getLevelName(kind.level)
    facts = [*kind.facts, *COUNTS] if name == "batch.measured" else kind.facts
    fields = ", ".join(f"`{camel_case(fact)}`" for fact in facts)
    return f"| `{name}` | {level} | {kind.sentence} | {fields} |\n"
