"""Leaving a graph on the long-term release, with the trigger."""

from __future__ import annotations

import pytest

from embed_pipeline.stores import neo4j
from embed_pipeline.stores.config import StoreConfig, UninstallOptions
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores.test_neo4j_changes import await_trigger
from embed_pipeline_tests.stores.test_neo4j_uninstall import (
    before,
    config,
    content,
    test_vectors_stay_where_it_is_asked_for_and_are_known_again_after_init,
    test_what_is_left_is_what_was_there_before,
)

__all__ = [
    "before",
    "config",
    "test_vectors_stay_where_it_is_asked_for_and_are_known_again_after_init",
    "test_what_is_left_is_what_was_there_before",
]

pytestmark = pytest.mark.slow


@pytest.fixture
def server(neo4j_swapped_graph: BedServer) -> BedServer:
    return neo4j_swapped_graph


def test_the_trigger_goes_too(server: BedServer, config: StoreConfig, before: list[object]) -> None:
    neo4j.set_trigger(config, install=True)
    await_trigger(server, installed=True)

    neo4j.uninstall_graph(config, UninstallOptions())

    await_trigger(server, installed=False)
    assert content(server) == before
