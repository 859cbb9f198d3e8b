"""What is proposed for a graph, by what a survey found."""

from __future__ import annotations

from typing import Any

import yaml  # type: ignore[import-untyped]

from embed_pipeline.domain.recipe import Direction
from embed_pipeline.ports.graph_survey import (
    GraphSurvey,
    LabelFacts,
    PropertyFacts,
    RelationshipFacts,
    VectorIndexFacts,
)
from embed_pipeline.usecases.adopt.config_file import as_yaml
from embed_pipeline.usecases.adopt.propose import Proposal, ProposedCollection, propose

STRING, INTEGER = frozenset({"STRING"}), frozenset({"INTEGER"})


def key(name: str = "id", **more: Any) -> PropertyFacts:
    given: dict[str, Any] = {
        "filled": 100,
        "types": INTEGER,
        "distinct": 100,
        "is_unique": True,
    } | more
    return PropertyFacts(name=name, **given)


def text(name: str, **more: Any) -> PropertyFacts:
    given: dict[str, Any] = {
        "filled": 100,
        "types": STRING,
        "length": 40.0,
        "is_unique": False,
    } | more
    return PropertyFacts(name=name, **given)


def label(name: str, *properties: PropertyFacts, **more: Any) -> LabelFacts:
    given: dict[str, Any] = {"nodes": 1_000, "sampled": 100, "related": 100} | more
    return LabelFacts(label=name, properties=properties, **given)


def proposed(*labels: LabelFacts, **more: Any) -> Proposal:
    return propose(GraphSurvey(labels=labels, **more))


def only(*labels: LabelFacts) -> ProposedCollection:
    (one,) = proposed(*labels).collections
    return one


class TestCollections:
    def test_label_with_key_name_and_texts(self) -> None:
        bio = text("bio", length=400.0, html=30)
        one = only(label("BookAuthor", key(), bio, text("name", length=20.0), text("nick")))

        assert (one.name, one.label) == ("book_author", "BookAuthor")
        assert (one.key, one.key_type, one.key_is_certain) == ("id", "integer", True)
        assert one.name_property == "name"
        assert one.properties == ("name", "nick", "bio")
        assert one.html == ("bio",)
        assert (one.entities, one.tokens) == (1_000, 115_000)

    def test_addresses_numbers_and_rare_properties_are_no_text(self) -> None:
        others = (
            text("link", opaque=90),
            text("seldom", filled=1),
            PropertyFacts(name="count", filled=100, types=INTEGER),
            PropertyFacts(name="vector", filled=100, types=frozenset({"LIST<FLOAT>"}), length=64.0),
        )

        assert only(label("A", key(), text("name"), *others)).properties == ("name",)

    def test_a_key_is_unique_everywhere_and_not_the_name(self) -> None:
        unique = text("name", distinct=100, is_unique=True)
        doubtful = key("serial", is_unique=False)
        partly = key("code", filled=99, distinct=99)

        found = proposed(label("Tag", unique, doubtful, partly))

        assert (found.collections, found.without_key) == ((), ("Tag",))

    def test_a_key_that_was_not_counted_is_said_to_be_from_the_sample(self) -> None:
        found = proposed(label("A", key(is_unique=None), text("name"), nodes=10**7))

        assert not found.collections[0].key_is_certain
        assert "key: id  # unique in the sample" in as_yaml(found)

    def test_the_usual_name_of_a_key_goes_before_others(self) -> None:
        keys = (key("position"), key("uuid", types=STRING, length=36.0))

        assert only(label("A", *keys, text("name"))).key == "uuid"

    def test_nodes_without_text_are_counted_from_the_sample(self) -> None:
        assert only(label("A", key(), text("name", filled=75))).without_text == 250

    def test_label_without_words_is_left_out(self) -> None:
        assert proposed(label("Score", key())).without_text == ("Score",)

    def test_names_of_collections_differ(self) -> None:
        parts = (key(), text("name"))
        found = proposed(label("AB", *parts), label("Ab", *parts), label("Ñandú", *parts))

        assert [one.name for one in found.collections] == ["ab", "ab2", "and"]


class TestNeighbours:
    TAG = label("Tag", text("name", length=10.0))

    def related(self, **more: Any) -> RelationshipFacts:
        given: dict[str, Any] = {"direction": Direction.OUT, "nodes": 100, "relationships": 300}
        return RelationshipFacts(type="TAGGED_AS", label="Tag", **given | more)

    def test_short_names_of_few_neighbours_are_in_the_text(self) -> None:
        one = only(label("A", key(), text("name"), relationships=(self.related(),)), self.TAG)

        assert list(map(str, one.neighbours)) == ["-[:TAGGED_AS]->(:Tag)"]
        assert one.neighbours[0].heading == "tagged as Tag"
        assert one.tokens == (40 + 30) * 1_000 / 4

    def test_nodes_with_many_neighbours_are_not(self) -> None:
        many = self.related(relationships=5_000)

        assert (
            only(label("A", key(), text("name"), relationships=(many,)), self.TAG).neighbours == ()
        )


class TestFile:
    def test_it_is_yaml_that_says_the_same(self) -> None:
        path = RelationshipFacts(
            type="IN", direction=Direction.IN, label="Tag", nodes=100, relationships=100
        )
        tag = label("Tag", text("name", length=10.0))
        own = (key(), text("name", html=50), text("on"), key("validTo"))
        found = proposed(label("No", *own, relationships=(path,)), tag)

        (one,) = yaml.safe_load(as_yaml(found))["collections"]

        assert one == {
            "name": "no",
            "label": "No",
            "key": "id",
            "key_type": "integer",
            "name_property": "name",
            "type": "No",
            "text": [
                "name",
                "on",
                {
                    "path": "<-[:IN]-(:Tag)",
                    "properties": ["name"],
                    "heading": "Tag in",
                    "limit": 20,
                },
            ],
            "format": {"name": "html"},
            "valid_to": "validTo",
        }


def test_notes_name_vectors_overlaps_and_labels_that_cannot_be_used() -> None:
    vectors = PropertyFacts(
        name="embedding", filled=9, types=frozenset({"LIST<FLOAT>"}), length=64.0
    )
    found = proposed(
        label("A", key(), text("name"), vectors, shared={"B": 100}),
        label("B", key(), text("name"), shared={"A": 40}),
        indexes=(VectorIndexFacts(name="theirs", label="A", property="embedding", dimensions=64),),
        unusable=("Order Details",),
        left=3,
    )

    assert found.notes == (
        "Of the sampled A nodes all are B too: a node belongs to the collection that comes first"
        " in the file.",
        "A.embedding holds vectors of about 64 numbers (index theirs): another program made them.",
        "Labels that cannot be named are left out: 'Order Details'.",
        "3 smaller labels were not looked at.",
    )
