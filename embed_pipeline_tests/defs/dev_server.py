"""`dagster dev` in a process group of its own, and its GraphQL."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from embed_pipeline_tests.defs.commands import DAGSTER, ROOT, Homes

LAUNCH = """
mutation ($params: ExecutionParams!) {
  launchRun(executionParams: $params) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message }
  }
}
"""
RUN_STATUS = """
query ($run: ID!) { runOrError(runId: $run) { ... on Run { status } } }
"""
LOCATIONS = """
query { workspaceOrError { ... on Workspace { locationEntries {
  name loadStatus locationOrLoadError { __typename }
} } } }
"""


class DevServer:
    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def ask(self, query: str, **variables: Any) -> Any:
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(
            self.url + "/graphql", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())["data"]

    def launch(self, job: str) -> str:
        selector = {
            "repositoryLocationName": "embed_pipeline",
            "repositoryName": "__repository__",
            "jobName": job,
        }
        answer = self.ask(LAUNCH, params={"selector": selector, "runConfigData": {}})["launchRun"]
        assert answer["__typename"] == "LaunchRunSuccess", answer
        return str(answer["run"]["runId"])

    def status_of(self, run: str) -> str:
        return str(self.ask(RUN_STATUS, run=run)["runOrError"]["status"])

    def is_up(self) -> bool:
        return self._code() == {"RepositoryLocation"}

    def refuses_the_code(self) -> bool:
        return self._code() == {"PythonError"}

    def _code(self) -> set[str | None]:
        """How loading the definitions of each location ended; None while they load."""
        with suppress(urllib.error.URLError, ConnectionError):
            locations = self.ask(LOCATIONS)["workspaceOrError"]["locationEntries"]
            loaded = [location["locationOrLoadError"] for location in locations]
            return {None if one is None else str(one["__typename"]) for one in loaded}
        return set()


@contextmanager
def dev_server(
    homes: Homes,
    until: Callable[[DevServer], bool] = DevServer.is_up,
    /,
    *,
    workspace: Path | str = "workspace.yaml",
    **variables: str,
) -> Iterator[DevServer]:
    """Whatever happens, nothing of its process group outlives the block."""
    port = free_port()
    log = homes.dagster / "dev.log"
    with (
        log.open("w") as output,
        subprocess.Popen(
            [DAGSTER, "dev", "-w", workspace, "-h", "127.0.0.1", "-p", str(port)],
            env=homes.environment(**variables),
            cwd=ROOT,
            stdout=output,
            stderr=output,
            process_group=0,
            # Started from a script's background, Dagster would ignore SIGINT and SIGTERM.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ) as process,
    ):
        try:
            server = DevServer(port)
            within(120, lambda: until(server), lambda: log.read_text()[-3_000:])
            yield server
            process.send_signal(signal.SIGTERM)
            process.wait(90)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def within(
    seconds: float, condition: Callable[[], bool], explain: Callable[[], str] = lambda: ""
) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {explain()}"
        time.sleep(0.2)
