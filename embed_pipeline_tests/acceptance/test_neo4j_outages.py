"""A real worker process in mid-run, and a Neo4j server that ends and comes back."""

from __future__ import annotations

import subprocess
from datetime import timedelta

import pytest

from embed_pipeline.domain.control import SwitchState
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.usecases.entities.create import create_entities
from embed_pipeline_tests.acceptance.production import EMBED_JOB, PATIENCE, RUN, Production
from embed_pipeline_tests.contracts.entity_store.scene import coverage_of
from embed_pipeline_tests.neo4j_bed.client import BedServer

ENTITIES, BATCH = 400, 20
CHARGED = "MATCH (job:EmbedJob) WHERE job.attempts > 0 OR job.status = 'failed' RETURN job.id"

pytestmark = pytest.mark.slow


@pytest.fixture
def working(production: Production) -> Production:
    """Something to do for seconds, under leases that end in seconds."""
    for server in (production.queue, production.graph):
        if not server.can_be_stopped:
            pytest.skip("a server named by the environment is not ours to stop")
    production.variables.update(
        EMBED_JOB_BATCH_SIZE=str(BATCH),
        EMBED_JOB_LOCK_DURATION="3000",
        EMBED_JOB_HEARTBEAT_INTERVAL="500",
    )
    production.openai.latency = timedelta(milliseconds=100)
    with production.services() as services:
        entities = [NewEntity(name=f"entity {number}") for number in range(ENTITIES)]
        create_entities(services.jobs, services.graph, entities, model=services.model)
    return production


def assert_all_embedded_and_nobody_charged(production: Production) -> None:
    with production.services() as services:
        coverage = coverage_of(services.graph, model=services.model)
        status = services.jobs.get_queue_status()
        switch = services.jobs.switch.read()
    assert (coverage.embedded, coverage.stale) == (ENTITIES, 0)
    assert (status.completed, status.total) == (ENTITIES, ENTITIES)
    assert production.queue.run(CHARGED) == []
    assert switch.state is SwitchState.RUNNING


def test_graph_that_is_stopped_in_mid_run_is_waited_for(working: Production) -> None:
    with working.started(*RUN) as worker:
        working.await_requests(3)
        working.graph.stop()
        working.graph.start()
        _, err = worker.communicate(timeout=PATIENCE)

    assert worker.returncode == 0, err
    assert_all_embedded_and_nobody_charged(working)
    paid = sum(request.inputs for request in working.openai.requests)
    assert paid == ENTITIES, "what was paid for while the graph was down is kept"


def test_queue_killed_in_mid_run_ends_the_run_with_a_sentence_and_the_next_run_finishes(
    working: Production,
) -> None:
    with working.started(*RUN) as worker:
        working.await_requests(3)
        working.queue.kill()
        try:
            _, err = worker.communicate(timeout=PATIENCE)
        finally:
            working.queue.start()

    assert worker.returncode == 1
    assert said(err) == [f"{place(working.queue)} cannot be reached."]
    again = working.command("run")
    assert again.returncode == 0, again.stderr
    assert_all_embedded_and_nobody_charged(working)


def test_graph_killed_in_mid_run_of_embed_job_is_waited_for(working: Production) -> None:
    ended = embed_job_while_killed(working, working.graph)

    assert ended.returncode == 0, ended.stdout
    assert_the_next_embed_job_finishes(working)
    paid = sum(request.inputs for request in working.openai.requests)
    assert paid == ENTITIES, "what was paid for while the graph was down is kept"


def test_queue_killed_in_mid_run_of_embed_job_loses_nothing(working: Production) -> None:
    """Whether the run outlasts it depends on how long the server takes; the next one finishes."""
    ended = embed_job_while_killed(working, working.queue)

    if ended.returncode != 0:
        assert f"Failure: {place(working.queue)}" in ended.stdout + ended.stderr
    assert_the_next_embed_job_finishes(working)


def embed_job_while_killed(
    working: Production, server: BedServer
) -> subprocess.CompletedProcess[str]:
    """Dagster's own command, under which a server dies and is started again."""
    with working.started(*EMBED_JOB) as run:
        working.await_requests(3)
        server.kill()
        assert len(working.openai.requests) < ENTITIES / BATCH, "too late to be in mid-run"
        server.start()
        out, err = run.communicate(timeout=PATIENCE)
    return subprocess.CompletedProcess(EMBED_JOB, run.returncode, out, err)


def assert_the_next_embed_job_finishes(working: Production) -> None:
    with working.started(*EMBED_JOB) as run:
        out, err = run.communicate(timeout=PATIENCE)
    assert run.returncode == 0, out + err
    assert_all_embedded_and_nobody_charged(working)


def said(err: str) -> list[str]:
    """What is for people; the rest is the log."""
    return [line for line in err.splitlines() if not line.startswith("{")]


def place(server: BedServer) -> str:
    return f"The Neo4j database {server.database} at {server.uri}"


def test_wrong_password_of_the_graph_halts_the_queue_and_charges_nobody(
    working: Production,
) -> None:
    ended = working.command("run", EMBED_GRAPH_PASSWORD="not-the-password")

    assert ended.returncode == 1
    assert "refuses the credentials" in ended.stdout + ended.stderr
    assert "not-the-password" not in ended.stdout + ended.stderr
    assert working.openai.requests == []
    with working.services() as services:
        assert services.jobs.switch.read().state is SwitchState.HALTED
        assert services.jobs.get_queue_status().pending == ENTITIES
    assert working.queue.run(CHARGED) == []


def test_wrong_password_of_the_queue_ends_the_run_with_a_sentence(working: Production) -> None:
    ended = working.command("run", EMBED_QUEUE_PASSWORD="not-the-password")

    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == f"{place(working.queue)} refuses the credentials."
    assert "not-the-password" not in ended.stderr
