"""Keeps servers running for as long as anybody is connected to its socket, and stops them then.

A process of its own, because test workers come and go: whichever starts first needs the servers,
whichever ends last ends them, and a worker that is killed closes its connection all the same.
One thread only: the servers end with the thread that started them.
"""

from __future__ import annotations

import argparse
import json
import selectors
import shutil
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from embed_pipeline_tests.neo4j_bed.recipe import QUICK_BOOT
from embed_pipeline_tests.neo4j_bed.releases import RELEASES, BedUnavailable, Spec
from embed_pipeline_tests.neo4j_bed.server import Server

FIRST_CLIENT_PATIENCE = 30.0
"""Seconds for the one that started us to come; it may have died meanwhile."""

COMMANDS = ("start", "stop", "kill", "freeze", "thaw")


class Supervisor:
    def __init__(self, servers: Sequence[Server], door: socket.socket) -> None:
        self._servers = {server.spec.name: server for server in servers}
        self._door = door
        self._clients: dict[socket.socket, bytes] = {}

    def serve(self) -> None:
        """Until the last client has gone."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._door, selectors.EVENT_READ)
            deadline = time.monotonic() + FIRST_CLIENT_PATIENCE
            had_clients = False
            while self._clients or (not had_clients and time.monotonic() < deadline):
                for key, _ in selector.select(timeout=1.0):
                    if key.fileobj is self._door:
                        client, _ = self._door.accept()
                        self._clients[client] = b""
                        selector.register(client, selectors.EVENT_READ)
                        had_clients = True
                    elif isinstance(key.fileobj, socket.socket) and not self._hear(key.fileobj):
                        selector.unregister(key.fileobj)
                        del self._clients[key.fileobj]
                        key.fileobj.close()

    def _hear(self, client: socket.socket) -> bool:
        """Answer the requests that came in; False when the client has gone."""
        try:
            data = client.recv(4096)
            if not data:
                return False
            *lines, self._clients[client] = (self._clients[client] + data).split(b"\n")
            for line in lines:
                client.sendall(json.dumps(self._answer(json.loads(line))).encode() + b"\n")
        except OSError:
            return False
        return True

    def _answer(self, request: dict[str, str]) -> dict[str, Any]:
        command = request["command"]
        if command == "addresses":
            return {name: s.address.as_json() for name, s in self._servers.items()}
        if command not in COMMANDS:
            return {"error": f"unknown command {command}"}
        try:
            getattr(self._servers[request["server"]], command)()
        except BedUnavailable as error:
            return {"error": str(error)}
        return {"done": command}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True, help="made by the caller, removed")
    parser.add_argument("--server", action="append", required=True, type=parse_spec)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    servers = [
        Server(spec, home=given.folder / spec.name, java_options=QUICK_BOOT)
        for spec in given.server
    ]
    try:
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(str(socket_in(given.folder)))
            door.listen()
            for server in servers:
                server.launch()
            for server in servers:
                server.await_ready()
            _say("ready")
            Supervisor(servers, door).serve()
    except BedUnavailable as error:
        _say(str(error))
        return 1
    finally:
        for server in servers:
            server.kill()  # the data are not read again
        shutil.rmtree(given.folder, ignore_errors=True)
    return 0


def _say(line: str) -> None:
    sys.stdout.write(line.replace("\n", " ") + "\n")
    sys.stdout.flush()


def socket_in(folder: Path) -> Path:
    return folder / "door"


def spec_text(spec: Spec) -> str:
    return ",".join((spec.name, spec.release.version, spec.database, "apoc" * spec.apoc))


def parse_spec(text: str) -> Spec:
    name, version, database, apoc = text.split(",")
    return Spec(name=name, release=RELEASES[version], database=database, apoc=bool(apoc))


if __name__ == "__main__":
    sys.exit(main())
