"""Set-up of the two databases: idempotent, versioned, and limited to what is ours.

`prepare_*` is `embed-pipeline init`, `check_*` checks everything, `confirm_*` runs at start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from neo4j.exceptions import Neo4jError

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.reserved_names import NEO4J, refuse_misfits
from embed_pipeline.errors import ConfigurationError, RequestError, SchemaMissing
from embed_pipeline.stores.config import Location, OnProgress, unseen
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase, Row, Tx
from embed_pipeline.stores.neo4j.driver.error_codes import TOO_LARGE
from embed_pipeline.stores.neo4j.graph.names import quoted
from embed_pipeline.stores.neo4j.queue import adoption
from embed_pipeline.stores.neo4j.queue.backend import Neo4jQueue
from embed_pipeline.stores.neo4j.queue.cypher.adoption import ADOPT_JOBS, TRACK_JOBS
from embed_pipeline.stores.neo4j.setup import cypher
from embed_pipeline.stores.neo4j.setup.cypher import QUEUE_RULES, Rule, graph_rules
from embed_pipeline.stores.neo4j.setup.labels import has_nodes, label_entities, register_collections

VERSIONS = {"queue": 6, "graph": 2}

LOCKS = ("lease",)
"""Nodes that a transaction locks to be alone with its decision."""

BUILD_PATIENCE = timedelta(minutes=10)
"""For one rule over a graph that is already large; a constraint is built before it returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What is in a database."""

    versions: Row
    unique: frozenset[tuple[str, frozenset[str]]]
    ordered: frozenset[tuple[str, tuple[str, ...]]]

    def has(self, rule: Rule) -> bool:
        if rule.unique:
            return (rule.label, frozenset(rule.properties)) in self.unique
        return (rule.label, rule.properties) in self.ordered


def locate(database: Neo4jDatabase, role: str) -> Location:
    """Refuse a database that cannot be the `role`'s; nothing is written."""
    _found_for(database, role)
    return Location(identity=_id(database), place=_place(database))


def refuse_entities(queue: Neo4jDatabase, *collections: Collection) -> None:
    """A new queue's database may hold no entities: queue and graph may have been exchanged."""
    # Once it is the queue's, a label of the graph may well be the name of one of its own.
    if _read_found(queue).versions["queue"] is not None:
        return
    for label in dict.fromkeys(one.label for one in collections):
        if queue.read(partial(has_nodes, label)):
            raise ConfigurationError(
                [
                    f"The queue needs a database of its own: {_place(queue)} holds nodes labelled"
                    f" {label}. EMBED_QUEUE_URI and EMBED_GRAPH_URI may be exchanged."
                ]
            )


def prepare_queue(database: Neo4jDatabase, *, max_attempts: int = 3) -> int:
    """Make what is missing; return how many jobs of another program were adopted."""
    before = _prepare(database, "queue", QUEUE_RULES)
    if before is not None and before < VERSIONS["queue"]:
        for name in cypher.RETIRED_QUEUE_INDEXES:
            database.write(partial(_drop, name), timeout=BUILD_PATIENCE)
        # Budgets are documents; those of before, a minute old at most, are forgotten.
        database.write(lambda tx: tx.all(cypher.DROP_BUDGET_RULE), timeout=BUILD_PATIENCE)
        database.write(lambda tx: tx.all(cypher.FORGET_BUDGETS))
        database.autocommit(TRACK_JOBS, **adoption.terms(max_attempts))
        Neo4jQueue(database).complete_without_text()
    adopted = database.autocommit(ADOPT_JOBS, **adoption.terms(max_attempts))

    def finish(tx: Tx) -> None:
        tx.all(cypher.MAKE_LOCKS, names=list(LOCKS))
        tx.all(cypher.SAVE_QUEUE_VERSION, version=VERSIONS["queue"])

    database.write(finish)
    return int(adopted[0]["adopted"])


def check_queue(database: Neo4jDatabase) -> None:
    _check(database, "queue", QUEUE_RULES)


def prepare_graph(
    database: Neo4jDatabase, *collections: Collection, on_progress: OnProgress = unseen
) -> None:
    """Make what is missing, register the collections, and label the entities that are there."""
    for collection in collections:
        refuse_misfits(collection, NEO4J)
    _prepare(database, "graph", graph_rules(*collections))
    for collection in register_collections(database, collections):
        label_entities(database, collection, on_progress=on_progress)
    database.write(lambda tx: tx.all(cypher.SAVE_GRAPH_VERSION, version=VERSIONS["graph"]))


def check_graph(database: Neo4jDatabase, *collections: Collection) -> None:
    _check(database, "graph", graph_rules(*collections))


def confirm_queue(database: Neo4jDatabase) -> None:
    _confirm(database, "queue", QUEUE_RULES)


def confirm_graph(database: Neo4jDatabase, *collections: Collection) -> None:
    _confirm(database, "graph", graph_rules(*collections))


