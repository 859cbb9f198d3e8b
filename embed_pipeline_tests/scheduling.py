"""Which tests share a worker, where pytest runs with several."""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling


class OneWorkerPerPair(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """A file to a worker, and all files that take turns at one pair of servers to the same.

    On two workers they would only wait for each other, while other files could run.
    """

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        if "neo4j_swapped" in file:
            return "the swapped pair of Neo4j servers"
        return "the pair of Neo4j servers" if "neo4j" in file else file
