"""Servers that a test starts for itself: they work as a person is told, and end with it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from embed_pipeline_tests.neo4j_bed.test_neo4j_bed import inherited_environment, listens

pytestmark = pytest.mark.slow

HOLDER = """
import sys, time
from pathlib import Path
from embed_pipeline_tests.neo4j_bed import QUEUE
from embed_pipeline_tests.neo4j_bed.client import take_hold

hold = take_hold([QUEUE], meeting_point=Path(sys.argv[1]))
print(hold.ask(command="addresses")["queue"]["uri"], flush=True)
time.sleep(600)
"""


def test_pair_for_a_person_works_as_it_says_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    inherited = {k: v for k, v in inherited_environment().items() if not k.startswith("EMBED_")}
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


def test_servers_end_when_the_last_process_that_uses_them_is_killed(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "meeting")],
        stdout=subprocess.PIPE,
        text=True,
        env=inherited_environment(),
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
