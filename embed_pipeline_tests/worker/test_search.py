"""Search with the same model and budget; cleanup past retention."""

from __future__ import annotations

import pytest

from embed_pipeline.errors import RateLimited, RequestError
from embed_pipeline.worker.search import search
from embed_pipeline_tests.worker.conftest import Build
from embed_pipeline_tests.worker.scene import World, entity, uid


def test_nearest_entity_is_found_with_the_coverage_of_the_answer(world: World) -> None:
    world.fill(5)
    world.run()
    world.graph.create_entities([entity(5)], model=world.provider.model)

    result = search(world.tools, "entity 3\nnote 3", limit=2)

    assert result.hits[0].entity.uid == uid(3)
    assert result.hits[0].score == pytest.approx(1.0, abs=1e-5)
    assert (len(result.hits), result.searchable, result.entities) == (2, 5, 6)


@pytest.mark.parametrize("query", ["", "  \n"])
def test_search_without_words_is_refused_and_costs_nothing(world: World, query: str) -> None:
    with pytest.raises(RequestError, match="some words"):
        search(world.tools, query)

    assert world.provider.requests == []


def test_search_takes_from_the_same_budget(build: Build) -> None:
    world = build(requests=2)
    world.fill(1)
    world.run()
    search(world.tools, "one")

    with pytest.raises(RateLimited, match="used up until"):
        search(world.tools, "two")

    assert len(world.provider.requests) == 2
