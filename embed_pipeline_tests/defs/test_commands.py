"""`dagster definitions validate` and `dagster job execute`, as CI and people call them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from embed_pipeline_tests.contracts.entity_store.scene import coverage_of
from embed_pipeline_tests.defs.commands import Homes, dagster, left_in_the_checkout
from embed_pipeline_tests.defs.scene import MODEL, Pipeline, settings_in

MODULE = ("-m", "embed_pipeline.definitions")
MISSING = [
    "EMBED_JOB_RETENTION_DAYS must be set in production",
    "OPENAI_API_KEY must be set in production",
    "EMBED_QUEUE_URI must be set",
    "EMBED_QUEUE_PASSWORD must be set",
    "EMBED_GRAPH_URI must be set",
    "EMBED_GRAPH_PASSWORD must be set",
]


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[Homes]:
    before = left_in_the_checkout()
    yield Homes.below(tmp_path)
    assert left_in_the_checkout() == before


@contextmanager
def pipeline_in(homes: Homes) -> Iterator[Pipeline]:
    pipeline = Pipeline(settings_in(homes.embed))
    try:
        yield pipeline
    finally:
        pipeline.close()


def test_definitions_are_valid(homes: Homes) -> None:
    ended = dagster(
        "definitions", "validate", "-w", "workspace.yaml", homes=homes, EMBED_ENV="test"
    )

    assert ended.returncode == 0, ended.stdout
    assert "Validation successful for code location embed_pipeline" in ended.stdout
    assert not homes.embed.exists()


@pytest.mark.parametrize(
    "config", [(), pytest.param(("-c", "config/embed.yaml"), marks=pytest.mark.slow)]
)
def test_embed_job_embeds(homes: Homes, config: tuple[str, ...]) -> None:
    with pipeline_in(homes) as pipeline:
        pipeline.create("a", "b", "c")

        ended = dagster(
            "job", "execute", *MODULE, "-j", "embed_job", *config, homes=homes, EMBED_ENV="test"
        )

        assert ended.returncode == 0, ended.stdout
        assert coverage_of(pipeline.services.graph, model=MODEL).percent == 100


@pytest.mark.slow
def test_recover_stale_job_recovers(homes: Homes) -> None:
    with pipeline_in(homes) as pipeline:
        pipeline.abandon("e1")

        ended = dagster(
            "job",
            "execute",
            *MODULE,
            *("-j", "recover_stale_job", "-c", "config/recover.yaml"),
            homes=homes,
            EMBED_ENV="test",
        )

        assert ended.returncode == 0, ended.stdout
        assert pipeline.pending == 1


@pytest.mark.slow
def test_discover_job_queues(homes: Homes) -> None:
    with pipeline_in(homes) as pipeline:
        pipeline.create_outside("a", "b")

        ended = dagster(
            "job",
            "execute",
            *MODULE,
            *("-j", "discover_job", "-c", "config/discover.yaml"),
            homes=homes,
            EMBED_ENV="test",
        )

        assert ended.returncode == 0, ended.stdout
        assert pipeline.pending == 2


@pytest.mark.slow
def test_cleanup_ttl_job_runs_on_an_empty_queue(homes: Homes) -> None:
    ended = dagster(
        "job",
        "execute",
        *MODULE,
        *("-j", "cleanup_ttl_job", "-c", "config/cleanup.yaml"),
        homes=homes,
        EMBED_ENV="test",
    )

    assert ended.returncode == 0, ended.stdout
    assert "Deleted 0 finished jobs older than the retention." in ended.stdout


@pytest.mark.parametrize(
    "words",
    [
        ("definitions", "validate", "-w", "workspace.yaml"),
        ("job", "execute", *MODULE, "-j", "embed_job"),
    ],
)
def test_production_with_nothing_set_is_refused_with_its_sentences(
    homes: Homes, words: tuple[str, ...]
) -> None:
    ended = dagster(*words, homes=homes, EMBED_ENV="production")

    assert ended.returncode != 0
    assert [sentence for sentence in MISSING if sentence not in ended.stdout] == []
    assert not homes.embed.exists()
