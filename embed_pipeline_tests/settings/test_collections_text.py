"""Neighbours and HTML in a file of collections: read, or refused with the line and a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from embed_pipeline.domain.recipe import Direction, Neighbours
from embed_pipeline.errors import ConfigurationError
from embed_pipeline.settings import load_settings

FILE = """
collections:
  - name: people
    label: Person
    key: id
    text:
      - name
      - bio
      - {path: "-[:WROTE]->(:Book)", properties: [title], heading: books, order_by: title}
    format: {bio: html}
"""
NEO4J = {
    "EMBED_QUEUE_STORE": "sqlite",
    "EMBED_GRAPH_STORE": "neo4j",
    "EMBED_GRAPH_URI": "bolt://graph:7687",
    "EMBED_GRAPH_PASSWORD": "secret-of-a-test",
}


def load(tmp_path: Path, content: str, **more: str) -> object:
    path = tmp_path / "collections.yaml"
    path.write_text(content)
    return load_settings({"EMBED_ENV": "test", "EMBED_CONFIG": str(path)} | NEO4J | more)


def test_a_path_and_html_are_parts_of_the_text(tmp_path: Path) -> None:
    (people,) = load(tmp_path, FILE).collections  # type: ignore[attr-defined]

    assert people.text == (
        "name",
        "bio",
        Neighbours(
            relationship="WROTE",
            direction=Direction.OUT,
            label="Book",
            properties=("title",),
            heading="books",
            order_by="title",
        ),
    )
    assert people.html == ("bio",)


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("->(:Book)", "->(:Book)-[:IN]->(:Shelf)", "line 9: path must be one hop"),
        ("[title]", "['title) DETACH DELETE (n']", "line 9: properties must be a name of"),
        ("order_by: title", "order_by: 'a`b'", "line 9: order_by must be a name of"),
        ("order_by: title", "where: true", "line 9: a path has no key 'where'"),
        ("bio: html", "bio: markdown", "line 10: format must be a mapping of properties to html"),
        ("bio: html", "age: html", "line 10: format must name properties of the text, got 'age'"),
        ("- bio", "- [bio]", "line 8: a part of a text must be a property or a mapping with path"),
    ],
)
def test_a_mistake_is_refused_with_its_line(
    tmp_path: Path, before: str, after: str, sentence: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(tmp_path, FILE.replace(before, after))

    assert any(f"collections.yaml, {sentence}" in problem for problem in refused.value.problems)


def test_a_path_is_refused_on_sqlite(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="because only Neo4j has relationships"):
        load(tmp_path, FILE, EMBED_GRAPH_STORE="sqlite")
