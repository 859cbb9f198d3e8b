"""What the doctor makes of a server's version, however the server spells it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from embed_pipeline.domain.check import Condition
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase
from embed_pipeline.stores.neo4j.setup import doctor
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores.neo4j_queue import connect


def no_schema_to_check(_: Neo4jDatabase) -> None:
    """Only the version is checked."""


@pytest.mark.parametrize(
    ("version", "condition"),
    [
        ("5.26.29", Condition.OK),
        ("5.27-aura", Condition.OK),
        ("2026.09.0", Condition.OK),
        ("5.25.1", Condition.BROKEN),
        ("4.4-aura", Condition.BROKEN),
        ("nightly", Condition.NOTE),
        ("5", Condition.NOTE),
    ],
)
def test_version_is_read_from_its_leading_numbers(
    neo4j_queue: BedServer,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    condition: Condition,
) -> None:
    reported = f"RETURN '{version}' AS version, 'enterprise' AS edition"
    monkeypatch.setattr(doctor, "COMPONENTS", reported)
    database = connect(neo4j_queue.address)

    first, *others = doctor.diagnose_database(
        "queue", database, check_schema=no_schema_to_check, now=lambda: datetime.now(UTC)
    )

    database.close()
    assert (first.part, first.condition) == ("queue", condition)
    assert f"Neo4j {version} enterprise" in first.message
    assert [check.part for check in others] == ["clock", "queue schema", "APOC"]
