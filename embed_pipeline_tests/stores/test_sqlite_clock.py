"""The clock of a SQLite queue: one per machine and boot, whatever the wall clocks say."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from embed_pipeline.domain.check import Condition
from embed_pipeline.stores.queue.job_store import QueueJobStore
from embed_pipeline.stores.sqlite import clock as clocks
from embed_pipeline.stores.sqlite.clock import Host, MachineClock
from embed_pipeline.stores.sqlite.queue.backend import QueueFile
from embed_pipeline_tests.clocks import DAY, HOUR, MINUTE, SECOND
from embed_pipeline_tests.contracts.job_store.scene import add_jobs, leased_job, take
from embed_pipeline_tests.worker.logbook import Logbook, recording

START = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Machine:
    """Seconds pass for all its processes alike; each sees a wall clock of its own."""

    def __init__(self, *, boot: str | None = "boot 1", wall: datetime = START) -> None:
        self.boot_id, self.up, self.wall = boot, MINUTE, wall

    def passes(self, duration: timedelta) -> None:
        self.up += duration
        self.wall += duration

    def reboots(self, *, wall: datetime) -> None:
        self.boot_id, self.up, self.wall = f"{self.boot_id} and another", SECOND, wall


class Process(Host):
    def __init__(self, machine: Machine, *, ahead: timedelta = timedelta(0)) -> None:
        self.machine, self.ahead = machine, ahead

    def wall(self) -> datetime:
        return self.machine.wall + self.ahead

    def boot(self) -> str | None:
        return self.machine.boot_id

    def since_boot(self) -> timedelta:
        return self.machine.up


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "queue.sqlite"


@pytest.fixture(autouse=True)
def logs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Logbook]:
    monkeypatch.setattr(clocks, "_REPORTED", set())
    with recording() as logbook:
        yield logbook


def queue(path: Path, process: Host) -> QueueJobStore:
    return QueueJobStore(QueueFile(path, clock=MachineClock(process)))


def test_process_whose_wall_clock_is_ahead_takes_no_live_lease(path: Path) -> None:
    machine = Machine()
    first = queue(path, Process(machine))
    leased_job(first)

    second = queue(path, Process(machine, ahead=HOUR))

    assert second.now() == first.now()
    assert second.recover_stale().jobs == ()
    machine.passes(5 * MINUTE + SECOND)
    assert len(second.recover_stale().jobs) == 1


@pytest.mark.parametrize("step", [HOUR, -HOUR], ids=["forward", "back"])
def test_step_of_the_wall_clock_changes_nothing(path: Path, step: timedelta) -> None:
    machine = Machine()
    jobs = queue(path, Process(machine))
    leased_job(jobs)

    machine.wall += step
    machine.passes(4 * MINUTE)
    before = jobs.recover_stale().jobs
    machine.passes(MINUTE + SECOND)

    assert before == ()
    assert len(jobs.recover_stale().jobs) == 1
    assert jobs.now() == START + 5 * MINUTE + SECOND


def test_wall_clock_is_taken_again_after_a_reboot(path: Path) -> None:
    machine = Machine(wall=START + HOUR)
    with closing(queue(path, Process(machine))) as jobs:
        add_jobs(jobs)
    machine.reboots(wall=START)

    with closing(queue(path, Process(machine))) as jobs:
        assert jobs.now() == START
        machine.passes(SECOND)
        assert jobs.now() == START + SECOND


def test_wall_clock_without_a_battery_is_not_believed_after_a_reboot(path: Path) -> None:
    machine = Machine()
    with closing(queue(path, Process(machine))) as jobs:
        add_jobs(jobs)
    machine.reboots(wall=datetime(1970, 1, 1, tzinfo=UTC))

    with closing(queue(path, Process(machine))) as jobs:
        assert jobs.now() == START
        assert len(take(jobs).jobs) == 1


def test_difference_is_logged_once_and_shown_by_the_doctor(path: Path, logs: Logbook) -> None:
    machine = Machine()
    clock = MachineClock(Process(machine))
    file = QueueFile(path, clock=clock)
    jobs = QueueJobStore(file)
    jobs.now()
    sound = clock.check()
    machine.wall += 4 * SECOND
    jobs.now()
    small = logs.of("clock.differs")

    machine.wall += HOUR
    jobs.now()
    with closing(queue(path, Process(machine))) as other:
        other.now()

    assert (sound.condition, small) == (Condition.OK, [])
    (line,) = logs.of("clock.differs")
    assert (line["level"], line["ahead"]) == ("warning", 3604.0)
    check = clock.check()
    assert check.condition is Condition.NOTE
    assert "3604.0 s ahead of the queue's" in check.message


def test_machine_without_such_a_clock_uses_the_wall_clock(path: Path) -> None:
    machine = Machine(boot=None)
    jobs = queue(path, Process(machine))
    before = jobs.now()
    machine.wall += HOUR

    assert (before, jobs.now()) == (START, START + HOUR)


def test_time_is_read_once_per_opening_and_costs_no_statement_per_call(path: Path) -> None:
    file = QueueFile(path)
    seen: list[str] = []
    with file.database.reading() as connection:
        connection.set_trace_callback(seen.append)

    QueueJobStore(file).now()

    assert seen == []


def test_file_that_cannot_be_written_is_read_by_the_wall_clock(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(queue(path, Process(Machine()))) as jobs:
        add_jobs(jobs)
    open_file = sqlite3.connect

    def connect_read_only(*args: object, **options: object) -> sqlite3.Connection:
        connection: sqlite3.Connection = open_file(*args, **options)  # type: ignore
        connection.execute("PRAGMA query_only = ON")
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect_read_only)
    with closing(queue(path, Process(Machine(boot="boot 2", wall=START + DAY)))) as jobs:
        assert jobs.get_queue_status().pending == 1
        assert jobs.now() == START + DAY


def test_this_machine_counts_as_its_wall_clock_does(path: Path) -> None:
    with closing(QueueJobStore(QueueFile(path))) as jobs:
        assert abs(jobs.now() - datetime.now(UTC)) < MINUTE
