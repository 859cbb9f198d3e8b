"""force_generate_embedding: one entity by name, or a bounded repair."""

from __future__ import annotations

import pytest

from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.domain.job import JobStatus
from embed_pipeline.errors import EntityNotFound, RequestError
from embed_pipeline.usecases.entities.force import force_embedding
from embed_pipeline_tests.worker.scene import MODEL, World, entity, uid


def add_unqueued(world: World, count: int) -> None:
    world.graph.create_entities([entity(number) for number in range(count)], model=MODEL)


def test_force_by_name_queues_exactly_one_job_and_names_the_entity(world: World) -> None:
    world.graph.create_entities(
        [NewEntity(name="Alberto Rocco"), NewEntity(name="Somebody Else")], model=MODEL
    )

    report = force_embedding(world.services, entity_name="Alberto Rocco")

    (job,) = world.all_jobs
    assert (job.force, job.priority, report.queued) == (True, 9, 1)
    assert "Alberto Rocco" in report.message
    assert world.run().embedded == 1


def test_force_tool_without_arguments_queues_at_most_ten(world: World) -> None:
    add_unqueued(world, 25)

    report = force_embedding(world.services)

    assert (report.discovered, report.queued, len(world.all_jobs)) == (10, 10, 10)


def test_batch_repair_queues_what_it_discovers_and_tells_the_counts(world: World) -> None:
    add_unqueued(world, 25)

    report = force_embedding(world.services, limit=20)

    assert (report.discovered, report.queued, len(world.all_jobs)) == (20, 20, 20)
    assert report.message == "Found 20 entities without an embedding, queued 20."


def test_batch_repair_reads_no_more_than_its_limit(world: World) -> None:
    add_unqueued(world, 25)

    force_embedding(world.services, limit=4)

    assert world.graph.pages == [4]


def test_entity_name_wins_over_limit(world: World) -> None:
    add_unqueued(world, 25)

    report = force_embedding(world.services, entity_name="entity 7", limit=20)

    assert (report.queued, [job.entity_uid for job in world.all_jobs]) == (1, [uid(7)])


def test_batch_repair_pages_past_what_is_queued_already(world: World) -> None:
    world.fill(15)
    world.graph.create_entities([entity(number) for number in range(15, 20)], model=MODEL)
    world.graph.backend.write(lambda tx: tx.all("UPDATE Entity SET needs_embedding = 0"))

    report = force_embedding(world.services, limit=3)

    assert report.queued == 3
    assert len(world.all_jobs) == 18
    assert "15 were queued already" in report.message


@pytest.mark.parametrize("limit", [0, -1, -1000])
def test_limit_below_one_is_refused_with_its_range(world: World, limit: int) -> None:
    add_unqueued(world, 1)

    with pytest.raises(RequestError, match=f"from 1 to 1000, got {limit}"):
        force_embedding(world.services, limit=limit)

    assert world.all_jobs == []


def test_huge_limit_is_capped_with_a_note(world: World) -> None:
    add_unqueued(world, 1_005)

    report = force_embedding(world.services, limit=10**9)

    assert report.queued == 1_000
    assert "capped at 1000" in report.message


@pytest.mark.parametrize("name", ["", "   "])
def test_empty_entity_name_is_refused(world: World, name: str) -> None:
    add_unqueued(world, 3)

    with pytest.raises(RequestError, match="must not be empty"):
        force_embedding(world.services, entity_name=name)

    assert world.all_jobs == [], "an empty name is no batch repair"


def test_unknown_entity_name_is_not_found(world: World) -> None:
    with pytest.raises(EntityNotFound, match="'Nobody'"):
        force_embedding(world.services, entity_name="Nobody")


def test_soft_deleted_entity_is_not_forced(world: World) -> None:
    add_unqueued(world, 1)
    world.graph.soft_delete([uid(0)])

    with pytest.raises(EntityNotFound, match="deleted"):
        force_embedding(world.services, entity_name="entity 0")
    with pytest.raises(EntityNotFound, match="e000"):
        force_embedding(world.services, key=uid(0))

    assert world.all_jobs == []


def test_name_of_two_entities_is_not_guessed_and_the_key_picks_one(world: World) -> None:
    twins = [
        NewEntity(uid=uid(number), name="Mercury", entity_type=kind)
        for number, kind in enumerate(["planet", "metal"])
    ]
    world.graph.create_entities(twins, model=MODEL)

    with pytest.raises(RequestError, match=r"e000 \(planet\), e001 \(metal\)"):
        force_embedding(world.services, entity_name="Mercury")
    report = force_embedding(world.services, key=uid(1))

    assert "e001" in report.message
    assert [job.entity_uid for job in world.all_jobs] == [uid(1)]


def test_soft_deleted_namesake_does_not_stand_in_the_way(world: World) -> None:
    twins = [NewEntity(uid=uid(number), name="Mercury") for number in range(2)]
    world.graph.create_entities(twins, model=MODEL)
    world.graph.soft_delete([uid(0)])

    force_embedding(world.services, entity_name="Mercury")

    assert [job.entity_uid for job in world.all_jobs] == [uid(1)]


def test_force_on_a_pending_job_makes_it_pay_and_go_first(world: World) -> None:
    world.fill(3)

    report = force_embedding(world.services, entity_name="entity 2")

    assert "queued already and is forced now" in report.message
    assert len(world.all_jobs) == 3
    world.run(limit=1)
    assert world.provider.texts[0] == "entity 2\nnote 2"


def test_force_on_a_held_job_runs_it_once_more(world: World) -> None:
    world.fill(1)
    world.provider.script.append(lambda _: force_embedding(world.services, entity_name="entity 0"))

    report = world.run()

    assert (report.embedded, len(world.provider.requests)) == (2, 2)
    assert world.job_of(uid(0)).status is JobStatus.COMPLETED


def test_batch_repair_pages_on_by_its_limit_and_ends_with_the_graph(world: World) -> None:
    world.fill(30)

    report = force_embedding(world.services, limit=5)

    assert (report.queued, report.discovered) == (0, 30)
    assert set(world.graph.pages) == {5}


def test_batch_repair_looks_at_no_more_than_ten_times_its_limit_and_says_so(world: World) -> None:
    world.fill(60)

    report = force_embedding(world.services, limit=5)

    assert (report.queued, report.discovered) == (0, 50)
    assert sum(world.graph.pages) == 50
    assert report.message == (
        "Found 50 entities without an embedding, queued 0; 50 were queued already; "
        "no more than 50 were looked at, more may exist: discovery finds them."
    )
