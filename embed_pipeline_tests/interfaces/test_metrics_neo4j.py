"""The same metrics from two real Neo4j servers."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path

from embed_pipeline import wiring
from embed_pipeline.settings import load_settings
from embed_pipeline_tests.interfaces.command_line import environment
from embed_pipeline_tests.interfaces.conftest import create
from embed_pipeline_tests.interfaces.metrics_scene import exporter, scrape
from embed_pipeline_tests.neo4j_bed.client import BedServer


def test_scrape_of_neo4j_tells_what_the_stores_know(
    tmp_path: Path, neo4j_queue: BedServer, neo4j_graph: BedServer
) -> None:
    servers = {"QUEUE": neo4j_queue, "GRAPH": neo4j_graph}
    where = {
        f"EMBED_{store}_{part.upper()}": getattr(server, part)
        for store, server in servers.items()
        for part in ("uri", "user", "password", "database")
    }
    env = environment(tmp_path, EMBED_STORE="neo4j", EMBEDDING_RATE_LIMIT_TOKENS="20", **where)
    for server in servers.values():
        server.wipe()
    settings = load_settings(env)
    wiring.initialise_stores(settings)
    services = wiring.open_services(settings)
    with ExitStack() as stack:
        for part in (services.jobs, services.graph, services.limiter):
            stack.enter_context(closing(part))
        create(services, "Theremin", "Zeer pot")
        services.jobs.switch.pause("a look")
        running = stack.enter_context(exporter(env=env, cwd=tmp_path))
        scraped = scrape(running.url)
        stored, status = services.jobs.counters.read(), services.jobs.get_queue_status()

    assert scraped["embed_pipeline_up"] == 1
    assert scraped["embed_pipeline_jobs_enqueued_total"] == stored["jobs_enqueued"] == 2
    assert scraped['embed_pipeline_jobs{status="pending"}'] == status.pending == 2
    assert scraped['embed_pipeline_entity_vectors{state="missing"}'] == 2
    assert scraped['embed_pipeline_queue_state{state="paused"}'] == 1
    assert scraped['embed_pipeline_budget_left{unit="requests"}'] == 20
    assert 0 <= scraped["embed_pipeline_oldest_leasable_age_seconds"] < 60
