"""The vector index over one model's vectors: how it should be, what is there, how it is made.

It is on the label of embedded entities, so that an entity enters and leaves it with that label.
Where the server can, it filters by the end of validity and by type inside the index.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from neo4j.exceptions import Neo4jError

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.embedding import ModelRecord
from embed_pipeline.errors import RequestError, SchemaMissing
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase, Row, Tx
from embed_pipeline.stores.neo4j.driver.pool import release_of
from embed_pipeline.stores.neo4j.graph.names import is_identifier, quoted, vector_names

FILTERS_SINCE = (2026, 4)
"""The release that deprecates the procedure in favour of SEARCH, which filters inside the index."""

BUILD_PATIENCE = timedelta(minutes=10)
"""For a range index over a graph that is already large."""

_FIND_VECTOR_INDEXES = """
SHOW INDEXES YIELD name, type, entityType, labelsOrTypes, properties, options, state,
                   populationPercent, failureMessage
WHERE type = 'VECTOR' AND entityType = 'NODE' AND size(labelsOrTypes) = 1
  AND properties[0] = $property
RETURN name, labelsOrTypes[0] AS label, properties,
       options.indexConfig['vector.dimensions'] AS dimensions,
       options.indexConfig['vector.similarity_function'] AS similarity,
       state, populationPercent AS percent, failureMessage AS failure
"""

_FIND_RANGE_INDEX = """
SHOW INDEXES YIELD name, type, labelsOrTypes, properties
WHERE type = 'RANGE' AND labelsOrTypes = [$label] AND properties = [$property]
RETURN name
"""

_INDEX_NAMES = "SHOW INDEXES YIELD name RETURN name"

_CREATE_RANGE_INDEX = "CREATE INDEX $index IF NOT EXISTS FOR (e:{label}) ON (e.{property})"

_CREATE_VECTOR_INDEX = """
CYPHER {language}
CREATE VECTOR INDEX $index IF NOT EXISTS FOR (e:{label}) ON (e.{vector}) {filters}
OPTIONS {{indexConfig: {{`vector.dimensions`: $dimensions,
                         `vector.similarity_function`: 'cosine'}}}}
"""

_DROP_INDEX = "DROP INDEX $index IF EXISTS"

_AWAIT_INDEX = "CALL db.awaitIndex($index, $seconds)"


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorIndex:
    """One that is in the graph; `properties` are the vector's, then those that it filters by."""

    name: str
    label: str
    properties: tuple[str, ...]
    dimensions: int | None
    """Without dimensions of its own an index takes vectors of any."""
    similarity: str
    state: str
    percent: float
    failure: str

    @property
    def is_online(self) -> bool:
        return self.state == "ONLINE"

    @property
    def has_failed(self) -> bool:
        return self.state == "FAILED"

    def takes(self, record: ModelRecord) -> bool:
        return self.dimensions in (None, record.dimensions)


