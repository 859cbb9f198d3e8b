"""The jobs of one lease until each is settled; every way out leads through here, once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from embed_pipeline.model.entity import Entity
from embed_pipeline.model.job import EmbedJob, EntityUid, FailureRecord, JobId
from embed_pipeline.model.lease import Lease, Settled
from embed_pipeline.model.switch import SwitchState
from embed_pipeline.telemetry import emit
from embed_pipeline.worker.heartbeat import Heartbeat
from embed_pipeline.worker.report import Ending, FailedJob, Tally
from embed_pipeline.worker.tools import Tools


class Holding:
    def __init__(self, tools: Tools, lease: Lease, heartbeat: Heartbeat, tally: Tally) -> None:
        self.tools, self.lease, self.heartbeat, self.tally = tools, lease, heartbeat, tally
        self.entities: Mapping[EntityUid, Entity] = {}
        self._open: dict[JobId, EmbedJob] = {job.id: job for job in lease.jobs}

    @property
    def rest(self) -> tuple[JobId, ...]:
        return tuple(self._open)

    def complete(self, jobs: Sequence[EmbedJob], *, reason: str | None = None) -> int:
        settled = self.tools.jobs.complete(self.lease, _ids(jobs), reason=reason)
        self._settle(_ids(jobs), settled)
        return len(settled.done)

    def release(self, job_ids: Sequence[JobId]) -> None:
        if not job_ids:
            return
        released = self.tools.jobs.release(self.lease, job_ids)
        self.tally.released += released
        self._forget(job_ids)
        emit("jobs.released", worker_id=self.lease.owner, count=released)

    def defer(
        self,
        jobs: Sequence[EmbedJob],
        failure: FailureRecord,
        *,
        strike: bool = False,
        delay: timedelta = timedelta(0),
    ) -> None:
        if not jobs:
            return
        settled = self.tools.jobs.defer(
            self.lease, _ids(jobs), error=failure, strike=strike, delay=delay
        )
        self.tally.deferred += len(settled.done)
        self._settle(_ids(jobs), settled)
        emit(
            "jobs.deferred",
            worker_id=self.lease.owner,
            count=len(settled.done),
            error_type=failure.category,
            message=failure.message,
        )

    def fail(self, jobs: Sequence[EmbedJob], failure: FailureRecord) -> None:
        if not jobs:
            return
        report = self.tools.jobs.fail(self.lease, {job.id: failure for job in jobs})
        self.tally.failed += len(report.failed)
        self.tally.retried += len(report.retried)
        done = (*report.failed, *report.retried)
        self._settle(_ids(jobs), Settled(done=done, lost=report.lost))
        limiter = self.tools.limiter.allowance()
        for job in jobs:
            if job.id in report.lost:
                continue
            final = job.id in report.failed
            self._tell_failure(job, failure, final=final, limiter=limiter)

    def halt(self, failure: FailureRecord, *, seen: int) -> None:
        """Stop everybody until a person resumes, unless one has since `seen` was read."""
        switch = self.tools.jobs.switch.halt(failure.message, seen=seen)
        if switch.state is SwitchState.HALTED:
            self.tally.ending, self.tally.critical = Ending.HALTED, failure.message
        else:
            self.tally.ending = Ending.REFUSED

    def _tell_failure(
        self, job: EmbedJob, failure: FailureRecord, *, final: bool, limiter: object
    ) -> None:
        entity = self.entities.get(job.entity_uid)
        name = entity.name if entity else job.entity_uid
        self.tally.failures.append(
            FailedJob(job_id=job.id, entity_name=name, failure=failure, final=final)
        )
        emit(
            "job.failed" if final else "job.retry_planned",
            job_id=job.id,
            entity_name=name,
            operation="embed",
            error_type=failure.category,
            error_class=failure.error_type,
            attempt=job.attempts + 1,
            max_attempts=job.max_attempts,
            message=failure.message,
            stack=failure.stack,
            worker_id=self.lease.owner,
            model=job.model,
            rate_limiter=limiter,
            cache="miss",
            observations=entity.texts if entity else None,
        )

    def _settle(self, job_ids: Iterable[JobId], settled: Settled) -> None:
        self.tally.lost += len(settled.lost)
        self._forget(job_ids)
        if settled.lost:
            emit(
                "lease.lost",
                worker_id=self.lease.owner,
                count=len(settled.lost),
                job_ids=settled.lost,
            )

    def _forget(self, job_ids: Iterable[JobId]) -> None:
        for job_id in job_ids:
            self._open.pop(job_id, None)
        self.heartbeat.settle(job_ids)


def _ids(jobs: Sequence[EmbedJob]) -> list[JobId]:
    return [job.id for job in jobs]
