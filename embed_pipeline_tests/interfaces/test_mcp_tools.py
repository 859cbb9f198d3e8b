"""The other tools, through the official client and a server in this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError

from embed_pipeline import wiring
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.domain.health import HealthReport
from embed_pipeline.errors import StoreBusy
from embed_pipeline.interfaces.mcp.server import server_for
from embed_pipeline.settings import load_settings
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.run import drain
from embed_pipeline_tests.contracts.entity_store.scene import coverage_of
from embed_pipeline_tests.interfaces.mcp_client import Conversation, talk_to
from embed_pipeline_tests.interfaces.mcp_scene import FORCE, add_unqueued, park


@pytest.fixture
def agent(services: Services) -> Iterator[Conversation]:
    with talk_to(server_for(services)) as conversation:
        yield conversation


class TestCreateAndSearch:
    def test_created_entity_has_one_job_and_is_found_when_a_worker_was_there(
        self, agent: Conversation, services: Services
    ) -> None:
        entity = {"name": "Zeer pot", "entity_type": "Thing", "observations": ["cools food"]}

        created = agent.call("create_entities", entities=[entity])
        before = agent.call("semantic_search", query="Zeer pot\nThing\ncools food")
        drain(services, owner="run-1")
        after = agent.call("semantic_search", query="Zeer pot\nThing\ncools food", limit=1)

        assert (created.facts["created"], created.facts["queued"]) == (1, True)
        assert before.facts["entities"] == []
        assert "Only 0 of 1 entities have a vector yet" in before.sentence
        (hit,) = after.facts["entities"]
        assert (hit["name"], hit["score"]) == ("Zeer pot", 1.0)
        assert hit["text"] == "Zeer pot\nThing\ncools food"

    def test_long_text_is_cut_in_an_answer(self, agent: Conversation, services: Services) -> None:
        long = {"name": "long", "observations": ["word " * 1_000]}
        agent.call("create_entities", entities=[long])
        drain(services, owner="run-1")

        (hit,) = agent.call("semantic_search", query="word").facts["entities"]

        assert (len(hit["text"]), hit["text"][-1]) == (1_000, "…")

    def test_the_embedded_text_is_shown(self, agent: Conversation) -> None:
        agent.call("create_entities", entities=[{"name": "a", "observations": ["first"]}])

        shown = agent.call("entity_text", entity_name="a")

        assert (shown.facts["text"], shown.facts["truncated"]) == ("a\nfirst", False)
        assert f"has {shown.facts['tokens']} tokens" in shown.sentence

    def test_existing_entity_is_reported_and_left_as_it_is(self, agent: Conversation) -> None:
        agent.call("create_entities", entities=[{"name": "a", "observations": ["first"]}])

        again = agent.call("create_entities", entities=[{"name": "a", "observations": ["new"]}])

        assert (again.facts["created"], again.facts["entities"][0]["existing"]) == (0, True)
        assert "1 existed before" in again.sentence

    def test_named_entities_are_queued_if_they_have_changed(
        self, agent: Conversation, services: Services
    ) -> None:
        services.graph.create_entities([NewEntity(name="a")], model=services.model)

        first = agent.call("refresh_entities", entities=["a", "nowhere"])

        assert (first.facts["queued"], first.facts["unknown_names"]) == (1, ["nowhere"])
        assert first.sentence == "1 queued, 0 unchanged, 1 unknown."

    def test_type_is_taken_in_the_spelling_of_the_graph_too(self, agent: Conversation) -> None:
        agent.call("create_entities", entities=[{"name": "a", "entityType": "Thing"}])

        again = agent.call("create_entities", entities=[{"name": "a", "entity_type": "Thing"}])

        assert again.facts["created"] == 0

    def test_null_inside_an_entity_means_left_out(
        self, agent: Conversation, services: Services
    ) -> None:
        nulls = dict.fromkeys(("entity_type", "observations", "properties", "key"))

        created = agent.call("create_entities", entities=[{"name": "a"} | nulls])

        assert (created.is_error, created.facts["created"]) == (False, 1)

    @pytest.mark.parametrize(
        ("entities", "said"),
        [
            ([], "entities: list should have at least 1 item"),
            ([{"name": "x"}] * 501, "at most 500 items"),
            ([{"observations": ["no name"]}], "entities.0.name: field required"),
            ([{"name": "  "}], "its name is empty"),
            (["x"], "entities.0: "),
            ([{"name": "x", "properties": {"colour": "red"}}], "Unknown text properties: colour"),
        ],
    )
    def test_entities_that_cannot_be_kept_are_refused(
        self, agent: Conversation, services: Services, entities: list[object], said: str
    ) -> None:
        answer = agent.call("create_entities", entities=entities)

        assert answer.is_error
        assert said in answer.sentence
        assert coverage_of(services.graph, model=services.model).entities == 0

    @pytest.mark.parametrize("limit", [True, "5", 0, 1.5])
    def test_limit_that_is_no_count_is_refused(self, agent: Conversation, limit: object) -> None:
        answer = agent.call("semantic_search", query="a", limit=limit)

        assert answer.is_error
        assert f"got {limit!r}" in answer.sentence

    def test_search_limit_is_capped_with_a_note_and_type_filters(
        self, agent: Conversation, services: Services
    ) -> None:
        add_unqueued(services, "a", "b")
        agent.call(FORCE)
        drain(services, owner="run-1")

        everything = agent.call("semantic_search", query="a", limit=5_000)
        nothing = agent.call("semantic_search", query="a", entity_type="Person")

        assert len(everything.facts["entities"]) == 2
        assert "capped at 1000" in everything.sentence
        assert (nothing.sentence, nothing.facts["valid"]) == ("Nothing found.", 2)


class TestWhyNotFound:
    def test_reason_of_each_state_is_told_with_its_remedy(
        self, agent: Conversation, services: Services
    ) -> None:
        park(services, "failed-one")
        add_unqueued(services, "forgotten one")

        def reason(name: str) -> tuple[str, str | None]:
            (finding,) = agent.call("why_not_found", entity_name=name).facts["findings"]
            return finding["reason"], finding["remedy"]

        assert reason("failed-one") == (
            "failed",
            "Call force_generate_embedding with key 'failed-one'.",
        )
        key = services.graph.find_by_name("forgotten one")[0].uid
        assert reason("forgotten one") == (
            "not queued",
            f"Call force_generate_embedding with key {key!r}, or wait for discovery.",
        )
        assert reason("unheard of") == ("unknown", "Call create_entities.")
        agent.call(FORCE, entity_name="forgotten one")
        assert reason("forgotten one") == (
            "waiting",
            "Ask a person to start a worker: Dagster, or `embed-pipeline run`.",
        )
        drain(services, owner="run-1")
        assert reason("forgotten one")[0] == "can be found"

    def test_neither_name_nor_key_is_refused(self, agent: Conversation) -> None:
        answer = agent.call("why_not_found")

        assert answer.is_error
        assert answer.sentence == "A name or a key must be given."


class TestQueue:
    def test_status_counts_and_names_what_mends(
        self, agent: Conversation, services: Services
    ) -> None:
        park(services, "parked")
        add_unqueued(services, "not queued", "queued")
        agent.call(FORCE, entity_name="queued")

        status = agent.call("embedding_status").facts

        assert (status["entities"], status["embedded"], status["missing"]) == (3, 0, 3)
        assert (status["pending"], status["failed"], status["queue"]) == (1, 1, "running")
        assert status["idle_because"] is None
        assert status["remedies"] == [
            "not queued (1): call force_generate_embedding, or wait for discovery.",
            "queued (1): a running worker embeds them without a call.",
            "failed (1): call retry_failed_jobs once the cause is fixed.",
        ]

    def test_gap_of_parked_jobs_is_not_closed_by_discovery(
        self, agent: Conversation, services: Services
    ) -> None:
        park(services, "parked")

        status = agent.call("embedding_status").facts

        assert (status["missing"], status["failed"]) == (1, 1)
        assert status["remedies"] == ["failed (1): call retry_failed_jobs once the cause is fixed."]

    def test_status_of_a_paused_queue_says_so(
        self, agent: Conversation, services: Services
    ) -> None:
        services.jobs.switch.pause("maintenance")

        status = agent.call("embedding_status").facts

        assert status["queue"] == "paused"
        assert "maintenance" in status["idle_because"]

    def test_health_tells_state_rate_and_patterns(
        self, agent: Conversation, services: Services
    ) -> None:
        park(services, *(f"entity {n}" for n in range(5)))

        health = agent.call("get_health_status")

        assert (health.facts["status"], health.facts["consecutive_failures"]) == ("DEGRADED", 5)
        assert health.facts["success_rate"] == 0
        assert health.facts["error_patterns"] == {"Refused: It was refused.": 5}
        assert "5 consecutive failures" in health.sentence

    def test_failed_jobs_are_retried_by_category(
        self, agent: Conversation, services: Services
    ) -> None:
        park(services, "a", "b")

        none = agent.call("retry_failed_jobs", category="TRANSIENT")
        both = agent.call("retry_failed_jobs", category="PERMANENT", limit=9_999)

        assert (none.facts["retried"], none.facts["still_failed"]) == (0, 2)
        assert (both.facts["retried"], both.facts["still_failed"]) == (2, 0)
        assert "capped at 1000" in both.sentence

    def test_unknown_category_is_refused_with_the_known_ones(self, agent: Conversation) -> None:
        answer = agent.call("retry_failed_jobs", category="URGENT")

        assert answer.is_error
        assert "'TRANSIENT', 'PERMANENT' or 'CRITICAL'" in answer.sentence


class SlowHealth:
    """A queue whose health is told only when somebody else has been answered."""

    def __init__(self, others_turn: threading.Event) -> None:
        self.health, self._others_turn = self, others_turn

    def report(self) -> HealthReport:
        assert self._others_turn.wait(timeout=30), "nobody else was answered meanwhile"
        raise StoreBusy("It took long.")


class TestTrouble:
    def test_slow_call_holds_no_other_up(self, services: Services) -> None:
        others_turn = threading.Event()
        queue: Any = SlowHealth(others_turn)

        with (
            talk_to(server_for(replace(services, jobs=queue))) as agent,
            ThreadPoolExecutor() as pool,
        ):
            slow = pool.submit(agent.call, "get_health_status")
            quick = agent.call("why_not_found", entity_name="unheard of")
            others_turn.set()

            assert quick.facts["findings"][0]["reason"] == "unknown"
            assert "It took long." in slow.result(timeout=30).sentence

    def test_unknown_tool_is_told_which_there_are(self, agent: Conversation) -> None:
        with pytest.raises(MCPError, match="No tool 'openNodes'; there are: semantic_search"):
            agent.call("openNodes")

    def test_database_that_cannot_be_opened_is_said_and_health_still_answers(
        self, tmp_path: Path
    ) -> None:
        (tmp_path / "home").write_text("a file where the folder should be")
        settings = load_settings({"EMBED_ENV": "test", "EMBED_HOME": str(tmp_path / "home")})

        with talk_to(server_for(wiring.open_services(settings))) as agent:
            answers = [agent.call(tool) for tool in (FORCE, "embedding_status")]
            health = agent.call("get_health_status")

        assert all(answer.is_error for answer in answers)
        assert all("try again in a minute" in answer.sentence for answer in answers)
        assert (health.is_error, health.facts["status"]) == (False, "CRITICAL (queue unreachable)")

    def test_bug_is_logged_and_answered_without_its_text(
        self, services: Services, caplog: pytest.LogCaptureFixture
    ) -> None:
        nothing: Any = None

        with talk_to(server_for(replace(services, jobs=nothing))) as agent:
            answer = agent.call("get_health_status")

        assert answer.is_error
        assert answer.sentence == (
            "get_health_status failed: AttributeError. This is a bug; see the server's log."
        )
        assert "tool.failed" in caplog.text
