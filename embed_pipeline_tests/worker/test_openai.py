"""The worker with the real OpenAI client, against a server that fails as OpenAI does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from math import ceil, log2
from pathlib import Path

import pytest

from embed_pipeline.domain.control import SwitchState
from embed_pipeline.domain.job import JobStatus
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.worker.packing import HARMLESS
from embed_pipeline.worker.run import drain
from embed_pipeline.worker.stop import StopReason
from embed_pipeline_tests.clocks import SECOND, FakeClock
from embed_pipeline_tests.openai_faults import (
    DROP,
    HANG,
    NAN_ROW,
    SWAPPED_ROWS,
    Fault,
    account_stopped,
    credentials_refused,
    html_page,
    model_not_found,
    quota_exhausted,
    rate_limited,
    refusal,
    server_error,
)
from embed_pipeline_tests.openai_server import OpenAIServer
from embed_pipeline_tests.worker.openai_scene import OpenAIWorld, running_server, server
from embed_pipeline_tests.worker.scene import uid

__all__ = ["running_server", "server"]


@pytest.fixture
def world(tmp_path: Path, clock: FakeClock, server: OpenAIServer) -> Iterator[OpenAIWorld]:
    opened = OpenAIWorld(tmp_path, clock, server, timeout=timedelta(seconds=1))
    yield opened
    opened.close()


def test_every_entity_gets_the_vector_of_its_text_even_from_swapped_rows(
    world: OpenAIWorld, server: OpenAIServer
) -> None:
    server.inject(SWAPPED_ROWS)
    world.fill(20)

    report = drain(world.services, owner="worker-a")

    assert all(world.is_embedded(uid(number)) for number in range(20))
    assert (report.embedded, len(server.requests)) == (20, 1)
    assert report.tokens == server.requests[0].tokens


@pytest.mark.parametrize(
    ("fault", "pause"),
    [(rate_limited({"Retry-After": "7"}), 7 * SECOND), (rate_limited(), 10 * SECOND)],
    ids=["with Retry-After", "without"],
)
def test_429_pauses_and_then_everything_is_embedded(
    world: OpenAIWorld, server: OpenAIServer, fault: Fault, pause: timedelta
) -> None:
    server.inject(fault)
    world.fill(3)

    report = drain(world.services, owner="worker-a")

    assert (report.stop_reason, report.back_at) == (
        StopReason.BUDGET_SPENT,
        world.clock.now() + pause,
    )
    assert all((job.attempts, job.strikes) == (0, 0) for job in world.all_jobs)
    world.clock.advance(pause)
    assert drain(world.services, owner="worker-a").embedded == 3


@pytest.mark.parametrize(
    "fault",
    [
        credentials_refused(),
        refusal(403),
        model_not_found(),
        quota_exhausted(),
        account_stopped(429, kind="billing_not_active"),
    ],
    ids=["401", "403", "404", "insufficient_quota", "billing_not_active"],
)
def test_critical_answer_halts_the_queue_and_charges_no_job(
    world: OpenAIWorld, server: OpenAIServer, fault: Fault
) -> None:
    server.inject(fault)
    world.fill(2)

    drain(world.services, owner="worker-a")
    drain(world.services, owner="worker-b")

    assert world.jobs.switch.read().state is SwitchState.HALTED
    assert len(server.requests) == 1, "no later lease until a person resumes"
    job = world.job_of(uid(0))
    assert (job.status, job.attempts) == (JobStatus.PENDING, 0)
    assert job.error_category is ErrorCategory.CRITICAL
    world.jobs.switch.resume("paid the bill")
    assert drain(world.services, owner="worker-b").embedded == 2


@pytest.mark.parametrize(
    "fault",
    [server_error(), HANG, DROP, html_page(), NAN_ROW],
    ids=["500", "timeout", "dropped", "HTML", "NaN"],
)
def test_request_wide_fault_opens_the_breaker_and_charges_no_job_of_many(
    world: OpenAIWorld, server: OpenAIServer, fault: Fault
) -> None:
    server.inject(fault)
    world.fill(3)

    drain(world.services, owner="worker-a")

    assert world.jobs.breakers.read("openai").is_open
    assert {(job.attempts, job.strikes) for job in world.all_jobs} == {(0, 1)}
    world.clock.advance(SECOND)
    assert drain(world.services, owner="worker-a").embedded == 3
    assert not world.jobs.breakers.read("openai").is_open


def test_400_for_one_text_of_a_hundred_embeds_the_other_99(
    world: OpenAIWorld, server: OpenAIServer
) -> None:
    def poison(texts: Sequence[str]) -> Fault | None:
        return refusal(400, "'$.input' is invalid.") if "entity 41\nnote 41" in texts else None

    server.fault_for = poison
    world.fill(100)

    report = drain(world.services, owner="worker-a")

    assert (report.embedded, report.failed) == (99, 1)
    assert world.job_of(uid(41)).error_category is ErrorCategory.PERMANENT
    assert len(server.requests) <= 2 * ceil(log2(100)) + 1


@pytest.mark.parametrize(
    ("fault", "calls"),
    [
        (refusal(400, "Model does not support matryoshka.", param="dimensions"), 1),
        (refusal(400, "This model does not support specifying dimensions."), 2 + ceil(log2(50))),
    ],
    ids=["named by the server", "found by a harmless text"],
)
def test_setting_that_the_server_refuses_halts_the_queue_and_fails_no_job(
    world: OpenAIWorld, server: OpenAIServer, fault: Fault, calls: int
) -> None:
    server.fault_for = lambda _: fault
    world.fill(50)

    report = drain(world.services, owner="worker-a")

    assert report.stop_reason is StopReason.HALTED
    assert world.jobs.switch.read().state is SwitchState.HALTED
    assert {(job.status, job.attempts) for job in world.all_jobs} == {(JobStatus.PENDING, 0)}
    assert len(server.requests) <= calls
    server.fault_for = None
    world.jobs.switch.resume("EMBEDDING_SEND_DIMENSIONS=false")
    assert drain(world.services, owner="worker-a").embedded == 50


def test_queue_of_nothing_but_refused_texts_fails_them_and_is_not_halted(
    world: OpenAIWorld, server: OpenAIServer
) -> None:
    server.fault_for = lambda texts: refusal(400) if any("note" in text for text in texts) else None
    world.fill(5)

    report = drain(world.services, owner="worker-a")

    assert (report.failed, report.stop_reason) == (5, StopReason.QUEUE_EMPTY)
    assert {job.error_type for job in world.all_jobs} == {"InputRefused"}
    asked = [request.texts for request in server.requests]
    assert asked.count((HARMLESS.text,)) == 1, "one more call for the whole run"
