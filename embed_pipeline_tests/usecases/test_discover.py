"""Discovery: nothing hides behind what cannot be embedded, and nothing loads the graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from embed_pipeline.domain.job import JobStatus
from embed_pipeline.errors import InputRefused
from embed_pipeline.stores.graph.transaction import GraphTransaction
from embed_pipeline.usecases.entities.discover import Bounds, discover
from embed_pipeline.usecases.entities.force import force_embedding
from embed_pipeline.worker.packing import HARMLESS
from embed_pipeline_tests.clocks import MINUTE
from embed_pipeline_tests.worker.conftest import Build
from embed_pipeline_tests.worker.logbook import Logbook
from embed_pipeline_tests.worker.scene import MODEL, World, entity, uid


def add_unqueued(world: World, *numbers: int, note: str | None = None) -> None:
    """Entities that are in the graph and not in the queue."""
    world.graph.create_entities(
        [entity(number, *([note] if note else [])) for number in numbers], model=MODEL
    )


def write_unmarked(world: World, numbers: Iterable[int]) -> None:
    """Entities that another program wrote, which knows nothing of markers."""
    statement = "INSERT INTO Entity (uid, name, observations) VALUES (:uid, :name, :notes)"

    def write(tx: GraphTransaction) -> None:
        for number in numbers:
            notes = f"note {number}"
            tx.all(statement, uid=uid(number), name=f"entity {number}", notes=notes)
        tx.all("UPDATE Entity SET needs_embedding = 0")

    world.graph.backend.write(write)


def refuse_all(world: World) -> None:
    def refuse(texts: Sequence[str]) -> None:
        if texts != [HARMLESS.text]:
            raise InputRefused("refused")

    world.provider.always = refuse


def test_missing_embeddings_are_discovered_and_queued(world: World, logs: Logbook) -> None:
    world.fill(2)
    world.run()
    add_unqueued(world, 2, 3, 4)

    report = discover(world.services)

    assert (report.missing, report.new_jobs, report.found) == (3, 3, 3)
    assert logs.of("entities.discovered")[0]["count"] == 3
    assert world.run().embedded == 3


def test_soft_deleted_entity_is_not_discovered(world: World) -> None:
    add_unqueued(world, 0, 1)
    world.graph.soft_delete([uid(0)])

    discover(world.services)

    assert [job.entity_uid for job in world.all_jobs] == [uid(1)]


def test_ten_refused_entities_never_hide_an_eleventh_from_discovery(world: World) -> None:
    world.fill(10)
    refuse_all(world)
    world.run()
    world.provider.always = None
    add_unqueued(world, 10)

    report = discover(world.services, bounds=Bounds(most_jobs=1))

    assert report.new_jobs == 1
    assert world.run().embedded == 1
    assert world.is_embedded(uid(10))


def test_ten_refused_entities_never_hide_an_eleventh_from_batch_repair(world: World) -> None:
    world.fill(10)
    refuse_all(world)
    world.run()
    world.provider.always = None
    add_unqueued(world, 10)

    report = force_embedding(world.services, limit=2)

    assert report.queued == 1
    assert "stay parked" in report.message
    assert world.run().embedded == 1


def test_refused_entities_are_not_paid_for_again_until_forced_or_changed(world: World) -> None:
    world.fill(3)
    refuse_all(world)
    world.run()
    paid = len(world.provider.requests)

    for _ in range(3):
        discover(world.services)
        force_embedding(world.services)
        world.run()

    assert len(world.provider.requests) == paid

    world.provider.always = None
    force_embedding(world.services, entity_name="entity 0")
    world.upsert(entity(1, "better words"))
    world.run()

    assert [world.is_embedded(uid(number)) for number in range(3)] == [True, True, False]


def test_queued_entities_are_not_queued_twice(world: World) -> None:
    world.fill(4)

    report = discover(world.services)

    assert (report.new_jobs, report.queued_already) == (0, 4)
    assert len(world.all_jobs) == 4


def test_discovery_stops_at_its_bound_of_new_jobs_and_goes_on_next_time(world: World) -> None:
    add_unqueued(world, *range(12))

    first = discover(world.services, bounds=Bounds(most_jobs=5))
    second = discover(world.services, bounds=Bounds(most_jobs=5))
    third = discover(world.services, bounds=Bounds(most_jobs=5))

    assert [report.new_jobs for report in (first, second, third)] == [5, 5, 2]


def test_discovery_stops_at_its_bound_of_reading(world: World) -> None:
    add_unqueued(world, *range(12))

    report = discover(world.services, bounds=Bounds(most_read=7))

    assert (report.examined, report.new_jobs) == (7, 7)


def test_marked_entity_whose_text_changed_is_found(world: World) -> None:
    world.fill(3)
    world.run()
    world.graph.upsert_entities([entity(1, "changed")], model=MODEL)

    report = discover(world.services)

    assert (report.changed, report.new_jobs) == (1, 1)
    world.run()
    assert world.has_vector_of(uid(1), "entity 1\nchanged")


def test_text_that_another_program_changed_is_found_by_the_stale_walk(world: World) -> None:
    world.fill(5)
    world.run()
    world.write_as_another_program(uid(3), "their words")

    report = discover(world.services)

    assert (report.changed, report.invalid, report.new_jobs) == (1, 0, 1)
    world.run()
    assert world.has_vector_of(uid(3), "entity 3\ntheir words")


def test_each_entity_is_queued_once(world: World) -> None:
    world.fill(4)
    world.run()
    world.graph.upsert_entities([entity(1, "changed")], model=MODEL)
    world.write_as_another_program(uid(2), "their words")
    add_unqueued(world, 4, 5)

    report = discover(world.services)

    assert (report.missing, report.changed) == (2, 2)
    assert (report.examined, report.new_jobs, report.queued_already) == (4, 4, 0)


def test_stale_walk_goes_on_where_the_last_one_stopped(world: World) -> None:
    world.fill(10)
    world.run()
    world.write_as_another_program(uid(9), "their words")

    reports = [discover(world.services, bounds=Bounds(most_read=4)) for _ in range(3)]

    assert [report.changed for report in reports] == [0, 0, 1]


def test_without_an_audit_only_marked_and_missing_ones_are_queued(world: World) -> None:
    world.fill(3)
    world.run()
    world.write_as_another_program(uid(0), "their words")
    world.graph.upsert_entities([entity(1, "changed")], model=MODEL)
    add_unqueued(world, 3)

    report = discover(world.services, bounds=Bounds(audit=False))

    assert (report.changed, report.missing, report.new_jobs) == (1, 1, 2)


def test_a_bound_says_how_many_are_left(world: World) -> None:
    add_unqueued(world, *range(12))

    first = discover(world.services, bounds=Bounds(most_jobs=5))
    second = discover(world.services)

    assert (first.new_jobs, first.left) == (5, 7)
    assert (second.new_jobs, second.left) == (7, 0)


def test_a_sweep_goes_on_behind_what_the_last_one_queued(world: World) -> None:
    write_unmarked(world, range(12))
    bounds = Bounds(most_jobs=4, most_read=6, audit=False)

    reports = [discover(world.services, bounds=bounds) for _ in range(4)]

    assert sum(report.new_jobs for report in reports) == 12, "it does not read the same six again"


def test_a_sweep_wraps_around(world: World) -> None:
    write_unmarked(world, range(6))
    discover(world.services, bounds=Bounds(most_jobs=4, audit=False))
    write_unmarked(world, [-1])

    report = discover(world.services, bounds=Bounds(audit=False))

    assert report.new_jobs == 3, "two behind the last place, one before it"


def test_marker_of_a_queued_entity_is_exchanged(world: World) -> None:
    add_unqueued(world, 0, 1)
    before = world.graph.counts(model=MODEL).marked

    discover(world.services)

    assert (before, world.graph.counts(model=MODEL).marked) == (2, 0)
    assert discover(world.services).queued_already == 2, "they still lack a vector"


def test_created_entities_are_not_taken_for_new_marks(world: World) -> None:
    world.fill(3)

    assert world.graph.counts(model=MODEL).marked == 0


def test_one_discovery_at_a_time(world: World) -> None:
    add_unqueued(world, 0)
    world.jobs.named_leases.take("discovery", owner="run-1", duration=MINUTE)

    blocked = discover(world.services)
    world.jobs.named_leases.release("discovery", owner="run-1")
    free = discover(world.services)

    assert (blocked.busy, blocked.new_jobs) == ("run-1", 0)
    assert (free.busy, free.new_jobs) == (None, 1)
    assert world.jobs.named_leases.take("discovery", owner="x", duration=MINUTE).owner == "x"


def test_nothing_to_discover_is_reported_as_nothing(build: Build) -> None:
    world = build()

    report = discover(world.services)

    assert (report.found, report.examined, report.new_jobs) == (0, 0, 0)
    assert world.count(JobStatus.PENDING) == 0
