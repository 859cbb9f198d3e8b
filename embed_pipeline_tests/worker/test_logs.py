"""Every line that a person needs to find the cause, as structured JSON."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime

import pytest

from embed_pipeline import telemetry
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.domain.health import HealthStatus
from embed_pipeline.errors import (
    CredentialsRefused,
    EmbedPipelineError,
    InputRefused,
    ProviderUnavailable,
)
from embed_pipeline.telemetry.latency import LatencyKind
from embed_pipeline.worker.batch import MOST_LINES
from embed_pipeline_tests.worker.conftest import Build
from embed_pipeline_tests.worker.logbook import Logbook
from embed_pipeline_tests.worker.scene import World, entity, uid

SECRET = "sk-" + "s3cret" * 8


def refuse_poison(texts: Sequence[str]) -> None:
    if any("poison" in text for text in texts):
        raise InputRefused("Input refused by the provider.")


@pytest.fixture
def world_with_refusal(build: Build) -> World:
    """Ada's text will be refused, within a budget of ten requests."""
    world = build(requests=10)
    ada = NewEntity(uid=uid(0), name="Ada", properties={"observations": ("poison", "more")})
    world.create(ada)
    world.provider.always = refuse_poison
    return world


def test_job_failure_is_logged_with_its_full_context(
    world_with_refusal: World, logs: Logbook
) -> None:
    world_with_refusal.run(owner="run-7")

    (entry,) = logs.of("job.failed")
    assert entry["jobId"] == world_with_refusal.job_of(uid(0)).id
    assert (entry["entityName"], entry["operation"]) == ("Ada", "embed")
    assert (entry["errorType"], entry["errorClass"]) == ("PERMANENT", "InputRefused")
    assert (entry["attempt"], entry["maxAttempts"]) == (1, 3)
    assert entry["message"] == "Input refused by the provider."
    assert "refuse_poison" in entry["stack"]
    assert (entry["workerId"], entry["level"]) == ("run-7", "error")
    assert datetime.fromisoformat(entry["timestamp"]).tzinfo is not None


def test_job_failure_is_logged_with_the_state_of_the_operation(
    world_with_refusal: World, logs: Logbook
) -> None:
    world_with_refusal.run(owner="run-7")

    (entry,) = logs.of("job.failed")
    assert "poison" in str(entry["observations"])
    assert (entry["model"], entry["cache"]) == ("mock/mock@8", "miss")
    assert entry["rateLimiter"]["requests"] == 8, "one for it, one to learn whether all is refused"


def test_planned_retry_is_logged_as_a_warning_with_its_attempt(world: World, logs: Logbook) -> None:
    world.fill(1)
    world.provider.script.append(ProviderUnavailable("connection reset"))

    world.run()

    (entry,) = logs.of("job.retry_planned")
    assert (entry["level"], entry["errorType"]) == ("warning", "TRANSIENT")
    assert (entry["attempt"], entry["maxAttempts"]) == (1, 3)


@pytest.mark.parametrize(
    ("error", "category"),
    [
        (ProviderUnavailable("connection reset"), "TRANSIENT"),
        (CredentialsRefused("the key was revoked"), "CRITICAL"),
    ],
)
def test_error_of_a_whole_request_is_a_warning_that_names_jobs_and_circumstances(
    world: World, logs: Logbook, error: EmbedPipelineError, category: str
) -> None:
    world.fill(3)
    world.provider.script.append(error)

    world.run(owner="run-1")

    (entry,) = logs.of("jobs.deferred")
    assert (entry["level"], entry["errorType"], entry["count"]) == ("warning", category, 3)
    assert entry["jobIds"] == [job.id for job in world.all_jobs]
    assert entry["entityNames"] == [f"entity {number}" for number in range(3)]
    assert entry["attempts"] == [0, 0, 0]
    assert (entry["message"], entry["workerId"]) == (str(error), "run-1")
    assert type(error).__name__ in entry["stack"]
    assert (entry["operation"], entry["model"]) == ("embed", "mock/mock@8")
    assert "rateLimiter" in entry


OF_EVERY_JOB_ERROR = {
    *("jobId", "entityName", "attempt", "maxAttempts", "cache", "observations", "operation"),
    *("errorType", "errorClass", "stack", "workerId", "model", "rateLimiter"),
}


def test_deferred_jobs_have_a_line_each_with_the_fields_of_every_job_error(
    world: World, logs: Logbook
) -> None:
    world.fill(3)
    world.provider.script.append(ProviderUnavailable("connection reset"))

    world.run(owner="run-1")

    lines = logs.of("job.deferred")
    assert [line["jobId"] for line in lines] == [job.id for job in world.all_jobs]
    assert [line["entityName"] for line in lines] == [f"entity {number}" for number in range(3)]
    for line in lines:
        assert line.keys() >= OF_EVERY_JOB_ERROR
        assert (line["attempt"], line["maxAttempts"], line["cache"]) == (1, 3, "miss")
        assert (line["level"], line["message"]) == ("warning", "connection reset")
        assert line["observations"]


def test_lines_of_deferred_jobs_are_bounded_and_the_rest_is_counted(
    world: World, logs: Logbook
) -> None:
    world.fill(MOST_LINES + 5)
    world.provider.script.append(ProviderUnavailable("connection reset"))

    world.run()

    assert len(logs.of("job.deferred")) == MOST_LINES
    assert logs.of("jobs.deferred")[0]["count"] == MOST_LINES + 5


