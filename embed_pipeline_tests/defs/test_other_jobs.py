"""recover_stale_job, cleanup_ttl_job and discover_job, and what each shows about itself."""

from __future__ import annotations

from contextlib import closing

import pytest
from pydantic import ValidationError

from embed_pipeline import wiring
from embed_pipeline.defs.maintenance.cleanup import CleanupConfig
from embed_pipeline.defs.maintenance.discovery import DiscoverConfig
from embed_pipeline.domain.job import EntityUid, JobRequest
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline_tests.clocks import DAY, FakeClock
from embed_pipeline_tests.contracts.entity_store.scene import coverage_of
from embed_pipeline_tests.defs.conftest import Build
from embed_pipeline_tests.defs.scene import MODEL, Pipeline, metadata_of

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")


def complete(pipeline: Pipeline, name: str, *, days_ago: int) -> None:
    clock = FakeClock(SystemClock().now() - days_ago * DAY)
    with closing(wiring.open_job_store(pipeline.settings, clock=clock)) as jobs:
        jobs.enqueue([JobRequest(entity_uid=EntityUid(name), model=MODEL, version="1")])
        lease = jobs.lease(owner="worker", model=MODEL, limit=1, token=name)
        jobs.complete(lease, lease.job_ids)


def test_recovery_returns_the_jobs_of_a_vanished_worker(pipeline: Pipeline) -> None:
    (job_id,) = pipeline.abandon("e1", owner="worker-7")

    result = pipeline.run("recover_stale_job")

    (row,) = metadata_of(result, "recover_stale")["jobs"]
    assert result.output_for_node("recover_stale") == 1
    assert (row["job"], row["previous owner"]) == (job_id, "worker-7")
    assert metadata_of(result, "recover_stale")["per_second"] > 0
    assert pipeline.pending == 1


def test_recovery_of_nothing_says_zero(pipeline: Pipeline) -> None:
    result = pipeline.run("recover_stale_job")

    shown = metadata_of(result, "recover_stale")
    assert (shown["recovered"], shown["failed"], shown["per_second"]) == (0, 0, 0)


def test_cleanup_uses_the_configured_retention(build: Build) -> None:
    pipeline = build(EMBED_JOB_RETENTION_DAYS="10")
    complete(pipeline, "old", days_ago=11)
    complete(pipeline, "young", days_ago=9)

    result = pipeline.run("cleanup_ttl_job")

    shown = metadata_of(result, "cleanup_ttl")
    assert result.output_for_node("cleanup_ttl") == 1
    assert (shown["completed deleted"], shown["failed deleted"]) == (1, 0)
    assert shown["older than (days)"] == 10
    assert shown["per_second"] > 0
    assert pipeline.services.jobs.get_queue_status().completed == 1


def test_cleanup_of_another_age_by_config(pipeline: Pipeline) -> None:
    complete(pipeline, "young", days_ago=9)

    result = pipeline.run("cleanup_ttl_job", {"cleanup_ttl": {"older_than_days": 7}})

    assert result.output_for_node("cleanup_ttl") == 1


@pytest.mark.parametrize("days", [-1, 10**9])
def test_impossible_age_is_refused_before_anything_is_deleted(days: int) -> None:
    with pytest.raises(ValidationError, match="older_than_days"):
        CleanupConfig(older_than_days=days)


@pytest.mark.parametrize("bound", ["most_jobs", "most_read"])
def test_discovery_of_nothing_is_refused(bound: str) -> None:
    with pytest.raises(ValidationError, match=bound):
        DiscoverConfig.model_validate({bound: 0})


def test_discovery_queues_what_other_programs_wrote(pipeline: Pipeline) -> None:
    pipeline.create_outside("a", "b", "c")

    first, second = pipeline.run("discover_job"), pipeline.run("discover_job")

    shown = metadata_of(first, "discover_missing_embeddings")
    assert (shown["missing"], shown["new jobs"], pipeline.pending) == (3, 3, 3)
    assert shown["per_second"] > 0
    assert second.output_for_node("discover_missing_embeddings") == 0
    assert metadata_of(second, "discover_missing_embeddings")["queued already"] == 3


def test_discovery_is_bounded_by_config(pipeline: Pipeline) -> None:
    pipeline.create_outside("a", "b", "c")

    pipeline.run("discover_job", {"discover_missing_embeddings": {"most_jobs": 2}})

    assert pipeline.pending == 2


def test_what_discovery_queued_is_embedded_by_the_next_run(pipeline: Pipeline) -> None:
    pipeline.create_outside("a", "b")

    pipeline.run("discover_job")
    pipeline.run("embed_job")

    assert coverage_of(pipeline.services.graph, model=MODEL).percent == 100
