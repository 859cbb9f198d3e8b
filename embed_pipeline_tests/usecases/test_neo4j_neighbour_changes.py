"""Another program edits nodes, relationships and neighbours; discovery and a run follow it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.recipe import parse_part, version_of
from embed_pipeline.stores.graph.entity_store import GraphEntityStore
from embed_pipeline.stores.neo4j.graph.backend import Neo4jGraph
from embed_pipeline.stores.queue.job_store import QueueJobStore
from embed_pipeline.stores.queue.rate_limiter import Unlimited
from embed_pipeline.stores.sqlite.queue.backend import QueueFile
from embed_pipeline.usecases.entities.discover import discover
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.run import drain
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores.neo4j_graph import database_of, empty
from embed_pipeline_tests.worker.parts import ScriptedProvider

SHOWN = 2
BOOKS = parse_part(
    {"path": "-[:WROTE]->(:Book)", "properties": ["title"], "heading": "books", "limit": SHOWN}
)
MAPPING = Collection(text=("name", BOOKS))

AUTHORS, WORKS = st.integers(0, 2), st.integers(0, 3)
WORDS = st.sampled_from(["Dune", "Ubik", "Solaris"])


@dataclass
class Model:
    """The graph as the other program thinks of it; a second, simpler way to make the texts."""

    names: dict[int, str] = field(default_factory=dict)
    titles: dict[int, str] = field(default_factory=dict)
    wrote: set[tuple[int, int]] = field(default_factory=set)

    def text_of(self, author: int) -> str:
        titles = sorted(self.titles[work] for by, work in self.wrote if by == author)[:SHOWN]
        return "\n".join([self.names[author], *(["books:", *titles] if titles else [])])


class NeighbourMachine(RuleBasedStateMachine):
    """Subclasses give `server`."""

    server: BedServer

    @initialize()
    def begin(self) -> None:
        empty(self.server)
        self.model = Model()
        self.folder = TemporaryDirectory()
        queue = QueueFile(Path(self.folder.name) / "queue.sqlite")
        self.provider = ScriptedProvider()
        self.graph = GraphEntityStore(Neo4jGraph(database_of(self.server), mapping=MAPPING))
        self.services = Services(
            jobs=QueueJobStore(queue), graph=self.graph, provider=self.provider, limiter=Unlimited()
        )
        for author in range(3):
            self.name_author(author, f"author {author}")
        self.name_book(0, "Dune")
        self.add_relationship(0, 0)
        self.follow()

    def teardown(self) -> None:
        """Whatever was edited last is followed."""
        self.follow()
        self.services.close()
        self.folder.cleanup()

    # -- another program ----------------------------------------------------------------------

    @rule(author=AUTHORS, name=WORDS)
    def name_author(self, author: int, name: str) -> None:
        self.model.names[author] = name
        self.run("MERGE (e:Entity {uid: $author}) SET e.name = $name", author=author, name=name)

    @rule(work=WORKS, title=WORDS)
    def name_book(self, work: int, title: str) -> None:
        self.model.titles[work] = title
        self.run("MERGE (b:Book {work: $work}) SET b.title = $title", work=work, title=title)

    @rule(author=AUTHORS, work=WORKS)
    def add_relationship(self, author: int, work: int) -> None:
        """Also a second one between the same nodes."""
        if author in self.model.names and work in self.model.titles:
            self.model.wrote.add((author, work))
            self.run(f"{PAIR} CREATE (e)-[:WROTE]->(b)", author=author, work=work)

    @rule(author=AUTHORS, work=WORKS)
    def remove_relationship(self, author: int, work: int) -> None:
        self.model.wrote.discard((author, work))
        self.run(f"{PAIR} MATCH (e)-[r:WROTE]->(b) DELETE r", author=author, work=work)

    @rule(work=WORKS)
    def delete_book(self, work: int) -> None:
        self.model.titles.pop(work, None)
        self.model.wrote = {pair for pair in self.model.wrote if pair[1] != work}
        self.run("MATCH (b:Book {work: $work}) DETACH DELETE b", work=work)

    @rule(author=AUTHORS)
    def delete_author(self, author: int) -> None:
        self.model.names.pop(author, None)
        self.model.wrote = {pair for pair in self.model.wrote if pair[0] != author}
        self.run("MATCH (e:Entity {uid: $author}) DETACH DELETE e", author=author)

    def run(self, statement: str, **parameters: object) -> list[dict[str, str]]:
        named = {
            name: f"a{value}" if name == "author" else value for name, value in parameters.items()
        }
        return self.server.run(statement, **named)

    # -- we follow ----------------------------------------------------------------------------

    @rule()
    def follow(self) -> None:
        texts = {author: self.model.text_of(author) for author in self.model.names}
        before = self.versions()
        missing = {
            text for author, text in texts.items() if before.get(f"a{author}") != version_of(text)
        }
        already = len(self.provider.requests)

        discover(self.services)
        drain(self.services, owner="run")

        sent = [text for request in self.provider.requests[already:] for text in request]
        after = self.versions()
        assert after == {f"a{author}": version_of(text) for author, text in texts.items()}
        assert sorted(sent) == sorted(set(sent)), "a text was sent twice"
        assert set(sent) <= missing, "a text that was embedded already was sent again"

    def versions(self) -> dict[str, str]:
        rows = self.run(
            "MATCH (e:Entity) WHERE e.embedding IS NOT NULL"
            " RETURN e.uid AS uid, e.embedding_version AS version"
        )
        return {row["uid"]: row["version"] for row in rows}


PAIR = "MATCH (e:Entity {uid: $author}), (b:Book {work: $work})"


@pytest.mark.parametrize("runs", [3, pytest.param(40, marks=pytest.mark.stress)])
def test_every_vector_is_of_the_text_now_and_nothing_unchanged_is_sent_again(
    neo4j_graph: BedServer, runs: int
) -> None:
    class Machine(NeighbourMachine):
        server = neo4j_graph

    # Every step is a handful of round trips, and most of the time goes into following.
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=runs,
            stateful_step_count=15,
            phases=[Phase.generate],  # to shrink a failure takes longer than to read it
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
