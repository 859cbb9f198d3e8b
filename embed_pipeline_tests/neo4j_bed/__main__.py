"""Start the pair for a person: `python -m embed_pipeline_tests.neo4j_bed`, until Ctrl-C.

The data stays below EMBED_HOME (or --home), ports and passwords too, so a second start continues
where the first one ended.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from pathlib import Path

from embed_pipeline_tests.neo4j_bed.releases import PAIR, SWAPPED_PAIR, BedUnavailable
from embed_pipeline_tests.neo4j_bed.server import Server, free_port

PORTS = {"queue": 17687, "graph": 17688}
"""Wished for, so that the settings of one day work on the next."""


def main() -> int:
    given = _arguments()
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background job ignores the first
        signal.signal(number, signal.default_int_handler)
    # Apart, because an older version cannot open what a newer one has written.
    home = given.home / "swapped" if given.swapped else given.home
    servers = [
        Server(spec, home=home / spec.name, port=free_port(PORTS[spec.name]))
        for spec in (SWAPPED_PAIR if given.swapped else PAIR)
    ]
    try:
        for server in servers:
            server.launch()
        for server in servers:
            server.await_ready()
        _say(_explained(servers, tests=given.for_tests))
        threading.Event().wait()
    except BedUnavailable as error:
        _say(f"No Neo4j server: {error}")
        return 1
    except KeyboardInterrupt:
        _say("Stopping …")
    finally:
        for server in servers:
            server.ask_to_stop()
        for server in servers:
            server.stop()
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m embed_pipeline_tests.neo4j_bed", description=__doc__
    )
    default = Path(os.environ.get("EMBED_HOME") or ".embed_pipeline") / "neo4j"
    parser.add_argument("--home", type=lambda text: Path(text).resolve(), default=default.resolve())
    parser.add_argument("--swapped", action="store_true", help="exchange the two versions")
    parser.add_argument(
        "--for-tests", action="store_true", help="print what lets the tests use (and empty) them"
    )
    return parser.parse_args()


def _explained(servers: list[Server], *, tests: bool) -> str:
    lines = ["", "# Two Neo4j servers run until Ctrl-C. In another terminal:"]
    prefix = "EMBED_TEST" if tests else "EMBED"
    if not tests:
        lines.append("export EMBED_STORE=neo4j")
    for server in servers:
        role, address = f"{prefix}_{server.spec.name.upper()}", server.address
        lines.append(f"# {server.spec.name}: Neo4j {server.spec.release.version}")
        lines += [
            f"export {role}_URI={address.uri}",
            f"export {role}_USER={address.user}",
            f"export {role}_PASSWORD={address.password}",
            f"export {role}_DATABASE={address.database}",
        ]
    return "\n".join(lines)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
