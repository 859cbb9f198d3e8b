from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml  # type: ignore[import-untyped]

from embed_pipeline.domain.collection import Collection, Filter, KeyType
from embed_pipeline.domain.recipe import Direction, Neighbours
from embed_pipeline.settings import load_settings
from embed_pipeline.settings.parsing.collection_schema import json_schema
from embed_pipeline_tests.settings.environments import problems
from embed_pipeline_tests.settings.test_stores import NEO4J

FILE = """\
collections:
  - name: people
    label: Person
    key: id
    key_type: integer
    name_property: fullName
    type: {property: profession}
    text:
      - fullName
      - bio
      - {path: "-[:WROTE]->(:Book)", properties: [title], heading: books, limit: 5}
    format: {bio: html}
    valid_to: until
    changed_at: changed
    filter: {property: published, equals: true}
  - name: books
    label: Book
    key: isbn
    text: [title]
"""

PLAIN = "collections: [{name: books, label: Book, key: isbn, text: [title]}]"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "collections.yaml"


def environ(file: Path, text: str, store: Mapping[str, str] = NEO4J) -> dict[str, str]:
    file.write_text(text, encoding="utf-8")
    return {**store, "EMBED_CONFIG": str(file)}


def test_a_file_describes_several_collections(file: Path) -> None:
    people, books = load_settings(environ(file, FILE)).collections

    wrote = Neighbours(
        relationship="WROTE",
        direction=Direction.OUT,
        label="Book",
        properties=("title",),
        heading="books",
        limit=5,
    )
    assert people == Collection(
        name="people",
        label="Person",
        key="id",
        key_type=KeyType.INTEGER,
        name_property="fullName",
        type_property="profession",
        text=("fullName", "bio", wrote),
        html=("bio",),
        valid_to="until",
        changed_at="changed",
        filter=Filter(property="published", values=(True,)),
    )
    assert books == Collection(
        name="books", label="Book", key="isbn", fixed_type="Book", text=("title",)
    )


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("{property: a, in: [x, 2, false]}", Filter(property="a", values=("x", 2, False))),
        ("{property: a, exists: true}", Filter(property="a")),
        ("{property: a, equals: in print}", Filter(property="a", values=("in print",))),
    ],
)
def test_filters(file: Path, said: str, expected: Filter) -> None:
    text = PLAIN.replace("key: isbn", f"key: isbn, filter: {said}")
    (books,) = load_settings(environ(file, text)).collections

    assert books.filter == expected


def test_a_file_beside_the_variables_of_one_collection_is_refused(file: Path) -> None:
    given = {**environ(file, PLAIN), "EMBED_ENTITY_LABEL": "Question"}

    assert list(problems(given)) == [
        "EMBED_ENTITY_LABEL must be unset: EMBED_CONFIG describes the collections."
    ]


