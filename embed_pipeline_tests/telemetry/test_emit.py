from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embed_pipeline import telemetry
from embed_pipeline.errors import StoreFull
from embed_pipeline.telemetry import configure, emit
from embed_pipeline.telemetry.events import EVENTS
from embed_pipeline.telemetry.rendering import as_json


class Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())

    @property
    def last(self) -> dict[str, Any]:
        entry: dict[str, Any] = json.loads(self.lines[-1])
        return entry


@pytest.fixture
def logs() -> Iterator[Collector]:
    """What a host that captures the standard logger receives."""
    logger, collector = logging.getLogger(telemetry.LOGGER_NAME), Collector()
    level, propagate = logger.level, logger.propagate
    telemetry._render = as_json  # definitions of Dagster in the same process change it
    logger.addHandler(collector)
    logger.setLevel(logging.DEBUG)
    yield collector
    logger.removeHandler(collector)
    logger.removeHandler(telemetry._HANDLER)
    logger.setLevel(level)
    logger.propagate = propagate
    telemetry._render = as_json


class Colour(Enum):
    RED = "red"


@dataclass
class Holder:
    vector: object
    password: str


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError


def test_a_failed_job_is_logged_with_its_full_context(logs: Collector) -> None:
    emit(
        "job.failed",
        job_id="j1",
        entity_name="Ada",
        error_type="PERMANENT",
        attempt=3,
        max_attempts=3,
        message="refused",
        stack="Traceback …",
        worker_id="run-1",
        model="mock/mock@64",
    )

    entry = logs.last
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry.pop("timestamp"))
    assert entry == {
        "level": "error",
        "event": "job.failed",
        "message": "refused",
        "jobId": "j1",
        "entityName": "Ada",
        "errorType": "PERMANENT",
        "attempt": 3,
        "maxAttempts": 3,
        "stack": "Traceback …",
        "workerId": "run-1",
        "model": "mock/mock@64",
    }


def test_the_sentence_of_the_table_is_the_message(logs: Collector) -> None:
    emit("jobs.recovered", count=0)
    zero = logs.last["message"]
    emit("jobs.recovered")

    assert zero == "Recovered 0 jobs with an expired lease."
    assert logs.last["message"] == "Recovered ? jobs with an expired lease."


def test_an_exception_becomes_type_message_and_stack(logs: Collector) -> None:
    try:
        raise StoreFull("no space left, password=hunter2")
    except StoreFull as error:
        emit("job.failed", job_id="j1", error=error)

    entry = logs.last
    assert (entry["errorType"], entry["errorClass"]) == ("CRITICAL", "StoreFull")
    assert entry["message"] == "no space left, password=[redacted]"
    assert entry["stack"].startswith("Traceback (most recent call last)")
    assert "hunter2" not in logs.lines[-1]


def test_an_unknown_event_name_does_not_pass() -> None:
    with pytest.raises(ValueError, match=r"'jobs\.leasd' is not in the table of events"):
        emit("jobs.leasd")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
        (timedelta(seconds=1.5), 1.5),
        (Colour.RED, "red"),
        (Path("a/b"), "a/b"),
        (None, None),
        (True, True),
        (float("nan"), "nan"),
        ("", ""),
        (np.ones((2, 256), dtype=np.float32), "<ndarray of shape (2, 256)>"),
        (np.float32(0.5), 0.5),
        ([np.ones(3), 1], ["<ndarray of shape (3,)>", 1]),
        (
            Holder(np.ones(3), "hunter2"),
            {"vector": "<ndarray of shape (3,)>", "password": "[redacted]"},
        ),
        ("x" * 2001, "x" * 2000 + "…"),
        ("x" * 5_000_000, "x" * 2000 + "…"),
        (list(range(52)), [*range(50), "… 2 more"]),
        ("Bearer abc", "Bearer [redacted]"),
        ("\ud800", "\ud800"),
        (Unprintable(), "<unprintable Unprintable>"),
        (ValueError(), "ValueError"),
    ],
)
def test_values_are_shown_plain_short_and_safe(logs: Collector, value: object, shown: Any) -> None:
    emit("batch.measured", fact=value)

    assert logs.last["fact"] == shown


def test_a_mapping_is_cut_and_its_secrets_are_hidden(logs: Collector) -> None:
    emit("batch.measured", counts={f"k{n}": n for n in range(60)}, options={"api_key": "abc"})

    assert logs.last["counts"]["…"] == "10 more"
    assert logs.last["options"] == {"api_key": "[redacted]"}


def test_a_stack_may_be_longer_than_other_texts(logs: Collector) -> None:
    emit("job.failed", stack="x" * 9000)

    assert logs.last["stack"] == "x" * 8000 + "…"


def test_a_secret_is_hidden_also_where_a_long_text_is_cut(logs: Collector) -> None:
    telemetry.register_secret("Zq7-cut-secret")

    for length in range(1980, 2010):
        emit("batch.measured", fact="x" * length + "Zq7-cut-secret" * 1000)
        assert "Zq7" not in logs.lines[-1]


def test_endless_values_end(logs: Collector) -> None:
    endless: list[object] = []
    endless.append(endless)

    emit("batch.measured", fact=endless)

    assert len(logs.lines[-1]) < 3000


def test_a_fact_called_like_our_own_keys_takes_nothing_away(logs: Collector) -> None:
    emit("breaker.opened", breaker="graph", level=3, event="x", timestamp="y")

    entry = logs.last
    assert (entry["level"], entry["event"]) == ("warning", "breaker.opened")
    assert (entry["level_"], entry["event_"], entry["timestamp_"]) == (3, "x", "y")
    assert entry["message"] == "Breaker of graph opened until ?: ?."


def test_a_value_that_looks_like_a_format_is_not_one(logs: Collector) -> None:
    emit("breaker.opened", breaker="{x} %s", reason="100 %d")

    assert logs.last["message"] == "Breaker of {x} %s opened until ?: 100 %d."


def test_levels_below_the_configured_one_are_silent(logs: Collector) -> None:
    configure("WARNING", "json")

    emit("jobs.leased", count=1)
    emit("lease.lost", count=1)

    assert [json.loads(line)["event"] for line in logs.lines] == ["lease.lost"]


def test_off_a_terminal_lines_are_json_on_stderr(
    logs: Collector, capsys: pytest.CaptureFixture[str]
) -> None:
    configure("INFO", "auto")
    configure("INFO", "auto")

    emit("jobs.leased", count=1)

    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert json.loads(captured.err)["event"] == "jobs.leased"


def test_on_a_terminal_lines_are_text(logs: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    configure("INFO", "auto")

    emit("job.failed", job_id="a\nb", message="one\ntwo", stack="x\ny")

    head, *rest = logs.lines[-1].split("\n")
    assert head.split(" ", 1)[1] == 'ERROR    job.failed: one two jobId="a\\nb"'
    assert rest == ["    x", "    y"]


def test_unconfigured_it_follows_the_hosts_logging(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.INFO):
        emit("jobs.leased", count=1)

    assert json.loads(caplog.messages[-1])["event"] == "jobs.leased"
    assert capsys.readouterr().err == ""


def test_a_quoted_sentence_ends_with_one_full_stop(logs: Collector) -> None:
    emit("queue.halted", reason="The key is refused.")

    assert logs.last["message"] == "Queue halted until it is resumed: The key is refused."


def test_event_names_are_a_noun_and_a_verb_in_the_past() -> None:
    for name, kind in EVENTS.items():
        assert re.fullmatch(r"[a-z]+\.[a-z]+(_[a-z]+)*", name)
        assert kind.sentence.endswith(".")
