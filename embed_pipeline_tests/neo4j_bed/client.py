"""A test process's hold on the servers: finds or starts the supervisor, and talks to it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import neo4j

from embed_pipeline_tests.neo4j_bed import wiping
from embed_pipeline_tests.neo4j_bed.jars import jars_for, locked
from embed_pipeline_tests.neo4j_bed.releases import BedUnavailable, Spec
from embed_pipeline_tests.neo4j_bed.server import Address
from embed_pipeline_tests.neo4j_bed.supervisor import socket_in, spec_text


class SupervisorConnection:
    """One connection to the supervisor; the servers run while it is open."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._answers = connection.makefile("rb")

    def ask(self, **request: str) -> dict[str, Any]:
        try:
            self._connection.sendall(json.dumps(request).encode() + b"\n")
            line = self._answers.readline()
        except OSError as error:
            raise BedUnavailable(f"the supervisor of the servers has gone: {error}") from error
        if not line:
            raise BedUnavailable("the supervisor of the servers has gone")
        answer = cast("dict[str, Any]", json.loads(line))
        if "error" in answer:
            raise BedUnavailable(answer["error"])
        return answer

    def close(self) -> None:
        self._answers.close()
        self._connection.close()


@dataclass(slots=True)
class BedServer:
    """A running server as tests see it; `hold` is None for one named by the environment."""

    address: Address
    driver: neo4j.Driver
    schema_note: Path
    """There while the schema may be another than our own."""
    name: str = ""
    hold: SupervisorConnection | None = None
    kept: ExitStack = field(default_factory=ExitStack)
    """What a module wants to be closed at its end, such as a connection that all its tests use."""

    @property
    def uri(self) -> str:
        return self.address.uri

    @property
    def user(self) -> str:
        return self.address.user

    @property
    def password(self) -> str:
        return self.address.password

    @property
    def database(self) -> str:
        return self.address.database

    def run(self, statement: str, **parameters: object) -> list[dict[str, Any]]:
        """Arrange or look, past the store under test; auto-commit."""
        with self.driver.session(database=self.database) as session:
            return wiping.rows(session, statement, parameters)

    def empty(self) -> None:
        """For a new module: without data, and with no schema but maybe our own."""
        if self.schema_note.exists():
            self.wipe_schema()
            self.schema_note.unlink()
        else:
            self.wipe()

    def wipe(self) -> None:
        """Delete all nodes and the vector indexes; constraints and other indexes stay."""
        with self.driver.session(database=self.database) as session:
            wiping.delete_nodes(session)
            wiping.drop_vector_indexes(session)

    def wipe_schema(self) -> None:
        """Drop every constraint and index as well: the database is as on its first day.

        It takes seconds to make them all again, so only tests of the schema need it.
        """
        self.schema_note.touch()
        with self.driver.session(database=self.database) as session:
            wiping.delete_nodes(session)
            wiping.drop_schema(session)

    @property
    def can_be_stopped(self) -> bool:
        return self.hold is not None

    def start(self) -> None:
        self._command("start")

    def stop(self) -> None:
        self._command("stop")

    def kill(self) -> None:
        """As a crash would; `start` brings it back on the same port with the same data."""
        self._command("kill")

    def freeze(self) -> None:
        """Reachable but silent, until `thaw`."""
        self._command("freeze")

    def thaw(self) -> None:
        self._command("thaw")

    def _command(self, command: str) -> None:
        if self.hold is None:
            raise BedUnavailable("a server named by the environment is not ours to stop")
        self.hold.ask(command=command, server=self.name)


def take_hold(specs: Sequence[Spec], *, meeting_point: Path) -> SupervisorConnection:
    """Join the servers that another process of this session started, or start them.

    `meeting_point` is a file in a folder that exactly the processes of one session share.
    """
    for spec in specs:
        jars_for(spec)  # may take minutes, and has its own lock
    with locked(meeting_point.with_suffix(".lock")):
        if meeting_point.exists():
            hold = _join(Path(meeting_point.read_text()))
            if hold is not None:
                return hold
        # Not below pytest's folder: a socket's path may have only about 100 characters.
        folder = Path(tempfile.mkdtemp(prefix="neo4j-bed-"))
        _start(specs, folder)
        meeting_point.write_text(str(folder))
        joined = _join(folder)
    if joined is None:
        raise BedUnavailable("the supervisor of the servers ended at once")
    return joined


def _join(folder: Path) -> SupervisorConnection | None:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(socket_in(folder)))
        hold = SupervisorConnection(connection)
        hold.ask(command="addresses")  # it may be on its way out
    except (OSError, BedUnavailable):
        connection.close()
        return None
    return hold


def _start(specs: Sequence[Spec], folder: Path) -> None:
    chosen = [part for spec in specs for part in ("--server", spec_text(spec))]
    supervisor = subprocess.Popen(
        [sys.executable, "-m", supervisor_module(), "--folder", str(folder), *chosen],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # outlives the worker that started it, and its Ctrl-C
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert supervisor.stdout is not None
    with supervisor.stdout:
        said = supervisor.stdout.readline().strip()
    if said != "ready":
        raise BedUnavailable(said or "the supervisor of the servers ended without a word")
    supervisor.returncode = 0  # it is not ours to wait for: no warning when this object goes


def supervisor_module() -> str:
    return f"{__package__}.supervisor"
