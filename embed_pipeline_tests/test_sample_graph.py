"""The sample graph: loads clean, and its searches find what a person expects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from embed_pipeline import wiring
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.settings import load_settings
from embed_pipeline.usecases.files.formats import BadRow
from embed_pipeline.usecases.files.load import load_file
from embed_pipeline.usecases.insight.search import search
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.run import drain
from embed_pipeline_tests.contracts.entity_store.scene import coverage_of
from embed_pipeline_tests.usecases.files import rows_of

EXAMPLES = Path(__file__).parents[1] / "examples"
SAMPLE = EXAMPLES / "sample_graph.csv"
SEARCHES: list[dict[str, str]] = json.loads((EXAMPLES / "searches.json").read_text())


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    home = tmp_path_factory.mktemp("sample")
    services = wiring.open_services(load_settings({"EMBED_ENV": "local", "EMBED_HOME": str(home)}))
    with closing(services.jobs), closing(services.graph), closing(services.provider):
        load_file(services, SAMPLE)
        drain(services, owner="test")
        yield services


def test_sample_graph_has_no_bad_row_and_no_namesakes() -> None:
    rows = list(rows_of(SAMPLE))

    bad = [row for row in rows if isinstance(row, BadRow)]
    entities = [row for row in rows if isinstance(row, NewEntity)]
    assert bad == []
    assert 180 <= len(entities) <= 220
    assert len({entity.identity for entity in entities}) == len(entities)
    assert len({entity.name for entity in entities}) == len(entities)
    assert all(entity.properties["observations"] for entity in entities)


def test_sample_graph_is_embedded_whole_by_the_offline_model(services: Services) -> None:
    coverage = coverage_of(services.graph, model=services.model)

    assert coverage.percent == 100
    assert services.provider.name == "local"


def test_at_least_three_searches_are_shown() -> None:
    assert len(SEARCHES) >= 3


@pytest.mark.parametrize("case", SEARCHES, ids=[case["expected"] for case in SEARCHES])
def test_search_finds_the_expected_entity_among_the_first_three(
    services: Services, case: dict[str, str]
) -> None:
    result = search(services, case["query"], limit=3)

    assert case["expected"] in [hit.entity.name for hit in result.hits]
