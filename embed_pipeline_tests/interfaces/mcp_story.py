"""What an agent does in one session, on whichever backend: create, force in both modes, search."""

from __future__ import annotations

from mcp import StdioServerParameters

from embed_pipeline.interfaces.mcp.tools import TOOLS
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.run import drain
from embed_pipeline_tests.interfaces.mcp_client import Conversation, talk_to_program
from embed_pipeline_tests.interfaces.mcp_scene import FORCE, add_unqueued, park


def tell(program: StdioServerParameters, services: Services, *, mode: str = "auto") -> None:
    """`services` are the same databases: other writers and a worker beside the server."""
    with talk_to_program(program, mode=mode) as agent:
        assert list(agent.tools()) == list(TOOLS)
        _one_entity_is_forced_by_name(agent, services)
        _missing_ones_are_repaired_up_to_the_limit(agent, services)
        _what_was_queued_is_found_after_a_worker_was_there(agent, services)


def _one_entity_is_forced_by_name(agent: Conversation, services: Services) -> None:
    agent.call("create_entities", entities=[{"name": "Alberto Rocco", "entity_type": "Person"}])
    assert drain(services, owner="run-1").embedded == 1

    forced = agent.call(FORCE, entity_name="Alberto Rocco", limit=20)

    assert "'Alberto Rocco'" in forced.sentence
    assert drain(services, owner="run-2").embedded == 1, "exactly one, although it has its vector"


def _missing_ones_are_repaired_up_to_the_limit(agent: Conversation, services: Services) -> None:
    park(services, *(f"a parked {n}" for n in range(10)))
    add_unqueued(services, *(f"waiting {n}" for n in range(35)))

    default = agent.call(FORCE)
    twenty = agent.call(FORCE, limit=20)

    assert default.facts["queued"] == 10, "ten parked ones do not fill a limit of ten"
    assert twenty.facts["queued"] == 20
    assert agent.call("embedding_status").facts["pending"] == 30


def _what_was_queued_is_found_after_a_worker_was_there(
    agent: Conversation, services: Services
) -> None:
    drain(services, owner="run-3")

    found = agent.call("semantic_search", query="Alberto Rocco\nPerson", limit=1)

    assert [hit["name"] for hit in found.facts["entities"]] == ["Alberto Rocco"]
    assert "Only 31 of 46 entities have a vector yet" in found.sentence
    assert agent.call("get_health_status").facts["status"] == "HEALTHY"
    assert agent.call("retry_failed_jobs").facts["retried"] == 10
