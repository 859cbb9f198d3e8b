"""Start the pair for a person: `python -m embed_pipeline_tests.neo4j_bed`, until Ctrl-C.

The data stays below EMBED_HOME (or --home), ports and passwords too, so a second start continues
where the first one ended.
"""

from __future__ import annotations

import argparse
import os
import shlex
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
        _say(_explained(servers, home, tests=given.for_tests))
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


def _explained(servers: list[Server], home: Path, *, tests: bool) -> str:
    running = ", ".join(f"{it.spec.name} on Neo4j {it.spec.release.version}" for it in servers)
    variables = home / ("env.tests" if tests else "env")
    _write_variables(servers, variables, tests=tests)
    lines = [
        f"\nTwo Neo4j servers run until Ctrl-C: {running}. In another terminal:",
        f"  . {_from_here(variables)}",
    ]
    if not tests:
        command = Path(sys.executable).with_name("embed-pipeline")
        lines += [f"  {_from_here(command)} init", "  make dev"]
    return "\n".join(lines)


def _write_variables(servers: list[Server], path: Path, *, tests: bool) -> None:
    """For a shell to read. It holds the passwords, so only its owner may read it."""
    lines = [] if tests else ["export EMBED_STORE=neo4j"]
    for server in servers:
        role = f"{'EMBED_TEST' if tests else 'EMBED'}_{server.spec.name.upper()}"
        values = server.address.as_json()
        lines += [f"export {role}_{name.upper()}={value}" for name, value in values.items()]
    path.touch(mode=0o600)
    path.write_text("\n".join([*lines, ""]))


def _from_here(path: Path) -> str:
    """As a person would type it."""
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
