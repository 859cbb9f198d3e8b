"""A state machine of the graph: our writes and those of another program, in any order.

After an audit the labels of every entity are what its properties say, as a second, simpler rule
reads them here, and the counts are those of the walk.
"""

from __future__ import annotations

from collections import Counter

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from embed_pipeline.domain.embedding import Vector
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.partition import AuditCounts
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.contracts.entity_store.scene import (
    MODEL,
    OTHER_MODEL,
    GraphBackend,
    embed,
    new,
    register,
    uid,
    vector,
)

NUMBERS = st.integers(0, 2)
TEXTS = st.sampled_from(["one", "two"])
LABELS = st.sampled_from(
    ["Embedded", "NothingToEmbed", "EmbeddingExcluded", "NeedsEmbedding", "EmbeddingQueued"]
)
ENTITIES = [uid(number) for number in range(3)]
BAD_VECTORS = {"zero": vector(0, 0, 0, 0), "short": vector(1, 2)}


class GraphMachine(RuleBasedStateMachine):
    """Subclasses give `open_backend`."""

    def open_backend(self, clock: FakeClock) -> GraphBackend:
        raise NotImplementedError

    @initialize()
    def begin(self) -> None:
        self.backend = self.open_backend(FakeClock())
        self.store: EntityStore = self.backend.open_store()
        register(self.store)
        created = self.store.create_entities([new(n) for n in range(3)], model=MODEL)
        embed(self.store, created[0].entity, created[1].entity)

    def teardown(self) -> None:
        """Whatever was done last, an audit sets it right."""
        self.audit()

    # -- ours -------------------------------------------------------------------------------

    @rule(number=NUMBERS, text=TEXTS)
    def create(self, number: int, text: str) -> None:
        self.store.create_entities([new(number, text)], model=MODEL)

    @rule(number=NUMBERS, text=TEXTS)
    def upsert(self, number: int, text: str) -> None:
        self.store.upsert_entities([new(number, text)], model=MODEL)

    @rule(number=NUMBERS)
    def delete(self, number: int) -> None:
        self.store.soft_delete([uid(number)])

    @rule()
    def discover_and_embed(self) -> None:
        found = self.store.entities_without_embeddings(3, model=MODEL).entities
        changed = self.store.changed_entities(model=MODEL, limit=2)
        self.store.exchange_markers({e.uid: e.version for e in (*found, *changed)})
        embed(self.store, *found, *changed)

    @rule(number=NUMBERS)
    def find_empty(self, number: int) -> None:
        self.store.relabel([uid(number)])

    @rule(number=NUMBERS)
    def ask_for_versions(self, number: int) -> None:
        self.store.embedded_versions([uid(number)], model=MODEL)

    # -- another program's ------------------------------------------------------------------

    @rule(number=NUMBERS, text=st.one_of(TEXTS, st.none(), st.just(" ")))
    def change_all_texts(self, number: int, text: str | None) -> None:
        for name in ("name", "entityType", "observations"):
            self.backend.set_text(uid(number), name, text)

    @rule(number=NUMBERS, label=LABELS, is_set=st.booleans())
    def set_label(self, number: int, label: str, is_set: bool) -> None:
        self.backend.set_label(uid(number), label, is_set)

    @rule(number=NUMBERS, end=st.sampled_from([None, 1_700_000_000_000]))
    def set_end(self, number: int, end: int | None) -> None:
        self.backend.set_end(uid(number), end)

    @rule(number=NUMBERS)
    def drop_vector(self, number: int) -> None:
        self.backend.drop_vector(uid(number))

    @rule(number=NUMBERS, model=st.sampled_from([MODEL, OTHER_MODEL]))
    def relabel_vector(self, number: int, model: str) -> None:
        self.backend.relabel_vector(uid(number), model)

    @rule(number=NUMBERS, numbers=st.sampled_from(sorted(BAD_VECTORS)))
    def overwrite_vector(self, number: int, numbers: str) -> None:
        self._overwrite(uid(number), BAD_VECTORS[numbers])

    def _overwrite(self, key: EntityUid, numbers: Vector) -> None:
        if self.backend.has_vector(key):
            self.backend.replace_vector(key, numbers)

    @rule(number=NUMBERS)
    def remove(self, number: int) -> None:
        self.backend.remove(uid(number))

    # -- the audit --------------------------------------------------------------------------

    @rule()
    def audit(self) -> None:
        found = AuditCounts()
        after: EntityUid | None = None
        while True:
            page = self.store.audit_page(model=MODEL, after=after, size=2, sample=2)
            found, after = found + page, page.next_after
            if after is None:
                break
        self._check(found)

    def _check(self, found: AuditCounts) -> None:
        entities = self.store.read_entities(ENTITIES)
        parts = Counter(self._part(key) for key in entities)
        assert parts["embedded"] == found.embedded + found.stale
        assert parts["nothing"] == found.nothing_to_embed
        assert parts["excluded"] == found.excluded
        assert found.examined == len(entities)

        counts = self.store.counts(model=MODEL)
        assert counts.entities == len(entities)
        assert counts.embedded == parts["embedded"]
        assert counts.nothing_to_embed == parts["nothing"]
        assert counts.excluded == parts["excluded"]
        assert counts.missing == parts["missing"]
        for key, entity in entities.items():
            labels = self.backend.labels_of(key)
            is_in = {
                "embedded": bool(labels.embedded),
                "nothing": labels.nothing_to_embed,
                "excluded": labels.excluded is not None,
            }
            part = self._part(key)
            assert part != "nothing" or not self.backend.has_vector(key, model=MODEL)
            assert {name for name, value in is_in.items() if value} == {part} - {"missing"}
            assert not (labels.marked and labels.queued)
            if part == "embedded":
                version = self.store.embedded_versions([key], model=MODEL)[key]
                assert labels.marked == (version != entity.version)
        self._check_that_all_missing_are_found({k for k in entities if self._part(k) == "missing"})

    def _check_that_all_missing_are_found(self, missing: set[EntityUid]) -> None:
        found = self.store.entities_without_embeddings(10, model=MODEL)

        assert {entity.uid for entity in found.entities} == missing

    def _part(self, key: EntityUid) -> str:
        entity = self.store.read_entities([key])[key]
        if entity.valid_to is not None:
            return "excluded"
        if not entity.text:
            return "nothing"
        return "embedded" if self.backend.has_vector(key, model=MODEL) else "missing"
