"""kill -9 of a run, of the daemon, of the code server: jobs are finished all the same.

The supervisor of a process starts it again; nothing else is done.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import dagster as dg
import pytest

from embed_pipeline_tests.defs.conftest import Print
from embed_pipeline_tests.defs.dev_server import within
from embed_pipeline_tests.defs.live import Live, live_system
from embed_pipeline_tests.defs.services import Services, services

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """One system for all tests here: each kills what it likes and leaves everything running."""
    with live_system(tmp_path_factory.mktemp("live")) as live:
        yield live


@pytest.fixture(scope="module")
def deployed(live: Live) -> Iterator[Services]:
    with services(live) as deployed:
        yield deployed


def hold(live: Live, *names: str) -> str:
    """A run holds the jobs of these and waits for a provider that answers too late."""
    live.slow_provider(5)
    live.create(names)
    return live.wait_until_a_run_holds_jobs()


def finish(live: Live, print_line: Print, what: str, since: float) -> None:
    live.slow_provider(0)
    live.wait_until_all_is_embedded(150)
    print_line(f"{what}: all embedded {time.monotonic() - since:.0f} s later")


def await_end(live: Live, run_id: str) -> None:
    """Of a run that is no longer watched."""
    live.slow_provider(0)
    within(60, lambda: live.status_of(run_id) is dg.DagsterRunStatus.SUCCESS, live.explain)


def last_recovery(live: Live) -> tuple[object, int]:
    """From whom, and how many jobs."""
    (event,) = live.services.jobs.events.recent(kind="jobs.recovered", limit=1)
    return event.facts["previous_owners"], len(event.job_ids)


@pytest.mark.usefixtures("deployed")
def test_jobs_of_a_killed_run_are_given_back_at_once(live: Live, print_line: Print) -> None:
    run = hold(live, "a", "b", "c")
    os.kill(live.pid_of(run), signal.SIGKILL)

    finish(live, print_line, "kill -9 of a run", time.monotonic())

    assert last_recovery(live) == ([run], 3)
    assert "recover_failed_run: 3 jobs of this run are pending again." in live.log_of(run)


def test_run_outlives_the_daemon_and_the_next_one_sees_what_came_meanwhile(
    live: Live, deployed: Services, print_line: Print
) -> None:
    run = hold(live, "d", "e", "f")
    deployed.daemon.kill()
    await_end(live, run)
    live.create(["while there was no daemon"])
    deployed.daemon.start()

    finish(live, print_line, "restart of a killed daemon", time.monotonic())

    assert last_recovery(live)[0] != [run]


def test_run_outlives_the_code_server_and_the_next_one_serves_what_came_meanwhile(
    live: Live, deployed: Services, print_line: Print
) -> None:
    run = hold(live, "g", "h", "i")
    deployed.code.kill()
    await_end(live, run)
    live.create(["while there was no code server"])
    deployed.code.start()

    finish(live, print_line, "restart of a killed code server", time.monotonic())

    assert last_recovery(live)[0] != [run]


def test_jobs_of_a_run_that_died_with_its_code_server_are_finished_when_their_leases_end(
    live: Live, deployed: Services, print_line: Print
) -> None:
    """As in a container, or on a machine that goes: Dagster takes the run for a living one."""
    run = hold(live, "j", "k", "l")
    deployed.code.kill_container()
    killed = time.monotonic()
    deployed.code.start()

    finish(live, print_line, "kill -9 of the code server with its run", killed)

    assert last_recovery(live) == ([run], 3)
    assert live.status_of(run) is dg.DagsterRunStatus.STARTED