class VectorIndexes:
    """The vector indexes of one graph."""

    def __init__(self, database: Neo4jDatabase, mapping: Collection) -> None:
        self._database = database
        self._mapping = mapping

    @property
    def can_filter(self) -> bool:
        release = release_of(self._database.server_info.agent)
        return release is not None and release >= FILTERS_SINCE

    def find(self, record: ModelRecord) -> list[VectorIndex]:
        """Best first: as it should be, then on the right label, then 0.1's on the entity's."""
        labels = (record.embedded_label, self._mapping.label)
        rows = self._read(_FIND_VECTOR_INDEXES, property=record.vector_property)
        found = [
            VectorIndex(**{**row, "properties": tuple(row["properties"])})
            for row in rows
            if row["label"] in labels and is_identifier(row["name"])
        ]
        return sorted(
            found,
            key=lambda index: (
                bool(self.difference(index, record)),
                index.has_failed,
                labels.index(index.label),
                index.name,
            ),
        )

    def own(self, record: ModelRecord) -> VectorIndex | None:
        """The best on the label of embedded entities; it may differ from what is wanted."""
        label = record.embedded_label
        return next((index for index in self.find(record) if index.label == label), None)

    def difference(self, index: VectorIndex, record: ModelRecord) -> str:
        """What is wrong with the index, to follow its name; empty if nothing is."""
        if index.has_failed:
            reason = index.failure.strip().splitlines() or ["for no reason that is known"]
            return f"has failed ({reason[0]})"
        if not index.takes(record):
            return f"is for {index.dimensions} dimensions, {record.model} has {record.dimensions}"
        if index.similarity != "COSINE":
            return f"compares by {index.similarity.lower()}, not by cosine"
        if index.label != record.embedded_label:
            return f"is on {index.label}, not on {record.embedded_label}"
        if index.properties != self.wanted(record):
            return f"filters by {_named(index.properties)}, not by {_named(self.wanted(record))}"
        return ""

    def wanted(self, record: ModelRecord) -> tuple[str, ...]:
        """The properties that the index should have."""
        filters = (self._mapping.valid_to, self._mapping.type_property) if self.can_filter else ()
        return (record.vector_property, *filters)

    def check(self, record: ModelRecord) -> None:
        """Refuse an index that was made for another model's vectors, before that is registered."""
        found = self.own(record)
        if found is not None and not found.takes(record):
            raise SchemaMissing(
                f"The vector index {found.name} on {place_of(record)} is for {found.dimensions} "
                f"dimensions, {record.model} has {record.dimensions}: drop that index, or "
                "configure the model that it was made for."
            )

    def ensure(self, record: ModelRecord) -> None:
        """Make what is missing; an index that differs stays, and nothing waits for the new one.

        An index that is there is not asked for again: even that would wait for every open writer.
        """
        version, label = vector_names(record.vector_property).version, self._mapping.label
        self._ensure_range(label, version, name=f"{version}_of_{label}")
        if self._mapping.standing.prefix:
            return  # the vector index is shared, and the first collection's to make
        # A long value in the filter of a vector index stops the whole database (2026.09). A range
        # index on the same property refuses the value before that.
        label = record.embedded_label
        for on in self.wanted(record)[1:]:
            self._ensure_range(label, on, name=f"embedding_{on}_of_{label}", wait=True)
        if self.own(record) is None:
            self.create(record)

    def create(self, record: ModelRecord) -> None:
        """Under the first free name, so that it may stand beside one with another definition."""
        filters = self.wanted(record)[1:]
        taken = {row["name"] for row in self._read(_INDEX_NAMES)}
        first = f"{record.vector_property}_index"
        later = (f"{first}_{number}" for number in range(2, len(taken) + 3))
        name = next(name for name in (first, *later) if name not in taken)
        make = _CREATE_VECTOR_INDEX.format(
            language="25" if filters else "5",
            label=quoted(record.embedded_label),
            vector=quoted(record.vector_property),
            filters=f"WITH [{', '.join('e.' + quoted(on) for on in filters)}]" if filters else "",
        )
        try:
            self._database.write(
                lambda tx: tx.all(make, index=name, dimensions=record.dimensions),
                timeout=BUILD_PATIENCE,
            )
        except SchemaMissing:
            # Several may begin at once, and the server checks only before it waits for the other.
            if self.own(record) is None:
                raise
        if self.own(record) is None:
            raise SchemaMissing(
                f"The vector index on {place_of(record)} cannot be made: something else in the "
                f"graph is named {name}."
            )

    def drop(self, index: VectorIndex) -> None:
        self._database.write(partial(_drop, index.name), timeout=BUILD_PATIENCE)

    def _ensure_range(self, label: str, on: str, *, name: str, wait: bool = False) -> None:
        def is_there() -> bool:
            return bool(self._read(_FIND_RANGE_INDEX, label=label, property=on))

        if is_there():
            return
        make = _CREATE_RANGE_INDEX.format(label=quoted(label), property=quoted(on))
        try:
            self._database.write(lambda tx: tx.all(make, index=name), timeout=BUILD_PATIENCE)
        except SchemaMissing:
            if not is_there():
                raise
        if wait:
            self._await_range(name, f"{label}.{on}")

    def _await_range(self, name: str, place: str) -> None:
        seconds = int(BUILD_PATIENCE.total_seconds())
        try:
            self._database.autocommit(_AWAIT_INDEX, index=name, seconds=seconds)
        except (Neo4jError, RequestError) as error:
            # A failed index would block its name.
            self._database.write(partial(_drop, name), timeout=BUILD_PATIENCE)
            raise SchemaMissing(
                f"The vector index cannot filter by {place}: a value is longer than about 8 kB. "
                "Shorten it, or map another property."
            ) from error

    def _read(self, statement: str, **parameters: object) -> list[Row]:
        return self._database.read(lambda tx: tx.all(statement, **parameters))


def place_of(record: ModelRecord) -> str:
    return f"{record.embedded_label}.{record.vector_property}"


def _drop(name: str, tx: Tx) -> None:
    tx.all(_DROP_INDEX, index=name)


def _named(properties: tuple[str, ...]) -> str:
    return " and ".join(properties[1:]) or "nothing"
