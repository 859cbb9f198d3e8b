"""A reaper process that is killed after it changed the rows and wrote the events, before commit.

python -m embed_pipeline_tests.reaper.dying_reaper URL
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from embed_pipeline.reaper import PostgresDatabase, Reaper, sweep
from embed_pipeline.reaper.apply import carry_out


def die_of_it(*arguments: Any) -> Any:
    done, refusals = carry_out(*arguments)
    assert (len(done), refusals) == (3, {})
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    sweep.carry_out = die_of_it  # type: ignore
    Reaper(PostgresDatabase(sys.argv[1])).sweep()
