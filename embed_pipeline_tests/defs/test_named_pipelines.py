"""Several pipelines in one code location and one instance: none clashes with or notices another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import dagster as dg
import pytest

from embed_pipeline.defs.build import build_definitions
from embed_pipeline.defs.pipeline import LANE, PIPELINE, Names, names_for
from embed_pipeline.errors import ConfigurationError
from embed_pipeline_tests.contracts.entity_store.scene import coverage_of
from embed_pipeline_tests.defs.scene import MODEL, Pipeline, add_run, sentence_of, settings_in
from embed_pipeline_tests.defs.test_prune_history import age, execute_checks
from embed_pipeline_tests.test_definitions import AUTOMATIC, JOBS

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")

SENSOR = "embed_queue_sensor"
FAILURE, STARTED = dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.STARTED


@pytest.fixture
def books(tmp_path: Path, instance: dg.DagsterInstance) -> Iterator[Pipeline]:
    with closing(Pipeline(settings_in(tmp_path / "b", EMBED_NAME="books"), instance)) as pipeline:
        yield pipeline


@pytest.fixture
def films(tmp_path: Path, instance: dg.DagsterInstance) -> Iterator[Pipeline]:
    with closing(Pipeline(settings_in(tmp_path / "f", EMBED_NAME="films"), instance)) as pipeline:
        yield pipeline


def test_prefix_is_on_everything_that_dagster_shows(books: Pipeline) -> None:
    built = books.definitions.get_repository_def()

    jobs = {name for name in built.job_names if not name.startswith("__")}
    automatic = {one.name for one in built.sensor_defs} | {one.name for one in built.schedule_defs}
    assert jobs == {f"books_{name}" for name in JOBS}
    assert automatic == {f"books_{name}" for name in AUTOMATIC}
    assert all(name.startswith("books_") for name in books.definitions.resources or {})
    assert {key.path[0] for key in built.asset_graph.get_all_asset_keys()} == {"books"}
    assert {job.tags[LANE].split("/")[0] for job in built.get_all_jobs() if job.name in jobs} == {
        "books"
    }


def test_three_pipelines_and_things_of_the_same_names_fit_in_one_code_location(
    tmp_path: Path, books: Pipeline, films: Pipeline
) -> None:
    @dg.op
    def theirs() -> None: ...

    @dg.job
    def embed_job() -> None:
        theirs()

    own = dg.Definitions(jobs=[embed_job], resources={"services": 1, "queue": 2})
    plain = build_definitions(settings_in(tmp_path / "plain"))
    merged = dg.Definitions.merge(books.definitions, films.definitions, own)

    dg.Definitions.validate_loadable(merged)
    dg.Definitions.validate_loadable(
        dg.Definitions.merge(plain, books.definitions, films.definitions)
    )
    assert {"embed_job", "books_embed_job", "films_embed_job"} <= set(
        merged.get_repository_def().job_names
    )


def test_each_embeds_its_own_graph(books: Pipeline, films: Pipeline) -> None:
    books.create("a", "b")
    films.create("c")

    result = books.run("books_embed_job")

    assert result.output_for_node("embed_batch") == 2
    assert coverage_of(books.services.graph, model=MODEL).percent == 100
    assert films.pending == 1


def test_failed_and_busy_runs_of_others_keep_no_sensor_from_launching(
    pipeline: Pipeline, books: Pipeline, instance: dg.DagsterInstance
) -> None:
    other = {PIPELINE: "embed_pipeline@elsewhere"}
    for status in (FAILURE, FAILURE, FAILURE, STARTED, STARTED):
        add_run(instance, status, tags=other)
        add_run(instance, status)
        books.add_run(instance, status, "books_embed_job")
    pipeline.create("a")
    books.create("a")

    with pipeline.tick(SENSOR, instance) as ours, books.tick(f"books_{SENSOR}", instance) as theirs:
        assert len(ours.run_requests or []) == 1
        assert "2 embed runs are working" in str(theirs.skip_message)


def test_pruning_leaves_the_runs_of_other_pipelines_and_takes_those_of_before(
    pipeline: Pipeline, books: Pipeline, instance: dg.DagsterInstance
) -> None:
    lane = {LANE: "embed"}
    neighbour = add_run(instance, FAILURE, tags=lane | {PIPELINE: "embed_pipeline@elsewhere"})
    ours = add_run(instance, FAILURE, tags=lane | {PIPELINE: names_for(pipeline.settings).pipeline})
    before = add_run(instance, FAILURE, tags=lane)
    theirs = books.run("books_embed_job").run_id
    for run_id in (neighbour.run_id, ours.run_id, before.run_id, theirs):
        age(instance, run_id, days=15)

    pipeline.run("prune_history_job")

    kept = {run.run_id for run in instance.get_runs()}
    assert {neighbour.run_id, theirs} <= kept
    assert not {ours.run_id, before.run_id} & kept


def test_assets_and_checks_of_two_observations_do_not_mix(
    books: Pipeline, films: Pipeline, instance: dg.DagsterInstance
) -> None:
    books.create("a")

    books.run("books_observe_job")
    films.run("films_observe_job")

    shown = [
        instance.fetch_observations(dg.AssetKey([name, "embedding_queue"]), limit=9).records
        for name in ("books", "films")
    ]
    pending = [
        [
            one.asset_observation.metadata["pending"].value
            for one in records
            if one.asset_observation
        ]
        for records in shown
    ]
    assert pending == [[1], [0]]


def test_sentences_name_the_jobs_of_their_pipeline(books: Pipeline) -> None:
    books.services.jobs.switch.halt("the key was revoked", seen=0)
    books.create("a")

    result = books.run("books_embed_job", raise_on_error=False)

    assert "then launch books_resume_job." in sentence_of(result, "lease_batch")
    assert Names(prefix="books").in_text(
        "discover_job queues them, launched by discover_sensor."
    ) == ("books_discover_job queues them, launched by books_discover_sensor.")


def test_checks_run_from_the_page_of_an_asset_of_either(
    books: Pipeline, films: Pipeline, instance: dg.DagsterInstance
) -> None:
    executor = dg.Definitions(executor=dg.in_process_executor)
    merged = dg.Definitions.merge(books.definitions, films.definitions, executor)

    run_id = execute_checks(merged, instance, queue=["films", "embedding_queue"])

    run = instance.get_run_by_id(run_id)
    assert run is not None
    assert run.tags[PIPELINE] == names_for(films.settings).pipeline


@pytest.mark.parametrize("name", ["Books", "1st", "a-b", "a" * 41])
def test_name_that_dagster_would_not_take_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="EMBED_NAME must be up to 40 lower-case letters"):
        settings_in(tmp_path, EMBED_NAME=name)
    with pytest.raises(ConfigurationError, match="name must be up to 40 lower-case letters"):
        build_definitions(settings_in(tmp_path), name=name)


def test_name_of_the_call_comes_before_the_setting(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, EMBED_NAME="books")

    assert build_definitions(settings, name="films").resolve_job_def("films_embed_job")
    assert build_definitions(settings, name="").resolve_job_def("embed_job")


def test_pipelines_of_one_name_on_other_queues_are_told_apart(tmp_path: Path) -> None:
    here, there = (names_for(settings_in(tmp_path / place)) for place in ("here", "there"))

    assert here.pipeline != there.pipeline
    assert here == names_for(settings_in(tmp_path / "here"))
