"""`embed-pipeline why`: the reason and the command that mends it, for people and programs."""

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
