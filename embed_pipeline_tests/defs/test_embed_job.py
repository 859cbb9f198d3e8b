"""embed_job: recover, lease, embed, in one process and on the real stores."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest

from embed_pipeline.errors import CredentialsRefused, InputRefused, StoreAccessDenied, StoreBusy
from embed_pipeline.ports.embedding_provider import Embedded, Limits
from embed_pipeline.providers.mock import MockProvider
from embed_pipeline.stores.queue.job_store import QueueJobStore
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.leasing import ensure_model
from embed_pipeline_tests.contracts.entity_store.scene import coverage_of
from embed_pipeline_tests.defs.conftest import Build
from embed_pipeline_tests.defs.scene import MODEL, Pipeline, metadata_of, sentence_of, steps_skipped
from embed_pipeline_tests.worker.logbook import recording

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")


def test_run_embeds_what_is_queued(pipeline: Pipeline) -> None:
    pipeline.create("a", "b", "c")

    result = pipeline.run("embed_job")

    assert result.success
    assert result.output_for_node("embed_batch") == 3
    assert coverage_of(pipeline.services.graph, model=MODEL).percent == 100


def test_without_work_embed_batch_is_skipped_and_the_run_succeeds(pipeline: Pipeline) -> None:
    result = pipeline.run("embed_job")

    assert result.success
    assert steps_skipped(result) == ["embed_batch"]


def test_run_of_a_paused_queue_leases_nothing_and_says_so(pipeline: Pipeline) -> None:
    pipeline.create("a")
    pipeline.services.jobs.switch.pause("tonight")

    result = pipeline.run("embed_job")

    lease = metadata_of(result, "lease_batch")
    assert result.success
    assert steps_skipped(result) == ["embed_batch"]
    assert (lease["state"].startswith("paused"), lease["jobs"]) == (True, 0)
    assert pipeline.pending == 1


def test_run_of_a_halted_queue_fails_with_the_reason(pipeline: Pipeline) -> None:
    pipeline.create("a")
    pipeline.services.jobs.switch.halt("revoked", seen=0)

    result = pipeline.run("embed_job", raise_on_error=False)

    assert sentence_of(result, "lease_batch") == (
        "revoked. The queue is halted: fix the cause, then launch resume_job."
    )
    assert pipeline.pending == 1


def refuse_the_graph(monkeypatch: pytest.MonkeyPatch, *, after: int) -> None:
    """The password of the graph is wrong from the check before lease number `after` on."""
    checks = iter(range(1_000))

    def refuse(services: Services) -> None:
        if next(checks) >= after:
            raise StoreAccessDenied("The graph refuses the password.")
        ensure_model(services)

    monkeypatch.setattr("embed_pipeline.worker.leasing.ensure_model", refuse)


def test_run_that_finds_the_graphs_password_wrong_is_no_green_run(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.create("a")
    refuse_the_graph(monkeypatch, after=0)

    result = pipeline.run("embed_job", raise_on_error=False)

    assert sentence_of(result, "lease_batch") == (
        "The graph refuses the password."
        " The queue is halted: fix the cause, then launch resume_job."
    )
    assert pipeline.pending == 1


def test_run_that_finds_it_wrong_on_the_way_is_no_green_run_either(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.create("a", "b")
    refuse_the_graph(monkeypatch, after=1)

    result = pipeline.run("embed_job", {"lease_batch": {"batch_size": 1}}, raise_on_error=False)

    assert sentence_of(result, "embed_batch") == (
        "The graph refuses the password."
        " The queue is halted: fix the cause, then launch resume_job."
    )
    assert pipeline.services.jobs.get_queue_status().completed == 1


def test_lock_owner_is_the_run_id(pipeline: Pipeline) -> None:
    pipeline.create("a")

    result = pipeline.run("embed_job")

    (leased,) = pipeline.services.jobs.events.recent(kind="jobs.leased", limit=10)
    assert leased.owner == result.run_id
    assert metadata_of(result, "lease_batch")["owner"] == result.run_id


def test_run_finishes_the_jobs_of_a_vanished_worker(pipeline: Pipeline) -> None:
    pipeline.abandon("e1", "e2", owner="worker-7")

    result = pipeline.run("embed_job")

    shown = metadata_of(result, "recover_stale")
    rows = shown["jobs"]
    assert (shown["recovered"], shown["failed"]) == (2, 0)
    assert {row["entity"] for row in rows} == {"e1", "e2"}
    assert {row["previous owner"] for row in rows} == {"worker-7"}
    assert pipeline.services.jobs.get_queue_status().processing == 0


def test_run_recovers_nothing_where_automatic_recovery_is_off(build: Build) -> None:
    pipeline = build(EMBED_JOB_RECOVERY_INTERVAL="0")
    pipeline.abandon("e1")

    automatic = pipeline.run("embed_job")
    left = pipeline.services.jobs.get_queue_status().processing
    by_hand = pipeline.run("recover_stale_job")

    assert automatic.success
    assert left == 1
    assert metadata_of(by_hand, "recover_stale")["recovered"] == 1


def break_recovery(monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(_self: QueueJobStore, *, limit: int = 0) -> None:
        raise StoreBusy("The queue is locked by another process.")

    monkeypatch.setattr(QueueJobStore, "recover_stale", busy)


def test_failing_recovery_is_logged_and_the_batch_still_leased(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.create("a")
    break_recovery(monkeypatch)

    with recording() as logbook:
        result = pipeline.run("embed_job")

    (line,) = logbook.of("recovery.failed")
    assert result.success
    assert result.output_for_node("embed_batch") == 1
    assert "locked by another process" in line["message"] + line.get("stack", "")


def test_failing_recovery_fails_its_own_job(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_recovery(monkeypatch)

    result = pipeline.run("recover_stale_job", raise_on_error=False)

    assert sentence_of(result, "recover_stale") == "The queue is locked by another process."


@pytest.mark.parametrize(
    ("job", "op"),
    [
        ("embed_job", "lease_batch"),
        ("recover_stale_job", "recover_stale"),
        ("cleanup_ttl_job", "cleanup_ttl"),
        ("discover_job", "discover_missing_embeddings"),
        ("observe_job", "observe"),
        ("daily_report_job", "daily_report"),
        ("force_embedding_job", "force_embedding"),
        ("retry_failed_job", "retry_failed"),
        ("pause_job", "pause_queue"),
        ("resume_job", "resume_queue"),
    ],
)
def test_run_on_a_queue_that_cannot_be_used_fails_with_one_sentence(
    pipeline: Pipeline, tmp_path: Path, job: str, op: str
) -> None:
    pipeline.create_outside("a")
    (tmp_path / "home" / "queue.sqlite").write_bytes(b"no database at all" * 500)

    with recording() as logs:
        result = pipeline.run(job, raise_on_error=False)

    sentence = sentence_of(result, op)
    line = logs.of("op.failed")[-1]
    assert (line["level"], line["operation"], line["message"]) == ("error", op, sentence)
    assert sentence.endswith("queue.sqlite is not a SQLite database.")
    assert "\n" not in sentence


def test_batch_size_bounds_every_lease_of_the_run(pipeline: Pipeline) -> None:
    pipeline.create(*(f"entity {number}" for number in range(7)))

    result = pipeline.run(
        "embed_job", {"lease_batch": {"batch_size": 3}, "embed_batch": {"batch_size": 2}}
    )

    events = pipeline.services.jobs.events.recent(kind="jobs.leased", limit=10)
    assert result.output_for_node("embed_batch") == 7
    assert sorted(len(event.job_ids) for event in events) == [2, 2, 3]


def test_run_stops_leasing_when_its_time_is_up(pipeline: Pipeline) -> None:
    pipeline.create(*(f"entity {number}" for number in range(5)))

    result = pipeline.run(
        "embed_job", {"lease_batch": {"batch_size": 2}, "embed_batch": {"drain_seconds": 0}}
    )

    status = pipeline.services.jobs.get_queue_status()
    assert metadata_of(result, "embed_batch")["ended because"] == "its time was up"
    assert status.processing == 0
    assert status.pending >= 3


def test_time_of_a_run_is_the_settings_and_dagster_waits_longer(
    build: Build, pipeline: Pipeline
) -> None:
    pipeline.change_queue(run_for=timedelta(0))
    pipeline.create("a")

    shown = metadata_of(
        pipeline.run("embed_job", {"lease_batch": {"batch_size": 1}}), "embed_batch"
    )

    longer = build(EMBED_RUN_SECONDS="900").definitions.resolve_job_def("embed_job")
    assert shown["ended because"] == "its time was up"
    assert longer.tags["dagster/max_runtime"] == str(900 + 360)
    assert build().definitions.resolve_job_def("embed_job").tags["dagster/max_runtime"] == "600"


@pytest.mark.parametrize("size", [0, -1])
def test_impossible_batch_size_fails_the_run_before_it_leases(
    pipeline: Pipeline, size: int
) -> None:
    pipeline.create("a")

    result = pipeline.run("embed_job", {"lease_batch": {"batch_size": size}}, raise_on_error=False)

    assert not result.success
    assert pipeline.pending == 1


@pytest.mark.parametrize("values", [{"batch_size": -1}, {"batch_size": 0}, {"drain_seconds": -1}])
def test_odd_config_of_the_second_op_strands_no_job_of_the_first(
    pipeline: Pipeline, values: dict[str, int]
) -> None:
    pipeline.create("a")

    pipeline.run("embed_job", {"embed_batch": values}, raise_on_error=False)

    assert pipeline.services.jobs.get_queue_status().processing == 0


def test_metadata_is_readable(pipeline: Pipeline) -> None:
    pipeline.create("a", "b")

    result = pipeline.run("embed_job")

    lease, embed = metadata_of(result, "lease_batch"), metadata_of(result, "embed_batch")
    recovery = metadata_of(result, "recover_stale")
    assert (recovery["recovered"], recovery["failed"], recovery["per_second"]) == (0, 0, 0)
    assert (lease["state"], lease["jobs"]) == ("leased", 2)
    assert (embed["leased"], embed["embedded"], embed["requests"]) == (2, 2, 1)
    assert embed["ended because"] == "the queue is empty"
    for shown in (recovery, lease, embed):
        assert shown["seconds"] >= 0
    for shown in (lease, embed):
        assert shown["per_second"] > 0


def test_counts_of_nothing_are_shown_as_nothing(pipeline: Pipeline) -> None:
    pipeline.create("a")

    embedded = metadata_of(pipeline.run("embed_job"), "embed_batch")
    idle = metadata_of(pipeline.run("embed_job"), "lease_batch")

    assert list(embedded)[:5] == ["embedded", "tokens", "per_second", "seconds", "failed"]
    assert embedded["tokens"] > 0
    assert embedded["failed"] == 0
    assert (idle["state"], idle["jobs"], idle["per_second"]) == ("nothing is due", 0, 0)


def test_failures_are_a_table_with_names_and_reasons(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = MockProvider.embed

    def refuse(self: MockProvider, texts: Sequence[str]) -> Embedded:
        if {"a", "b"}.intersection(texts):
            raise InputRefused("The text is refused.")
        return answer(self, texts)

    pipeline.create("a", "b")
    monkeypatch.setattr(MockProvider, "embed", refuse)

    result = pipeline.run("embed_job")

    shown = metadata_of(result, "embed_batch")
    rows = shown["failures"]
    assert shown["failed"] == 2
    assert {row["entity"] for row in rows} == {"a", "b"}
    assert {(row["category"], row["outcome"]) for row in rows} == {("PERMANENT", "failed")}
    assert {row["error"] for row in rows} == {"The text is refused."}


def test_critical_error_halts_the_queue_and_charges_nobody(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_self: MockProvider, _texts: Sequence[str]) -> Embedded:
        raise CredentialsRefused("The key is refused.")

    pipeline.create("a")
    monkeypatch.setattr(MockProvider, "embed", refuse)

    result = pipeline.run("embed_job", raise_on_error=False)

    failure = result.failure_data_for_node("embed_batch")
    assert failure is not None
    assert failure.user_failure_data is not None
    assert failure.user_failure_data.description == (
        "The key is refused. The queue is halted: fix the cause, then launch resume_job."
    )
    assert pipeline.services.jobs.switch.read().reason == "The key is refused."
    assert pipeline.pending == 1


def test_terminated_run_gives_the_rest_back(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real signal, as Dagster's terminate sends it, while the first of two requests is out."""
    answer = MockProvider.embed
    asked: list[int] = []

    def interrupted(self: MockProvider, texts: Sequence[str]) -> Embedded:
        asked.append(len(texts))
        os.kill(os.getpid(), signal.SIGINT)
        return answer(self, texts)

    pipeline.create("a", "b", "c")
    monkeypatch.setattr(MockProvider, "embed", interrupted)
    monkeypatch.setattr(MockProvider, "limits", Limits(inputs=1))

    with pytest.raises((dg.DagsterExecutionInterruptedError, KeyboardInterrupt)):
        pipeline.run("embed_job")

    status = pipeline.services.jobs.get_queue_status()
    assert asked == [1]
    assert (status.completed, status.pending, status.processing) == (1, 2, 0)


@pytest.mark.parametrize("kind", [dg.DagsterExecutionInterruptedError, KeyboardInterrupt])
def test_interrupt_between_requests_gives_everything_back(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise kind

    pipeline.create("a", "b", "c")
    monkeypatch.setattr("embed_pipeline.worker.run.finish_without_request", interrupted)

    with pytest.raises(kind):
        pipeline.run("embed_job")

    status = pipeline.services.jobs.get_queue_status()
    assert (status.pending, status.processing) == (3, 0)
