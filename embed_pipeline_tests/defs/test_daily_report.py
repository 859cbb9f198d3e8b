"""The daily report: throughput, latency and error patterns as tables in the UI."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta

import dagster as dg
import pytest

from embed_pipeline import wiring
from embed_pipeline.defs.pipeline import EMBEDDING_REPORT
from embed_pipeline.domain.job import EntityUid, FailureRecord, JobRequest
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline.usecases.insight import daily_report
from embed_pipeline.usecases.insight.daily_report import DailyReport, report_since
from embed_pipeline_tests.clocks import DAY, HOUR, MINUTE, SECOND, FakeClock
from embed_pipeline_tests.defs.scene import MODEL, Pipeline, metadata_of

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")

NOW = SystemClock().now().replace(minute=30, second=0, microsecond=0)


class Past:
    """Jobs that ended before, written one after the other."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._settings = pipeline.settings
        self._number = 0

    def ended(
        self, count: int, *, ago: timedelta, took: timedelta, error: str | None = None
    ) -> None:
        clock = FakeClock(NOW - ago - took)
        with closing(wiring.open_job_store(self._settings, clock=clock)) as jobs:
            jobs.enqueue([self._request() for _ in range(count)])
            clock.advance(took)
            lease = jobs.lease(owner="w", model=MODEL, limit=count, token=str(self._number))
            if error is None:
                jobs.complete(lease, lease.job_ids)
                return
            record = FailureRecord(
                category=ErrorCategory.PERMANENT, error_type="InputRefused", message=error
            )
            jobs.fail(lease, dict.fromkeys(lease.job_ids, record))

    def _request(self) -> JobRequest:
        self._number += 1
        uid = EntityUid(f"e{self._number}")
        return JobRequest(entity_uid=uid, model=MODEL, version="1")


@pytest.fixture
def past(pipeline: Pipeline) -> Past:
    return Past(pipeline)


def report(pipeline: Pipeline, since: timedelta = DAY) -> DailyReport:
    return report_since(pipeline.services.jobs.history, since=NOW - since)


def test_throughput_is_reported_by_the_hour(pipeline: Pipeline, past: Past) -> None:
    past.ended(3, ago=2 * HOUR, took=SECOND)
    past.ended(120, ago=HOUR, took=SECOND)
    past.ended(1, ago=HOUR, took=SECOND, error="Refused.")
    past.ended(7, ago=2 * DAY, took=SECOND)

    made = report(pipeline)

    assert (made.completed, made.failed, made.ended) == (123, 1, 124)
    lines = made.tables()["throughput per hour"].splitlines()
    assert [cell.strip() for cell in lines[-1].split("|")[1:-1]] == [
        f"{NOW - HOUR:%Y-%m-%d %H:00}",
        "120",
        "1",
        "2",
    ]
    assert len(lines) == 4


def test_latency_percentiles_are_right_within_five_percent(pipeline: Pipeline, past: Past) -> None:
    past.ended(90, ago=HOUR, took=10 * SECOND)
    past.ended(9, ago=HOUR, took=5 * MINUTE)
    past.ended(1, ago=HOUR, took=2 * HOUR)

    made = report(pipeline)

    assert made.latency(50) == pytest.approx(10, rel=0.05)
    assert made.latency(90) == pytest.approx(10, rel=0.05)
    assert made.latency(95) == pytest.approx(300, rel=0.05)
    assert made.latency(100) == pytest.approx(7200, rel=0.05)
    assert "| p99          | 5.1 min" in made.tables()["latency"]


def test_errors_are_counted_by_pattern(pipeline: Pipeline, past: Past) -> None:
    past.ended(2, ago=HOUR, took=SECOND, error="Input 17 | is refused.")
    past.ended(1, ago=HOUR, took=SECOND, error="Input 18 | is refused.")
    past.ended(1, ago=HOUR, took=SECOND, error="Too large.")

    table = report(pipeline).tables()["error patterns"].splitlines()

    assert "InputRefused: Input # \\| is refused." in table[2]
    assert table[2].split("|")[1].strip() == "3"
    assert "InputRefused: Too large." in table[3]


def test_pages_add_up(pipeline: Pipeline, past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    past.ended(25, ago=HOUR, took=SECOND)
    past.ended(5, ago=2 * HOUR, took=SECOND, error="Refused.")
    whole = report(pipeline)

    monkeypatch.setattr(daily_report, "PAGE", 4)
    paged = report(pipeline)

    assert paged.figures() == whole.figures()
    assert paged.tables() == whole.tables()


def test_day_without_work_says_so(pipeline: Pipeline) -> None:
    made = report(pipeline)

    assert made.figures() == {"completed": 0, "failed": 0}
    assert made.tables()["throughput per hour"].startswith("Nothing has ended since ")
    assert made.tables()["error patterns"] == "No job has failed."


def test_job_shows_the_tables_on_its_asset(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.create("a", "b")
    pipeline.run("embed_job")

    result = pipeline.run("daily_report_job", instance=instance)

    event = instance.get_latest_materialization_event(dg.AssetKey(EMBEDDING_REPORT))
    assert event is not None
    assert event.asset_materialization is not None
    shown = event.asset_materialization.metadata
    assert result.output_for_node("daily_report") == 2
    assert metadata_of(result, "daily_report")["per_second"] > 0
    assert shown["completed"].value == 2
    assert isinstance(shown["throughput per hour"], dg.MarkdownMetadataValue)
    assert isinstance(shown["latency p95 (seconds)"], dg.FloatMetadataValue)


def test_report_is_bounded_by_config(pipeline: Pipeline, past: Past) -> None:
    past.ended(1, ago=3 * HOUR, took=SECOND)

    day = pipeline.run("daily_report_job")
    hour = pipeline.run("daily_report_job", {"daily_report": {"hours": 1}})

    assert day.output_for_node("daily_report") == 1
    assert hour.output_for_node("daily_report") == 0
