"""What the doctor checks: servers, versions, clocks, schema, APOC."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from embed_pipeline.domain.check import CheckResult, check_clock, note, ok, problem
from embed_pipeline.errors import (
    ConfigurationError,
    EmbedPipelineError,
    SchemaMissing,
    StoreAccessDenied,
)
from embed_pipeline.stores.encoding import from_ms
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase, Tx
from embed_pipeline.stores.neo4j.driver.pool import release_of

OLDEST = (5, 26)
"""The LTS release with all that the statements use."""

COMPONENTS = """
CALL dbms.components() YIELD name, versions, edition
WHERE name = 'Neo4j Kernel'
RETURN versions[0] AS version, edition
"""

SERVER_TIME = "RETURN datetime.realtime().epochMillis AS now"


def diagnose_database(
    role: str,
    database: Neo4jDatabase,
    *,
    check_schema: Callable[[Neo4jDatabase], None],
    now: Callable[[], datetime],
) -> list[CheckResult]:
    """Each check needs the one before, so the first that fails is the last."""
    place = f"the database {database.database} at {database.uri}"
    variable = f"EMBED_{role.upper()}"
    try:
        server = database.read(lambda tx: tx.one(COMPONENTS))
    except StoreAccessDenied as error:
        return [problem(role, str(error), f"Set {variable}_USER and {variable}_PASSWORD.")]
    except SchemaMissing as error:
        return [problem(role, str(error), f"Make the database, or set {variable}_DATABASE.")]
    except EmbedPipelineError as error:
        return [problem(role, str(error), f"Start the server, or set {variable}_URI.")]
    checks = [_version(role, place, server["version"], server["edition"], database)]
    checks.append(_clock(role, database, now))
    checks.append(_schema(role, database, check_schema))
    if role == "queue":
        checks.append(_apoc(database))
    return checks


def _version(
    role: str, place: str, version: str, edition: str, database: Neo4jDatabase
) -> CheckResult:
    bolt = ".".join(str(number) for number in database.server_info.protocol_version)
    said = f"{place}: Neo4j {version} {edition}, Bolt {bolt}"
    release = release_of(version)
    if release is None:
        return note(role, f"{said}; whether that is 5.26 or newer cannot be read")
    if release < OLDEST:
        return problem(role, said, "Use Neo4j 5.26 or newer.")
    return ok(role, said)


def _clock(role: str, database: Neo4jDatabase, now: Callable[[], datetime]) -> CheckResult:
    def server_time(tx: Tx) -> datetime:
        return from_ms(tx.one(SERVER_TIME)["now"])

    before = now()
    theirs = database.read(server_time)
    return check_clock(role, theirs - before - (now() - before) / 2)


def _schema(
    role: str, database: Neo4jDatabase, check_schema: Callable[[Neo4jDatabase], None]
) -> CheckResult:
    part = f"{role} schema"
    try:
        check_schema(database)
    except ConfigurationError as error:
        return problem(part, str(error), f"Set EMBED_{role.upper()}_DATABASE to one of its own.")
    except EmbedPipelineError as error:
        return problem(part, str(error), "embed-pipeline init")
    return ok(part, "constraints and indexes are there")


def _apoc(database: Neo4jDatabase) -> CheckResult:
    if database.has_apoc:
        return ok("APOC", "apoc.periodic.iterate is there")
    return note("APOC", "not installed: cleanup uses Cypher's own batches, which does as well")