def test_failure_of_a_vanished_entity_is_logged_by_its_key(world: World, logs: Logbook) -> None:
    world.fill(1)
    world.remove(uid(0))

    world.run()

    assert logs.of("job.failed")[0]["entityName"] == uid(0)


def test_failure_of_a_vanished_entity_has_every_field_and_a_stack(
    world: World, logs: Logbook
) -> None:
    world.fill(1)
    world.remove(uid(0))

    world.run()

    (line,) = logs.of("job.failed")
    assert line.keys() >= OF_EVERY_JOB_ERROR
    assert "finish_without_request" in line["stack"]
    assert "EntityGone: The entity was deleted" in line["stack"]
    assert world.job_of(uid(0)).error_stack == line["stack"]


def test_observations_of_megabytes_are_cut_in_the_log(world: World, logs: Logbook) -> None:
    world.create(entity(0, "poison " * 300_000))
    world.provider.always = refuse_poison

    world.run()

    (entry,) = logs.of("job.failed")
    assert len(str(entry["observations"])) < 10_000


def test_secret_in_an_error_is_neither_stored_nor_logged(world: World, logs: Logbook) -> None:
    world.fill(1)
    world.provider.script.append(InputRefused(f"refused for key {SECRET}"))

    world.run()

    job = world.job_of(uid(0))
    assert SECRET not in f"{job.error} {job.error_stack}"
    assert SECRET not in str(logs.entries)


def test_five_consecutive_failures_degrade_health_and_say_so(build: Build, logs: Logbook) -> None:
    world = build(max_inputs=1)
    world.create(*(entity(number, "poison") for number in range(6)))
    world.provider.always = refuse_poison

    world.run()

    (entry,) = logs.of("health.degraded")
    assert (entry["consecutiveFailures"], entry["level"]) == (5, "warning")
    health = world.jobs.health.report()
    assert (health.status, health.consecutive_failures) == (HealthStatus.DEGRADED, 6)
    assert health.success_rate == 0
    assert health.error_patterns[0] == ("InputRefused: Input refused by the provider.", 6)


def test_success_returns_health_to_healthy(build: Build, logs: Logbook) -> None:
    world = build(max_inputs=1)
    world.create(*(entity(number, "poison") for number in range(3)), entity(3))
    world.provider.always = refuse_poison

    world.run()

    health = world.jobs.health.report()
    assert (health.status, health.consecutive_failures) == (HealthStatus.HEALTHY, 0)
    assert health.last_success_at == world.clock.now()
    assert health.success_rate == 0.25
    assert logs.of("health.recovered")[0]["consecutiveFailures"] == 3


def test_every_batch_writes_a_metrics_line_of_its_own_numbers(world: World, logs: Logbook) -> None:
    world.fill(5)

    world.run(owner="run-1", limit=3)

    lines = logs.of("batch.measured")
    assert [(line["leased"], line["embedded"], line["requests"]) for line in lines] == [
        (3, 3, 1),
        (2, 2, 1),
    ]
    assert {line["workerId"] for line in lines} == {"run-1"}
    assert {line["model"] for line in lines} == {"mock/mock@8"}
    assert lines[0]["tokens"] == 12


def test_reused_vectors_are_counted_and_stand_in_the_metrics_line(
    world: World, logs: Logbook
) -> None:
    twins = [
        type(entity(0))(uid=uid(n), name="twin", properties={"observations": ("same",)})
        for n in range(3)
    ]
    world.create(*twins[:2])
    world.run()
    world.create(twins[2])

    world.run()

    lines = logs.of("batch.measured")
    assert [(line["embedded"], line["reused"], line["requests"]) for line in lines] == [
        (1, 1, 1),
        (0, 1, 0),
    ]
    counters = world.jobs.counters.read()
    assert (counters["vectors_embedded"], counters["vectors_reused"]) == (1, 2)


def test_counters_sum_over_all_batches(world: World) -> None:
    world.fill(5)

    world.run(limit=2)

    counters = world.jobs.counters.read()
    assert (counters["vectors_embedded"], counters["provider_requests"]) == (5, 3)
    assert counters["jobs_completed"] == 5


def test_times_are_counted_once_per_batch_failed_requests_included(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    added: list[Mapping[str, int]] = []
    add = world.jobs.counters.add

    def spy(amounts: Mapping[str, int]) -> None:
        added.append(amounts)
        add(amounts)

    monkeypatch.setattr(world.jobs.counters, "add", spy)
    world.provider.script.append(InputRefused("400"))
    world.fill(4)

    world.run(limit=4)

    latencies = world.jobs.counters.latencies(model=world.services.model)
    counts = {each.kind: sum(each.counts) for each in latencies}
    assert len(added) == 1
    assert len(world.provider.requests) == 3  # all four, then both halves
    assert counts == {
        LatencyKind.REQUEST: 3,
        LatencyKind.JOB: 4,
        LatencyKind.WRITE: 2,
        LatencyKind.SEARCH: 0,
    }


def test_lines_go_to_stderr_as_json_once_configured(
    world: World, logs: Logbook, capsys: pytest.CaptureFixture[str]
) -> None:
    telemetry.configure(format="json")
    try:
        world.fill(1)
        world.run()
    finally:
        logging.getLogger(telemetry.LOGGER_NAME).removeHandler(telemetry._HANDLER)

    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert "batch.measured" in [line["event"] for line in lines]
    assert len(lines) == len(logs.entries)
