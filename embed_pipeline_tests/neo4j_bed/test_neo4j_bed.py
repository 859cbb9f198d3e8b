"""The bed keeps its word: it says when it is missing, spares others' data, and ends with us."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from embed_pipeline_tests.neo4j_bed.__main__ import PORTS
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.neo4j_bed.named import refuse_unless_empty
from embed_pipeline_tests.neo4j_bed.releases import PAIR, BedUnavailable
from embed_pipeline_tests.neo4j_bed.server import free_port

COMPOSE = Path(__file__).parents[2] / "deploy" / "compose.yaml"

FIXTURES = "embed_pipeline_tests.neo4j_bed.fixtures"

NEEDY = """
def test_needs_a_server(neo4j_queue):
    pass
"""


def run_needy(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_needy.py").write_text(NEEDY)
    for role in ("QUEUE", "GRAPH"):
        environment[f"EMBED_TEST_{role}_URI"] = f"bolt://127.0.0.1:{free_port()}"
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-ra",
            "-p",
            "no:cacheprovider",
            "-p",
            FIXTURES,
            "test_needy.py",
        ],
        cwd=folder,
        env={**inherited_environment(), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def inherited_environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("EMBED_TEST_", "PYTEST_"))}
    return {**kept, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def listens(uri: str) -> bool:
    parts = urlsplit(uri)
    try:
        socket.create_connection((parts.hostname, parts.port or 0), timeout=1).close()
    except OSError:
        return False
    return True


def test_without_a_server_a_test_is_skipped_and_the_summary_says_why(tmp_path: Path) -> None:
    outcome = run_needy(tmp_path)

    assert outcome.returncode == 0
    assert "1 skipped" in outcome.stdout
    assert "NOT TESTED: 1 tests on Neo4j. No Neo4j server: bolt://127.0.0.1" in outcome.stdout


def test_where_a_server_is_required_its_absence_is_a_failure(tmp_path: Path) -> None:
    outcome = run_needy(tmp_path, EMBED_TEST_REQUIRE_NEO4J="1")

    assert outcome.returncode == 1
    assert "No Neo4j server" in outcome.stdout


def test_a_named_server_with_data_is_refused(neo4j_queue: BedServer, tmp_path: Path) -> None:
    refuse_unless_empty(neo4j_queue, note=tmp_path / "empty.seen")
    neo4j_queue.run("CREATE (:Precious)")

    with pytest.raises(BedUnavailable, match="1 nodes"):
        refuse_unless_empty(neo4j_queue, note=tmp_path / "full.seen")
    refuse_unless_empty(neo4j_queue, note=tmp_path / "empty.seen")  # by then it is our own data


def test_the_compose_file_describes_the_same_pair_on_loopback() -> None:
    text = COMPOSE.read_text()

    for spec in PAIR:
        assert f"image: neo4j:{spec.release.version}-community" in text
        assert f"default__database: {spec.database}\n" in text
        assert f'"127.0.0.1:{PORTS[spec.name]}:7687"' in text
