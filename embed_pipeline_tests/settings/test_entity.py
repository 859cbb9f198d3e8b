from __future__ import annotations

import pytest

from embed_pipeline.domain.collection import Collection
from embed_pipeline.settings import load_settings
from embed_pipeline_tests.settings.environments import problems
from embed_pipeline_tests.settings.test_stores import NEO4J


def test_the_mapping_defaults_to_our_own_names() -> None:
    (collection,) = load_settings({}).collections

    assert collection == Collection(
        label="Entity",
        key="uid",
        name_property="name",
        type_property="entityType",
        text=("name", "entityType", "observations"),
        valid_to="validTo",
    )


def test_text_properties_keep_their_order() -> None:
    settings = load_settings({"EMBED_ENTITY_TEXT": "summary, title ,_tags2"})

    assert settings.collections[0].text == ("summary", "title", "_tags2")


@pytest.mark.parametrize("part", ["LABEL", "KEY", "NAME", "TYPE", "VALID_TO"])
@pytest.mark.parametrize(
    "name",
    [
        "",
        "1st",
        "a-b",
        "a b",
        "a`b",
        "naïve",
        "x" * 65,
        "embedding",
        "Embedding_x",
        "embeddingHash",
        "needs_embedding",
        "NeedsEmbedding",
        "a) DETACH DELETE (b",
    ],
)
def test_what_is_no_identifier_or_is_ours_is_refused(part: str, name: str) -> None:
    (sentence,) = problems({f"EMBED_ENTITY_{part}": name})

    assert sentence.startswith(f"EMBED_ENTITY_{part} must be a name of up to 64 letters")


@pytest.mark.parametrize("text", ["", "a,", "a,,b", "a,a", "a,A", "a;b", "a,embedding"])
def test_a_bad_list_of_texts_is_refused(text: str) -> None:
    (sentence,) = problems({"EMBED_ENTITY_TEXT": text})

    assert sentence.startswith("EMBED_ENTITY_TEXT must be a comma-separated list")


def test_a_name_of_64_characters_is_taken() -> None:
    assert load_settings({"EMBED_ENTITY_LABEL": "x" * 64}).collections[0].label == "x" * 64


@pytest.mark.parametrize("environ", [{}, NEO4J])
@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ({"KEY": "name"}, "KEY must be another property than name, type and texts, got 'name'."),
        (
            {"TEXT": "name,uid"},
            "KEY must be another property than name, type and texts, got 'uid'.",
        ),
        (
            {"VALID_TO": "name"},
            "VALID_TO must be another property than key, name, type and texts, got 'name'.",
        ),
        (
            {"VALID_TO": "uid"},
            "VALID_TO must be another property than key, name, type and texts, got 'uid'.",
        ),
    ],
)
def test_key_and_valid_to_are_properties_of_their_own(
    environ: dict[str, str], given: dict[str, str], reported: str
) -> None:
    asked = {f"EMBED_ENTITY_{part}": name for part, name in given.items()}

    assert problems({**environ, **asked}) == (f"EMBED_ENTITY_{reported}",)


@pytest.mark.parametrize(
    ("part", "name", "must"),
    [
        ("LABEL", "EmbedJob", "be a label that the store does not use itself, got 'EmbedJob'"),
        (
            "TEXT",
            "name,_lock_text",
            "be a property that the store does not use itself, got '_lock_text'",
        ),
        ("NAME", "_lock", "be a property that the store does not use itself, got '_lock'"),
        ("KEY", "_newest", "be a property that the store does not use itself, got '_newest'"),
    ],
)
def test_what_neo4j_uses_itself_is_refused_there_alone(part: str, name: str, must: str) -> None:
    asked = {f"EMBED_ENTITY_{part}": name}

    assert problems({**NEO4J, **asked}) == (f"EMBED_ENTITY_{part} must {must}.",)
    load_settings(asked)


@pytest.mark.parametrize(
    ("part", "name", "must"),
    [
        ("LABEL", "sqlite_things", "be a label that the store does not use itself, got"),
        (
            "TEXT",
            "name,created_at",
            "be a property that the store does not use itself, got 'created_at'",
        ),
        (
            "VALID_TO",
            "Updated_At",
            "be a property that the store does not use itself, got 'Updated_At'",
        ),
        ("KEY", "Name", "be another property than name, type and texts, got 'Name'"),
        ("TYPE", "Name", "be another property than the name, got 'Name'"),
        ("TEXT", "Name", "spell name and type as they are mapped, got 'Name'"),
    ],
)
def test_what_sqlite_cannot_hold_is_refused_there_alone(part: str, name: str, must: str) -> None:
    asked = {f"EMBED_ENTITY_{part}": name}

    (sentence,) = problems(asked)

    assert sentence.startswith(f"EMBED_ENTITY_{part} must {must}")
    load_settings({**NEO4J, **asked})
