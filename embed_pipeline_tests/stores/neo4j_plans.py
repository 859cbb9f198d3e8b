"""How a server finds the nodes of each of our statements, as it would plan them now."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

from embed_pipeline.stores.neo4j.queue.cypher import parts as cypher_parts
from embed_pipeline_tests.neo4j_bed.client import BedServer

Ways = dict[str, list[tuple[str, str]]]
"""By statement: the operators that find nodes, and by what."""

INSIDE_APOC = ("DELETE_JOB", "DELETE_EVENT", "DELETE_BY_APOC")
"""The first two are what the third runs, which not every server has."""


def statements_of(*modules: ModuleType) -> dict[str, str]:
    parts = vars(cypher_parts).values()
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if name.isupper() and not name.startswith("_") and isinstance(value, str)
        if value not in parts and name not in INSIDE_APOC
    }


def ways(server: BedServer, statements: dict[str, str]) -> Ways:
    server.run("CALL db.clearQueryCaches()")
    with server.driver.session(database=server.database) as session:
        plans = {
            name: session.run("EXPLAIN " + statement).consume().plan
            for name, statement in statements.items()
        }
    return {
        name: [found for found in _operators(plan) if found[0].endswith(("Seek", "Scan", "Range"))]
        for name, plan in plans.items()
        if plan is not None
    }


def scanned(found: Ways, label: str) -> list[str]:
    """The statements that would look at every node of a label."""
    return [
        name
        for name, operators in found.items()
        if any(kind == "AllNodesScan" for kind, _ in operators)
        or any("LabelScan" in kind and label in by for kind, by in operators)
    ]


def _operators(plan: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield plan["operatorType"].partition("@")[0], plan["args"].get("Details", "")
    for child in plan.get("children", ()):
        yield from _operators(child)
