"""A state machine of the queue: the real store beside a model that a person can check by eye.

Workers are kept as zombies: every lease ever granted stays in hand and is used again, late.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from embed_pipeline.domain.job import Enqueued, EntityUid, JobId, JobStatus
from embed_pipeline.domain.lease import SMALL_BATCH, Lease
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline_tests.clocks import MINUTE, SECOND, FakeClock
from embed_pipeline_tests.contracts.job_store.scene import (
    PERMANENT,
    TRANSIENT,
    kinds,
    new_token,
    request,
    stored,
    take,
)

PENDING, PROCESSING, COMPLETED, FAILED = JobStatus
LOCK = 5 * MINUTE
MAX_ATTEMPTS = 3
LONG_AGO = FakeClock().now() - timedelta(days=1)


@dataclass
class ModelJob:
    status: JobStatus = PENDING
    attempts: int = 0
    recoveries: int = 0
    strikes: int = 0
    available_at: datetime = LONG_AGO
    token: str | None = None
    lock_until: datetime = LONG_AGO
    owner: str = ""
    force: bool = False
    again: int = 0
    done_tokens: str | None = None

    def back(self) -> None:
        self.status, self.token = PENDING, None
        self.force, self.again = self.force or self.again == 2, 0

    def fresh(self, now: datetime) -> None:
        self.attempts = self.recoveries = self.strikes = 0
        self.available_at = now


class QueueMachine(RuleBasedStateMachine):
    """Subclasses give `open_store`; the clock is theirs to inject."""

    def open_store(self, clock: FakeClock) -> JobStore:
        raise NotImplementedError

    @initialize()
    def begin(self) -> None:
        self.clock = FakeClock()
        self.store = self.open_store(self.clock)
        self.jobs: dict[str, ModelJob] = {}
        self.ids: dict[str, JobId] = {}
        self.uids: dict[JobId, str] = {}
        self.leases: list[Lease] = []
        self.completions = 0

    # -- rules ------------------------------------------------------------------------------

    @rule(uid=st.sampled_from("abcdefgh"), force=st.booleans(), embedded=st.booleans())
    def enqueue(self, uid: str, force: bool, embedded: bool) -> None:
        (outcome,) = self.store.enqueue([request(uid, force=force, embedded=embedded)]).outcomes

        assert outcome is self._admit(uid, force=force, embedded=embedded)

    def _admit(self, uid: str, *, force: bool, embedded: bool) -> Enqueued:
        job, now = self.jobs.get(uid), self.clock.now()
        if job is None:
            if embedded and not force:
                return Enqueued.EMBEDDED
            self.jobs[uid] = ModelJob(available_at=now, force=force)
            return Enqueued.CREATED
        if job.status is PENDING:
            if force:
                job.force, job.available_at = True, min(job.available_at, now)
            return Enqueued.QUEUED
        if job.status is PROCESSING:
            job.again = max(job.again, 2 if force else 1)
            return Enqueued.QUEUED
        if force or (job.status is COMPLETED and not embedded):
            job.status, job.force = PENDING, force
            job.fresh(now)
            return Enqueued.REVIVED
        return Enqueued.EMBEDDED if embedded else Enqueued.PARKED

    @rule(owner=st.sampled_from(["run-1", "run-2"]), limit=st.integers(1, 20))
    def lease(self, owner: str, limit: int) -> None:
        lease = take(self.store, limit, owner=owner)
        now = self.clock.now()
        due = [j for j in self.jobs.values() if j.status is PENDING and j.available_at <= now]

        assert bool(lease.jobs) == bool(due), "a due job is leased, and nothing else"
        assert len(lease.jobs) <= limit
        for job in lease.jobs:
            model = self.jobs[job.entity_uid]
            assert model.status is PENDING
            assert model.available_at <= now
            self._keep_company(model, len(lease.jobs))
            model.status, model.token, model.owner = PROCESSING, lease.token, owner
            model.lock_until = now + LOCK
            self.ids[job.entity_uid], self.uids[job.id] = job.id, job.entity_uid
        if lease.jobs:
            self.leases.append(lease)

    @staticmethod
    def _keep_company(job: ModelJob, size: int) -> None:
        if job.strikes >= 4:
            assert size == 1
        elif job.strikes >= 2:
            assert size <= SMALL_BATCH

    @rule(data=st.data())
    def lease_lost_its_answer(self, data: st.DataObject) -> None:
        token, before = new_token(), self.clock.now()
        first = self.store.lease(owner="run-1", model="mock/mock@64", limit=3, token=token)
        again = self.store.lease(owner="run-1", model="mock/mock@64", limit=3, token=token)

        assert set(again.job_ids) == set(first.job_ids)
        for job in first.jobs:
            model = self.jobs[job.entity_uid]
            model.status, model.token, model.owner = PROCESSING, token, "run-1"
            model.lock_until = before + LOCK
            self.ids[job.entity_uid], self.uids[job.id] = job.id, job.entity_uid
        if first.jobs:
            self.leases.append(first)

    @rule(data=st.data())
    def heartbeat(self, data: st.DataObject) -> None:
        lease, held = self._some_lease(data)
        settled = self.store.heartbeat(lease, lease.job_ids) if lease else None
        if settled:
            assert set(settled.done) == held
            for job_id in held:
                self._job(job_id).lock_until = self.clock.now() + LOCK

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        lease, held = self._some_lease(data)
        if lease:
            assert self.store.release(lease, lease.job_ids) == len(held)
            for job_id in held:
                self._job(job_id).back()

    @rule(data=st.data(), strike=st.booleans())
    def defer(self, data: st.DataObject, strike: bool) -> None:
        lease, held = self._some_lease(data)
        if lease:
            self.store.defer(lease, lease.job_ids, error=TRANSIENT, strike=strike, delay=SECOND)
            for job_id in held:
                job = self._job(job_id)
                job.back()
                job.strikes += strike
                job.available_at = max(job.available_at, self.clock.now() + SECOND)

    @rule(data=st.data())
    def complete(self, data: st.DataObject) -> None:
        lease, held = self._some_lease(data)
        if not lease:
            return
        already = {i for i in lease.job_ids if self._job(i).done_tokens == lease.token}

        settled = self.store.complete(lease, lease.job_ids)

        assert set(settled.done) == held | already
        for job_id in held:
            job = self._job(job_id)
            again, job.done_tokens, job.token = job.again, lease.token, None
            job.status, job.force, job.again = COMPLETED, again == 2, 0
            if again:
                job.status = PENDING
                job.fresh(self.clock.now())
        if held:
            self.completions += 1
            self.last_success = self.clock.now()

    @rule(data=st.data(), permanent=st.booleans())
    def fail(self, data: st.DataObject, permanent: bool) -> None:
        lease, held = self._some_lease(data)
        if not lease:
            return
        error = PERMANENT if permanent else TRANSIENT

        report = self.store.fail(lease, dict.fromkeys(lease.job_ids, error))

        assert set(report.retried) | set(report.failed) == held
        for job_id in held:
            job = self._job(job_id)
            again, final = job.again, permanent or job.attempts + 1 >= MAX_ATTEMPTS
            assert (job_id in report.failed) == (final and again != 2)
            job.back()
            job.attempts += 1
            if final and again == 2:
                job.fresh(self.clock.now())
            elif final:
                job.status, job.force = FAILED, False
            else:
                job.available_at = stored(self.store, job_id).available_at

    @rule(duration=st.sampled_from([SECOND, MINUTE, LOCK, LOCK + SECOND, 12 * MINUTE]))
    def time_passes(self, duration: timedelta) -> None:
        self.clock.advance(duration)

    @rule()
    def recover_stale(self) -> None:
        now = self.clock.now()
        stale = {u for u, j in self.jobs.items() if j.status is PROCESSING and j.lock_until < now}

        recovered = {job.entity_uid for job in self.store.recover_stale().jobs}

        assert recovered == stale
        self._recovered(stale)

    @rule(owner=st.sampled_from(["run-1", "run-2"]))
    def run_dies_and_is_recovered(self, owner: str) -> None:
        held = {u for u, j in self.jobs.items() if j.status is PROCESSING and j.owner == owner}

        recovered = {job.entity_uid for job in self.store.recover_owner(owner).jobs}

        assert recovered == held
        self._recovered(held)

    def _recovered(self, uids: set[str]) -> None:
        for uid in uids:
            job, truth = self.jobs[uid], stored(self.store, self.ids[uid])
            job.back()
            job.recoveries += 1
            job.strikes += 1
            if truth.status is FAILED:
                assert job.recoveries >= 5
                job.status, job.force = FAILED, False
            assert job.recoveries < 15 or truth.status is FAILED
            job.available_at = truth.available_at
            if job.recoveries == 1:
                assert truth.available_at == self.clock.now()

    @rule()
    def retry_failed(self) -> None:
        failed = {u for u, j in self.jobs.items() if j.status is FAILED}

        assert {self.uids[i] for i in self.store.retry_failed()} == failed

        for uid in failed:
            self.jobs[uid].status = PENDING
            self.jobs[uid].fresh(self.clock.now())

    @rule(uid=st.sampled_from("abcdefgh"))
    def cancel(self, uid: str) -> None:
        job = self.jobs.get(uid)
        is_pending = job is not None and job.status is PENDING

        assert len(self.store.cancel(entity_uid=EntityUid(uid))) == is_pending

        if is_pending:
            del self.jobs[uid]
            self.ids.pop(uid, None)

    @rule()
    def cleanup_of_everything_old(self) -> None:
        before = kinds(self.store)
        report = self.store.cleanup(older_than=timedelta(days=7))

        # No rule lets seven days pass, so nothing may go.
        assert (report.jobs, report.events) == (0, 0)
        assert kinds(self.store) == before

    # -- invariants -------------------------------------------------------------------------

    @invariant()
    def store_and_model_agree(self) -> None:
        if not hasattr(self, "store"):
            return
        for uid, job_id in self.ids.items():
            truth, model = stored(self.store, job_id), self.jobs[uid]
            assert truth.status is model.status
            assert (truth.attempts, truth.recoveries, truth.strikes) == (
                model.attempts,
                model.recoveries,
                model.strikes,
            )
            assert truth.lease_token == model.token
            assert truth.force == model.force
            assert (truth.lock_owner is None) == (truth.status is not PROCESSING)

    @invariant()
    def no_job_is_lost(self) -> None:
        if hasattr(self, "store"):
            assert self.store.get_queue_status().total == len(self.jobs)

    # -- helpers ----------------------------------------------------------------------------

    def _some_lease(self, data: st.DataObject) -> tuple[Lease | None, set[JobId]]:
        """Any lease ever granted, and the jobs it still holds by the model."""
        if not self.leases:
            return None, set()
        lease = data.draw(st.sampled_from(self.leases))
        return lease, {i for i in lease.job_ids if self._job(i).token == lease.token}

    def _job(self, job_id: JobId) -> ModelJob:
        """What became of it; a cancelled one is nobody's, and a new job of its entity another."""
        return self.jobs.get(self.uids[job_id], ModelJob())
