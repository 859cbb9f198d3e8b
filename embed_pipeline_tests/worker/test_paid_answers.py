"""What was paid for is written, whatever fails beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from embed_pipeline.domain.job import JobStatus
from embed_pipeline.domain.window import RemainingQuota
from embed_pipeline.errors import ModelNotActive, ProviderUnavailable, StoreUnavailable
from embed_pipeline.ports.embedding_provider import Embedded
from embed_pipeline.worker.outcomes import record_of
from embed_pipeline_tests.clocks import SECOND
from embed_pipeline_tests.worker.conftest import Build
from embed_pipeline_tests.worker.scene import World, uid

NO_ANSWER = record_of(ProviderUnavailable("503"))


def raising(error: BaseException) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize("error", [StoreUnavailable("the queue is down"), KeyboardInterrupt()])
@pytest.mark.parametrize("books", ["apply_provider_limits", "record_actual"])
def test_answer_is_written_though_its_books_cannot_be_kept(
    build: Build, monkeypatch: pytest.MonkeyPatch, books: str, error: BaseException
) -> None:
    world = build(requests=10, tokens=100_000)
    world.fill(3)

    def cheap(texts: Sequence[str]) -> Embedded:
        answer = world.provider.answer(texts)
        return replace(answer, tokens=1, remaining=RemainingQuota(requests=5))

    world.provider.always = cheap
    monkeypatch.setattr(world.limiter, books, raising(error))

    with pytest.raises(type(error)):
        world.run()

    assert all(world.is_embedded(uid(number)) for number in range(3))
    assert world.count(JobStatus.COMPLETED) == 3


def test_answer_is_written_though_the_breaker_cannot_be_closed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.fill(1)
    world.jobs.breakers.trip("mock", seen=0, error=NO_ANSWER)
    world.clock.advance(SECOND)
    monkeypatch.setattr(world.jobs.breakers, "close", raising(StoreUnavailable("down")))

    with pytest.raises(StoreUnavailable):
        world.run()

    assert world.is_embedded(uid(0))


def test_model_that_was_retired_meanwhile_ends_the_run_and_does_not_halt_the_queue(
    world: World,
) -> None:
    world.fill(2)
    world.graph.trouble_with_writes.append(ModelNotActive("mock/mock@8 is retired"))

    with pytest.raises(ModelNotActive):
        world.run()

    assert world.jobs.switch.read().is_running
    assert {(job.status, job.attempts) for job in world.all_jobs} == {(JobStatus.PENDING, 0)}
