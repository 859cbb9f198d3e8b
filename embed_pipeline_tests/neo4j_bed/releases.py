"""Which servers the tests run on."""

from __future__ import annotations

from dataclasses import dataclass


class BedUnavailable(Exception):
    """No server can be had here; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A version of Neo4j Community, and the newest APOC Core that is published for it."""

    version: str
    main_class: str
    apoc: str | None = None

    @property
    def coordinates(self) -> str:
        return f"org.neo4j:neo4j:{self.version}"

    @property
    def apoc_coordinates(self) -> str | None:
        # Only the jar with this classifier carries what it depends on.
        return f"org.neo4j.procedure:apoc-core:{self.apoc}:core" if self.apoc else None


LTS = Release(version="5.26.29", main_class="org.neo4j.server.CommunityEntryPoint", apoc="5.26.5")
"""The long-term line; speaks Bolt 5."""

LATEST = Release(version="2026.09.0", main_class="org.neo4j.server.Neo4jCommunity")
"""Speaks Bolt 6, which packs vectors; no APOC Core with its dependencies is published for it."""

RELEASES = {release.version: release for release in (LTS, LATEST)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One server; Community has one database per server, so its name is the server's default."""

    name: str
    release: Release
    database: str
    apoc: bool = False


QUEUE = Spec(name="queue", release=LTS, database="embedding-jobs", apoc=True)
GRAPH = Spec(name="graph", release=LATEST, database="neo4j")
PAIR = (QUEUE, GRAPH)

SWAPPED_QUEUE = Spec(name="queue", release=LATEST, database="embedding-jobs")
SWAPPED_GRAPH = Spec(name="graph", release=LTS, database="neo4j", apoc=True)
SWAPPED_PAIR = (SWAPPED_QUEUE, SWAPPED_GRAPH)
"""The other way round: a queue without APOC, a graph without Bolt 6."""
