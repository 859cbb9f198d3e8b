"""kill -9 of a run, of the daemon, of the code server: jobs are finished without anybody's help."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from embed_pipeline_tests.defs.conftest import Tell
from embed_pipeline_tests.defs.live import Live, live_system

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
]

CODE_SERVER, DAEMON = "dagster api grpc", "dagster._daemon"


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with live_system(tmp_path) as live:
        yield live


def hold(live: Live, *names: str) -> str:
    """A run holds the jobs of these and waits for a provider that answers too late."""
    live.slow_provider(5)
    live.create(names)
    return live.wait_until_a_run_holds_jobs()


def test_jobs_of_a_killed_run_are_given_back_at_once(live: Live, tell: Tell) -> None:
    with live.dagster():
        run = hold(live, "a", "b", "c")
        os.kill(live.pid_of(run), signal.SIGKILL)
        killed = time.monotonic()

        live.slow_provider(0)
        live.wait_until_all_is_embedded(90)
        tell(f"kill -9 of a run: all embedded {time.monotonic() - killed:.0f} s later")

    recovered = live.tools.jobs.events.recent(kind="jobs.recovered")
    assert [len(event.job_ids) for event in recovered] == [3]


def test_jobs_are_finished_after_the_daemon_and_then_the_code_server_were_killed(
    live: Live, tell: Tell
) -> None:
    """Whoever supervises them starts them again; nobody does anything else."""
    with live.dagster() as server:
        hold(live, "a", "b", "c")
        server.kill(DAEMON)
        killed = time.monotonic()
    with live.dagster() as server:
        live.slow_provider(0)
        live.wait_until_all_is_embedded(120)
        tell(f"kill -9 of the daemon: all embedded {time.monotonic() - killed:.0f} s later")

        run = hold(live, "d", "e", "f")
        server.kill(CODE_SERVER)
        os.kill(live.pid_of(run), signal.SIGKILL)
        server.crash()
        killed = time.monotonic()
    with live.dagster():
        started = time.monotonic()
        live.slow_provider(0)
        live.wait_until_all_is_embedded(150)

    tell(
        f"kill -9 of the code server with its run: all embedded {time.monotonic() - killed:.0f} s"
        f" later, {time.monotonic() - started:.0f} s after the restart"
    )
