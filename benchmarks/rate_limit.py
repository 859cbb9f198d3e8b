"""How much of a shared budget four processes use, and whether any window is overdrawn.

    python -m benchmarks.rate_limit [--requests 30] [--interval 20] [--windows 4]

Four `embed-pipeline run` share one queue and one provider on loopback that counts their requests.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

from embed_pipeline_tests.openai_budget import most_in_any_window
from embed_pipeline_tests.openai_server import OpenAIServer

PROCESSES = 4
COMMAND = (sys.executable, "-m", "embed_pipeline")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rate_limit", description=__doc__)
    parser.add_argument("--requests", type=int, default=30, help="the budget of one window")
    parser.add_argument("--interval", type=int, default=20, help="the window, in seconds")
    parser.add_argument("--windows", type=int, default=4, help="how many windows' work there is")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, OpenAIServer(api_key="benchmark-key") as server:
        arrivals = embed_everything(Path(home), server, given)
    show(arrivals, given)


def embed_everything(home: Path, server: OpenAIServer, given: argparse.Namespace) -> list[float]:
    environment = os.environ | {
        "EMBED_ENV": "local",
        "EMBED_HOME": str(home),
        "EMBEDDING_PROVIDER": "openai",
        "EMBEDDING_DIMENSIONS": "16",
        "EMBEDDING_MAX_INPUTS": "1",
        "EMBEDDING_RATE_LIMIT_TOKENS": str(given.requests),
        "EMBEDDING_RATE_LIMIT_INTERVAL": str(given.interval * 1000),
        "OPENAI_API_KEY": "benchmark-key",
        "OPENAI_BASE_URL": server.base_url,
    }
    table = home / "entities.csv"
    lines = [f"entity {n},about {n}" for n in range(given.requests * given.windows)]
    table.write_text("\n".join(["name,observations", *lines]))
    quiet = subprocess.DEVNULL
    load = [*COMMAND, "load", str(table)]
    subprocess.run(load, env=environment, check=True, stdout=quiet, stderr=quiet)
    workers = [
        subprocess.Popen([*COMMAND, "run"], env=environment, stdout=quiet, stderr=quiet)
        for _ in range(PROCESSES)
    ]
    for worker in workers:
        assert worker.wait() == 0
    return sorted(request.at for request in server.requests)


def show(arrivals: list[float], given: argparse.Namespace) -> None:
    most = most_in_any_window(arrivals, timedelta(seconds=given.interval))
    # The first window's worth leaves at once; the others have to wait their turn.
    waited = len(arrivals) - given.requests
    possible = (arrivals[-1] - arrivals[0]) / given.interval * given.requests
    print(f"budget                      {given.requests} requests in {given.interval} s")
    print(f"requests                    {len(arrivals)} by {PROCESSES} processes")
    print(f"most in any {given.interval} s            {most}")
    print(f"of the budget used          {waited / possible:.2f}")


if __name__ == "__main__":
    main()
