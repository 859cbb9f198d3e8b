"""Enqueue: at most one live job per key, and a truthful answer (I7)."""

from __future__ import annotations

import threading

import pytest

from embed_pipeline.domain.job import ENTITY_GONE, Again, Enqueued, JobStatus
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline_tests.contracts.job_store.scene import (
    PERMANENT,
    QueueBackend,
    add_jobs,
    failure,
    kinds,
    leased_job,
    request,
    stored,
    take,
)


class EnqueueContract:
    def test_new_job_is_pending_with_no_attempts(self, store: JobStore) -> None:
        report = store.enqueue([request("e1", priority=7)])

        (job,) = take(store).jobs
        assert report.outcomes == (Enqueued.CREATED,)
        assert (job.entity_uid, job.priority, job.attempts) == ("e1", 7, 0)

    def test_same_key_is_queued_once(self, store: JobStore) -> None:
        store.enqueue([request("e1")])

        report = store.enqueue([request("e1"), request("e1")])

        assert report.outcomes == (Enqueued.QUEUED, Enqueued.QUEUED)
        assert store.get_queue_status().pending == 1

    def test_key_named_twice_in_one_call_is_queued_once(self, store: JobStore) -> None:
        report = store.enqueue([request("e1"), request("e2"), request("e1", force=True)])

        assert report.outcomes == (Enqueued.CREATED, Enqueued.CREATED, Enqueued.QUEUED)
        assert {job.entity_uid: job.force for job in take(store).jobs} == {"e1": True, "e2": False}

    def test_new_version_is_a_new_job(self, store: JobStore) -> None:
        store.enqueue([request("e1", version="v1")])

        report = store.enqueue([request("e1", version="v2")])

        assert report.new_jobs == 1
        assert store.get_queue_status().pending == 2

    def test_already_embedded_version_needs_no_job(self, store: JobStore) -> None:
        report = store.enqueue([request("e1", embedded=True)])

        assert report.outcomes == (Enqueued.EMBEDDED,)
        assert store.get_queue_status().total == 0

    def test_forced_job_is_created_even_when_embedded(self, store: JobStore) -> None:
        report = store.enqueue([request("e1", embedded=True, force=True)])

        assert report.outcomes == (Enqueued.CREATED,)
        assert take(store).jobs[0].force

    def test_force_makes_a_deferred_job_due_now(self, store: JobStore) -> None:
        lease, job_id = leased_job(store)
        store.fail(lease, {job_id: failure()})

        report = store.enqueue([request("e1", force=True)])

        assert report.outcomes == (Enqueued.QUEUED,)
        assert take(store).job_ids == (job_id,)

    def test_completed_job_is_left_when_the_graph_has_its_vector(self, store: JobStore) -> None:
        lease, job_id = leased_job(store)
        store.complete(lease, [job_id])

        report = store.enqueue([request("e1", embedded=True)])

        assert report.outcomes == (Enqueued.EMBEDDED,)
        assert stored(store, job_id).status is JobStatus.COMPLETED

    def test_completed_job_is_revived_when_the_graph_has_not_its_vector(
        self, store: JobStore
    ) -> None:
        lease, job_id = leased_job(store)
        store.complete(lease, [job_id])

        report = store.enqueue([request("e1", embedded=False)])

        assert report.outcomes == (Enqueued.REVIVED,)
        assert take(store).job_ids == (job_id,)

    def test_failed_job_stays_parked(self, store: JobStore) -> None:
        lease, job_id = leased_job(store)
        store.fail(lease, {job_id: PERMANENT})

        report = store.enqueue([request("e1")])

        assert report.outcomes == (Enqueued.PARKED,)
        assert stored(store, job_id).status is JobStatus.FAILED

    def test_force_revives_a_parked_job_with_a_fresh_start(
        self, store: JobStore, backend: QueueBackend
    ) -> None:
        lease, job_id = leased_job(store)
        store.fail(lease, {job_id: PERMANENT})
        backend.alter(job_id, recoveries=4, strikes=4)

        report = store.enqueue([request("e1", force=True)])

        job = stored(store, job_id)
        assert report.outcomes == (Enqueued.REVIVED,)
        assert (job.attempts, job.recoveries, job.strikes, job.error) == (0, 0, 0, None)
        assert job.force

    def test_new_version_passes_a_parked_one(self, store: JobStore) -> None:
        lease, job_id = leased_job(store)
        store.fail(lease, {job_id: PERMANENT})

        report = store.enqueue([request("e1", version="v2")])

        assert report.outcomes == (Enqueued.CREATED,)

    def test_job_failed_for_a_gone_entity_is_revived_when_it_is_back(self, store: JobStore) -> None:
        lease, job_id = leased_job(store)
        store.fail(lease, {job_id: failure(ErrorCategory.PERMANENT, fail_code=ENTITY_GONE)})

        report = store.enqueue([request("e1")])

        assert report.outcomes == (Enqueued.REVIVED,)

    def test_enqueue_of_a_processing_job_runs_it_once_more(self, store: JobStore) -> None:
        lease, job_id = leased_job(store)

        report = store.enqueue([request("e1")])
        store.complete(lease, [job_id])

        job = stored(store, job_id)
        assert report.outcomes == (Enqueued.QUEUED,)
        assert (job.status, job.again, job.force) == (JobStatus.PENDING, Again.NO, False)

    def test_force_of_a_processing_job_runs_it_once_more_by_force(self, store: JobStore) -> None:
        lease, job_id = leased_job(store)

        store.enqueue([request("e1", force=True), request("e1")])
        store.complete(lease, [job_id])

        assert take(store).jobs[0].force

    def test_force_of_a_processing_job_outlives_its_failure(self, store: JobStore) -> None:
        lease, job_id = leased_job(store)
        store.enqueue([request("e1", force=True)])

        report = store.fail(lease, {job_id: PERMANENT})

        assert report.retried == (job_id,)
        assert take(store).jobs[0].force

    def test_empty_enqueue_runs_no_query(self, store: JobStore, backend: QueueBackend) -> None:
        with backend.counting_queries() as queries:
            report = store.enqueue([])

        assert (queries, report.outcomes) == ([], ())

    def test_enqueue_that_changes_nothing_appends_no_event(self, store: JobStore) -> None:
        store.enqueue([request("e1")])

        store.enqueue([request("e1")])

        assert kinds(store) == ["jobs.enqueued"]

    def test_concurrent_enqueues_of_one_key_create_one_job(self, backend: QueueBackend) -> None:
        stores = [backend.open_store() for _ in range(4)]
        outcomes: list[Enqueued] = []
        start = threading.Barrier(len(stores))

        def enqueue(store: JobStore) -> None:
            start.wait()
            for n in range(25):
                outcomes.extend(store.enqueue([request(f"e{n}")]).outcomes)

        threads = [threading.Thread(target=enqueue, args=(store,)) for store in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert outcomes.count(Enqueued.CREATED) == 25
        assert outcomes.count(Enqueued.QUEUED) == 75
        assert stores[0].get_queue_status().pending == 25

    @pytest.mark.parametrize("priority", [-1, 10])
    def test_priority_outside_0_to_9_is_refused(self, store: JobStore, priority: int) -> None:
        with pytest.raises(ValueError, match="priority must be from 0 to 9"):
            store.enqueue([request("e1", priority=priority)])

    def test_thousands_are_enqueued_in_one_call(self, store: JobStore) -> None:
        add_jobs(store, 2_500)

        assert store.get_queue_status().pending == 2_500
