"""Windows lacks some names of Python's standard library. Without them everything else works.

This runs on Linux with the names removed; on Windows itself nothing was ever run.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from embed_pipeline_tests.interfaces.command_line import environment

AS_ON_WINDOWS = """
import asyncio, os, pkgutil, signal, sys
import dagster, mcp.server, neo4j, openai, pandas, psycopg, prometheus_client, pyarrow, tiktoken

del os.register_at_fork, os.geteuid, signal.pthread_sigmask, signal.sigwait

def no_signals(*_):
    raise NotImplementedError
asyncio.unix_events._UnixSelectorEventLoop.add_signal_handler = no_signals

import embed_pipeline
"""

IMPORT_ALL = """
for module in pkgutil.walk_packages(embed_pipeline.__path__, "embed_pipeline."):
    if not module.name.endswith("__main__"):
        __import__(module.name)
"""

RUN_COMMANDS = """
from embed_pipeline.interfaces.cli.commands import serve
from embed_pipeline.interfaces.mcp import serve as serve_mcp
from embed_pipeline.api import NewEntity, open_pipeline

with open_pipeline() as pipeline:
    assert pipeline.upsert_entities([NewEntity(name="Solaris")]).created == 1
with serve._blocked(serve.ENDINGS):
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    serve._wait()
serve_mcp()  # until the end of standard input
"""


def ended(program: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", AS_ON_WINDOWS + program],
        env=environment(tmp_path / "home"),
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_every_module_is_imported_and_stores_and_servers_run_as_on_windows(tmp_path: Path) -> None:
    readable = tmp_path / "home" / "queue.sqlite"
    readable.parent.mkdir()
    readable.touch(mode=0o644)

    result = ended(IMPORT_ALL + RUN_COMMANDS, tmp_path)

    assert result.returncode == 0, result.stderr
