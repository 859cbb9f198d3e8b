"""What a person does from the launchpad: force, retry, pause, resume."""

from __future__ import annotations

import pytest

from embed_pipeline.domain.control import SwitchState
from embed_pipeline.domain.job import FailureRecord
from embed_pipeline.errors import ErrorCategory
from embed_pipeline_tests.defs.scene import MODEL, Pipeline, metadata_of, sentence_of

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")


def fail_pending(pipeline: Pipeline, category: ErrorCategory = ErrorCategory.PERMANENT) -> None:
    """All that is pending, for good where the category says so."""
    jobs = pipeline.services.jobs
    lease = jobs.lease(owner="w", model=MODEL, limit=100, token=category.value)
    record = FailureRecord(category=category, error_type="Refused", message="The text is refused.")
    jobs.fail(lease, dict.fromkeys(lease.job_ids, record))


def test_entity_is_embedded_again_by_its_name(pipeline: Pipeline) -> None:
    pipeline.create("a", "b")
    pipeline.run("embed_job")

    result = pipeline.run(
        "force_embedding_job", {"force_embedding": {"entity_name": "a", "limit": 7}}
    )
    second = pipeline.run("embed_job")

    shown = metadata_of(result, "force_embedding")
    assert shown["result"].startswith("The embedding of 'a' (")
    assert (shown["found"], shown["queued"]) == (1, 1)
    assert metadata_of(second, "embed_batch")["embedded"] == 1


def test_entity_is_embedded_again_by_its_key(pipeline: Pipeline) -> None:
    pipeline.create("a")
    (entity,) = pipeline.services.graph.find_by_name("a")
    pipeline.run("embed_job")

    pipeline.run("force_embedding_job", {"force_embedding": {"key": entity.uid}})

    assert pipeline.pending == 1


def test_repair_queues_at_most_ten_unless_configured(pipeline: Pipeline) -> None:
    pipeline.create_outside(*(f"entity {number}" for number in range(13)))

    by_default = pipeline.run("force_embedding_job")
    two_more = pipeline.run("force_embedding_job", {"force_embedding": {"limit": 2}})

    assert by_default.output_for_node("force_embedding") == 10
    assert two_more.output_for_node("force_embedding") == 2
    assert pipeline.pending == 12


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"entity_name": "nobody"}, "No entity is named 'nobody'."),
        ({"key": "nowhere"}, "No valid entity has the key 'nowhere'."),
        ({"limit": 0}, "The limit must be from 1 to 1000, got 0."),
    ],
)
def test_wrong_request_fails_with_one_sentence(
    pipeline: Pipeline, config: dict[str, object], sentence: str
) -> None:
    result = pipeline.run("force_embedding_job", {"force_embedding": config}, raise_on_error=False)

    assert sentence_of(result, "force_embedding") == sentence


def test_failed_jobs_get_a_fresh_start_and_are_named(pipeline: Pipeline) -> None:
    pipeline.create("a", "b")
    fail_pending(pipeline)
    failed = {job.id for job in pipeline.services.jobs.failed_jobs()}

    result = pipeline.run("retry_failed_job")

    shown = metadata_of(result, "retry_failed")
    assert shown["pending again"] == 2
    assert {row["job"] for row in shown["jobs"]} == failed
    assert pipeline.pending == 2


def test_only_failures_of_one_category_are_retried(pipeline: Pipeline) -> None:
    pipeline.create("a")
    fail_pending(pipeline)

    other = pipeline.run("retry_failed_job", {"retry_failed": {"category": "TRANSIENT"}})
    same = pipeline.run("retry_failed_job", {"retry_failed": {"category": "PERMANENT"}})

    assert metadata_of(other, "retry_failed")["pending again"] == 0
    assert metadata_of(same, "retry_failed")["pending again"] == 1


def test_retry_is_bounded(pipeline: Pipeline) -> None:
    pipeline.create("a", "b")
    fail_pending(pipeline)

    pipeline.run("retry_failed_job", {"retry_failed": {"limit": 1}})
    refused = pipeline.run("retry_failed_job", {"retry_failed": {"limit": 0}}, raise_on_error=False)

    assert pipeline.pending == 1
    assert sentence_of(refused, "retry_failed") == "The limit must be at least 1, got 0."


def test_pause_stops_leasing_and_says_why(pipeline: Pipeline) -> None:
    pipeline.create("a")

    paused = pipeline.run("pause_job", {"pause_queue": {"reason": "maintenance"}})
    pipeline.run("embed_job")

    shown = metadata_of(paused, "pause_queue")
    assert (shown["state"], shown["reason"]) == ("paused", "maintenance")
    assert pipeline.pending == 1


@pytest.mark.parametrize("state", [SwitchState.PAUSED, SwitchState.HALTED])
def test_resume_goes_on_and_shows_what_it_ended(pipeline: Pipeline, state: SwitchState) -> None:
    pipeline.create("a")
    switch = pipeline.services.jobs.switch
    if state is SwitchState.PAUSED:
        switch.pause("maintenance")
    else:
        switch.halt("The key is refused.", seen=0)

    resumed = pipeline.run("resume_job", {"resume_queue": {"reason": "new key"}})
    pipeline.run("embed_job")

    shown = metadata_of(resumed, "resume_queue")
    assert (shown["state"], shown["reason"]) == ("running", "new key")
    assert shown["state before"] == state.value
    assert shown["reason before"] in ("maintenance", "The key is refused.")
    assert pipeline.pending == 0


@pytest.mark.parametrize(
    ("job", "op"), [("pause_job", "pause_queue"), ("resume_job", "resume_queue")]
)
def test_reason_must_be_given(pipeline: Pipeline, job: str, op: str) -> None:
    result = pipeline.run(job, {op: {"reason": " "}}, raise_on_error=False)

    assert sentence_of(result, op) == "A reason must not be empty."
