"""Leaving: what was added to the graph is removed, in batches, and nothing else is touched.

The registry goes last, so that a call that was interrupted can be repeated: it names the models,
whose properties and labels are to be removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from embed_pipeline.domain.collection import Collection, Standing
from embed_pipeline.domain.embedding import FIRST_PROPERTY, ModelRecord, embedded_label
from embed_pipeline.stores.config import Uninstalled, UninstallOptions
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase, Row, Tx
from embed_pipeline.stores.neo4j.graph.names import (
    EXCLUDED,
    MARKER,
    NEIGHBOUR_CHANGED,
    NEIGHBOUR_EXPANDING,
    NOTHING,
    QUEUED,
    REASON,
    UNSEEN,
    own,
    quoted,
    vector_names,
)
from embed_pipeline.stores.neo4j.setup.labels import registered_in_graph
from embed_pipeline.stores.neo4j.setup.schema import BUILD_PATIENCE

BATCH = 1_000
REGISTRY = ("EmbeddingModel", "EmbeddingCursor", "EmbeddingGraph")
CHANGED_AT = "embedding_changed_at"

_COUNT = "MATCH (n:{label}) RETURN count(n) AS nodes"

_CLEAN_LABELLED = """
MATCH (n:{label}) WITH n LIMIT $size
{clean}
RETURN count(*) AS cleaned
"""

# Entities without any of our labels may still have our properties; one scan finds them.
_CLEAN_OTHERS = """
MATCH (n:{label}) WHERE {ours}
CALL (n) {{ {clean} }} IN TRANSACTIONS OF $size ROWS
RETURN count(n) AS cleaned
"""

_COUNT_OTHERS = "MATCH (n:{label}) WHERE ({ours}) AND NOT ({labelled}) RETURN count(n) AS nodes"

# A vector without a version is another program's.
_DROP_VECTOR = (
    "FOREACH (_ IN CASE WHEN n.{version} IS NULL THEN [] ELSE [1] END | REMOVE n.{vector})"
)

_CONSTRAINTS = """
SHOW CONSTRAINTS YIELD name, labelsOrTypes, properties
RETURN name, labelsOrTypes[0] AS label, properties
"""
_INDEXES = """
SHOW INDEXES YIELD name, labelsOrTypes, properties, owningConstraint
WHERE owningConstraint IS NULL AND size(properties) > 0
RETURN name, labelsOrTypes[0] AS label, properties
"""
_DROP = "DROP {kind} $name IF EXISTS"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ours:
    """What belongs to the pipeline on nodes of other programs."""

    collections: Sequence[Collection]
    vectors: tuple[str, ...]
    keep_vectors: bool

    @property
    def labels(self) -> tuple[str, ...]:
        ours = (NOTHING, EXCLUDED, UNSEEN, NEIGHBOUR_CHANGED, NEIGHBOUR_EXPANDING)
        each = (*map(embedded_label, self.vectors), *ours)
        named = [own(label, one) for one in self.collections for label in each]
        return tuple(dict.fromkeys((*each, *named, MARKER, QUEUED)))

    @property
    def properties(self) -> tuple[str, ...]:
        beside = [name for of in self.vectors for name in vector_names(of).beside]
        reasons = dict.fromkeys(own(REASON, one) for one in self.collections)
        return (*reasons, CHANGED_AT, *(() if self.keep_vectors else beside))

    @property
    def clean(self) -> str:
        dropped = [
            _DROP_VECTOR.format(
                version=quoted(vector_names(of).version), vector=quoted(vector_names(of).vector)
            )
            for of in (() if self.keep_vectors else self.vectors)
        ]
        removed = [f"n:{quoted(label)}" for label in self.labels]
        removed += [f"n.{quoted(name)}" for name in self.properties]
        return "\n".join([*dropped, f"REMOVE {', '.join(removed)}"])

    @property
    def has_properties(self) -> str:
        return " OR ".join(f"n.{quoted(name)} IS NOT NULL" for name in self.properties)

    @property
    def has_labels(self) -> str:
        return " OR ".join(f"n:{quoted(label)}" for label in self.labels)

    def has_rule(self, rule: Row) -> bool:
        """By its label or its whole name, so that a rule of another program stays."""
        name, label, first = rule["name"], rule["label"], rule["properties"][0]
        if label in (*self.labels, *REGISTRY) or name == f"embedding_{label}_{first}":
            return True
        versions = [f"{vector_names(of).version}_of_{label}" for of in self.vectors]
        # 0.1's vector index is on the label of the entities.
        return name in versions or (first in self.vectors and name.startswith(f"{first}_index"))


def registered(database: Neo4jDatabase, configured: Sequence[Collection]) -> list[Collection]:
    """The collections that the graph has, as far as they have to be known to remove them."""
    known = {one.name: one for one in configured}
    found = [
        replace(
            described := known.get(one.name, Collection(name=one.name)),
            label=one.label or described.label,
            standing=Standing(prefix=one.prefix),
        )
        for one in registered_in_graph(database)
    ]
    return found or list(configured)


def uninstall_graph(
    database: Neo4jDatabase,
    models: Sequence[ModelRecord],
    collections: Sequence[Collection],
    options: UninstallOptions,
) -> Uninstalled:
    ours = _Ours(
        collections=collections,
        vectors=tuple(record.vector_property for record in models) or (FIRST_PROPERTY,),
        keep_vectors=options.keep_vectors,
    )
    constraints = [row["name"] for row in _rules(database, _CONSTRAINTS, ours)]
    indexes = [row["name"] for row in _rules(database, _INDEXES, ours)]
    own_nodes = sum(_count(database, label) for label in REGISTRY)
    if options.dry_run:
        nodes = sum(_count(database, label) for label in ours.labels)
        nodes += sum(_count_others(database, one.label, ours) for one in collections)
    else:
        nodes = _clean_nodes(database, ours, options)
        for kind, names in (("CONSTRAINT", constraints), ("INDEX", indexes)):
            for name in names:
                drop = partial(_run, _DROP.format(kind=kind), name=name)
                database.write(drop, timeout=BUILD_PATIENCE)
        for label in REGISTRY:
            database.write(partial(_run, f"MATCH (n:{label}) DETACH DELETE n"))
    return Uninstalled(nodes=nodes, rules=(*constraints, *indexes), registered=own_nodes)


def _clean_nodes(database: Neo4jDatabase, ours: _Ours, options: UninstallOptions) -> int:
    total = sum(_count(database, label) for label in ours.labels)
    done = 0
    for label in ours.labels:
        statement = _CLEAN_LABELLED.format(label=quoted(label), clean=ours.clean)
        cleaned = BATCH
        while cleaned:
            (row,) = database.write(partial(_run, statement, size=BATCH))
            cleaned = row["cleaned"]
            done += cleaned
            options.on_progress("cleaning nodes", done, total)
    for label in dict.fromkeys(one.label for one in ours.collections):
        statement = _CLEAN_OTHERS.format(
            label=quoted(label), ours=ours.has_properties, clean=ours.clean
        )
        (row,) = database.autocommit(statement, size=BATCH)
        done += row["cleaned"]
    return done


def _rules(database: Neo4jDatabase, statement: str, ours: _Ours) -> list[Row]:
    return [row for row in database.read(partial(_run, statement)) if ours.has_rule(row)]


def _count(database: Neo4jDatabase, label: str) -> int:
    (row,) = database.read(partial(_run, _COUNT.format(label=quoted(label))))
    return int(row["nodes"])


def _count_others(database: Neo4jDatabase, label: str, ours: _Ours) -> int:
    statement = _COUNT_OTHERS.format(
        label=quoted(label), ours=ours.has_properties, labelled=ours.has_labels
    )
    (row,) = database.read(partial(_run, statement))
    return int(row["nodes"])


def _run(statement: str, tx: Tx, **parameters: object) -> list[Row]:
    return tx.all(statement, **parameters)
