"""Which tests share a worker and which come first, where pytest runs with several."""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

GRAPHS = {"neo4j_graph", "neo4j_swapped_graph"}

NEEDS_ONLY_A_GRAPH = {
    "neo4j_swapped_entit": "the graph of the swapped pair",
    "neo4j_swapped_vector": "the graph of the swapped pair",
    "neo4j_changes": "the graph of the swapped pair",
    "neo4j_entit": "the graph of the pair",
}


class OneWorkerPerPair(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """A file to a worker, and all files that take turns at one pair of servers to the same.

    On two workers they would only wait for each other, while other files could run. Those that
    need nothing but the graph have a worker of their own. What a file needs is read off its name.
    """

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        # It would begin with the files that have the most tests, which are not the longest.
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        name = file.rpartition("/")[2]
        if "neo4j" not in name:
            return file
        pair = "the swapped pair" if "swapped" in name else "the pair"
        graphs = (scope for part, scope in NEEDS_ONLY_A_GRAPH.items() if part in name)
        return next(graphs, pair)


def longest_first(items: list[pytest.Item]) -> None:
    """So that at the end no worker is left with a long one while the others have nothing to do.

    Of the tests on Neo4j those come first that leave the graph to others.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    graph = {item.path for item in items if GRAPHS & {*getattr(item, "fixturenames", ())}}
    items.sort(
        key=lambda item: (
            "neo4j" not in item.path.name,
            "neo4j" in item.path.name and item.path in graph,
            item.path not in slow,
        )
    )
