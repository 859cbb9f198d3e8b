"""Entities are created without waiting for a provider; exactly one job each."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.domain.job import Enqueued, JobStatus
from embed_pipeline.errors import RequestError
from embed_pipeline.stores.graph.entity_store import GraphEntityStore
from embed_pipeline.stores.queue.job_store import QueueJobStore
from embed_pipeline.stores.sqlite.graph.backend import SqliteGraph
from embed_pipeline.stores.sqlite.queue.backend import QueueFile
from embed_pipeline.usecases.entities.create import create_entities, upsert_entities
from embed_pipeline.usecases.entities.discover import discover
from embed_pipeline_tests.worker.conftest import Build
from embed_pipeline_tests.worker.logbook import Logbook
from embed_pipeline_tests.worker.scene import MODEL, World, entity, uid


def test_entity_is_created_without_an_embedding_or_a_call(world: World) -> None:
    report = world.create(entity(0))

    assert (report.created, report.queued) == (1, True)
    assert world.graph.get_entity(uid(0)) is not None
    assert world.stored(uid(0)) is None
    assert world.provider.requests == []


def test_exactly_one_job_is_scheduled_for_each_new_entity(world: World) -> None:
    report = world.create(*(entity(number) for number in range(50)))

    assert report.jobs.count(Enqueued.CREATED) == 50
    assert [job.entity_uid for job in world.all_jobs] == [uid(number) for number in range(50)]
    world.run()
    assert len(world.provider.texts) == 50, "each is generated exactly once"


@pytest.mark.parametrize("verb", ["create", "upsert"])
def test_fifty_entities_are_created_in_one_transaction_without_a_call(
    world: World, transactions: list[str], verb: str
) -> None:
    """One transaction of the graph, one of the queue, and one that exchanges the markers.

    How long it takes is for the benchmarks to tell.
    """
    world.fill(1, first=900)
    transactions.clear()
    create = {"create": world.create, "upsert": world.upsert}[verb]
    create(*(entity(number, "x" * 1_000) for number in range(50)))

    assert transactions == ["graph", "queue", "graph"]
    assert world.provider.requests == []


def test_creation_does_not_wait_for_a_request_under_way(build: Build) -> None:
    world, other = build(), build()
    world.fill(3)
    created: list[int] = []

    def create_meanwhile(_: Sequence[str]) -> None:
        created.append(other.create(*(entity(number) for number in range(10, 60))).created)

    world.provider.script.append(create_meanwhile)

    world.run()

    assert created == [50]
    assert world.count(JobStatus.COMPLETED) == 53


def test_concurrent_creators_neither_fail_nor_double_a_job(build: Build) -> None:
    worlds = [build() for _ in range(4)]
    worlds[0].fill(1, first=900)

    with ThreadPoolExecutor(len(worlds)) as pool:
        reports = list(pool.map(lambda world: world.create(*map(entity, range(50))), worlds))

    assert sum(report.created for report in reports) == 50
    assert all(report.queued for report in reports)
    assert len(worlds[0].all_jobs) == 51


def test_creating_nothing_does_nothing(world: World) -> None:
    report = world.create()

    assert (report.entities, report.created, report.queued) == ((), 0, True)
    assert world.all_jobs == []


def test_duplicates_in_one_call_are_one_entity_and_one_job(world: World) -> None:
    report = world.create(entity(0, "first"), entity(0, "second"))

    assert [made.existing for made in report.entities] == [False, True]
    assert (report.created, report.unchanged) == (1, 1)
    assert world.text_of(uid(0)) == "entity 0\nfirst"
    assert len(world.all_jobs) == 1


def test_duplicates_in_one_upsert_are_one_entity_and_one_job(world: World) -> None:
    world.upsert(entity(0, "first"), entity(0, "second"))

    assert len(world.all_jobs) == 1
    world.run()
    assert world.provider.texts == ["entity 0\nsecond"]


def test_creating_an_existing_entity_reports_it_and_changes_nothing(world: World) -> None:
    world.create(entity(0, "first"))
    world.run()

    report = world.create(entity(0, "second"))

    assert (report.created, report.unchanged) == (0, 1)
    assert world.text_of(uid(0)) == "entity 0\nfirst"
    assert world.run().leased == 0


def test_name_and_type_make_the_same_entity_again(world: World) -> None:
    ada = NewEntity(name="Ada", entity_type="person")
    world.create(ada)

    again = world.create(ada, NewEntity(name="Ada", entity_type="ship"))

    assert (again.created, again.unchanged) == (1, 1)
    assert len(world.all_jobs) == 2


def test_empty_name_is_refused_and_nothing_is_created(world: World) -> None:
    with pytest.raises(RequestError, match="name is empty"):
        world.create(entity(0), NewEntity(name="  "))

    assert world.graph.get_entity(uid(0)) is None
    assert world.all_jobs == []


def test_changed_text_queues_its_new_version_at_once(world: World) -> None:
    world.create(entity(0, "old"))
    world.run()

    report = world.upsert(entity(0, "new"))

    assert (report.changed, report.jobs.outcomes) == (1, (Enqueued.CREATED,))
    world.run()
    assert world.has_vector_of(uid(0), "entity 0\nnew")


def test_unchanged_upsert_queues_nothing(world: World) -> None:
    world.create(entity(0))
    world.run()

    report = world.upsert(entity(0))

    assert (report.unchanged, report.jobs.new_jobs) == (1, 0)
    assert len(world.all_jobs) == 1


def test_text_that_comes_back_to_its_stored_vector_is_not_queued_again(world: World) -> None:
    world.create(entity(0, "A"))
    world.run()
    world.upsert(entity(0, "B"))

    report = world.upsert(entity(0, "A"))

    assert (report.changed, report.jobs.outcomes) == (1, (Enqueued.EMBEDDED,))


def test_text_changed_while_its_job_is_held_is_embedded_in_the_end(world: World) -> None:
    world.create(entity(0, "A"))
    lease = world.lease(owner="worker-b")

    world.upsert(entity(0, "B"))
    world.upsert(entity(0, "A"))
    world.jobs.complete(lease, lease.job_ids)
    world.run()

    assert world.has_vector_of(uid(0), "entity 0\nA")


@pytest.mark.parametrize("obstacle", ["a folder", "no database"])
def test_queue_unavailable_while_creating_keeps_the_entities_and_discovery_queues_them(
    build: Build, tmp_path: Path, logs: Logbook, obstacle: str
) -> None:
    world = build()
    unusable = tmp_path / "unusable"
    if obstacle == "a folder":
        unusable.mkdir()
    else:
        unusable.write_text("this is no database, but a letter" * 100)
    broken = QueueJobStore(QueueFile(unusable))

    created = create_entities(broken, world.graph, [entity(0), entity(1)], model=MODEL)
    changed = upsert_entities(broken, world.graph, [entity(0, "new")], model=MODEL)

    assert (created.queued, created.created) == (False, 2)
    assert (changed.queued, changed.changed) == (False, 1)
    assert world.text_of(uid(0)) == "entity 0\nnew"
    assert logs.of("entities.queue_unavailable")[0]["count"] == 2
    report = discover(world.services)
    assert (report.missing, report.new_jobs) == (2, 2)
    world.run()
    assert world.is_embedded(uid(0))
    assert world.is_embedded(uid(1))


def test_rebuilt_queue_loses_only_jobs_and_a_changed_entity_is_embedded_again(
    tmp_path: Path, build: Build
) -> None:
    world = build()
    world.fill(3)
    world.run()
    world.jobs.close()
    for leftover in tmp_path.glob("queue.sqlite*"):
        leftover.unlink()

    rebuilt = build()
    rebuilt.upsert(entity(0, "changed"))
    report = rebuilt.run()

    assert (report.embedded, len(rebuilt.all_jobs)) == (1, 1)
    assert rebuilt.has_vector_of(uid(0), "entity 0\nchanged")
    assert all(rebuilt.is_embedded(uid(number)) for number in range(3))
    assert discover(rebuilt.services).new_jobs == 0, "what is embedded is not queued again"
    assert rebuilt.count(JobStatus.PENDING) == 0


def test_creation_works_with_a_queue_that_was_never_opened(tmp_path: Path) -> None:
    graph = GraphEntityStore(SqliteGraph(tmp_path / "graph.sqlite", mapping=Collection()))
    jobs = QueueJobStore(QueueFile(tmp_path / "new" / "queue.sqlite"))

    report = create_entities(jobs, graph, [entity(0)], model=MODEL)

    assert (report.queued, jobs.get_queue_status().pending) == (True, 1)
    jobs.close()
    graph.close()
