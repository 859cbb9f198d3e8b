"""Six processes on one queue with short leases: some crash, some stall and come back late.

Every worker notes in a journal of its own what the queue told it, so that the check believes
neither the workers that died nor the queue alone.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

from embed_pipeline.domain.job import JobId, QueueStatus
from embed_pipeline.domain.lease import Lease
from embed_pipeline.domain.recovery import QueuePolicy, RecoveryPolicy
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline_tests.contracts.job_store.scene import MODEL, add_jobs

# A server that forks has imported everything once: crashes cost milliseconds, not a second each.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    [
        __name__,
        "embed_pipeline_tests.stores.neo4j_queue",
        "embed_pipeline_tests.stores.postgres_queue",
        "embed_pipeline_tests.stores.sqlite_queue",
    ]
)

WORKERS = 6
LEASE = timedelta(seconds=1.5)
POLICY = QueuePolicy(
    lock_duration=LEASE,
    # No job is failed for the crashes of the hammer, and none waits.
    recovery=RecoveryPolicy(max_recoveries=10_000, last_resort=10_000, ladder=(timedelta(0),)),
)
AHEAD, PAGE = 20, 40
"""So many jobs wait, or more are added; few, so that lost jobs are soon leased again."""

MOST_MORE = 60.0

KILL_EVERY = 1.0
"""Seconds between two workers that are killed from outside."""

OpenStore = Callable[[], JobStore]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    jobs: int
    status: QueueStatus
    completed: Counter[JobId]
    """How often the queue recorded the completion of a job."""
    confirmed: Counter[JobId]
    """How many leases learnt that they completed a job; a worker may die before it notes that."""
    refused_late: int
    accepted_late: int
    crashes: int
    errors: list[str]

    @property
    def defects(self) -> list[str]:
        """In words, so that a failure says what broke."""
        found = {
            f"errors: {self.errors[:3]}": self.errors,
            f"of {self.jobs} jobs there are {self.status}": self.status.completed != self.jobs
            or self.status.total != self.jobs,
            f"{len(self.completed)} jobs have a completion": len(self.completed) != self.jobs,
            "a job was completed twice": max(self.completed.values(), default=0) > 1,
            "two leases were confirmed for one job": max(self.confirmed.values(), default=0) > 1,
            f"{self.accepted_late} late calls were accepted": self.accepted_late,
            "no worker was late": not self.refused_late,
            "no worker crashed": not self.crashes,
        }
        return [defect for defect, is_there in found.items() if is_there]


def hammer(open_store: OpenStore, *, seconds: float, folder: Path, seed: int) -> Outcome:
    """Work for so long, then finish what is left, and report what the workers were answered."""
    dice, names, crashes = random.Random(seed), count(), 0
    store = open_store()
    pages = count()
    add_jobs(store, PAGE, prefix=f"page-{next(pages)}-")
    _finish(store, folder, "first")  # a cold server plans for seconds
    workers = [_start(open_store, folder, next(names)) for _ in range(WORKERS)]
    ends, next_kill = time.monotonic() + seconds, time.monotonic() + KILL_EVERY
    try:
        # On a machine that is busy with others it may take longer until anybody was late.
        while time.monotonic() < ends or (
            time.monotonic() < ends + MOST_MORE and not _anybody_late(folder)
        ):
            if store.get_queue_status().pending < AHEAD:
                add_jobs(store, PAGE, prefix=f"page-{next(pages)}-")
            if time.monotonic() > next_kill:
                dice.choice(workers).kill()
                next_kill += KILL_EVERY
            for place, worker in enumerate(workers):
                if not worker.is_alive():
                    crashes += 1
                    workers[place] = _start(open_store, folder, next(names))
            time.sleep(0.02)
    finally:
        for worker in workers:
            worker.kill()
            worker.join()
    time.sleep(LEASE.total_seconds())
    _finish(store, folder, "last")
    outcome = _judged(store, folder, jobs=next(pages) * PAGE, crashes=crashes)
    store.close()
    return outcome


def _start(open_store: OpenStore, folder: Path, number: int) -> Any:
    worker = PROCESSES.Process(target=_work, args=(open_store, folder, number), daemon=True)
    worker.start()
    return worker


def _finish(store: JobStore, folder: Path, name: str) -> None:
    """Recover and complete all there is."""
    store.recover_stale()
    with closing(_Journal(folder, name)) as journal:
        for token in journal.tokens():
            lease = store.lease(owner=name, model=MODEL, limit=PAGE, token=token)
            if not lease.jobs:
                return
            journal.completed(lease, store)


class _Journal:
    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self._file = (folder / f"{name}.journal").open("a", buffering=1)

    def tokens(self) -> Iterator[str]:
        return (f"{self.name}-{number}" for number in count())

    def completed(self, lease: Lease, store: JobStore) -> None:
        self.note(token=lease.token, done=store.complete(lease, lease.job_ids).done)

    def close(self) -> None:
        self._file.close()

    def note(self, **facts: object) -> None:
        self._file.write(json.dumps(facts) + "\n")


def _work(open_store: OpenStore, folder: Path, number: int) -> None:
    """Until it is killed, or dies by itself."""
    dice, journal = random.Random(number), _Journal(folder, f"worker-{number}")
    store = open_store()
    ways = {_promptly: 10, _in_part: 4, _slowly: 2, _late: 6, _never: 2}
    for token in journal.tokens():
        if dice.random() < 0.2:
            store.recover_stale()
        lease = store.lease(owner=journal.name, model=MODEL, limit=dice.randint(1, 20), token=token)
        if not lease.jobs:
            continue
        (way,) = dice.choices(list(ways), list(ways.values()))
        try:
            way(store, lease, journal, dice)
        except Exception as error:
            journal.note(error=repr(error))
            raise


def _promptly(store: JobStore, lease: Lease, journal: _Journal, dice: random.Random) -> None:
    journal.completed(lease, store)


def _in_part(store: JobStore, lease: Lease, journal: _Journal, dice: random.Random) -> None:
    """Gives some back; completing them all the same is refused for those."""
    store.release(lease, dice.sample(lease.job_ids, dice.randint(0, len(lease.jobs))))
    journal.completed(lease, store)


def _slowly(store: JobStore, lease: Lease, journal: _Journal, dice: random.Random) -> None:
    """Longer than its lease, which it extends; all but what it lost is its own to complete."""
    for _ in range(5):
        time.sleep(0.4)
        store.heartbeat(lease, lease.job_ids)
    journal.completed(lease, store)


def _late(store: JobStore, lease: Lease, journal: _Journal, dice: random.Random) -> None:
    """Comes back when its jobs have another owner: all that it does is refused."""
    time.sleep(LEASE.total_seconds() + dice.uniform(0.05, 0.5))
    store.recover_stale()  # another worker may have done it
    # Whoever comes next takes them; sometimes it is the same worker in its second life.
    heir = dice.choice((journal.name, f"heir of {journal.name}"))
    inherited = store.lease(owner=heir, model=MODEL, limit=10 * PAGE, token=f"{lease.token}-heir")
    released = store.release(lease, lease.job_ids) if dice.random() < 0.5 else 0
    extended = store.heartbeat(lease, lease.job_ids).done if dice.random() < 0.5 else ()
    completed = store.complete(lease, lease.job_ids)
    journal.note(
        token=lease.token,
        done=completed.done,
        refused_late=len(completed.lost),
        accepted_late=len(completed.done) + len(extended) + released,
    )
    journal.completed(inherited, store)


def _never(store: JobStore, lease: Lease, journal: _Journal, dice: random.Random) -> None:
    """Dies without a word, sometimes in the middle of what it does."""
    half = lease.job_ids[: len(lease.jobs) // 2]
    if dice.random() < 0.5:
        store.release(lease, half)
    os._exit(1)


def _notes(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for path in sorted(folder.glob("*.journal"))
        for line in path.read_text().splitlines()
    ]


def _anybody_late(folder: Path) -> bool:
    return any("refused_late" in note for note in _notes(folder))


def _judged(store: JobStore, folder: Path, *, jobs: int, crashes: int) -> Outcome:
    notes = _notes(folder)
    confirmed = {(job_id, note["token"]) for note in notes for job_id in note.get("done", ())}
    events = store.events.recent(kind="jobs.completed", limit=1_000_000)
    return Outcome(
        jobs=jobs,
        status=store.get_queue_status(),
        completed=Counter(job_id for event in events for job_id in event.job_ids),
        confirmed=Counter(job_id for job_id, _ in confirmed),
        refused_late=sum(note.get("refused_late", 0) for note in notes),
        accepted_late=sum(note.get("accepted_late", 0) for note in notes),
        crashes=crashes,
        errors=[note["error"] for note in notes if "error" in note],
    )
