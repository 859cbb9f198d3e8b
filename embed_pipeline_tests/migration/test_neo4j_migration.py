"""Neo4j databases of version 0.1 are brought up by `init`.

That every command asks for it before is tested with the command line.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from embed_pipeline import wiring
from embed_pipeline.domain.collection import Collection
from embed_pipeline.errors import SchemaMissing
from embed_pipeline.settings import Settings, load_settings
from embed_pipeline.stores.neo4j.setup import labels, schema
from embed_pipeline.stores.neo4j.setup.schema import VERSIONS
from embed_pipeline_tests.acceptance.production import server_variables
from embed_pipeline_tests.interfaces.command_line import environment, run_program
from embed_pipeline_tests.migration.contract import (
    HAD_NO_TEXT,
    VARIABLES,
    MigrationContract,
    check_job_without_text,
    load_into_neo4j,
)
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores.neo4j_graph import database_of

OLD_VERSION = 3
"""Of the queue's schema in 0.1, which refuses every higher one."""


@pytest.fixture
def variables(neo4j_queue: BedServer, neo4j_graph: BedServer, tmp_path: Path) -> dict[str, str]:
    """Of two servers that hold the old data."""
    load_into_neo4j(neo4j_queue, neo4j_graph)
    stores = server_variables(neo4j_queue, neo4j_graph)
    return VARIABLES | stores | {"EMBED_STORE": "neo4j", "EMBED_HOME": str(tmp_path)}


@pytest.fixture
def settings(variables: dict[str, str]) -> Settings:
    loaded = load_settings(variables)
    wiring.initialise_stores(loaded)
    return loaded


class TestMigration(MigrationContract): ...


def test_init_raises_the_version_so_that_programs_of_0_1_refuse_the_database(
    variables: dict[str, str], tmp_path: Path, neo4j_queue: BedServer
) -> None:
    answer = run_program("init", env=environment(tmp_path, **variables), cwd=tmp_path)

    assert (answer.code, answer.err) == (0, "")
    (saved,) = neo4j_queue.run("MATCH (s:QueueSchema) RETURN s.version AS version")
    assert saved["version"] == VERSIONS["queue"] > OLD_VERSION


def test_job_that_0_1_failed_for_want_of_a_text_is_completed(
    variables: dict[str, str], neo4j_queue: BedServer
) -> None:
    neo4j_queue.run("MATCH (j:EmbedJob {entity_uid: 'e07'}) SET j += $fields", fields=HAD_NO_TEXT)
    settings = load_settings(variables)

    wiring.initialise_stores(settings)

    with closing(wiring.open_job_store(settings)) as jobs:
        check_job_without_text(jobs)


def test_labels_are_given_page_by_page_and_an_interrupted_init_goes_on(
    variables: dict[str, str], neo4j_graph: BedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    neo4j_graph.run("MATCH (e:Entity {uid: 'e03'}) SET e += {name: '', entityType: null}")
    neo4j_graph.run("MATCH (e:Entity {uid: 'e03'}) SET e.observations = [' ']")
    neo4j_graph.run("CREATE (:Entity {name: 'without a key'})")
    monkeypatch.setattr(labels, "PAGE", 5)
    seen: list[tuple[int, int]] = []

    def interrupted(_what: str, done: int, total: int) -> None:
        seen.append((done, total))
        if len(seen) == 2:
            raise KeyboardInterrupt

    database = database_of(neo4j_graph)
    with closing(database):
        with pytest.raises(KeyboardInterrupt):
            schema.prepare_graph(database, Collection(), on_progress=interrupted)
        with pytest.raises(SchemaMissing, match="embed-pipeline init"):
            schema.check_graph(database, Collection())
        schema.prepare_graph(database, Collection(), on_progress=interrupted)
        schema.check_graph(database, Collection())

    assert seen == [(5, 21), (10, 21), (5, 21), (10, 21), (11, 21)]
    rows = neo4j_graph.run(
        "MATCH (e:Entity) UNWIND labels(e) AS label RETURN label, count(*) AS nodes ORDER BY label"
    )
    assert {row["label"]: row["nodes"] for row in rows} == {
        "Embedded": 4,
        "EmbeddingExcluded": 3,
        "EmbeddingUnseen": 1,
        "Entity": 21,
        "NeedsEmbedding": 14,
        "NothingToEmbed": 1,
    }


@pytest.mark.parametrize("label", ["Embedded", "NothingToEmbed", "EmbeddingExcluded"])
def test_label_that_another_program_uses_is_refused_before_anything_is_written(
    settings: Settings, variables: dict[str, str], neo4j_graph: BedServer, label: str
) -> None:
    neo4j_graph.run("MATCH (n) WHERE n:EmbeddingCursor OR n:EmbeddingGraph DELETE n")
    neo4j_graph.run("MATCH (e:Entity) REMOVE e:Embedded:EmbeddingExcluded")
    neo4j_graph.run(f"CREATE (:Theirs:{label})")

    with pytest.raises(SchemaMissing, match=f"labelled {label} that this program did not make"):
        wiring.initialise_stores(settings)

    assert not neo4j_graph.run("MATCH (g:EmbeddingGraph) RETURN g")
