"""The commands on the graph: coverage, discover, force, search, summary."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from embed_pipeline.domain.embedding import MOST_HITS
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.domain.job import HIGHEST_PRIORITY
from embed_pipeline.worker.context import Services
from embed_pipeline_tests.interfaces.conftest import CommandLine, create
from embed_pipeline_tests.interfaces.past import Past


def add_to_graph_only(services: Services, *entities: NewEntity) -> None:
    """As another program would: nobody queues them."""
    services.graph.create_entities(entities, model=services.model)


def things(count: int) -> list[NewEntity]:
    return [NewEntity(name=f"thing {number:04}") for number in range(count)]


def test_coverage_of_an_empty_graph_is_unknown(cli: CommandLine) -> None:
    readable, parsed = cli("coverage"), cli("coverage", "--json").json

    assert "no entities yet" in readable.out
    assert (parsed["entities"], parsed["percent"]) == (0, None)


def test_coverage_counts_and_names_the_next_command(cli: CommandLine, services: Services) -> None:
    create(services, "embedded")
    cli("run")
    create(services, "queued")
    add_to_graph_only(services, NewEntity(name="unknown to the queue"), NewEntity(name="another"))

    readable, parsed = cli("coverage"), cli("coverage", "--json").json

    assert (parsed["entities"], parsed["embedded"], parsed["missing"]) == (4, 1, 3)
    assert (parsed["percent"], parsed["queued"]) == (25.0, 1)
    assert "25.0 %" in readable.out
    assert "embed-pipeline run" in readable.out
    assert "embed-pipeline discover" in readable.out


def test_coverage_tells_each_state_with_its_meaning_and_its_command(
    cli: CommandLine, services: Services, past: Past
) -> None:
    create(services, "good", "changed")
    cli("run")
    past.failed("failed job")
    add_to_graph_only(services, *things(2))
    changed = services.graph.find_by_name("changed")[0]
    services.graph.upsert_entities(
        [NewEntity(uid=changed.uid, name="changed by name")], model=services.model
    )

    readable, parsed = cli("coverage").out, cli("coverage", "--exact", "--json").json

    assert (parsed["embedded"], parsed["missing"], parsed["stale"]) == (1, 2, 1)
    assert (parsed["failed"], parsed["queued"], parsed["percent"]) == (1, 0, 25.0)
    assert parsed["remedies"] == {
        "missing": "embed-pipeline discover",
        "stale": "embed-pipeline discover",
        "failed": "embed-pipeline failed, then retry-failed",
    }
    assert "have no vector of this model: no search finds them" in readable
    assert "wrong dimension" in readable


def test_gap_of_parked_jobs_is_closed_by_retrying_them_not_by_discovery(
    cli: CommandLine, services: Services, past: Past
) -> None:
    add_to_graph_only(services, *things(2))
    past.failed("a", "b")

    parsed = cli("coverage", "--json").json

    assert (parsed["missing"], parsed["queued"], parsed["failed"]) == (2, 0, 2)
    assert parsed["remedies"] == dict.fromkeys(
        ("missing", "failed"), "embed-pipeline failed, then retry-failed"
    )


def test_gap_in_a_paused_queue_is_closed_by_resume(cli: CommandLine, services: Services) -> None:
    create(services, "a")
    cli("pause")

    parsed = cli("coverage", "--json").json

    assert parsed["remedies"] == dict.fromkeys(("missing", "queued"), "embed-pipeline resume")


def test_another_model_in_the_settings_shows_as_wrong_model(
    cli: CommandLine, services: Services
) -> None:
    create(services, "a")
    cli("run")

    counted = cli("coverage", "--exact", "--json", EMBEDDING_MODEL="other").json

    assert (counted["wrong_model"], counted["embedded"]) == (1, 0)


def test_discover_queues_what_nobody_queued(cli: CommandLine, services: Services) -> None:
    add_to_graph_only(services, *things(3))

    first, second = cli("discover", "--json").json, cli("discover", "--json").json

    assert (first["missing"], first["new_jobs"]) == (3, 3)
    assert (second["new_jobs"], second["queued_already"]) == (0, 3)
    assert ["new", "jobs", "0"] in [line.split() for line in cli("discover").out.splitlines()]


def test_force_queues_one_entity_by_name_before_all_others(
    cli: CommandLine, services: Services
) -> None:
    create(services, "first", "[/odd] name")

    answer = cli("force", "[/odd] name", "--limit", "0")

    (head,) = services.jobs.lease(owner="w", model=services.model, limit=1, token="t").jobs
    assert answer.code == 0
    assert "The embedding of '[/odd] name'" in answer.out
    assert (head.force, head.priority) == (True, HIGHEST_PRIORITY)
    assert services.graph.read_entities([head.entity_uid])[head.entity_uid].name == "[/odd] name"


def test_force_without_arguments_queues_at_most_ten(cli: CommandLine, services: Services) -> None:
    add_to_graph_only(services, *things(15))

    answer = cli("force", "--json")

    assert (answer.json["queued"], services.jobs.get_queue_status().pending) == (10, 10)


def test_force_caps_a_huge_limit_with_a_note(cli: CommandLine, services: Services) -> None:
    add_to_graph_only(services, *things(1_100))

    answer = cli("force", "--limit", "9" * 20)

    assert answer.code == 0
    assert "queued 1000; the limit was capped at 1000." in answer.out


@pytest.mark.parametrize("limit", ["0", "-1"])
def test_force_refuses_a_limit_below_one(cli: CommandLine, services: Services, limit: str) -> None:
    add_to_graph_only(services, *things(2))

    answer = cli("force", "--limit", limit)

    assert (answer.code, answer.out) == (1, "")
    assert answer.err == f"The limit must be from 1 to 1000, got {limit}.\n"
    assert services.jobs.get_queue_status().total == 0


def test_force_needs_a_whole_number(cli: CommandLine) -> None:
    assert cli("force", "--limit", "many").code == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("",), "An entity name must not be empty."),
        (("  ",), "An entity name must not be empty."),
        (("Nobody",), "No entity is named 'Nobody'."),
        (("--key", "nothing"), "No valid entity has the key 'nothing'."),
        (("--key", ""), "No valid entity has the key ''."),
    ],
)
def test_force_of_nobody_is_one_sentence_and_queues_nothing(
    cli: CommandLine, services: Services, words: tuple[str, ...], sentence: str
) -> None:
    add_to_graph_only(services, *things(2))

    answer = cli("force", *words)

    assert (answer.code, answer.out, answer.err) == (1, "", sentence + "\n")
    assert services.jobs.get_queue_status().total == 0


def test_force_lets_the_caller_choose_between_namesakes(
    cli: CommandLine, services: Services
) -> None:
    planet = NewEntity(name="Mercury", entity_type="Planet")
    add_to_graph_only(services, planet, NewEntity(name="Mercury", entity_type="Element"))

    by_name = cli("force", "Mercury")
    by_key = cli("force", "--key", planet.identity)

    assert by_name.code == 1
    assert "(Planet)" in by_name.err
    assert "(Element)" in by_name.err
    assert by_key.code == 0
    assert planet.identity in by_key.out


def test_force_tells_that_an_entity_was_deleted(cli: CommandLine, services: Services) -> None:
    gone = NewEntity(name="Dodo")
    add_to_graph_only(services, gone)
    services.graph.soft_delete([gone.identity])

    answer = cli("force", "Dodo")

    assert (answer.code, answer.err) == (1, "No entity is named 'Dodo' any more: it was deleted.\n")


def test_search_answers_people_and_programs(cli: CommandLine, services: Services) -> None:
    create(services, "[/red] one", "two")
    cli("run")
    add_to_graph_only(services, NewEntity(name="not yet", entity_type="Thing"))

    readable, parsed = cli("search", "anything"), cli("search", "anything", "--json").json

    best = parsed["hits"][0]
    assert sorted(hit["name"] for hit in parsed["hits"]) == ["[/red] one", "two"]
    assert (parsed["searchable"], parsed["entities"]) == (2, 3)
    assert isinstance(best["score"], float)
    assert (best["type"], len(best["key"])) == ("Thing", 32)
    assert best["text"] == f"{best['name']}\nThing"
    assert "[/red] one" in readable.out
    assert "2 of 3 entities have a vector" in readable.out


def test_search_of_an_empty_graph_finds_nothing(cli: CommandLine) -> None:
    assert cli("search", "anything").out == "Nothing found.\n"
    assert cli("search", "anything", "--json").json["hits"] == []


@pytest.mark.parametrize("query", ["", " \t"])
def test_search_needs_words(cli: CommandLine, query: str) -> None:
    answer = cli("search", query, "--json")

    assert (answer.code, answer.out, answer.err) == (1, "", "The query must not be empty.\n")


def test_search_is_bounded_and_filtered(cli: CommandLine, services: Services) -> None:
    create(services, "a", "b", "c")
    cli("run")

    assert len(cli("search", "x", "--limit", "2", "--json").json["hits"]) == 2
    assert cli("search", "x", "--type", "Other", "--json").json["hits"] == []
    assert cli("search", "x", "--limit", "0").code == 2
    assert cli("search", "x", "--limit", str(MOST_HITS + 1)).code == 2


def test_summary_is_one_page_with_searches(
    cli: CommandLine, services: Services, tmp_path: Path
) -> None:
    queries = tmp_path / "searches.json"
    queries.write_text(json.dumps([{"query": "a thing", "expected": "only"}]))
    create(services, "only")
    cli("run")

    readable = cli("summary", "--searches", str(queries))
    parsed = cli("summary", "--searches", str(queries), "--json").json

    assert "100.0 %" in readable.out
    assert "1 embedded in" in readable.out
    assert (parsed["entities"], parsed["health"]) == (1, "HEALTHY")
    assert parsed["“a thing”"][0].startswith("only (")


def test_summary_since_a_later_moment_has_nothing_left_to_do(
    cli: CommandLine, services: Services
) -> None:
    create(services, "only")
    cli("run")

    answer = cli("summary", "--since", "2999-01-01T00:00:00Z", "--json")

    assert answer.json["work"] == "nothing was left to do"


@pytest.mark.parametrize("content", ["", '{"query": "x"}', '["a"]', "[{}]", "{"])
def test_summary_refuses_a_file_without_queries_in_one_sentence(
    cli: CommandLine, tmp_path: Path, content: str
) -> None:
    queries = tmp_path / "searches.json"
    queries.write_text(content)

    answer = cli("summary", "--searches", str(queries))

    assert (answer.code, answer.out) == (1, "")
    assert len(answer.sentences) == 1
    assert "is not a JSON list of {query} objects" in answer.err


def test_summary_refuses_an_unreadable_moment(cli: CommandLine) -> None:
    assert cli("summary", "--since", "yesterday").code == 2


@pytest.mark.parametrize("command", [("discover",), ("force",), ("run",)])
def test_another_model_than_the_graphs_is_refused_with_what_to_do(
    cli: CommandLine, services: Services, command: tuple[str, ...]
) -> None:
    create(services, "only")
    cli("run")

    answer = cli(*command, EMBEDDING_MODEL="other")

    assert (answer.code, answer.out) == (1, "")
    assert "The graph is embedded with mock/mock@64, the settings say mock/other@64" in answer.err


def test_refresh_queues_what_changed_by_key_name_and_standard_input(
    cli: CommandLine, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(services, "embedded", "changed")
    cli("run")
    add_to_graph_only(services, NewEntity(name="unknown to the queue"))
    changed = services.graph.find_by_name("changed")[0]
    services.graph.upsert_entities(
        [NewEntity(uid=changed.uid, name="changed by name")], model=services.model
    )
    monkeypatch.setattr(sys, "stdin", io.StringIO("unknown to the queue\n\n"))

    answer = cli("refresh", changed.uid, "embedded", "-", "--json")

    assert answer.code == 0
    assert (answer.json["queued"], answer.json["unchanged"], answer.json["unknown"]) == (2, 1, 0)
    assert services.jobs.get_queue_status().pending == 2


def test_refresh_of_an_unknown_name_exits_with_1_and_names_it(cli: CommandLine) -> None:
    answer = cli("refresh", "nowhere")

    assert answer.code == 1
    assert ["unknown", "names", "nowhere"] in [line.split() for line in answer.out.splitlines()]


def test_erase_asks_and_then_leaves_nothing(
    cli: CommandLine, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(services, "erased")
    cli("run")
    key = services.graph.find_by_name("erased")[0].uid

    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    refused = cli("erase", key)
    answer = cli("erase", key, "--yes", "--json")

    assert (refused.code, answer.code) == (1, 0)
    assert (answer.json["jobs"], answer.json["vectors"], answer.json["left"]) == (1, 1, [])
    assert cli("erase", "nowhere", "--yes").code == 1