def _confirm(database: Neo4jDatabase, role: str, rules: Sequence[Rule]) -> None:
    """A whole check once per process: a sensor opens its stores every five seconds.

    After it, one small read: a database that was rebuilt meanwhile has no version.
    """
    known = (database.uri, database.database, tuple(rules))
    if known in _CONFIRMED and database.read(_versions)[role] == VERSIONS[role]:
        return
    _check(database, role, rules)
    _CONFIRMED.add(known)


_CONFIRMED: set[tuple[str, str, tuple[Rule, ...]]] = set()


def _prepare(database: Neo4jDatabase, role: str, rules: Sequence[Rule]) -> int | None:
    """Make the rules that are missing; return the version that was there.

    A read first: even a command that changes nothing waits for every open transaction.
    """
    found = _found_for(database, role)
    missing = [rule for rule in rules if not found.has(rule)]
    if missing:
        _drop_failed(database, missing)
    for rule in missing:
        try:
            database.write(partial(_make, rule), timeout=BUILD_PATIENCE)
        except SchemaMissing:
            if not _read_found(database).has(rule):  # otherwise another process was quicker
                raise
    if missing:
        failed: dict[str, str] = {}
        try:
            database.autocommit(cypher.AWAIT_INDEXES, seconds=int(BUILD_PATIENCE.total_seconds()))
        except (Neo4jError, RequestError):
            # With the server's stack trace, if an index failed.
            failed = _drop_failed(database, missing)
            if not failed:
                raise
        made = _read_found(database)
        for rule in rules:
            if not made.has(rule):
                # A rule whose name is taken is silently not made.
                reason = failed.get(rule.name, f"something else there is named {rule.name}")
                raise SchemaMissing(f"The {rule} cannot be made in {_place(database)}: {reason}.")
    version: int | None = found.versions[role]
    return version


def _drop_failed(database: Neo4jDatabase, rules: Sequence[Rule]) -> dict[str, str]:
    """Why indexes of these rules failed, by name; they are dropped, as they block their names."""
    names = [rule.name for rule in rules]
    failed = {}
    for row in database.read(lambda tx: tx.all(cypher.FIND_FAILED, names=names)):
        database.write(partial(_drop, row["name"]), timeout=BUILD_PATIENCE)
        too_large = "a value is longer than about 8 kB; shorten it, or map another property"
        first_line = row["reason"].strip().partition("\n")[0]
        failed[row["name"]] = too_large if TOO_LARGE in row["reason"] else first_line
    return failed


def _check(database: Neo4jDatabase, role: str, rules: Sequence[Rule]) -> None:
    found = _found_for(database, role)
    missing = [str(rule) for rule in rules if not found.has(rule)]
    if missing or found.versions[role] != VERSIONS[role]:
        lacking = f" It lacks {len(missing)} rules, among them the {missing[0]}." if missing else ""
        raise SchemaMissing(
            f"The {role}'s schema is not (all) there in {_place(database)}: "
            f"run `embed-pipeline init`.{lacking}"
        )


def _found_for(database: Neo4jDatabase, role: str) -> Found:
    """What is there, if it may be the `role`'s.

    Queue and graph never share a database; here as well, because the settings cannot see every
    way in which two addresses are one server.
    """
    found = _read_found(database)
    other = {"queue": "graph", "graph": "queue"}[role]
    if found.versions[other] is not None:
        raise ConfigurationError(
            [f"The {role} needs a database of its own: {_place(database)} is the {other}'s."]
        )
    version = found.versions[role]
    if version is not None and version > VERSIONS[role]:
        raise SchemaMissing(
            f"The {role}'s schema in {_place(database)} has version {version}, this program knows "
            f"{VERSIONS[role]}: use the program that made it."
        )
    return found


def _read_found(database: Neo4jDatabase) -> Found:
    def read(tx: Tx) -> Found:
        constraints, indexes = tx.all(cypher.FIND_CONSTRAINTS), tx.all(cypher.FIND_INDEXES)
        return Found(
            versions=_versions(tx),
            unique=frozenset((row["label"], frozenset(row["properties"])) for row in constraints),
            ordered=frozenset((row["label"], tuple(row["properties"])) for row in indexes),
        )

    return database.read(read)


def _versions(tx: Tx) -> Row:
    return tx.one(cypher.READ_VERSIONS)


def _id(database: Neo4jDatabase) -> str:
    return str(database.read(lambda tx: tx.one(cypher.DATABASE_ID))["id"])


def _make(rule: Rule, tx: Tx) -> None:
    statement = cypher.CREATE_CONSTRAINT if rule.unique else cypher.CREATE_INDEX
    properties = ", ".join("n." + quoted(name) for name in rule.properties)
    filled = statement.format(label=quoted(rule.label), properties=properties)
    tx.all(filled, name=rule.name)


def _drop(name: str, tx: Tx) -> None:
    tx.all(cypher.DROP_INDEX, name=name)


def _place(database: Neo4jDatabase) -> str:
    return f"the database {database.database} at {database.uri}"
