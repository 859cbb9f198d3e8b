"""A real client, a real server program, two real Neo4j servers."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path

from embed_pipeline import wiring
from embed_pipeline.settings import load_settings
from embed_pipeline_tests.interfaces import mcp_story
from embed_pipeline_tests.interfaces.mcp_client import documented_program
from embed_pipeline_tests.neo4j_bed.client import BedServer


def variables(queue: BedServer, graph: BedServer) -> dict[str, str]:
    stores = {"QUEUE": queue, "GRAPH": graph}
    return {"EMBED_STORE": "neo4j"} | {
        f"EMBED_{store}_{name}": getattr(server, name.lower())
        for store, server in stores.items()
        for name in ("URI", "USER", "PASSWORD", "DATABASE")
    }


def test_both_modes_of_force_work_in_a_real_session_on_neo4j(
    tmp_path: Path, neo4j_queue: BedServer, neo4j_graph: BedServer
) -> None:
    program = documented_program(tmp_path / "home", **variables(neo4j_queue, neo4j_graph))
    settings = load_settings(program.env)
    wiring.initialise_stores(settings)
    services = wiring.open_services(settings)

    with ExitStack() as stack:
        for part in (services.jobs, services.graph):
            stack.enter_context(closing(part))
        mcp_story.tell(program, services)
