"""The same on Neo4j: nodes with a label and a key of their own, and none of our labels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from embed_pipeline_tests.acceptance.production import server_variables
from embed_pipeline_tests.defs.conftest import Print
from embed_pipeline_tests.defs.live import Live, live_system
from embed_pipeline_tests.defs.test_live_backfill import Opened, check_rate, check_small_backfill
from embed_pipeline_tests.neo4j_bed.client import BedServer

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")

PAPERS = """
UNWIND range(1, $count) AS n
CALL (n) {
    CREATE (:Paper {doi: '10.1000/' + n, title: 'paper ' + n, abstract: 'about the number ' + n})
} IN TRANSACTIONS OF 5000 ROWS
"""
MAPPING = {
    "EMBED_ENTITY_LABEL": "Paper",
    "EMBED_ENTITY_KEY": "doi",
    "EMBED_ENTITY_NAME": "title",
    "EMBED_ENTITY_TEXT": "title,abstract",
}


@pytest.fixture
def on_neo4j(neo4j_queue: BedServer, neo4j_graph: BedServer) -> Opened:
    @contextmanager
    def opened(folder: Path, count: int) -> Iterator[Live]:
        folder.mkdir(exist_ok=True)
        for server in (neo4j_queue, neo4j_graph):
            server.wipe_schema()
        neo4j_graph.run(PAPERS, count=count)
        stores = server_variables(neo4j_queue, neo4j_graph) | {"EMBED_STORE": "neo4j"}
        with live_system(folder, **stores, **MAPPING) as live:
            yield live

    return opened


@pytest.mark.slow
def test_foreign_graph_is_embedded_by_the_sensors_without_an_idle_second(
    on_neo4j: Opened, tmp_path: Path, print_line: Print
) -> None:
    check_small_backfill(on_neo4j, tmp_path, 2_000, print_line)


@pytest.mark.scale
def test_hundred_thousand_entities_at_nearly_the_rate_of_one_run(
    on_neo4j: Opened, tmp_path: Path, print_line: Print
) -> None:
    check_rate(on_neo4j, tmp_path, print_line)
