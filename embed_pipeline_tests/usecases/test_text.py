"""The text that is shown is the text that is sent, and it costs nothing to see it."""

from __future__ import annotations

import pytest

from embed_pipeline.errors import EntityNotFound, RequestError
from embed_pipeline.usecases.insight.text import preview, text_of
from embed_pipeline_tests.worker.scene import World, entity, uid


def test_the_text_is_the_one_that_the_worker_sends(world: World) -> None:
    world.fill(1)

    shown = text_of(world.services, name="entity 0")
    before = list(world.provider.requests)
    world.run()

    assert before == []
    assert [shown.text] == [text for request in world.provider.requests for text in request]
    assert shown.tokens > 0
    assert not shown.truncated


def test_a_key_that_is_not_there_is_refused(world: World) -> None:
    with pytest.raises(EntityNotFound, match="No valid entity has the key 'nowhere'"):
        text_of(world.services, key=uid("nowhere"))


def test_preview_shows_the_first_by_key_and_counts_those_without_text(world: World) -> None:
    world.graph.create_entities([entity(n) for n in range(5)], model=world.provider.model)
    world.graph.soft_delete([uid(0)])

    found = preview(world.services, limit=2)

    assert [one.entity.uid for one in found.texts] == [uid(1), uid(2)]
    assert (found.examined, found.empty) == (4, 0)
    assert world.provider.requests == []


@pytest.mark.parametrize("limit", [0, 101])
def test_preview_is_bounded(world: World, limit: int) -> None:
    with pytest.raises(RequestError, match="from 1 to 100"):
        preview(world.services, limit=limit)
