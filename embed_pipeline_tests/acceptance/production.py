"""Production as its own processes see it: two real servers, a loopback OpenAI, variables only."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from embed_pipeline import wiring
from embed_pipeline.settings import load_settings
from embed_pipeline.worker.context import Services
from embed_pipeline_tests.defs.commands import DAGSTER, ROOT, Homes
from embed_pipeline_tests.interfaces.command_line import SCRIPT
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.openai_server import OpenAIServer

KEY = "sk-loopback"
PATIENCE = 240

Words = tuple[str | Path, ...]
RUN: Words = (SCRIPT, "run")
EMBED_JOB: Words = (
    *(DAGSTER, "job", "execute"),
    *("-m", "embed_pipeline.definitions", "-j", "embed_job"),
)


def server_variables(queue: BedServer, graph: BedServer) -> dict[str, str]:
    return {
        f"EMBED_{role}_{name.upper()}": getattr(server, name)
        for role, server in (("QUEUE", queue), ("GRAPH", graph))
        for name in ("uri", "user", "password", "database")
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Production:
    queue: BedServer
    graph: BedServer
    openai: OpenAIServer
    homes: Homes
    variables: dict[str, str]

    def command(self, *words: str, **changes: str) -> subprocess.CompletedProcess[str]:
        """`embed-pipeline …`, to its end."""
        with self.started(SCRIPT, *words, **changes) as process:
            out, err = process.communicate(timeout=PATIENCE)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    @contextmanager
    def started(self, *words: str | Path, **changes: str) -> Iterator[subprocess.Popen[str]]:
        """Any program: `RUN` or Dagster's `EMBED_JOB`."""
        with subprocess.Popen(
            words,
            env=self.homes.environment(**self.variables | changes),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    @contextmanager
    def services(self) -> Iterator[Services]:
        opened = wiring.open_services(load_settings(self.homes.environment(**self.variables)))
        with ExitStack() as stack:
            for part in (opened.jobs, opened.graph, opened.provider, opened.limiter):
                stack.enter_context(closing(part))
            yield opened

    def await_requests(self, number: int) -> None:
        deadline = time.monotonic() + PATIENCE
        while len(self.openai.requests) < number:
            assert time.monotonic() < deadline, "the worker sends no requests"
            time.sleep(0.01)


def production_variables(
    queue: BedServer, graph: BedServer, openai: OpenAIServer
) -> dict[str, str]:
    return server_variables(queue, graph) | {
        "EMBED_ENV": "production",
        "EMBED_JOB_RETENTION_DAYS": "14",
        "EMBEDDING_RATE_LIMIT_TOKENS": "10000",
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": openai.base_url,
    }
