"""One queue of the tree that PYTHONPATH names, driven by lines of JSON (see `revision.py`).

It is run as a file, because its own package is imported from that other tree: only what
`benchmarks/queue/ours.py` has had since version 0.1 may be used here.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def main(queue: str) -> None:
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing else may write between answers
    from benchmarks.queue import ours

    opened = getattr(ours, queue, None)
    print(json.dumps(opened is not None), file=answers, flush=True)
    if opened is None:
        return
    with opened() as contestant:
        for line in sys.stdin:
            verb, *arguments = json.loads(line)
            print(json.dumps(_run(contestant, verb, *arguments)), file=answers, flush=True)


def _run(contestant: Any, verb: str, *arguments: Any) -> object:
    if verb != "work":
        return getattr(contestant, verb)(*arguments)
    jobs, batch, seconds = arguments
    worked = contestant.work(jobs=jobs, batch=batch, seconds=float(seconds))
    return [worked.jobs, worked.seconds, worked.leases]


if __name__ == "__main__":
    main(sys.argv[1])
