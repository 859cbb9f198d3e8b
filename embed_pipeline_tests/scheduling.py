"""Which tests share a worker and which come first, where pytest runs with several."""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

GRAPH = "neo4j_graph"


class OneWorkerPerPair(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """A file to a worker, and all files that take turns at one pair of servers to the same.

    On two workers they would only wait for each other, while other files could run. Those that
    need nothing but the graph have a worker of their own.
    """

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        # It would begin with the files that have the most tests, which are not the longest.
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        if "neo4j_swapped" in file:
            return "the swapped pair of Neo4j servers"
        if "neo4j_entit" in file:
            return "the graph of the pair of Neo4j servers"
        return "the pair of Neo4j servers" if "neo4j" in file else file


def longest_first(items: list[pytest.Item]) -> None:
    """So that at the end no worker is left with a long one while the others have nothing to do.

    Of the tests on Neo4j those come first that leave the graph to others.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    graph = {item.path for item in items if GRAPH in getattr(item, "fixturenames", ())}
    items.sort(
        key=lambda item: (
            "neo4j" not in item.location[0],
            "neo4j" in item.location[0] and item.path in graph,
            item.path not in slow,
        )
    )
