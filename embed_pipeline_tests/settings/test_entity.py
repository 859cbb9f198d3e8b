from __future__ import annotations

import pytest

from embed_pipeline.settings import EntitySettings, load_settings
from embed_pipeline_tests.settings.environments import problems


def test_the_mapping_defaults_to_our_own_names() -> None:
    assert load_settings({}).entity == EntitySettings(
        label="Entity",
        key="uid",
        name="name",
        entity_type="entityType",
        text=("name", "entityType", "observations"),
        valid_to="validTo",
    )


def test_text_properties_keep_their_order() -> None:
    settings = load_settings({"EMBED_ENTITY_TEXT": "summary, title ,_tags2"})

    assert settings.entity.text == ("summary", "title", "_tags2")


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
    assert load_settings({"EMBED_ENTITY_LABEL": "x" * 64}).entity.label == "x" * 64


def test_the_name_may_be_the_key() -> None:
    assert load_settings({"EMBED_ENTITY_KEY": "name"}).entity.key == "name"


def test_valid_to_must_be_a_property_of_its_own() -> None:
    assert problems({"EMBED_ENTITY_VALID_TO": "name"}) == (
        "EMBED_ENTITY_VALID_TO must be another property than key, name, type and texts,"
        " got 'name'.",
    )
