"""Fixtures for tests that need real Neo4j servers.

    def test_…(neo4j_queue: BedServer, neo4j_graph: BedServer) -> None

- One pair of servers per test session, also under xdist: the first worker that needs them starts
  them, the others join, and they end with the last worker (`supervisor`).
- Community has one database per server, so workers cannot have one each. A module takes its
  servers for itself, by a file lock, for as long as its tests run: all that it needs at once and
  in one order, so that no two modules wait for each other. Best with `--dist loadfile`, which
  keeps a module on one worker; with the default its tests wait for each other on several.
- A module finds its servers without data. Constraints and indexes of modules before it may still
  be there, if they are our own; `wipe_schema` drops them. Between tests it wipes them itself.
- EMBED_TEST_QUEUE_URI, …_USER, …_PASSWORD, …_DATABASE (and EMBED_TEST_GRAPH_…) name a server to
  use instead. It has to be empty at the start and is emptied again and again.
- `neo4j_swapped_queue` and `neo4j_swapped_graph` are a second pair with the versions exchanged (the
  queue without APOC, the graph on 5.26), for the contracts; started only for a module that asks.
- EMBED_TEST_NEO4J_PAIR=swapped exchanges the versions for everything, and there is no second pair;
  nor is there one beside servers that the environment names.
- Where no server can be had the tests are skipped with the reason; EMBED_TEST_REQUIRE_NEO4J=1
  makes that a failure.

The conftest of all tests names this module among its plugins.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from embed_pipeline_tests.neo4j_bed.client import BedServer, take_hold
from embed_pipeline_tests.neo4j_bed.named import named_address, refuse_unless_empty
from embed_pipeline_tests.neo4j_bed.probe import connect
from embed_pipeline_tests.neo4j_bed.recipe import QUICK_BOOT
from embed_pipeline_tests.neo4j_bed.releases import PAIR, SWAPPED_PAIR, BedUnavailable, Spec
from embed_pipeline_tests.neo4j_bed.server import Address, Server

Servers = Mapping[str, BedServer]

FIXTURES = {"neo4j_queue": "queue", "neo4j_graph": "graph"}
SWAPPED_FIXTURES = {"neo4j_swapped_queue": "queue", "neo4j_swapped_graph": "graph"}

UNAVAILABLE = "No Neo4j server"

NOT_ASKED = "ask for a server by an argument: getfixturevalue comes too late to take turns"


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for what was not tested, however many tests that are."""
    skipped = [
        reason
        for report in terminalreporter.stats.get("skipped", [])
        if (reason := str(report.longrepr[2])).startswith(f"Skipped: {UNAVAILABLE}")
    ]
    if skipped:
        reason = skipped[0].removeprefix("Skipped: ")
        terminalreporter.write_line(f"NOT TESTED: {len(skipped)} tests on Neo4j. {reason}")


@pytest.fixture(scope="session")
def neo4j_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Both servers by name. Use `neo4j_queue` and `neo4j_graph`, which take turns."""
    swapped = os.environ.get("EMBED_TEST_NEO4J_PAIR") == "swapped"
    with _running(SWAPPED_PAIR if swapped else PAIR, tmp_path_factory, "neo4j_bed") as servers:
        yield servers


@pytest.fixture(scope="session")
def neo4j_swapped_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    if os.environ.get("EMBED_TEST_NEO4J_PAIR") == "swapped":
        pytest.skip("The versions are exchanged for all tests.")
    if any(named_address(spec) for spec in PAIR):
        pytest.skip("The environment names the servers, so no others are started.")
    with _running(SWAPPED_PAIR, tmp_path_factory, "neo4j_bed_swapped") as servers:
        yield servers


@pytest.fixture(scope="module")
def neo4j_turn(
    request: pytest.FixtureRequest,
    neo4j_servers: Servers,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Collection[str]]:
    """All servers that this module's tests ask for are its own until its last test."""
    needed = _needed(request, FIXTURES)
    with _alone_on(neo4j_servers, needed, _shared_folder(tmp_path_factory), "neo4j"):
        yield needed


@pytest.fixture(scope="module")
def neo4j_swapped_turn(
    request: pytest.FixtureRequest,
    neo4j_swapped_servers: Servers,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Collection[str]]:
    needed = _needed(request, SWAPPED_FIXTURES)
    with _alone_on(
        neo4j_swapped_servers, needed, _shared_folder(tmp_path_factory), "neo4j_swapped"
    ):
        yield needed


