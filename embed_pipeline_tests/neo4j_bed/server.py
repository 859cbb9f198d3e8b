"""One Neo4j server as a child process: its home, how it is started, awaited and stopped."""

from __future__ import annotations

import ctypes
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from embed_pipeline_tests.neo4j_bed.jars import Jars, jars_for
from embed_pipeline_tests.neo4j_bed.probe import await_database
from embed_pipeline_tests.neo4j_bed.recipe import (
    APOC,
    APOC_CONFIGURATION,
    CONFIGURATION,
    JAVA_OPTIONS,
    java,
)
from embed_pipeline_tests.neo4j_bed.releases import BedUnavailable, Spec

BOOT_PATIENCE = 120.0
STOP_PATIENCE = 20.0
ATTEMPTS = 3

_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """What a client needs to know; the password stays out of `repr`."""

    uri: str
    user: str
    password: str = field(repr=False)
    database: str

    def as_json(self) -> dict[str, str]:
        return asdict(self)


class Server:
    """Start it from a thread that lives on: on Linux the server ends with that thread.

    `stop` keeps `home`; the caller that made it removes it.
    """

    def __init__(
        self,
        spec: Spec,
        *,
        home: Path,
        port: int | None = None,
        java_options: Sequence[str] = (),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.spec = spec
        self.home = home
        self._port = port
        self._java_options = (*JAVA_OPTIONS, *java_options)
        self._settings = settings or {}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> Address:
        return Address(
            uri=f"bolt://127.0.0.1:{self._port}",
            user="neo4j",
            password=(self.home / "password").read_text(),
            database=self.spec.database,
        )

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> None:
        self.launch()
        self.await_ready()

    def launch(self) -> None:
        """Start without waiting, so that several boot side by side."""
        if self._process is not None and self._process.poll() is None:
            return
        jars = jars_for(self.spec)
        self._prepare_home()
        with (self.home / "server.log").open("wb") as log:
            self._process = subprocess.Popen(
                self._command(jars),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for its parent, which then stops it
                preexec_fn=_end_with_parent,
            )

    def await_ready(self) -> None:
        """Until the user database answers; "Started." in the log comes before that."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await_database(
                    self.address,
                    fresh=not (self.home / "password.set").exists(),
                    alive=self._is_running,
                    patience=BOOT_PATIENCE,
                )
            except TimeoutError as error:
                self.kill()
                if attempt == ATTEMPTS:
                    raise BedUnavailable(
                        f"Neo4j {self.spec.release.version} does not start: {error}; "
                        f"its log ends: {self._end_of_log()}"
                    ) from error
                self._port = None  # another program may have taken it
                self.launch()
            else:
                (self.home / "password.set").touch()
                return

    def ask_to_stop(self) -> None:
        """Without waiting, so that several end side by side."""
        self._signal(signal.SIGTERM)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """As a crash would."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """Reachable but silent, as behind a broken network."""
        self._signal(signal.SIGSTOP)
        deadline = time.monotonic() + STOP_PATIENCE
        while not self._is_frozen() and time.monotonic() < deadline:
            time.sleep(0.01)

    def _is_frozen(self) -> bool:
        """Each thread stops when it next runs, which on a busy machine may take a while."""
        threads = Path(f"/proc/{self.pid}/task").glob("*/stat")
        return all(stat.read_text().rpartition(")")[2].split()[0] == "T" for stat in threads)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            os.kill(self._process.pid, number)

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        self._signal(number)
        try:
            self._process.wait(STOP_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def _is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _prepare_home(self) -> None:
        for folder in ("conf", "plugins", "data", "logs"):
            (self.home / folder).mkdir(parents=True, exist_ok=True)
        password = self.home / "password"
        if not password.exists():
            password.touch(mode=0o600)
            password.write_text(secrets.token_urlsafe(24))
        if self._port is None:
            self._port = free_port()
        text = CONFIGURATION.format(port=self._port, database=self.spec.database)
        text += APOC if self.spec.apoc else ""
        # A name that is there twice keeps the server from starting.
        settings = dict(line.split("=", 1) for line in text.splitlines()) | dict(self._settings)
        lines = [f"{name}={value}\n" for name, value in settings.items()]
        (self.home / "conf" / "neo4j.conf").write_text("".join(lines))
        if self.spec.apoc:
            (self.home / "conf" / "apoc.conf").write_text(APOC_CONFIGURATION)

    def _command(self, jars: Jars) -> list[str]:
        for plugin in jars.plugins:  # procedures are found here, their classes on the class path
            link = self.home / "plugins" / plugin.name
            if not link.exists():
                link.symlink_to(plugin)
        return [
            *(str(java()), *self._java_options),
            *("-cp", os.pathsep.join(map(str, jars))),
            self.spec.release.main_class,
            *(f"--home-dir={self.home}", f"--config-dir={self.home / 'conf'}", "--console-mode"),
        ]

    def _end_of_log(self) -> str:
        log = self.home / "server.log"
        lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
        return " | ".join(lines[-5:]) or "(empty)"


def free_port(wanted: int = 0) -> int:
    """`wanted` if it is free, otherwise any other."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise BedUnavailable("no port is free on 127.0.0.1")


def _end_with_parent() -> None:
    """The kernel stops the server when its parent dies without a word; elsewhere than Linux the
    parent's own clean-up has to do."""
    if sys.platform == "linux":
        libc: Any = ctypes.CDLL(None)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
