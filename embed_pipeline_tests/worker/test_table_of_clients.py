"""What other clients get wrong (one request per text, all lost for one bad input), row by row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from embed_pipeline.worker.context import RunLimits
from embed_pipeline.worker.loop import run_until_empty
from embed_pipeline.worker.run import drain
from embed_pipeline_tests.clocks import HOUR, MINUTE, FakeClock
from embed_pipeline_tests.openai_faults import rate_limited
from embed_pipeline_tests.openai_server import OpenAIServer
from embed_pipeline_tests.worker.openai_scene import OpenAIWorld, running_server, server
from embed_pipeline_tests.worker.scene import NOTES_ONLY, entity, uid

__all__ = ["running_server", "server"]

LONG = " word" * 10_000
THOUSAND = " word" * 1_000


@pytest.fixture
def world(tmp_path: Path, clock: FakeClock, server: OpenAIServer) -> Iterator[OpenAIWorld]:
    opened = OpenAIWorld(tmp_path, clock, server, run_limits=RunLimits(), mapping=NOTES_ONLY)
    yield opened
    opened.close()


def test_5_000_short_texts_take_3_requests(world: OpenAIWorld, server: OpenAIServer) -> None:
    world.fill(5_000)

    report = drain(world.services, owner="worker-a")

    assert (report.embedded, len(server.requests)) == (5_000, 3)


def test_500_texts_of_1_000_tokens_are_embedded_within_the_limit_of_a_request(
    world: OpenAIWorld, server: OpenAIServer
) -> None:
    world.create(*(entity(number, f"{number}{THOUSAND}") for number in range(500)))

    report = drain(world.services, owner="worker-a")

    assert (report.embedded, report.failed, report.truncated) == (500, 0, 0)
    assert {request.status for request in server.requests} == {200}
    assert len(server.requests) == 3


def test_one_input_of_10_000_tokens_in_100_is_cut_recorded_and_all_are_embedded(
    world: OpenAIWorld, server: OpenAIServer
) -> None:
    world.fill(99)
    world.create(entity("long", LONG))

    report = drain(world.services, owner="worker-a")

    assert (report.embedded, report.failed, report.truncated) == (100, 0, 1)
    assert len(server.requests) == 1
    assert world.is_noted_as_cut(uid("long"))
    assert not world.is_noted_as_cut(uid(0))
    assert world.jobs.counters.read()["inputs_truncated"] == 1


def test_vector_of_a_truncated_text_is_marked_on_every_entity_with_that_text(
    world: OpenAIWorld, server: OpenAIServer
) -> None:
    world.create(entity("first", LONG), entity("twin", LONG))
    drain(world.services, owner="worker-a")
    world.create(entity("later", LONG), entity("short"))

    report = drain(world.services, owner="worker-a")

    assert (report.reused, report.embedded, len(server.requests)) == (1, 1, 2)
    assert all(world.is_noted_as_cut(uid(name)) for name in ("first", "twin", "later"))
    assert not world.is_noted_as_cut(uid("short"))


@pytest.mark.parametrize("nothing", ["", " \n\t "], ids=["empty", "whitespace"])
def test_one_empty_input_in_100_costs_neither_a_call_nor_a_failure(
    world: OpenAIWorld, server: OpenAIServer, nothing: str
) -> None:
    world.fill(99)
    world.create(entity("empty", nothing))

    report = drain(world.services, owner="worker-a")

    assert (report.embedded, report.failed, len(server.requests)) == (99, 0, 1)
    assert not world.jobs_of(uid("empty"))


@pytest.mark.parametrize("times", [2, 6])
def test_after_some_429_everything_is_embedded_and_no_attempt_is_charged(
    world: OpenAIWorld, server: OpenAIServer, times: int
) -> None:
    world.fill(100)
    server.inject(*[rate_limited({"Retry-After": "1"})] * times)

    report = run_until_empty(
        world.services, owner="cli", recovery_interval=MINUTE, deadline=world.deadline(HOUR)
    )

    assert report.embedded == 100
    assert {job.attempts for job in world.all_jobs} == {0}
    assert len(server.requests) == times + 1
