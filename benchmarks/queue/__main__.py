"""What the queue costs: jobs per second of enqueue, lease + complete, recover and cleanup.

    python -m benchmarks.queue [--sizes 1000 100000 1000000] [--queues sqlite neo4j pgqueuer …]
                               [--batches 10 100 500 1000] [--seconds 3]

Beside procrastinate and pgqueuer on a PostgreSQL from the pgserver wheel, with its usual settings
(fsync on). They are not among the development packages:

    python3 -m venv .venv-benchmarks
    .venv-benchmarks/bin/pip install --require-hashes -r requirements-benchmarks.txt
    .venv-benchmarks/bin/pip install --no-build-isolation --no-deps -e .
    .venv-benchmarks/bin/python -m benchmarks.queue

One caller; what one takes it completes before it takes the next. Events, counters and health are
written as always. The queues take turns at every measurement, so that a busy neighbour meets all.
A quick look: --sizes 1000 --seconds 1. A million jobs take about a quarter of an hour.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing

from benchmarks.queue.contestant import Contestant
from benchmarks.queue.measuring import RunState
from benchmarks.queue.table import show

QUEUES = ("sqlite", "neo4j", "pgqueuer", "procrastinate")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.queue",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 100_000, 1_000_000])
    parser.add_argument("--batches", type=int, nargs="+", default=[10, 100, 500, 1_000])
    parser.add_argument("--queues", nargs="+", choices=QUEUES, default=list(QUEUES))
    parser.add_argument("--seconds", type=float, default=3.0, help="per measurement")
    given = parser.parse_args()
    with ExitStack() as stack:
        contestants = opened(given.queues, stack)
        course = RunState(contestants, batches=given.batches, seconds=given.seconds, say=say)
        course.warm_up()
        for size in sorted(given.sizes):
            show(course.run(size), contestants=[one.name for one in contestants])
        course.show_growth()


def opened(names: Sequence[str], stack: ExitStack) -> list[Contestant]:
    # Imported only when asked for: a quick look at our own queues needs no other package.
    contestants: list[Contestant] = []
    if "sqlite" in names:
        from benchmarks.queue.ours import sqlite

        contestants.append(stack.enter_context(sqlite()))
    if "neo4j" in names:
        from benchmarks.queue.ours import neo4j

        say("starting Neo4j")
        contestants.append(stack.enter_context(neo4j()))
    if {"pgqueuer", "procrastinate"} & set(names):
        from benchmarks.queue import others
        from benchmarks.reaper import schema, server

        say("starting PostgreSQL")
        url = stack.enter_context(server())
        for kind in (others.PgQueuer, others.Procrastinate):
            if kind.name in names:
                place = stack.enter_context(schema(url))
                contestants.append(stack.enter_context(closing(kind(place))))
    return contestants


def say(what: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {what}\n")


if __name__ == "__main__":
    main()
