"""`embed-pipeline why`, `text` and `preview`: one entity, for people and programs."""

from __future__ import annotations

from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.worker.context import Services
from embed_pipeline_tests.interfaces.conftest import CommandLine, create


def test_why_of_a_queued_entity_names_the_next_command(
    cli: CommandLine, services: Services
) -> None:
    create(services, "[/odd] name")

    answer = cli("why", "[/odd] name")

    assert answer.code == 1
    assert answer.out.startswith("'[/odd] name' (")
    assert "has no vector yet" in answer.out
    assert answer.out.endswith("  → embed-pipeline run\n")


def test_why_of_an_embedded_entity_ends_well(cli: CommandLine, services: Services) -> None:
    create(services, "Loom")
    cli("run")

    answer = cli("why", "Loom", "--json")

    (finding,) = answer.json["findings"]
    assert answer.code == 0
    assert (finding["reason"], finding["findable"]) == ("can be found", True)
    assert (finding["name"], finding["type"], len(finding["key"])) == ("Loom", "Thing", 32)


def test_why_of_namesakes_explains_each(cli: CommandLine, services: Services) -> None:
    planet = NewEntity(name="Mercury", entity_type="Planet")
    metal = NewEntity(name="Mercury", entity_type="Element")
    services.graph.create_entities([planet, metal], model=services.model)

    by_name, by_key = cli("why", "Mercury", "--json"), cli("why", "--key", metal.identity, "--json")

    assert {f["type"] for f in by_name.json["findings"]} == {"Planet", "Element"}
    assert [f["type"] for f in by_key.json["findings"]] == ["Element"]


def test_why_of_nobody_says_so(cli: CommandLine) -> None:
    answer = cli("why", "Nobody")

    assert (answer.code, answer.err) == (1, "")
    assert "No entity is named 'Nobody'" in answer.out


def test_why_without_a_name_is_wrong_usage(cli: CommandLine) -> None:
    answer = cli("why")

    assert answer.code == 2
    assert "--key" in answer.err


def test_why_of_an_empty_name_is_one_sentence(cli: CommandLine) -> None:
    answer = cli("why", "")

    assert (answer.code, answer.out) == (1, "")
    assert answer.err == "A name or a key must be given.\n"


def test_text_is_shown_with_its_tokens(cli: CommandLine, services: Services) -> None:
    create(services, "[/odd] name")

    readable, parsed = cli("text", "[/odd] name"), cli("text", "[/odd] name", "--json").json

    assert readable.out.splitlines()[1:] == ["[/odd] name", "Thing"]
    assert f"{parsed['tokens']} tokens" in readable.out.splitlines()[0]
    assert (parsed["text"], parsed["truncated"]) == ("[/odd] name\nThing", False)


def test_text_without_a_name_is_wrong_usage(cli: CommandLine) -> None:
    assert cli("text").code == 2


def test_preview_shows_the_first_texts(cli: CommandLine, services: Services) -> None:
    create(services, *"abc")

    readable, parsed = cli("preview", "--limit", "2"), cli("preview", "--json").json

    assert readable.out.count("tokens") == 2
    assert readable.out.endswith("0 of the first 3 entities have nothing to embed.\n")
    assert sorted(one["text"] for one in parsed["texts"]) == ["a\nThing", "b\nThing", "c\nThing"]
    assert (parsed["examined"], parsed["empty"]) == (3, 0)
