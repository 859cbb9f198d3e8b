"""Real servers for the tests of the whole pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from embed_pipeline_tests.acceptance.production import KEY, Production, production_variables
from embed_pipeline_tests.acceptance.queues import home_on_postgres
from embed_pipeline_tests.defs.commands import Homes
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.openai_server import OpenAIServer


@pytest.fixture(params=["sqlite", "postgres"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """The folder of a crash test's processes, with a queue of either kind."""
    if request.param == "sqlite":
        yield tmp_path
        return
    with home_on_postgres(tmp_path, request.getfixturevalue("postgres_url")):
        yield tmp_path


@pytest.fixture
def production(
    neo4j_queue: BedServer, neo4j_graph: BedServer, tmp_path: Path
) -> Iterator[Production]:
    with prepared(neo4j_queue, neo4j_graph, tmp_path) as opened:
        yield opened


@contextmanager
def prepared(queue: BedServer, graph: BedServer, home: Path) -> Iterator[Production]:
    """Empty servers, prepared as a person prepares them."""
    queue.wipe_schema()
    graph.wipe_schema()
    with OpenAIServer(api_key=KEY) as openai:
        opened = Production(
            queue=queue,
            graph=graph,
            openai=openai,
            homes=Homes.below(home),
            variables=production_variables(queue, graph, openai),
        )
        ended = opened.command("init")
        assert ended.returncode == 0, ended.stderr
        yield opened
