"""The Cypher of the documentation does what the page says, on a real server."""

from __future__ import annotations

import os
import re
import textwrap
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from embed_pipeline import wiring
from embed_pipeline.settings import load_settings
from embed_pipeline_tests.acceptance.production import server_variables
from embed_pipeline_tests.docs.pages import ROOT
from embed_pipeline_tests.interfaces import conftest as commands
from embed_pipeline_tests.neo4j_bed.client import BedServer

home = commands.home
cli = commands.cli
process_left_as_it_was = commands.process_left_as_it_was

PEOPLE = """
CREATE (:Person {id: 'p1', fullName: 'Ada Lovelace', bio: 'Wrote the first algorithm.'}),
       (:Person {id: 'p2', fullName: 'Al-Jazari', bio: 'Built clocks.', deletedAt: 1}),
       (:Person {id: 3, fullName: 'Hypatia'}), (:Person {id: ''}), (:Person), (:Company)
"""
SETTINGS = {
    "EMBED_STORE": "neo4j",
    "EMBED_ENTITY_LABEL": "Person",
    "EMBED_ENTITY_KEY": "id",
    "EMBED_ENTITY_NAME": "fullName",
    "EMBED_ENTITY_TYPE": "profession",
    "EMBED_ENTITY_TEXT": "fullName,bio,notes",
    "EMBED_ENTITY_VALID_TO": "deletedAt",
}
OF_OTHERS = "MATCH (n) RETURN count(n) AS nodes, count(n.bio) AS texts"
OURS = """
MATCH (n) WHERE any(label IN labels(n) WHERE label =~ '.*Embed(ding|ded).*|NothingToEmbed')
   OR any(name IN keys(n) WHERE name STARTS WITH 'embed') RETURN count(n) AS left
"""


class Handbook:
    """A graph of people, the commands on it, and the statements of a page."""

    def __init__(self, cli: commands.CommandLine, graph: BedServer) -> None:
        self._cli, self.graph = cli, graph

    def command(self, *words: str, **variables: str) -> Any:
        answer = self._cli(*words, "--json", **variables)
        assert answer.code == 0, answer.err
        return answer.json

    def embed(self) -> Any:
        self.command("discover")
        self.command("run")
        return self.command("coverage")

    def follow(self, page: str, words: str, **parameters: object) -> list[dict[str, Any]]:
        """Run the one block that holds these words; the rows of its last statement."""
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        blocks = re.findall(r"^ *```cypher\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
        (block,) = (block for block in blocks if words in block)
        rows: list[dict[str, Any]] = []
        for statement in textwrap.dedent(block).strip().rstrip(";").split(";\n"):
            rows = self.graph.run(statement, **parameters)
        return rows


@pytest.fixture
def handbook(
    cli: commands.CommandLine,
    neo4j_queue: BedServer,
    neo4j_graph: BedServer,
    monkeypatch: pytest.MonkeyPatch,
) -> Handbook:
    for server in (neo4j_queue, neo4j_graph):
        server.wipe_schema()
    neo4j_graph.run(PEOPLE)
    variables = server_variables(neo4j_queue, neo4j_graph) | SETTINGS
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return Handbook(cli, neo4j_graph)


def test_nodes_without_a_key_are_given_one(handbook: Handbook) -> None:
    given = handbook.command("adopt", "--give-keys", "Person")["given"]

    handbook.command("init", EMBED_ENTITY_KEY="uid")

    assert given == 5
    assert handbook.command("coverage")["entities"] == 4


def test_the_graph_of_the_page_is_adopted_as_it_says(
    handbook: Handbook, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in (name for name in SETTINGS if name.startswith("EMBED_ENTITY_")):
        monkeypatch.delenv(name)
    handbook.graph.run("MATCH (n) DETACH DELETE n")
    handbook.follow("adopting.md", "ACTED_IN")
    page = (ROOT / "docs" / "adopting.md").read_text(encoding="utf-8")
    (file,) = re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)

    adopted = handbook.command("adopt", "--give-keys", "Person")
    (tmp_path / "collections.yaml").write_text(adopted["yaml"])
    handbook.command("init", EMBED_CONFIG=str(tmp_path / "collections.yaml"))
    handbook.embed()

    text = handbook.command("text", "Heat")["text"]
    assert adopted["yaml"] == file
    assert text in page


def test_own_cypher_finds_valid_nodes_by_a_vector_of_the_model(handbook: Handbook) -> None:
    handbook.command("init")
    model = handbook.embed()["model"]
    with closing(wiring.open_embedding_provider(load_settings(dict(os.environ)))) as provider:
        query = provider.embed(["Ada Lovelace\nWrote the first algorithm."]).vectors[0].tolist()
    handbook.graph.run("CALL db.awaitIndexes(60)")

    found = handbook.follow("adopting.md", "SEARCH node", query_vector=query, model=model)

    assert [(row["id"], round(row["score"], 3)) for row in found] == [("p1", 1.0)]


def test_leaving_again_leaves_what_was_there(handbook: Handbook) -> None:
    before = handbook.graph.run(OF_OTHERS)
    handbook.command("init")
    handbook.embed()

    answer = handbook.command("uninstall", "--yes")

    assert answer["nodes"] > 0
    assert handbook.graph.run(OURS) == [{"left": 0}]
    assert handbook.graph.run(OF_OTHERS) == before


def test_model_is_changed_by_hand_and_back(handbook: Handbook) -> None:
    handbook.command("init")
    first = handbook.embed()
    lengths = []

    for dimensions in ("32", "64"):
        handbook.command("cancel", "--all", "--yes")
        handbook.follow("operations.md", "DROP INDEX embedding_index")
        changed = handbook.command("coverage", EMBEDDING_DIMENSIONS=dimensions)
        again = handbook.embed()
        (row,) = handbook.graph.run("MATCH (n:Person {id: 'p1'}) RETURN size(n.embedding) AS size")
        lengths.append((changed["missing"], again["embedded"], again["model"], row["size"]))

    assert lengths == [(1, 1, "mock/mock@32", 32), (1, 1, first["model"], 64)]


def test_vectors_that_were_not_replaced_are_good_again_on_the_way_back(handbook: Handbook) -> None:
    handbook.command("init")
    handbook.embed()

    handbook.follow("operations.md", "DROP INDEX embedding_index")
    there = handbook.command("discover", EMBEDDING_DIMENSIONS="32")
    handbook.command("cancel", "--all", "--yes")
    handbook.follow("operations.md", "DROP INDEX embedding_index")
    back = handbook.command("discover", EMBEDDING_DIMENSIONS="64")

    assert (there["new_jobs"], back["new_jobs"]) == (1, 0)
    assert handbook.command("coverage")["embedded"] == 1
