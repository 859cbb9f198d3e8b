"""What the queue costs: jobs per second of enqueue, lease + complete, recover and cleanup.

    python -m benchmarks.queue [--sizes 1000 100000 1000000] [--queues sqlite neo4j pgqueuer …]
                               [--batches 10 100 500 1000] [--seconds 3] [--rounds 1]
    python -m benchmarks.queue --against REF [--sizes 1000] [--queues sqlite neo4j] [--rounds 5]

Beside procrastinate and pgqueuer on a PostgreSQL from the pgserver wheel, with its usual settings
(fsync on). They are not among the development packages; `make benchmarks` installs them into
.venv-benchmarks. With --against the queues of this tree run beside those of another revision,
each in a process of its own.

One caller; what one takes it completes before it takes the next. Events, counters and health are
written as always. The queues take turns at every measurement, so that a busy neighbour meets all,
and a figure is the median of the rounds. --sizes 1000 --seconds 1 takes minutes; a million jobs
take about a quarter of an hour a round.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing

from benchmarks.queue.contestant import Contestant
from benchmarks.queue.measuring import Measurement
from benchmarks.queue.table import Ratio, show, show_growth

OURS = ("sqlite", "neo4j", "postgres")
OTHERS = ("pgqueuer", "procrastinate")


def main() -> None:
    given = arguments()
    with ExitStack() as stack:
        if given.against:
            contestants, ratios = compared(given.queues, given.against, stack)
        else:
            contestants, ratios = opened(given.queues, stack)
        run = Measurement(contestants, batches=given.batches, seconds=given.seconds, say=say)
        run.warm_up()
        names = [one.name for one in contestants]
        figures = []
        for size in sorted(given.sizes):
            figures.append(run.measure(size, given.rounds))
            show(figures[-1], names=names, ratios=ratios)
        if len(figures) > 1:
            show_growth(figures[0], figures[-1])


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.queue",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--against", metavar="REF", help="a revision to compare this tree with")
    parser.add_argument("--sizes", type=int, nargs="+")
    parser.add_argument("--batches", type=int, nargs="+", default=[10, 100, 500, 1_000])
    parser.add_argument("--queues", nargs="+", choices=(*OURS, *OTHERS))
    parser.add_argument("--seconds", type=float, default=3.0, help="per measurement")
    parser.add_argument("--rounds", type=int, help="a figure is the median of so many")
    given = parser.parse_args()
    if given.against and set(given.queues or ()) & set(OTHERS):
        parser.error("--against compares our own queues only")
    alone = not given.against
    given.sizes = given.sizes or ([1_000, 100_000, 1_000_000] if alone else [1_000])
    given.queues = given.queues or ((*OURS, *OTHERS) if alone else OURS)
    given.rounds = given.rounds or (1 if alone else 5)
    return given


def compared(
    queues: Sequence[str], reference: str, stack: ExitStack
) -> tuple[list[Contestant], list[Ratio]]:
    from benchmarks.queue.revision import checkout, twins

    tree = stack.enter_context(checkout(reference))
    contestants: list[Contestant] = []
    ratios: list[Ratio] = []
    for now, then in twins(queues, tree, reference):
        contestants += [stack.enter_context(closing(one)) for one in (now, then)]
        ratios.append((now.name, then.name))
    return contestants, ratios


def opened(queues: Sequence[str], stack: ExitStack) -> tuple[list[Contestant], list[Ratio]]:
    from benchmarks.queue import ours

    starts = [getattr(ours, queue) for queue in OURS if queue in queues and hasattr(ours, queue)]
    contestants: list[Contestant] = [stack.enter_context(start()) for start in starts]
    rivals = [queue for queue in OTHERS if queue in queues]
    if not rivals:
        return contestants, []
    # Imported only when asked for: our own queues need none of these packages.
    from benchmarks.queue import others
    from benchmarks.reaper import schema, server

    say("starting PostgreSQL")
    url = stack.enter_context(server())
    ratios = [(one.name, "pgqueuer") for one in contestants if "pgqueuer" in rivals]
    for kind in (others.PgQueuer, others.Procrastinate):
        if kind.name in rivals:
            place = stack.enter_context(schema(url))
            contestants.append(stack.enter_context(closing(kind(place))))
    return contestants, ratios


def say(what: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {what}\n")


if __name__ == "__main__":
    main()
