"""`embed-pipeline uninstall`: the graph is afterwards what it was before `init`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from embed_pipeline.domain.collection import Collection
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline.stores import neo4j
from embed_pipeline.stores.config import InitOptions, StoreConfig, UninstallOptions
from embed_pipeline.stores.neo4j.setup import uninstall
from embed_pipeline_tests.contracts.entity_store.scene import MODEL, embed, register
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores.neo4j_stores import config_of, server_of

COLLECTIONS = (
    replace(Collection(), changed_at="changedAt"),
    Collection(name="notes", label="Note", key="nid", name_property="text", text=("text",)),
)
THEIRS = """
UNWIND range(1, 12) AS number
CREATE (e:Entity:Person {uid: 'p' + number, name: 'Person ' + number, changedAt: number})
CREATE (e)-[:WROTE]->(:Note {nid: CASE WHEN number > 3 THEN 'n' + number END, text: 'a note',
                             embedding_like: 'mine'})
"""
SPECIAL = """
CREATE (:Entity {uid: 'deleted', name: 'Deleted', validTo: 7}), (:Entity {uid: 'empty'}),
       (:Entity {uid: 'foreign', name: 'Foreign', embedding: [1.0, 2.0]}),
       (:Entity {name: 'Without a key'})
"""
RULES = (
    "CREATE CONSTRAINT people FOR (n:Person) REQUIRE n.uid IS UNIQUE",
    "CREATE INDEX embedding_notes FOR (n:Note) ON (n.text)",
)
PICTURE = """
MATCH (n) WITH n ORDER BY n.uid, n.name, n.nid, elementId(n)
RETURN COLLECT { UNWIND labels(n) AS label RETURN label ORDER BY label } AS labels,
       properties(n) AS properties
"""
SCHEMA = (
    "SHOW INDEXES YIELD name, type WHERE type <> 'LOOKUP' RETURN name ORDER BY name",
    "SHOW CONSTRAINTS YIELD name RETURN name ORDER BY name",
)
VECTORS = "MATCH (n) WHERE n.embedding IS NOT NULL RETURN n.uid AS uid ORDER BY uid"
OURS = "MATCH (n) UNWIND labels(n) AS label WITH label WHERE label CONTAINS 'Embed' RETURN label"


@pytest.fixture
def server(neo4j_graph: BedServer) -> BedServer:
    return neo4j_graph


@pytest.fixture
def before(server: BedServer) -> Iterator[list[object]]:
    server.wipe_schema()
    for rule in RULES:
        server.run(rule)
    server.run(THEIRS)
    server.run(SPECIAL)
    yield content(server)
    server.wipe_schema()


@pytest.fixture
def config(server: BedServer, before: list[object]) -> StoreConfig:
    """Of a graph in use: embedded, marked, excluded and empty entities, and changes by time."""
    config = replace(config_of(server_of(server), server_of(server)), collections=COLLECTIONS)
    neo4j.initialise_graph(config, InitOptions())
    with closing(neo4j.open_graph(config)) as store:
        register(store)
        store.mark_changed()
        found = store.entities_without_embeddings(100, model=MODEL).entities
        embed(store, *(entity for entity in found if entity.uid != "foreign"))
        server.run("MATCH (n:Note {nid: 'n9'}) SET n:NeighbourChanged:NeighbourExpandingIn_notes")
        server.run("MATCH (e:Entity {uid: 'p1'}) SET e.name = 'changed'")
        audit(store)
        server.run("MATCH (e:Entity {uid: 'p1'}) SET e.name = 'Person 1'")
    used = {row["label"] for row in server.run(OURS)}
    assert {"Embedded", "EmbeddedIn_notes", "EmbeddingUnseenIn_notes"} <= used
    return config


def audit(store: EntityStore) -> None:
    after, is_first = None, True
    while after is not None or is_first:
        after = store.audit_page(model=MODEL, after=after, size=100).next_after
        is_first = False


def content(server: BedServer) -> list[object]:
    return [server.run(statement) for statement in (PICTURE, *SCHEMA)]


def test_what_is_left_is_what_was_there_before(
    server: BedServer,
    config: StoreConfig,
    before: list[object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(uninstall, "BATCH", 5)
    in_use = content(server)
    assert in_use != before

    planned = neo4j.uninstall_graph(config, UninstallOptions(dry_run=True))
    assert content(server) == in_use
    steps: list[tuple[int, int]] = []
    options = UninstallOptions(on_progress=lambda _, done, total: steps.append((done, total)))
    removed = neo4j.uninstall_graph(config, options)

    assert content(server) == before
    assert (planned.rules, planned.registered) == (removed.rules, removed.registered)
    assert planned.nodes >= removed.nodes > 12
    assert steps[0][0] == 5
    again = neo4j.uninstall_graph(config, UninstallOptions())
    assert (again.nodes, again.rules, again.registered) == (0, (), 0)


def test_vectors_stay_where_it_is_asked_for_and_are_known_again_after_init(
    server: BedServer, config: StoreConfig
) -> None:
    vectors = server.run(VECTORS)

    neo4j.uninstall_graph(config, UninstallOptions(keep_vectors=True))

    assert server.run(VECTORS) == vectors
    assert server.run(OURS) == []
    neo4j.initialise_graph(config, InitOptions())
    with closing(neo4j.open_graph(config)) as store:
        register(store)
        audit(store)
        assert store.counts(model=MODEL).embedded == len(vectors) - 1
