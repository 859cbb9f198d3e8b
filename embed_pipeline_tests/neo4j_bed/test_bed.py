"""The bed keeps its word: it says when it is missing, spares others' data, and ends with us."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
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

HOLDER = """
import sys, time
from pathlib import Path
from embed_pipeline_tests.neo4j_bed import QUEUE
from embed_pipeline_tests.neo4j_bed.client import take_hold

hold = take_hold([QUEUE], meeting_point=Path(sys.argv[1]))
print(hold.ask(command="addresses")["queue"]["uri"], flush=True)
time.sleep(600)
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
        env={**_inherited(), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def _inherited() -> dict[str, str]:
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


@pytest.mark.slow
def test_pair_for_a_person_works_as_it_says_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    inherited = {k: v for k, v in _inherited().items() if not k.startswith("EMBED_")}
    pair = subprocess.Popen(
        [sys.executable, "-m", "embed_pipeline_tests.neo4j_bed", "--home", str(tmp_path / "pair")],
        stdout=subprocess.PIPE,
        text=True,
        env=inherited,
    )
    assert pair.stdout is not None
    said: list[str] = []
    try:
        while not said or said[-1] not in ("  make dev\n", ""):  # the second when it has ended
            said.append(pair.stdout.readline())
        source, init = (line.strip() for line in said[-3:-1])
        answer = subprocess.run(
            ["sh", "-c", f"{source} && {init} && echo $EMBED_QUEUE_URI $EMBED_GRAPH_URI"],
            env={**inherited, "EMBED_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        uris = answer.stdout.splitlines()[-1].split()
        were_there = [listens(uri) for uri in uris]
        pair.send_signal(signal.SIGINT)
        ended = pair.wait(60)
    finally:
        pair.kill()
        pair.stdout.close()

    assert answer.returncode == 0, answer.stderr
    assert [f"at {uri}." in answer.stdout for uri in uris] == were_there == [True, True]
    assert ended == 0
    assert [listens(uri) for uri in uris] == [False, False]


@pytest.mark.slow
def test_servers_end_when_the_last_process_that_uses_them_is_killed(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "meeting")],
        stdout=subprocess.PIPE,
        text=True,
        env=_inherited(),
    )
    assert holder.stdout is not None
    with holder.stdout:
        uri = holder.stdout.readline().strip()
    folder = Path((tmp_path / "meeting").read_text())
    assert listens(uri)

    holder.kill()
    holder.wait()

    deadline = time.monotonic() + 30
    while (listens(uri) or folder.exists()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not listens(uri)
    assert not folder.exists()
