"""A look at a graph of other programs, and keys for nodes that have none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embed_pipeline.domain.recipe import Direction
from embed_pipeline.errors import RequestError
from embed_pipeline.ports import graph_survey
from embed_pipeline.ports.graph_survey import LabelFacts, PropertyFacts, RelationshipFacts
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase
from embed_pipeline.stores.neo4j.setup import survey as surveying
from embed_pipeline.stores.neo4j.setup.survey import give_keys, survey
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores.neo4j_graph import DELETE_ALL, database_of

THEIRS = """
UNWIND range(1, 6) AS n
CREATE (b:Book:Printed {isbn: 'isbn-' + n, number: n, title: 'Title ' + n, genre: 'Novel',
    body: '<p>Words of ' + n + '</p>', tags: ['one', 'two'], link: 'https://example.org/' + n,
    vector: [x IN range(1, 16) | x * 1.0]})
CREATE (:Author {name: 'Author ' + n})-[:WROTE]->(b)
CREATE (b)-[:LIKE]->(b)
"""


@pytest.fixture
def database(neo4j_graph: BedServer) -> Iterator[Neo4jDatabase]:
    neo4j_graph.run(DELETE_ALL)
    neo4j_graph.run(THEIRS)
    neo4j_graph.run("CREATE (:`Order Details` {x: 1})")
    opened = database_of(neo4j_graph)
    yield opened
    opened.close()


def label(database: Neo4jDatabase, name: str) -> LabelFacts:
    return next(facts for facts in survey(database).labels if facts.label == name)


def properties(facts: LabelFacts) -> dict[str, PropertyFacts]:
    return {one.name: one for one in facts.properties}


class TestSurvey:
    def test_a_label_with_its_properties_relationships_and_other_labels(
        self, database: Neo4jDatabase
    ) -> None:
        book = label(database, "Book")
        found = properties(book)

        assert (book.nodes, book.sampled, book.shared) == (6, 6, {"Printed": 6})
        assert found["isbn"] == PropertyFacts(
            name="isbn",
            filled=6,
            types=frozenset({"STRING"}),
            length=6.0,
            distinct=6,
            is_unique=True,
        )
        assert (found["number"].types, found["number"].is_unique) == (frozenset({"INTEGER"}), True)
        assert (found["genre"].distinct, found["genre"].is_unique) == (1, False)
        assert (found["body"].html, found["link"].opaque, found["title"].opaque) == (6, 6, 0)
        assert (found["tags"].types, found["tags"].length) == (frozenset({"LIST<STRING>"}), 6.0)
        assert (found["vector"].types, found["vector"].length) == (frozenset({"LIST<FLOAT>"}), 16.0)
        assert RelationshipFacts(
            type="WROTE", direction=Direction.IN, label="Author", nodes=6, relationships=6
        ) in (book.relationships)

    def test_labels_that_cannot_be_named_are_told(self, database: Neo4jDatabase) -> None:
        assert survey(database).unusable == ("Order Details",)

    def test_our_own_labels_are_none_of_theirs(
        self, database: Neo4jDatabase, neo4j_graph: BedServer
    ) -> None:
        neo4j_graph.run("MATCH (b:Book) SET b:Embedded:NeedsEmbedding")

        assert label(database, "Book").shared == {"Printed": 6}
        assert {facts.label for facts in survey(database).labels} == {"Author", "Book", "Printed"}

    def test_a_big_label_is_sampled_and_its_keys_are_not_counted(
        self, database: Neo4jDatabase, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(surveying, "SAMPLE", 3)
        monkeypatch.setattr(surveying, "COUNTED", graph_survey.COUNTED - 99_997)

        book = label(database, "Book")

        assert (book.nodes, book.sampled) == (6, 3)
        assert properties(book)["isbn"].is_unique is None


class TestKeys:
    def test_nodes_without_a_key_are_given_one_and_others_keep_theirs(
        self, database: Neo4jDatabase, neo4j_graph: BedServer
    ) -> None:
        neo4j_graph.run("MATCH (a:Author {name: 'Author 1'}) SET a.uid = 'mine'")

        given, again = give_keys(database, "Author"), give_keys(database, "Author")

        rows = neo4j_graph.run("MATCH (a:Author) RETURN a.name AS name, a.uid AS uid")
        assert (given, again) == (5, 0)
        assert len({row["uid"] for row in rows}) == 6
        assert {row["name"]: row["uid"] for row in rows}["Author 1"] == "mine"
        assert properties(label(database, "Author"))["uid"].is_unique

    @pytest.mark.parametrize("name", ["Nobody", "a b", "Author) DETACH DELETE (n", "Embedded"])
    def test_other_labels_are_refused(self, database: Neo4jDatabase, name: str) -> None:
        with pytest.raises(RequestError, match="label"):
            give_keys(database, name)