@pytest.mark.parametrize(
    ("line", "instead", "place", "says"),
    [
        ("    key: isbn", "    key: isbn\n    colour: red", 19, "no key 'colour'"),
        ("    key: isbn", "    key: isbn\n    key: ean", 19, "key is there twice"),
        ("  - name: books", "  - name: people", 16, "another collection named people"),
        ("  - name: books", "  - name: Books", 16, "name must be up to 32 small letters"),
        ("  - name: books", "  - name: b/1", 16, "name must be up to 32 small letters"),
        ("    label: Book", "    label: A|B", 17, "label must be a name"),
        ("    label: Book", "    label: 7", 17, "label must be a name"),
        ("    label: Book", "    label: Embedded_x", 17, "label must be a label that"),
        ("    key: isbn", "    key: title", 18, "key must be another property"),
        ("    text: [title]", "    text: title", 19, "text must be a list"),
        ("    text: [title]", "    text: [title, title]", 19, "name each property once"),
        ("    text: [title]", "    colors: [title]", 16, "lacks text"),
        ("    key_type: integer", "    key_type: float", 5, "key_type must be string or integer"),
        ("    type: {property: profession}", "    type: {word: x}", 7, "type has no key 'word'"),
        ("    valid_to: until", "    valid_to: id", 13, "valid_to must be another property"),
        ("equals: true}", "equals: 1.5}", 15, "a filter's value must be"),
        ("equals: true}", "above: 1}", 15, "filter has no key 'above'"),
        ("equals: true}", "equals: true, exists: true}", 15, "one of equals, in, exists"),
        ('"-[:WROTE]->(:Book)"', '"-[:WROTE*2]->(:Book)"', 11, "path must be one hop"),
        ('"-[:WROTE]->(:Book)"', '"-[:WROTE]->()-[:OF]->(:Book)"', 11, "path must be one hop"),
        ("format: {bio: html}", "format: {bio: markdown}", 12, "format must be a mapping"),
        ("collections:", "collection:", 1, "no key 'collection'"),
        ("    label: Book", "    label: [", 19, "this is no YAML"),
    ],
)
def test_a_mistake_is_refused_with_its_line(
    file: Path, line: str, instead: str, place: int, says: str
) -> None:
    assert line in FILE

    found = problems(environ(file, FILE.replace(line, instead)))

    assert any(
        sentence.startswith(f"collections.yaml, line {place}: ") and says in sentence
        for sentence in found
    ), found


INJECTION = "x` SET e.name = 'y"


@pytest.mark.parametrize(
    "said",
    [
        "label: Person",
        "key: id",
        "name_property: fullName",
        "property: profession",
        "- fullName",
        "valid_to: until",
        "changed_at: changed",
        "property: published",
        "equals: true",
        "-[:WROTE]->",
        "(:Book)",
        "properties: [title]",
        "bio: html",
        "name: people",
    ],
)
def test_no_identifier_can_carry_a_statement(file: Path, said: str) -> None:
    assert said in FILE
    name = said.strip("-[]:>()").partition("[")[0] if said[0] in "-(" else said.rpartition(" ")[2]
    name = {"-[:WROTE]->": "WROTE", "(:Book)": "Book", "- fullName": "fullName"}.get(said, name)
    name = {"properties: [title]": "title", "bio: html": "bio"}.get(said, name)
    quoted = INJECTION if said[0] in "-(" and said != "- fullName" else f'"{INJECTION}"'
    injected = said.replace(name, quoted)

    found = problems(environ(file, FILE.replace(said, injected, 1)))

    assert all(sentence.startswith("collections.yaml, line ") for sentence in found)


def test_what_needs_neo4j_is_refused_on_sqlite(file: Path) -> None:
    sentences = problems(environ(file, FILE, {}))

    for said in ("line 9: text must name no path", "line 14: changed_at is for", "line 15: filter"):
        assert any(said in sentence for sentence in sentences), sentences


def test_the_same_file_works_on_sqlite(file: Path) -> None:
    assert (
        load_settings(environ(file, PLAIN, {})).collections
        == load_settings(environ(file, PLAIN)).collections
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1: the file is empty"),
        ("collections: []", "line 1: there must be at least one collection"),
        ("- 7", "line 1: the file must be a mapping"),
        ("a: &a [*a, *a]", "the file has no key 'a'"),
    ],
)
def test_a_file_without_collections_is_refused(file: Path, text: str, says: str) -> None:
    assert any(says in sentence for sentence in problems(environ(file, text)))


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (sentence,) = problems({"EMBED_CONFIG": str(tmp_path / "nothing.yaml")})

    assert sentence.startswith("EMBED_CONFIG must name a file that can be read")


def test_the_example_is_what_the_parser_and_the_schema_take() -> None:
    example = Path(__file__).parents[2] / "deploy" / "collections.yaml"

    people, books = load_settings({**NEO4J, "EMBED_CONFIG": str(example)}).collections

    assert (people.name, books.fixed_type) == ("people", "Book")
    jsonschema.validate(yaml.safe_load(example.read_text(encoding="utf-8")), json_schema())
