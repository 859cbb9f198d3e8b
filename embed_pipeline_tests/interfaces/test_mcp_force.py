"""force_generate_embedding as an agent calls it: one entity by name, or a bounded repair."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.interfaces.mcp.server import server_for
from embed_pipeline.worker.context import Services
from embed_pipeline_tests.interfaces.mcp_client import Conversation, talk_to
from embed_pipeline_tests.interfaces.mcp_scene import FORCE, add_unqueued, park, queued


@pytest.fixture
def agent(services: Services) -> Iterator[Conversation]:
    with talk_to(server_for(services)) as conversation:
        yield conversation


def test_named_entity_gets_exactly_one_job_and_is_named(
    agent: Conversation, services: Services
) -> None:
    add_unqueued(services, "Alberto Rocco", "somebody else")

    answer = agent.call(FORCE, entity_name="Alberto Rocco")

    (job,) = queued(services)
    assert "'Alberto Rocco'" in answer.sentence
    assert (job.force, answer.facts["queued"]) == (True, 1)


@pytest.mark.parametrize("limit", [20, 0, -5, "many", None])
def test_entity_name_wins_over_any_limit(
    agent: Conversation, services: Services, limit: object
) -> None:
    add_unqueued(services, *(f"entity {n}" for n in range(25)))

    answer = agent.call(FORCE, entity_name="entity 7", limit=limit)

    assert not answer.is_error
    assert len(queued(services)) == 1


def test_key_picks_one_of_two_namesakes(agent: Conversation, services: Services) -> None:
    for kind in ("planet", "metal"):
        services.graph.create_entities(
            [NewEntity(name="Mercury", entity_type=kind)], model=services.model
        )
    twins = services.graph.find_by_name("Mercury")

    refused = agent.call(FORCE, entity_name="Mercury")
    forced = agent.call(FORCE, entity_name="Mercury", key=twins[1].uid)

    assert refused.is_error
    assert all(twin.uid in refused.sentence for twin in twins)
    assert twins[1].uid in forced.sentence
    assert [job.entity_uid for job in queued(services)] == [twins[1].uid]


@pytest.mark.parametrize("nothing", [{}, {"entity_name": None, "limit": None}])
def test_without_arguments_at_most_ten_are_queued(
    agent: Conversation, services: Services, nothing: dict[str, None]
) -> None:
    add_unqueued(services, *(f"entity {n}" for n in range(25)))

    answer = agent.call(FORCE, **nothing)

    assert answer.sentence == "Found 10 entities without an embedding, queued 10."
    assert len(queued(services)) == 10


def test_limit_controls_the_repair_and_the_counts_are_told(
    agent: Conversation, services: Services
) -> None:
    add_unqueued(services, *(f"entity {n}" for n in range(25)))

    answer = agent.call(FORCE, limit=20)

    assert answer.facts == {"message": answer.sentence, "discovered": 20, "queued": 20}
    assert len(queued(services)) == 20


def test_ten_parked_entities_do_not_fill_a_limit_of_ten(
    agent: Conversation, services: Services
) -> None:
    park(services, *(f"parked {n}" for n in range(10)))
    add_unqueued(services, *(f"waiting {n}" for n in range(9)))

    answer = agent.call(FORCE, limit=10)

    assert answer.facts["queued"] == 9
    assert "10 failed before and stay parked" in answer.sentence
    assert {job.entity_uid.split()[0] for job in queued(services)} == {"waiting"}


def test_huge_limit_is_capped_with_a_note(agent: Conversation, services: Services) -> None:
    add_unqueued(services, *(f"entity {n}" for n in range(1_005)))

    answer = agent.call(FORCE, limit=10**12)

    assert answer.facts["queued"] == 1_000
    assert "capped at 1000" in answer.sentence


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"limit": 0}, "limit: input should be greater than or equal to 1, got 0"),
        ({"limit": -7}, "got -7"),
        ({"limit": "many"}, "limit: input should be a valid integer"),
        ({"limit": 2.5}, "limit: input should be a valid integer"),
        ({"entity_nam": "x"}, "entity_nam: extra inputs are not permitted"),
        ({"entity_name": ""}, "entity_name: string should have at least 1 character"),
        ({"entity_name": "  "}, "An entity name must not be empty"),
        ({"entity_name": ["a"]}, "entity_name: input should be a valid string"),
        ({"entity_name": "Nobody"}, "No entity is named 'Nobody'"),
    ],
)
def test_wrong_call_is_refused_with_what_to_do_and_queues_nothing(
    agent: Conversation, services: Services, arguments: dict[str, Any], said: str
) -> None:
    add_unqueued(services, "there")

    answer = agent.call(FORCE, **arguments)

    assert answer.is_error
    assert said in answer.sentence
    assert queued(services) == ()
