"""The graph's database as the parts of its store use it: the mapping's statements, the vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from embed_pipeline.domain.embedding import FIRST_PROPERTY
from embed_pipeline.domain.entity import Entity, EntityMapping
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase, Row, Tx
from embed_pipeline.stores.neo4j.graph import rows as entity_rows
from embed_pipeline.stores.neo4j.graph.mapping import check_mapping, filled

T = TypeVar("T")


class GraphSession:
    """A look or a transaction; what it runs gets the mapping's names and one vector's."""

    def __init__(self, transaction: Tx, mapping: EntityMapping) -> None:
        self.mapping = mapping
        self._transaction = transaction

    def all(self, statement: str, *, of: str = FIRST_PROPERTY, **parameters: object) -> list[Row]:
        """`of` names the vector property that the statement is about."""
        return self._transaction.all(filled(statement, self.mapping, of), **parameters)

    def collected(
        self, statement: str, *, of: str = FIRST_PROPERTY, **parameters: object
    ) -> list[Any]:
        """What a statement `found`, in one row: the driver takes longer over a row than over what
        is in it."""
        (row,) = self.all(statement, of=of, **parameters)
        found: list[Any] = row["found"]
        return found

    def entities(
        self, statement: str, *, of: str = FIRST_PROPERTY, **parameters: object
    ) -> list[Entity]:
        rows = self.all(statement, of=of, **parameters)
        return [entity_rows.entity_of(row["entity"], self.mapping) for row in rows]


class Graph:
    """`read` and `write` may run their work again after a deadlock: it must not keep state."""

    def __init__(self, database: Neo4jDatabase, *, mapping: EntityMapping) -> None:
        check_mapping(mapping)
        self.mapping = mapping
        self.database = database
        self.indexed: set[str] = set()
        """Models whose indexes were seen: they are looked for once in a process."""

    def read(self, work: Callable[[GraphSession], T]) -> T:
        return self.database.read(lambda tx: work(GraphSession(tx, self.mapping)))

    def write(self, work: Callable[[GraphSession], T]) -> T:
        return self.database.write(lambda tx: work(GraphSession(tx, self.mapping)))


def in_batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
