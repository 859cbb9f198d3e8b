"""The entity's text and version: pure, total, and the same for the same values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.embedding import VectorDefect, VectorFacts, defect_of, first_record
from embed_pipeline.domain.entity import Entity, NewEntity, check_entities, merged, uid_for
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.recipe import TextValue, embedding_text, version_of
from embed_pipeline.errors import RequestError

MAPPING = Collection()

strings = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
text_values = st.none() | strings | st.lists(strings, max_size=4).map(tuple)
all_texts = st.lists(text_values, max_size=5).map(tuple)
new_entities = st.builds(
    NewEntity,
    name=strings.filter(str.strip),
    entity_type=strings,
    properties=st.just({}) | st.fixed_dictionaries({"observations": text_values}),
)


def entity(*texts: TextValue) -> Entity:
    return Entity(uid=EntityUid("e"), name="n", entity_type="t", texts=texts)


class TestText:
    def test_a_line_per_value_and_per_item_of_a_list(self) -> None:
        texts = ("Ada", "person", ("likes tea", " wrote notes\n"))

        assert embedding_text(texts) == "Ada\nperson\nlikes tea\nwrote notes"

    def test_empty_values_are_left_out(self) -> None:
        assert embedding_text((None, "", (), ("", " "), "Ada")) == "Ada"

    def test_nothing_to_say_is_an_empty_text(self) -> None:
        assert embedding_text(()) == ""
        assert embedding_text((None, (" ",))) == ""

    @given(all_texts)
    def test_every_line_comes_from_a_value(self, texts: tuple[TextValue, ...]) -> None:
        items = [i for v in texts for i in ((v,) if isinstance(v, str) else v or ())]

        assert embedding_text(texts) == "\n".join(i.strip() for i in items if i.strip())

    @given(all_texts)
    def test_missing_values_change_nothing(self, texts: tuple[TextValue, ...]) -> None:
        assert embedding_text((None, *texts, "", ())) == embedding_text(texts)


class TestVersion:
    def test_version_is_stable_across_releases(self) -> None:
        # A changed hash would embed every graph anew: this number may never change.
        assert version_of("Ada\nperson") == "ec5450ecdc207f5920dc1ec8f1978569"

    @given(strings, strings)
    def test_texts_have_the_same_version_only_if_they_are_equal(self, a: str, b: str) -> None:
        assert (version_of(a) == version_of(b)) == (a == b)

    @given(all_texts)
    def test_version_depends_on_the_text_alone(self, texts: tuple[TextValue, ...]) -> None:
        assert entity(*texts).version == version_of(embedding_text(texts))

    def test_name_and_type_do_not_run_into_each_other(self) -> None:
        assert uid_for("ab", "c") != uid_for("b", "ca")
        assert uid_for("ab", "c") == uid_for("ab", "c")


class TestMerged:
    def test_new_entity_has_what_was_said(self) -> None:
        new = NewEntity(name="Ada", entity_type="person", properties={"observations": ("x",)})

        found = merged(new, None, mapping=MAPPING)

        assert (found.uid, found.name, found.entity_type) == (new.identity, "Ada", "person")
        assert found.texts == ("Ada", "person", ("x",))

    def test_missing_type_is_missing_not_an_empty_text(self) -> None:
        assert merged(NewEntity(name="Ada"), None, mapping=MAPPING).texts == ("Ada", None, None)

    @given(new_entities)
    def test_saying_the_same_twice_changes_nothing(self, new: NewEntity) -> None:
        check_entities([new], mapping=MAPPING)
        once = merged(new, None, mapping=MAPPING)

        assert merged(new, once, mapping=MAPPING) == once

    def test_list_from_json_becomes_a_tuple(self) -> None:
        new = NewEntity(name="Ada", properties={"observations": ["x"]})  # type: ignore[dict-item]

        check_entities([new], mapping=MAPPING)

        assert merged(new, None, mapping=MAPPING).texts[2] == ("x",)

    def test_contradicting_type_is_refused(self) -> None:
        new = NewEntity(name="Ada", entity_type="person", properties={"entityType": "place"})

        with pytest.raises(RequestError, match="contradicts 'person'"):
            check_entities([new], mapping=MAPPING)


class TestDefect:
    RECORD = first_record("mock/mock@4", dimensions=4)

    def test_first_defect_that_applies_counts(self) -> None:
        one = entity("a")

        def defect(model: str, version: str, dimensions: int) -> VectorDefect | None:
            facts = VectorFacts(model=model, version=version, dimensions=dimensions)
            return defect_of(one, facts, self.RECORD)

        assert defect_of(one, None, None) is VectorDefect.MISSING
        assert defect("other", "old", 2) is VectorDefect.WRONG_MODEL
        assert defect("mock/mock@4", "old", 2) is VectorDefect.WRONG_DIMENSION
        assert defect("mock/mock@4", "old", 4) is VectorDefect.STALE
        assert defect("mock/mock@4", one.version, 4) is None

    def test_unknown_model_owns_no_vector(self) -> None:
        one = entity("a")
        facts = VectorFacts(model="x", version=one.version, dimensions=4)

        assert defect_of(one, facts, None) is VectorDefect.WRONG_MODEL
