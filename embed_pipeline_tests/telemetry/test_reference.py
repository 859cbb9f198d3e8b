"""The page of log lines: written down, and what the code says."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import embed_pipeline
from docs.generate.logs import MEANINGS
from embed_pipeline.telemetry.events import EVENTS
from embed_pipeline.worker.report import COUNTS, RunReport

PACKAGE = Path(embed_pipeline.__file__).parent
ERROR = {"error_type", "error_class", "stack"}
TROUBLE = {"operation", *ERROR, "worker_id", "model", "rate_limiter"}
OF_A_JOB = {"job_id", "entity_name", "attempt", "max_attempts", "cache", "observations", *TROUBLE}
HANDED_ON = {
    "jobs.deferred": TROUBLE,
    "job.deferred": OF_A_JOB,
    "job.failed": OF_A_JOB,
    "job.retry_planned": OF_A_JOB,
    "batch.measured": RunReport().facts().keys() - set(COUNTS),
}
"""Facts that come from a function of their own."""


def calls() -> Iterator[ast.Call]:
    """Everything that says a log line, at once or after the commit."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and node.args:
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if name in {"emit", "announce"}:
                    yield node


def said_facts() -> dict[str, set[str]]:
    """By event; what names its event by a variable is told under none."""
    said: dict[str, set[str]] = defaultdict(set)
    for call in calls():
        names = {word.value for word in ast.walk(call.args[0]) if isinstance(word, ast.Constant)}
        facts = {keyword.arg for keyword in call.keywords if keyword.arg} - {"message"}
        for name in names & EVENTS.keys():
            said[str(name)] |= (facts - {"error"}) | (ERROR if "error" in facts else set())
    return said


def test_every_event_of_the_table_is_logged_by_somebody() -> None:
    by_variable = {
        "queue.halted",
        "queue.paused",
        "queue.resumed",
        "reaper.jobs_requeued",
        "reaper.jobs_failed",
    }

    assert EVENTS.keys() - said_facts().keys() == by_variable


def test_every_event_has_the_facts_that_are_logged_with_it() -> None:
    said = {name: facts | HANDED_ON.get(name, set()) for name, facts in said_facts().items()}

    assert {name: set(EVENTS[name].facts) for name in said} == said


def test_every_fact_has_its_meaning() -> None:
    named = {fact for kind in EVENTS.values() for fact in kind.facts}

    assert named | set(COUNTS) == MEANINGS.keys()
    assert list(MEANINGS) == sorted(MEANINGS)
