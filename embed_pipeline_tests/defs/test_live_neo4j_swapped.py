"""The system alive on two real Neo4j servers that crash and come back: it does so too."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
import pytest
from dagster._core.scheduler.instigation import InstigatorTick, TickStatus

from embed_pipeline.domain.job import EntityUid
from embed_pipeline.stores import neo4j
from embed_pipeline_tests.acceptance.production import server_variables
from embed_pipeline_tests.defs.conftest import Print
from embed_pipeline_tests.defs.dev_server import within
from embed_pipeline_tests.defs.live import Live, live_system
from embed_pipeline_tests.interfaces.command_line import run_program
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores.neo4j_stores import config_of, server_of
from embed_pipeline_tests.stores.test_neo4j_changes import await_trigger

CHARGED = "MATCH (job:EmbedJob) WHERE job.attempts > 0 OR job.status = 'failed' RETURN job.id"
SENSOR = "embed_queue_sensor"
ENTITIES = 40

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
]


@pytest.fixture(scope="module")
def live(
    neo4j_swapped_queue: BedServer,
    neo4j_swapped_graph: BedServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Live]:
    """One system for both tests: it takes longer to start than they take."""
    for server in (neo4j_swapped_queue, neo4j_swapped_graph):
        if not server.can_be_stopped:
            pytest.skip("a server named by the environment is not ours to stop")
    stores = server_variables(neo4j_swapped_queue, neo4j_swapped_graph) | {
        "EMBED_STORE": "neo4j",
        "EMBED_JOB_BATCH_SIZE": "5",
        # Two that fail together would make the next one wait for half a minute.
        "EMBED_MAX_RUNS": "1",
    }
    with live_system(tmp_path_factory.mktemp("live"), **stores) as live, live.dagster():
        yield live


@contextmanager
def crashed(server: BedServer) -> Iterator[None]:
    """It is back when the block ends."""
    server.kill()
    try:
        yield
    finally:
        server.start()


def work_for(live: Live, name: str) -> str:
    """A run holds some of these jobs and waits for its provider, the others wait."""
    live.slow_provider(3)
    before = len(live.provider.requests)
    live.create(f"{name} {number}" for number in range(ENTITIES))
    within(60, lambda: len(live.provider.requests) > before, live.explain)
    return live.wait_until_a_run_holds_jobs()


def await_tick(live: Live, status: TickStatus, reason: str = "") -> InstigatorTick:
    seen: list[InstigatorTick | None] = []

    def is_there() -> bool:
        seen.append(tick := live.last_tick(SENSOR))
        return tick is not None and tick.status is status and reason in (tick.skip_reason or "")

    within(60, is_there, lambda: str(seen[-1:]))
    assert seen[-1] is not None
    return seen[-1]


def place(server: BedServer) -> str:
    return f"The Neo4j database {server.database} at {server.uri}"


def seconds_until_embedded_again(live: Live, graph: BedServer, name: str, text: str) -> float:
    """Another program changes a text by plain Cypher; it knows nothing of jobs or markers."""
    (row,) = graph.run(
        "MATCH (e:Entity {name: $name}) SET e.observations = [$text] RETURN e.uid AS uid",
        name=name,
        text=text,
    )
    begun, uid = time.monotonic(), EntityUid(row["uid"])
    entity = live.services.graph.get_entity(uid)
    assert entity is not None

    def is_current() -> bool:
        found = live.services.graph.embedded_versions([uid], model=live.services.model)
        return found.get(uid) == entity.version

    within(90, is_current, live.explain)
    return time.monotonic() - begun


@pytest.fixture
def triggered(live: Live, neo4j_swapped_graph: BedServer) -> Iterator[BedServer]:
    config = config_of(server_of(neo4j_swapped_graph), server_of(neo4j_swapped_graph))
    neo4j.set_trigger(config, install=True)
    await_trigger(neo4j_swapped_graph, installed=True)
    yield neo4j_swapped_graph
    neo4j.set_trigger(config, install=False)
    await_trigger(neo4j_swapped_graph, installed=False)


def test_text_that_another_program_changes_is_embedded_again_by_the_trigger(
    live: Live, triggered: BedServer, print_line: Print
) -> None:
    """Neither the schedule of discovery nor that of the audit comes round meanwhile."""
    live.create(["changed by another program"])
    live.wait_until_all_is_embedded(120)

    took = seconds_until_embedded_again(live, triggered, "changed by another program", "anew")

    print_line(f"a changed text was embedded again after {took:.1f} s")


@pytest.mark.scale
def test_thirty_changes_of_another_program_are_embedded_within_twenty_seconds(
    live: Live, triggered: BedServer, print_line: Print
) -> None:
    live.create(f"changed {number}" for number in range(30))
    live.wait_until_all_is_embedded(120)

    took = sorted(
        seconds_until_embedded_again(live, triggered, f"changed {number}", f"text {number}")
        for number in range(30)
    )

    print_line(f"30 changes: median {took[15]:.1f} s, p95 {took[28]:.1f} s, longest {took[29]:.1f}")
    assert took[28] <= 20


def test_queue_that_crashes_makes_red_ticks_of_one_sentence_until_it_is_back(
    live: Live, neo4j_swapped_queue: BedServer, print_line: Print
) -> None:
    work_for(live, "before the crash of the queue")
    with crashed(neo4j_swapped_queue):
        red = await_tick(live, TickStatus.FAILURE)
        health = run_program(
            "health", env=live.homes.environment(**live.variables), cwd=live.homes.dagster
        )
    back = time.monotonic()
    live.slow_provider(0)
    live.create(["after the crash of the queue"])

    live.wait_until_all_is_embedded(120)

    print_line(f"Neo4j queue: all embedded {time.monotonic() - back:.1f} s after it was back")
    assert red.error is not None
    assert red.error.message.endswith(
        f"SensorCheckFailed: {place(neo4j_swapped_queue)} cannot be reached.\n"
    )
    assert (red.error.cause, red.error.context) == (None, None), "no stacks but Dagster's own"
    assert "CRITICAL (queue unreachable)" in health.out
    assert neo4j_swapped_queue.run(CHARGED) == []
    assert live.services.jobs.health.report().status == "HEALTHY"


def test_graph_that_crashes_opens_its_breaker_and_fails_no_job(
    live: Live, neo4j_swapped_queue: BedServer, neo4j_swapped_graph: BedServer, print_line: Print
) -> None:
    begun, requests = live.services.jobs.now(), len(live.provider.requests)
    run = work_for(live, "before the crash of the graph")
    with crashed(neo4j_swapped_graph):
        skipped = await_tick(live, TickStatus.SKIPPED, "graph does not answer")
        during = live.services.jobs.health.report()
        waiting = live.services.jobs.get_queue_status()
    back = time.monotonic()
    live.slow_provider(0)

    live.wait_until_all_is_embedded(120)
    within(30, lambda: live.status_of(run) is dg.DagsterRunStatus.SUCCESS, live.explain)

    print_line(f"Neo4j graph: all embedded {time.monotonic() - back:.1f} s after it was back")
    events = live.services.jobs.events.recent(limit=500)
    assert f"({place(neo4j_swapped_graph)} cannot be reached.)" in str(skipped.skip_reason)
    assert during.status == "DEGRADED"
    assert during.reasons == (
        f"breaker of graph is open: {place(neo4j_swapped_graph)} cannot be reached.",
    )
    assert (waiting.pending + waiting.processing > 0, waiting.failed) == (True, 0)
    assert {"breaker.opened", "breaker.closed", "health.recovered"} <= {
        event.kind for event in events if event.at >= begun
    }
    assert neo4j_swapped_queue.run(CHARGED) == []
    assert live.services.jobs.health.report().status == "HEALTHY"
    paid = sum(request.inputs for request in live.provider.requests[requests:])
    assert paid == ENTITIES, "what was paid for while the graph was down is kept"
