"""Neo4j databases of version 0.1 are brought up by `init`.

That every command asks for it before is tested with the command line.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from embed_pipeline import wiring
from embed_pipeline.settings import Settings, load_settings
from embed_pipeline.stores.neo4j.setup.schema import VERSIONS
from embed_pipeline_tests.acceptance.production import server_variables
from embed_pipeline_tests.interfaces.command_line import environment, run_program
from embed_pipeline_tests.migration.contract import VARIABLES, MigrationContract, load_into_neo4j
from embed_pipeline_tests.neo4j_bed.client import BedServer

OLD_VERSION = 3
"""Of the queue's schema in 0.1, which refuses every higher one."""


@pytest.fixture
def variables(neo4j_queue: BedServer, neo4j_graph: BedServer, tmp_path: Path) -> dict[str, str]:
    """Of two servers that hold the old data."""
    load_into_neo4j(neo4j_queue, neo4j_graph)
    stores = server_variables(neo4j_queue, neo4j_graph)
    return VARIABLES | stores | {"EMBED_STORE": "neo4j", "EMBED_HOME": str(tmp_path)}


@pytest.fixture
def settings(variables: dict[str, str]) -> Settings:
    loaded = load_settings(variables)
    wiring.initialise_stores(loaded)
    return loaded


class TestMigration(MigrationContract): ...


def test_init_raises_the_version_so_that_programs_of_0_1_refuse_the_database(
    variables: dict[str, str], tmp_path: Path, neo4j_queue: BedServer
) -> None:
    answer = run_program("init", env=environment(tmp_path, **variables), cwd=tmp_path)

    assert (answer.code, answer.err) == (0, "")
    (saved,) = neo4j_queue.run("MATCH (s:QueueSchema) RETURN s.version AS version")
    assert saved["version"] == VERSIONS["queue"] > OLD_VERSION
