"""Dagster as `deploy/` runs it: a code server and a daemon, each with a supervisor of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import yaml  # type: ignore[import-untyped]

from embed_pipeline_tests.defs.commands import DAGSTER, ROOT
from embed_pipeline_tests.defs.dev_server import free_port, within
from embed_pipeline_tests.defs.live import Live

DAEMON = DAGSTER.with_name("dagster-daemon")


class Service:
    """A process in a group of its own, which is as much of a container as a test needs."""

    def __init__(self, *command: str | Path, environment: dict[str, str], log: Path) -> None:
        self._command, self._environment, self._log = command, environment, log
        self._groups: list[int] = []
        self.start()

    def start(self) -> None:
        with self._log.open("a") as output:
            self._process = subprocess.Popen(
                self._command,
                env=self._environment,
                cwd=ROOT,
                stdout=output,
                stderr=output,
                process_group=0,
                # Started from a script's background, Dagster would ignore SIGINT and SIGTERM.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )
        self._groups.append(self._process.pid)

    def kill(self) -> None:
        """The process alone, as the kernel does where memory runs out."""
        self._process.kill()
        self._process.wait()

    def kill_container(self) -> None:
        """With everything that it has started."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def end(self) -> None:
        """Also what an earlier one has left behind."""
        for group in self._groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        self._process.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    code: Service
    daemon: Service


@contextmanager
def services(live: Live) -> Iterator[Services]:
    """The daemon knows nothing of the pipeline's settings, as in `deploy/compose.yaml`."""
    port, home = free_port(), live.homes.dagster
    location = {"host": "127.0.0.1", "port": port, "location_name": "embed_pipeline"}
    workspace = home / "workspace.yaml"
    workspace.write_text(yaml.safe_dump({"load_from": [{"grpc_server": location}]}))
    with ExitStack() as stack:
        code = Service(
            *(DAGSTER, "api", "grpc", "--host", "127.0.0.1", "--port", str(port)),
            *("--module-name", "embed_pipeline.definitions"),
            environment=live.homes.environment(**live.variables),
            log=live.log,
        )
        stack.callback(code.end)
        within(120, lambda: _listens(port), live.log.read_text)
        daemon = Service(
            *(DAEMON, "run", "--workspace", workspace),
            environment=live.homes.environment(),
            log=live.log,
        )
        stack.callback(daemon.end)
        yield Services(code=code, daemon=daemon)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
