"""docs/scenarios.md tells the truth: every scenario has a row, every test named there exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "scenarios.md"

SCENARIOS = """
Active jobs not recovered prematurely
Background recovery runs periodically
Batch release of unleased jobs
Batch size control prevents overload
Consecutive failures trigger health warning
Critical errors halt job processing
Default batch limit prevents accidents
Embedding jobs scheduled after entity creation
Empty release is safe no-op
Entity created without blocking on embeddings
Error context includes operation state
Expired processing jobs reset to pending
Failed jobs track error classification
Fast transaction prevents lock contention
Health status queryable for monitoring
Heartbeat maintains locks during rate limit pause
Independent maintenance and recovery
Job processing error logs include full context
Job timeout releases lock for crashed workers
Long-running job extends lock via heartbeat
Mode 1 - Force specific entity embedding
Mode 2 - Batch repair discovers missing embeddings
Mode detection based on parameters
No duplicate embedding generation
Only valid entities returned
Permanent errors fail fast without retry
Query entities without embeddings
Queue isolation protects graph performance
Rate limit does not interfere with retry
Rate limit enforcement
Rate limit enforcement with job release
Recovery on worker startup
Release ignores jobs not owned by caller
Retention configuration validated
Retry policy respects max attempts
Safe entity discovery replaces unsafe openNodes
Stale job recovery prevents permanent freeze
Successful job resets consecutive failure counter
Transient errors trigger retry with exponential backoff
TTL cleanup via APOC
Worker fails to heartbeat within interval
""".strip().splitlines()

REQUIREMENTS_OF_THE_REAPER = 10


def rows() -> dict[str, str]:
    """Scenario to the cell that names its tests."""
    cells = re.findall(r"^\| (.+?) \| (.+) \|$", PAGE.read_text(), flags=re.MULTILINE)
    return {name: tests for name, tests in cells if name not in ("Scenario", "Requirement")}


def existing_tests() -> set[str]:
    return {
        node.name
        for path in TESTS.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_every_scenario_has_a_row() -> None:
    assert [title for title in SCENARIOS if title not in rows()] == []


def test_every_requirement_of_the_reaper_has_a_row() -> None:
    numbers = {int(name.split()[0]) for name in rows() if name[0].isdigit()}

    assert numbers == set(range(1, REQUIREMENTS_OF_THE_REAPER + 1))


def test_every_row_names_a_test_or_says_not_yet() -> None:
    silent = [
        name for name, cell in rows().items() if "`test_" not in cell and "not yet" not in cell
    ]

    assert silent == []


def test_every_test_that_is_named_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text()))

    assert named - existing_tests() == set()
