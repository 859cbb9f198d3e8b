"""How a server is emptied between tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import neo4j

DELETE_NODES = """
MATCH (n)
CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF 10000 ROWS
"""

PATIENCE = 900
"""Seconds; a million nodes take longer to delete than the servers let a transaction run."""

FIND_VECTOR_INDEXES = """
SHOW INDEXES YIELD name, type WHERE type = 'VECTOR' RETURN name
"""

FIND_INDEXES = """
SHOW INDEXES YIELD name, type, owningConstraint
WHERE owningConstraint IS NULL AND type <> 'LOOKUP' RETURN name
"""

FIND_CONSTRAINTS = "SHOW CONSTRAINTS YIELD name RETURN name"

DROP_INDEX = "DROP INDEX $name IF EXISTS"

DROP_CONSTRAINT = "DROP CONSTRAINT $name IF EXISTS"


def rows(
    session: neo4j.Session, statement: str, parameters: Mapping[str, object]
) -> list[dict[str, Any]]:
    return session.run(neo4j.Query(statement, timeout=PATIENCE), dict(parameters)).data()


def delete_nodes(session: neo4j.Session) -> None:
    session.run(neo4j.Query(DELETE_NODES, timeout=PATIENCE)).consume()


def drop_vector_indexes(session: neo4j.Session) -> None:
    """They belong to models, which are data; a left one would hide one of another dimension."""
    for row in rows(session, FIND_VECTOR_INDEXES, {}):
        session.run(DROP_INDEX, name=row["name"]).consume()


def drop_schema(session: neo4j.Session) -> None:
    for row in rows(session, FIND_CONSTRAINTS, {}):
        session.run(DROP_CONSTRAINT, name=row["name"]).consume()
    for row in rows(session, FIND_INDEXES, {}):
        session.run(DROP_INDEX, name=row["name"]).consume()