@pytest.fixture(scope="module")
def neo4j_queue(neo4j_servers: Servers, neo4j_turn: Collection[str]) -> BedServer:
    assert "queue" in neo4j_turn, NOT_ASKED
    return neo4j_servers["queue"]


@pytest.fixture(scope="module")
def neo4j_graph(neo4j_servers: Servers, neo4j_turn: Collection[str]) -> BedServer:
    assert "graph" in neo4j_turn, NOT_ASKED
    return neo4j_servers["graph"]


@pytest.fixture(scope="module")
def neo4j_swapped_queue(
    neo4j_swapped_servers: Servers, neo4j_swapped_turn: Collection[str]
) -> BedServer:
    assert "queue" in neo4j_swapped_turn, NOT_ASKED
    return neo4j_swapped_servers["queue"]


@pytest.fixture(scope="module")
def neo4j_swapped_graph(
    neo4j_swapped_servers: Servers, neo4j_swapped_turn: Collection[str]
) -> BedServer:
    assert "graph" in neo4j_swapped_turn, NOT_ASKED
    return neo4j_swapped_servers["graph"]


@contextmanager
def _running(
    specs: Sequence[Spec], tmp_path_factory: pytest.TempPathFactory, meeting_point: str
) -> Iterator[Servers]:
    with ExitStack() as stack:
        try:
            servers = _servers(specs, _shared_folder(tmp_path_factory), meeting_point, stack)
        except BedUnavailable as error:
            _skip(error)
        yield servers


@contextmanager
def own_server(spec: Spec, home: Path, settings: Mapping[str, str]) -> Iterator[Address]:
    """A server for one test, with settings that the others cannot have."""
    if named_address(spec):
        pytest.skip("The environment names the servers, so no others are started.")
    server = Server(spec, home=home, java_options=QUICK_BOOT, settings=settings)
    try:
        try:
            server.start()
        except BedUnavailable as error:
            _skip(error)
        yield server.address
    finally:
        server.stop()


def _skip(error: BedUnavailable) -> NoReturn:
    if os.environ.get("EMBED_TEST_REQUIRE_NEO4J") == "1":
        pytest.fail(f"{UNAVAILABLE}: {error}", pytrace=False)
    pytest.skip(f"{UNAVAILABLE}: {error}")


@contextmanager
def _alone_on(
    servers: Servers, needed: Collection[str], shared: Path, prefix: str
) -> Iterator[None]:
    with ExitStack() as stack:
        for name in needed:
            path = shared / f"{prefix}_{name}.turn"
            fcntl.flock(stack.enter_context(path.open("a")), fcntl.LOCK_EX)
        for name in needed:
            servers[name].empty()
            stack.callback(servers[name].kept.close)
        yield


def _needed(request: pytest.FixtureRequest, fixtures: Mapping[str, str]) -> list[str]:
    """The servers that the module's tests ask for, in the order in which all modules lock them."""
    items: Iterable[pytest.Item] = request.session.items
    mine = (item for item in items if item.getparent(pytest.Module) is request.node)
    asked = {name for item in mine for name in getattr(item, "fixturenames", ())}
    return sorted(server for fixture, server in fixtures.items() if fixture in asked)


def _shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The session's folder; under xdist every worker has its own inside it."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


def _servers(specs: Sequence[Spec], shared: Path, meeting_point: str, stack: ExitStack) -> Servers:
    named = {spec.name: address for spec in specs if (address := named_address(spec))}
    servers = {}
    for name, address in named.items():
        driver = stack.enter_context(connect(address))
        note = shared / f"{meeting_point}_{name}.schema"
        servers[name] = BedServer(address=address, driver=driver, schema_note=note, name=name)
        refuse_unless_empty(servers[name], note=shared / f"neo4j_{name}.seen")
        stack.callback(servers[name].wipe_schema)
    own = [spec for spec in specs if spec.name not in named]
    if own:
        hold = take_hold(own, meeting_point=shared / meeting_point)
        stack.callback(hold.close)
        for name, values in hold.ask(command="addresses").items():
            address = Address(**values)
            driver = stack.enter_context(connect(address))
            note = shared / f"{meeting_point}_{name}.schema"
            servers[name] = BedServer(
                address=address, driver=driver, schema_note=note, name=name, hold=hold
            )
    return servers
