"""docs/logs.md: all log events, from their table."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from embed_pipeline.telemetry.events import EVENTS, EventKind
from embed_pipeline.telemetry.facts import LONGEST_STACK, LONGEST_TEXT, MOST_ITEMS, camel_case

_PREFACE = f"""\
# Logs

Everything is logged as an event with facts, by the standard logger `embed_pipeline`: one line of
JSON each, or text on a terminal (`EMBED_LOG_FORMAT`, `EMBED_LOG_LEVEL`). In Dagster the lines are
also in the log of their run.

```json
{{"timestamp": "2026-01-31T12:00:00.000Z", "level": "info", "event": "jobs.leased",
 "message": "Leased 250 jobs.", "workerId": "…", "count": 250, "probe": false}}
```

`timestamp`, `level`, `event` and `message` are in every line; the message is the sentence below, or
where something went wrong the error's own. A line has those of its fields that apply. Moments are
ISO 8601, durations are seconds. Texts are cut after {LONGEST_TEXT:,} characters, stacks after
{LONGEST_STACK:,}, and lists after {MOST_ITEMS} items. Secrets and vectors are never logged.

The changes of the queue's jobs are kept in the queue as well, in the same transaction, so that
losing a log loses no history.

## Events

| Event | Level | Sentence | Fields |
|---|---|---|---|
"""

_FIELDS = """
## Fields

| Field | Meaning |
|---|---|
"""

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "attempt": "Which attempt of the job this was.",
        "attempts": "How many attempts each of the jobs has had.",
        "breaker": "Whose breaker it is: a provider's, or the graph's.",
        "cache": "`miss`: no vector was there to be reused.",
        "category": "Failed jobs of this category only; null: of any.",
        "completed": "How many of them had been completed.",
        "consecutive_failures": "How many failures there were in a row.",
        "count": "How many the sentence speaks of.",
        "deferred": "Jobs given back after their request had been sent, without an attempt.",
        "dimensions": "How many numbers a vector of the model has.",
        "embedded": "Jobs whose text was sent to the provider.",
        "entity_name": "The name of the job's entity.",
        "entity_names": "The names of the jobs' entities.",
        "error_class": "The class of the error.",
        "error_type": "TRANSIENT, PERMANENT or CRITICAL.",
        "events": "How many events of the queue were deleted with them.",
        "examined": "How many entities were read.",
        "existing": "How many were there before, and were left as they are.",
        "failed": "How many of them failed for good.",
        "interval": "Seconds from the start of a sweep to the next one's.",
        "job_id": "The job.",
        "job_ids": "The jobs.",
        "leased": "Jobs taken.",
        "line": "The row's line in the file.",
        "lost": "Jobs whose lease somebody else had by then.",
        "max_attempts": "How many attempts the job has.",
        "metrics": "The figures of the sweep, as in [reaper](reaper.md#what-operators-see).",
        "model": "The model, as `provider/name@dimensions`.",
        "new_jobs": "How many jobs were queued for them.",
        "observations": "What the entity's text is made of.",
        "operation": "What was being done.",
        "parked": "How many have a job that failed, and wait for a person.",
        "per_second": "Jobs ended well per second; null where nothing was.",
        "previous_owners": "The workers that had held them.",
        "probe": "Whether the lease is the one that tries out a provider after an outage.",
        "provider": "The provider.",
        "rate_limiter": "What was left of the shared budget.",
        "reason": "Why.",
        "released": "Jobs given back before they were started.",
        "requests": "Requests sent to the provider.",
        "retried": "Jobs that failed and will be tried again.",
        "reused": "Jobs that needed no request: the vector was there already.",
        "seconds": "How long it took.",
        "silent_for": "Seconds since the last heartbeat.",
        "stack": "Where the error happened.",
        "statement": "The SQL that was run.",
        "superseded": "Jobs whose text changed meanwhile; the new version is queued.",
        "table": "The table of SQL jobs.",
        "tokens": "Tokens sent to the provider.",
        "tool": "The tool that was called.",
        "truncated": "Texts that were cut to the provider's limit.",
        "until": "When it is over.",
        "worker_id": "Who holds or held the lease; in Dagster the id of the run.",
        "workers": "Those that had held the jobs.",
    }
)


def logs_markdown() -> str:
    events = "".join(_line(name, kind) for name, kind in EVENTS.items())
    fields = "".join(f"| `{camel_case(name)}` | {said} |\n" for name, said in MEANINGS.items())
    return _PREFACE + events + _FIELDS + fields


def _line(name: str, kind: EventKind) -> str:
    level = logging.getLevelName(kind.level)
    fields = ", ".join(f"`{camel_case(fact)}`" for fact in kind.facts)
    return f"| `{name}` | {level} | {kind.sentence} | {fields} |\n"
