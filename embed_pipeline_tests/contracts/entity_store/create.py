"""Creation: entities are persisted at once, without a vector, and marked as needing one."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from embed_pipeline.domain.entity import LONGEST, NewEntity, uid_for
from embed_pipeline.errors import RequestError
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline_tests.contracts.entity_store.scene import (
    MODEL,
    GraphBackend,
    add,
    add_embedded,
    coverage_of,
    new,
    register,
    stored,
    uid,
    uids,
    write,
)

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


class CreateContract:
    def test_created_entity_is_stored_without_embedding_and_marked(
        self, store: EntityStore, second: EntityStore, backend: GraphBackend
    ) -> None:
        (created,) = store.create_entities([new(1, "likes tea", "lives in Rome")], model=MODEL)

        assert (created.existing, created.changed, created.embedded) == (False, True, False)
        assert stored(second, uid(1)) == created.entity
        assert created.entity.texts == ("entity 1", "thing", ("likes tea", "lives in Rome"))
        assert backend.is_marked(uid(1))

    def test_existing_entity_is_reported_and_left_unchanged(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        (before,) = add_embedded(store, 1)

        (again,) = store.create_entities([new(1, "something else")], model=MODEL)

        assert (again.existing, again.changed, again.entity) == (True, False, before)
        assert stored(store, uid(1)) == before
        assert not backend.is_marked(uid(1))

    def test_existing_entity_tells_whether_it_is_embedded(self, store: EntityStore) -> None:
        add(store, 1)
        add_embedded(store, 2)

        one, two = store.create_entities([new(1), new(2)], model=MODEL)

        assert (one.embedded, two.embedded) == (False, True)

    def test_soft_deleted_entity_still_exists(self, store: EntityStore) -> None:
        add(store, 1)
        store.soft_delete([uid(1)])

        (again,) = store.create_entities([new(1)], model=MODEL)

        assert again.existing
        assert not again.entity.is_valid

    def test_first_of_a_key_wins_within_one_call(self, store: EntityStore) -> None:
        first, later = store.create_entities([new(1, "first"), new(1, "later")], model=MODEL)

        assert (first.existing, later.existing, later.changed) == (False, True, False)
        assert later.entity == first.entity == stored(store, uid(1))

    def test_uid_is_derived_from_name_and_type_when_none_is_given(self, store: EntityStore) -> None:
        ada = NewEntity(name="Ada", entity_type="person")

        (created,) = store.create_entities([ada], model=MODEL)
        (again,) = store.create_entities([ada], model=MODEL)

        assert created.entity.uid == uid_for("Ada", "person")
        assert again.existing

    @pytest.mark.parametrize(
        "entity",
        [
            NewEntity(name=""),
            NewEntity(name=" \t"),
            NewEntity(name="Ada", properties={"name": "Eve"}),
            NewEntity(name="Ada", properties={"observations": (1,)}),  # type: ignore[dict-item]
            NewEntity(name="Ada", properties={"observations": 7}),  # type: ignore[dict-item]
            NewEntity(name="Ada \ud800"),
            NewEntity(name="Ada", uid=uid("a\x00b")),
            NewEntity(name="n" * 9_000),
            NewEntity(name="é" * 4_500),
            NewEntity(name="Ada", uid=uid("k" * 9_000)),
        ],
    )
    def test_unusable_entity_is_refused_and_nothing_is_written(
        self, store: EntityStore, entity: NewEntity
    ) -> None:
        with pytest.raises(RequestError):
            store.create_entities([new(1), entity], model=MODEL)

        assert store.get_entity(uid(1)) is None

    def test_longest_name_and_key_are_stored(self, store: EntityStore) -> None:
        key, name = uid("k" * LONGEST), "é" * (LONGEST // 2)

        (created,) = store.create_entities([NewEntity(uid=key, name=name)], model=MODEL)

        assert not created.existing
        assert [entity.uid for entity in store.find_by_name(name)] == [key]

    def test_unknown_properties_are_refused_by_name(self, store: EntityStore) -> None:
        entity = NewEntity(name="Ada", properties={"notes": "x", "colour": "y"})

        with pytest.raises(RequestError, match="colour, notes"):
            store.create_entities([entity], model=MODEL)

    def test_string_that_looks_like_a_list_stays_a_string(self, store: EntityStore) -> None:
        values = ('["a"]', ("a",), (), "", None, ("ünï\n", "c\u0000d"))
        entities = [
            NewEntity(uid=uid(n), name="x", properties={"observations": value})
            for n, value in enumerate(values)
        ]

        store.create_entities(entities, model=MODEL)

        assert tuple(stored(store, uid(n)).texts[2] for n in range(len(values))) == values

    def test_empty_call_creates_nothing(self, store: EntityStore) -> None:
        assert store.create_entities([], model=MODEL) == ()


class ReadContract:
    def test_entities_are_read_by_key_and_unknown_ones_left_out(self, store: EntityStore) -> None:
        one, two = add(store, 1, 2)
        store.soft_delete([two.uid])

        found = store.read_entities([uid(2), uid(1), uid(1), uid(9)])

        assert set(found) == {uid(1), uid(2)}
        assert found[uid(1)] == one
        assert not found[uid(2)].is_valid
        assert store.read_entities([]) == {}
        assert store.get_entity(uid(9)) is None

    def test_find_by_name_is_exact_valid_ones_first(self, store: EntityStore) -> None:
        names = {1: "Alberto Rocco", 2: "Alberto Rocco", 3: "alberto rocco", 4: "Alberto Rocco"}
        store.create_entities([new(n, name=name) for n, name in names.items()], model=MODEL)
        store.soft_delete([uid(1)])

        found = store.find_by_name("Alberto Rocco")

        assert [entity.uid for entity in found] == uids([2, 4, 1])
        assert len(store.find_by_name("Alberto Rocco", limit=2)) == 2
        assert store.find_by_name("Alberto") == ()
        with pytest.raises(RequestError):
            store.find_by_name("Alberto Rocco", limit=0)

    def test_soft_delete_returns_those_that_were_valid(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        add(store, 1, 2)

        assert store.soft_delete([uid(1), uid(9)]) == (uid(1),)
        assert store.soft_delete([uid(2), uid(1)]) == (uid(2),)
        assert store.soft_delete([]) == ()
        assert stored(store, uid(1)).valid_to == backend.clock.now()

    @pytest.mark.parametrize(
        "end",
        [
            1_714_521_600_000,
            1_714_521_600_000_000,
            1_714_521_600_000.5,
            9e99,
            "2024-05-01",
            "2024-05-01 12:00:00",
            "2024-05-01T12:00:00+02:00",
            "long ago",
            "",
            False,
        ],
    )
    def test_any_end_of_validity_makes_an_entity_invalid(
        self, store: EntityStore, backend: GraphBackend, end: object
    ) -> None:
        register(store)
        one, two = add(store, 1, 2)
        backend.set_end(one.uid, end)

        found = store.read_entities([one.uid, two.uid])
        report = store.write_vectors([write(one), write(two)], model=MODEL)

        assert [found[entity.uid].is_valid for entity in (one, two)] == [False, True]
        assert (report.gone, report.written) == ((one.uid,), (two.uid,))
        assert coverage_of(store, model=MODEL).entities == 1
        assert store.soft_delete([one.uid]) == ()

    def test_end_of_validity_is_read_as_its_time(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        one, two, three = add(store, 1, 2, 3)
        backend.set_end(one.uid, 1_714_564_800_000)
        backend.set_end(two.uid, "2024-05-01 12:00:00")
        backend.set_end(three.uid, "2024-05-01T14:00:00+02:00")

        found = store.read_entities([one.uid, two.uid, three.uid])

        assert {entity.valid_to for entity in found.values()} == {NOON}
