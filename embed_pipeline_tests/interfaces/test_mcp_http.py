"""`embed-pipeline mcp --http`: who is let in, what is refused, and how it ends."""

from __future__ import annotations

import json
import re
import shutil
import signal
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from mcp import MCPError
from mcp.types import INVALID_REQUEST

from embed_pipeline.errors import RequestError
from embed_pipeline.interfaces.mcp.http import MOST_BYTES, http_options
from embed_pipeline.interfaces.mcp.tools import TOOLS
from embed_pipeline_tests.interfaces.command_line import SCRIPT, environment, run_program
from embed_pipeline_tests.interfaces.mcp_client import talk_to_address

TOKEN = "a token of the tests, long enough".replace(" ", "-")
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpServer:
    url: str
    process: subprocess.Popen[str]

    def stop(self, number: signal.Signals) -> tuple[int, str, str]:
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


@contextmanager
def started(*words: str, home: Path) -> Iterator[HttpServer]:
    env = environment(home, EMBED_MCP_TOKEN=TOKEN)
    with subprocess.Popen(
        [SCRIPT, "mcp", "--http", "127.0.0.1:0", *words],
        env=env,
        cwd=home.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            address = re.search(r"https?://\S+/mcp", first)
            assert address, first or (process.stderr and process.stderr.read())
            yield HttpServer(url=address.group(), process=process)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    with started(home=tmp_path_factory.mktemp("http") / "home") as running:
        yield running


def post(
    url: str, body: bytes = json.dumps(PING).encode(), *, token: str | None = TOKEN, **more: str
) -> tuple[int, Message]:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(url, data=body, headers=headers | more, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_client_with_the_token_uses_tools_and_resources(server: HttpServer, mode: str) -> None:
    with talk_to_address(server.url, token=TOKEN, mode=mode) as agent:
        tools = agent.tools()
        made = agent.call("create_entities", entities=[{"name": "Zeer pot", "key": f"z/{mode}"}])
        changed = agent.call(
            "upsert_entities",
            entities=[{"name": "Zeer pot", "key": f"z/{mode}", "observations": ["It cools."]}],
        )
        entity = agent.read(f"embed-pipeline://entity/z%2F{mode}")
        unconfirmed = agent.call("delete_entities", keys=[f"z/{mode}"], confirm=False)
        deleted = agent.call("delete_entities", keys=[f"z/{mode}", "nobody"], confirm=True)
        after = agent.read(f"embed-pipeline://entity/z%2F{mode}")
        status, coverage = (agent.read(f"embed-pipeline://{n}") for n in ("status", "coverage"))
        resources = agent.resources()
        with pytest.raises(MCPError, match="There is no resource"):
            agent.read("embed-pipeline://entity/nobody")

    assert list(tools) == list(TOOLS)
    assert made.facts["created"] == 1
    assert (changed.facts["changed"], changed.facts["entities"][0]["existing"]) == (1, True)
    assert (entity["text"], entity["valid"]) == ("Zeer pot\nIt cools.", True)
    assert (unconfirmed.is_error, unconfirmed.sentence) == (
        True,
        "Nothing was deleted: confirm must be true.",
    )
    assert deleted.facts["deleted"] == [f"z/{mode}"]
    assert deleted.facts["not_found"] == ["nobody"]
    assert after["valid"] is False
    assert status["model"] == coverage["model"] == "mock/mock@64"
    assert resources == [
        "embed-pipeline://status",
        "embed-pipeline://coverage",
        "embed-pipeline://entity/{key}",
    ]


@pytest.mark.parametrize(
    "token", [None, "", TOKEN + "x", TOKEN[:-1], TOKEN.upper()], ids=lambda token: str(token)
)
def test_request_without_the_token_is_refused(server: HttpServer, token: str | None) -> None:
    status, headers = post(server.url, token=token)

    assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")


def test_request_whose_id_is_no_id_is_answered(server: HttpServer) -> None:
    request = urllib.request.Request(
        server.url,
        data=b'{"jsonrpc": "2.0", "id": null, "method": "tools/list"}',
        headers={"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"},
    )

    with pytest.raises(urllib.error.HTTPError, match="400") as refused:
        urllib.request.urlopen(request, timeout=60)

    with refused.value as answer:
        assert json.load(answer)["error"]["code"] == INVALID_REQUEST


def test_only_posts_are_served(server: HttpServer) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "text/event-stream"}

    with pytest.raises(urllib.error.HTTPError, match="405") as refused:
        urllib.request.urlopen(urllib.request.Request(server.url, headers=headers), timeout=60)

    refused.value.close()


def test_request_for_another_host_or_from_another_page_is_refused(server: HttpServer) -> None:
    port = server.url.split(":")[2].partition("/")[0]

    assert post(server.url, Host="evil.example")[0] == 421
    assert post(server.url, Host=f"127.0.0.1.evil.example:{port}")[0] == 421
    assert post(server.url, Origin="https://evil.example")[0] == 403
    assert post(server.url, Origin="null")[0] == 403
    assert post(server.url, Host=f"localhost:{port}", Origin="http://localhost:5173")[0] == 200


def test_body_that_is_too_large_is_refused(server: HttpServer) -> None:
    address = urlsplit(server.url)
    assert address.hostname
    with closing(HTTPConnection(address.hostname, address.port, timeout=60)) as connection:
        connection.putrequest("POST", address.path)
        connection.putheader("Authorization", f"Bearer {TOKEN}")
        connection.putheader("Content-Length", str(MOST_BYTES + 1))
        connection.endheaders()  # refused by its length, before any of it is read

        assert connection.getresponse().status == 413


def test_too_many_requests_are_refused_read_only_and_sigterm_ends_it(tmp_path: Path) -> None:
    with started("--read-only", "--rate", "20", home=tmp_path / "home") as server:
        with talk_to_address(server.url, token=TOKEN) as agent:
            tools = agent.tools()
            with pytest.raises(MCPError, match="No tool 'create_entities'"):
                agent.call("create_entities", entities=[{"name": "a"}])
        answers = [post(server.url) for _ in range(25)]
        refused = post(server.url, token="wrong")[0]
        ended = server.stop(signal.SIGTERM)

    assert list(tools) == [name for name, tool in TOOLS.items() if not tool.changes]
    assert answers[0][0] == 200
    assert (answers[-1][0], refused) == (429, 401)
    assert 1 <= int(answers[-1][1]["Retry-After"]) <= 60
    assert ended == (0, "Stopped.\n", "")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl for a certificate")
def test_tls_and_ctrl_c_though_a_client_is_connected(tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    make = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 "
        f"-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 -out {cert} -keyout {key}"
    )
    subprocess.run(make.split(), check=True, capture_output=True)
    trust = ssl.create_default_context(cafile=cert)
    with (
        started("--tls-cert", str(cert), "--tls-key", str(key), home=tmp_path / "home") as server,
        talk_to_address(server.url, token=TOKEN, mode="legacy", verify=trust) as agent,
    ):
        agent.call("get_health_status")
        ended = server.stop(signal.SIGINT)

    assert ended == (0, "Stopped.\n", "")
    assert not list((tmp_path / "home").glob("*-wal")), "the stores are closed"


def test_without_a_token_it_does_not_start(tmp_path: Path) -> None:
    words = ("mcp", "--http", "127.0.0.1:0")
    without = run_program(*words, env=environment(tmp_path), cwd=tmp_path)
    short = run_program(*words, env=environment(tmp_path, EMBED_MCP_TOKEN="short"), cwd=tmp_path)

    assert (without.code, short.code) == (1, 1)
    assert "EMBED_MCP_TOKEN must be set for MCP over HTTP" in without.err
    assert "EMBED_MCP_TOKEN must be at least 16 characters" in short.err
    assert "Traceback" not in without.err + short.err


@pytest.mark.parametrize("address", ["8321", "127.0.0.1", "127.0.0.1:99999", "a b:1", "h:1/x"])
def test_address_has_to_be_host_and_port(address: str) -> None:
    with pytest.raises(RequestError, match="HOST:PORT"):
        http_options(address)


def test_other_machines_need_encryption_and_a_name() -> None:
    with pytest.raises(RequestError, match="would travel unencrypted"):
        http_options("0.0.0.0:8321", hosts=["mcp.example.org"])
    with pytest.raises(RequestError, match="--allow-host"):
        http_options("0.0.0.0:8321", behind_proxy=True)

    options = http_options("0.0.0.0:8321", behind_proxy=True, hosts=["MCP.example.org"])

    assert options.security.allowed_hosts == ["mcp.example.org", "mcp.example.org:*"]
    assert options.security.allowed_origins == [
        "https://mcp.example.org",
        "https://mcp.example.org:*",
    ]


def test_loopback_knows_its_own_names() -> None:
    options = http_options("[::1]:8321", hosts=["mcp.example.org"])

    assert options.address == "http://[::1]:8321/mcp"
    assert {"127.0.0.1:*", "localhost:*", "[::1]:*", "mcp.example.org"} <= set(
        options.security.allowed_hosts
    )


def test_tls_needs_both_files_and_usable_ones(tmp_path: Path) -> None:
    broken = tmp_path / "broken.pem"
    broken.write_text("no certificate")

    with pytest.raises(RequestError, match="together"):
        http_options("127.0.0.1:0", tls_cert=broken)
    with pytest.raises(RequestError, match="TLS files cannot be used"):
        http_options("127.0.0.1:0", tls_cert=broken, tls_key=broken)
    with pytest.raises(RequestError, match="TLS files cannot be used"):
        http_options("127.0.0.1:0", tls_cert=tmp_path / "none", tls_key=broken)
