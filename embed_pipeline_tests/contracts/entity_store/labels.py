"""Labels: where each entity stands, written with the vector, counted, and set right by an audit."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from embed_pipeline.domain.embedding import VectorDefect
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.partition import (
    AuditCounts,
    AuditPage,
    AuditPass,
    AuditRecord,
    Labels,
    PartitionCounts,
)
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline_tests.contracts.entity_store.scene import (
    MODEL,
    OTHER_MODEL,
    GraphBackend,
    add,
    add_embedded,
    embed,
    keys,
    new,
    register,
    stored,
    uid,
    uids,
    vector,
)

EMBEDDED = Labels(embedded=frozenset(["Embedded"]))
STALE = Labels(embedded=frozenset(["Embedded"]), marked=True)
NOTHING = Labels(nothing_to_embed=True)
DELETED = Labels(excluded="deleted")
MARKED, QUEUED, UNLABELLED = Labels(marked=True), Labels(queued=True), Labels()


def audit(store: EntityStore, **options: int | bool) -> AuditPage:
    return store.audit_page(model=MODEL, after=None, size=1_000, **options)  # type: ignore[arg-type]


class LabelContract:
    def test_label_comes_with_the_vector_and_stays_when_the_text_changes(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        add(store, 1)
        assert backend.labels_of(uid(1)) == MARKED

        embed(store, stored(store, uid(1)))
        assert backend.labels_of(uid(1)) == EMBEDDED

        store.upsert_entities([new(1, "changed")], model=MODEL)
        assert backend.labels_of(uid(1)) == STALE

        store.upsert_entities([new(1)], model=MODEL)
        assert backend.labels_of(uid(1)) == EMBEDDED, "its vector is still there"

    def test_soft_delete_and_restore_exchange_labels_and_pay_nothing(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        add_embedded(store, 1)
        add(store, 2)

        store.soft_delete(uids([1, 2]))
        assert [backend.labels_of(uid(n)) for n in (1, 2)] == [DELETED, DELETED]
        assert store.counts(model=MODEL) == PartitionCounts(entities=2, excluded=2)

        created = store.upsert_entities([new(1), new(2)], model=MODEL)
        assert [one.embedded for one in created] == [True, False]
        assert [backend.labels_of(uid(n)) for n in (1, 2)] == [EMBEDDED, MARKED]

        store.soft_delete([uid(1)])
        store.upsert_entities([new(1, "changed")], model=MODEL)
        assert backend.labels_of(uid(1)) == STALE

    def test_emptied_text_loses_its_vector_and_a_filled_one_is_missing_again(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        add_embedded(store, 2)
        backend.insert(uid(1), name="\u200a", observations=("", "\t"))
        for name in ("name", "entityType", "observations"):
            backend.set_text(uid(2), name, None)

        done = store.relabel(uids([1, 2, 7]))

        assert [(one.entity.uid, one.labels.nothing_to_embed) for one in done] == [
            (uid(1), True),
            (uid(2), True),
        ]
        assert [backend.labels_of(uid(n)) for n in (1, 2)] == [NOTHING, NOTHING]
        assert store.embedded_versions([uid(2)], model=MODEL) == {}
        counts = store.counts(model=MODEL)
        assert (counts.embeddable, counts.missing) == (0, 0)

        store.upsert_entities([new(2)], model=MODEL)
        assert backend.labels_of(uid(2)) == MARKED
        assert not store.relabel([uid(2)])[0].labels.nothing_to_embed

    def test_text_that_another_program_changed_is_marked_when_it_is_named(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        add_embedded(store, 1, 2)
        backend.set_text(uid(1), "name", "another")

        changed, unchanged = store.relabel(uids([1, 2]))

        assert (changed.labels.marked, unchanged.labels.marked) == (True, False)
        assert [e.uid for e in store.changed_entities(model=MODEL, limit=5)] == [uid(1)]

    def test_marker_is_exchanged_only_while_the_queued_text_is_the_current_one(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        first, second, third = add(store, 1, 2, 3)
        store.upsert_entities([new(2, "changed")], model=MODEL)
        embed(store, third)

        queued = {e.uid: e.version for e in (first, second, third)}
        assert store.exchange_markers(queued) == 1
        assert store.exchange_markers(queued) == 0
        assert store.exchange_markers({}) == 0

        assert [backend.labels_of(uid(n)) for n in (1, 2, 3)] == [QUEUED, MARKED, EMBEDDED]
        assert store.counts(model=MODEL).marked == 1
        found = store.entities_without_embeddings(model=MODEL)
        assert keys(found.entities) == uids([2, 1]), "a queued one is still missing"

        embed(store, first)
        assert backend.labels_of(uid(1)) == EMBEDDED
        store.upsert_entities([new(1, "changed")], model=MODEL)
        assert backend.labels_of(uid(1)) == STALE

    @pytest.mark.parametrize("marked", [False, True])
    def test_good_vector_that_lost_its_label_is_met_once(
        self, store: EntityStore, backend: GraphBackend, marked: bool
    ) -> None:
        add_embedded(store, 1, 2)
        for number in (1, 2):
            backend.set_label(uid(number), "Embedded", False)
            backend.set_label(uid(number), "NeedsEmbedding", marked)
        assert store.counts(model=MODEL).missing == 2

        assert list(store.embedded_versions([uid(1)], model=MODEL)) == [uid(1)]
        assert store.entities_without_embeddings(model=MODEL).entities == ()

        assert [backend.labels_of(uid(n)) for n in (1, 2)] == [EMBEDDED, EMBEDDED]
        assert store.counts(model=MODEL).missing == 0

    def test_unlabelled_entity_that_needs_nothing_is_met_once(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        register(store)
        for number in (1, 2, 3):
            backend.insert(uid(number), name=" ", observations=None)
        backend.set_text(uid(1), "name", "Ada")
        backend.set_end(uid(2), 1_700_000_000_000)
        assert store.counts(model=MODEL).missing == 3

        assert keys(store.entities_without_embeddings(1, model=MODEL).entities) == [uid(1)]
        store.entities_without_embeddings(model=MODEL)

        assert [backend.labels_of(uid(n)) for n in (1, 2, 3)] == [UNLABELLED, DELETED, NOTHING]
        assert store.counts(model=MODEL).missing == 1

    def test_mark_on_an_entity_that_needs_nothing_goes(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        add_embedded(store, 1, 2)
        backend.set_label(uid(1), "NeedsEmbedding", True)
        backend.set_label(uid(2), "NeedsEmbedding", True)
        backend.set_text(uid(2), "name", "changed")

        assert keys(store.changed_entities(model=MODEL, limit=10)) == [uid(2)]

        assert [backend.labels_of(uid(n)) for n in (1, 2)] == [EMBEDDED, STALE]

    def test_vector_of_another_model_is_missing_and_found(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        add_embedded(store, 1)
        backend.relabel_vector(uid(1), OTHER_MODEL)
        assert audit(store).wrong_model == 1
        assert store.exchange_markers({uid(1): stored(store, uid(1)).version}) == 1

        assert store.counts(model=MODEL).missing == 1
        assert keys(store.entities_without_embeddings(model=MODEL).entities) == [uid(1)]

    def test_unknown_model_has_nothing_embedded(self, store: EntityStore) -> None:
        add_embedded(store, 1)

        assert store.counts(model=OTHER_MODEL) == PartitionCounts(entities=1)


class AuditContract:
    def test_whatever_another_program_did_is_found_and_set_right(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        add_embedded(store, *range(10))
        add(store, 10)
        backend.insert(uid(11), name="theirs", observations=None)
        store.soft_delete([uid(8)])
        backend.set_label(uid(0), "Embedded", False)
        backend.set_text(uid(1), "name", "changed")
        backend.drop_vector(uid(2))
        backend.relabel_vector(uid(3), OTHER_MODEL)
        backend.set_end(uid(4), 1_700_000_000_000)
        for name in ("name", "entityType", "observations"):
            backend.set_text(uid(5), name, None)
        backend.set_label(uid(6), "NothingToEmbed", True)
        backend.set_label(uid(7), "NeedsEmbedding", True)
        backend.set_end(uid(8), None)
        backend.set_label(uid(11), "Embedded", True)
        told = audit(store, repair=False)
        assert (told.repaired, told.marked) == (0, 0)

        found = audit(store)

        assert found == AuditPage(
            embedded=5,
            missing=3,
            stale=1,
            wrong_model=1,
            excluded=1,
            nothing_to_embed=1,
            repaired=8,
            marked=4,
        )
        lost = MARKED
        expected = [EMBEDDED, STALE, lost, lost, DELETED, NOTHING, EMBEDDED, EMBEDDED, EMBEDDED]
        expected += [EMBEDDED, MARKED, lost]
        assert [backend.labels_of(uid(n)) for n in range(12)] == expected
        assert store.counts(model=MODEL) == PartitionCounts(
            entities=12, embedded=6, excluded=1, nothing_to_embed=1, marked=5
        )
        assert audit(store) == AuditPage(
            embedded=5, missing=3, stale=1, wrong_model=1, excluded=1, nothing_to_embed=1
        )

    def test_sample_finds_numbers_that_were_overwritten(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        add_embedded(store, 1, 2, 3)
        backend.replace_vector(uid(1), vector(0, 0, 0, 0))
        backend.replace_vector(uid(2), vector(1, 2))

        found = audit(store, sample=100)

        assert (found.embedded, found.invalid, found.wrong_dimension) == (1, 1, 1)
        assert [backend.labels_of(uid(n)) for n in (1, 2, 3)] == [MARKED, MARKED, EMBEDDED]
        again = audit(store)
        assert (again.embedded, again.wrong_model, again.repaired) == (1, 2, 0), "it is disowned"
        classified = store.classify(uids([1, 2]), model=MODEL)
        assert set(classified.values()) == {VectorDefect.WRONG_MODEL}
        missing = store.entities_without_embeddings(model=MODEL).entities
        embed(store, *missing)
        assert audit(store, sample=100).embedded == 3

    def test_pages_go_on_by_key_and_meet_every_entity_once(self, store: EntityStore) -> None:
        add_embedded(store, *range(7))
        store.soft_delete([uid(3)])

        pages, after = [], EntityUid("")
        while True:
            page = store.audit_page(model=MODEL, after=after, size=3)
            pages.append((page.examined, page.next_after))
            if page.next_after is None:
                break
            after = page.next_after

        assert pages == [(3, uid(2)), (3, uid(5)), (1, None)]

    def test_stale_one_whose_job_was_queued_is_marked_again(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        """The queue may have been rebuilt since."""
        add_embedded(store, 1)
        (changed,) = store.upsert_entities([new(1, "changed")], model=MODEL)
        store.exchange_markers({uid(1): changed.entity.version})
        assert store.counts(model=MODEL).marked == 0

        assert audit(store).marked == 1

        assert backend.labels_of(uid(1)) == STALE

    def test_record_is_kept_in_the_graph(self, store: EntityStore, second: EntityStore) -> None:
        started = datetime(2026, 3, 1, 12, tzinfo=UTC)
        last = AuditPass(
            started_at=started,
            counts=AuditCounts(embedded=7, stale=2),
            ended_at=started + timedelta(minutes=3),
        )
        current = AuditPass(started_at=started + timedelta(hours=1), after=uid(4))
        assert store.audit_record(model=MODEL) is None

        store.save_audit(AuditRecord(model=MODEL, last=last, current=current))

        assert second.audit_record(model=MODEL) == AuditRecord(
            model=MODEL, last=last, current=current
        )
        assert last.duration == timedelta(minutes=3)
        assert store.audit_record(model=OTHER_MODEL) is None
