"""The jobs of one lease, from leasing until each is completed, failed, deferred or released."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import EmbedJob, EntityUid, FailureRecord, JobId
from embed_pipeline.domain.lease import Lease, LeaseResult, Tier, tier_of
from embed_pipeline.errors import EmbedPipelineError
from embed_pipeline.telemetry import emit
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.heartbeat import Heartbeat
from embed_pipeline.worker.report import FailedJob, RunReport

MOST_LINES = 20
"""Of jobs that share an error, so many get a line each; the line after them counts all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A leased job, and its entity as it was read."""

    job: EmbedJob
    entity: Entity


class LeasedBatch:
    """One lease, extended by its heartbeat until closed; changed by the run's own thread alone."""

    def __init__(self, services: Services, lease: Lease) -> None:
        self.services, self.lease = services, lease
        self.report = RunReport(leased=len(lease.jobs))
        self.entities: Mapping[EntityUid, Entity] = {}
        self._open: dict[JobId, EmbedJob] = {job.id: job for job in lease.jobs}
        self.control = services.jobs.control_state(provider=services.provider.name)
        """As it was before the batch was read: decides what errors of the graph mean."""
        self._started = services.clock.monotonic()
        self.heartbeat = Heartbeat(
            services.jobs,
            lease,
            interval=services.run_limits.heartbeat_interval,
            clock=services.clock,
        )
        self.heartbeat.start()

    @property
    def open_job_ids(self) -> tuple[JobId, ...]:
        return tuple(self._open)

    @property
    def is_done(self) -> bool:
        return not self._open

    @cached_property
    def is_isolated(self) -> bool:
        """Whether a run that holds these jobs may hold no others: suspects of a crash, a probe."""
        jobs = self.lease.jobs
        return self.lease.probe or any(tier_of(job.strikes) is not Tier.NORMAL for job in jobs)

    def close(self) -> None:
        """Release what is left, stop the heartbeat, and report what this batch has done."""
        try:
            self.release(self.open_job_ids)
            # An error of these two must not hide why the batch ended.
            with suppress(EmbedPipelineError):
                self._give_back_probe()
                self.services.jobs.counters.add(self.report.counters(model=self.services.model))
        finally:
            self.heartbeat.stop()
            self._measure()

    def let_go(self) -> None:
        """Where the queue does not answer: stop the heartbeat, so that the lease expires."""
        self.heartbeat.stop(wait=False)
        self._measure()

    def complete(self, jobs: Sequence[EmbedJob], *, reason: str | None = None) -> int:
        result = self.services.jobs.complete(self.lease, _ids(jobs), reason=reason)
        self.mark_done(result)
        return len(result.done)

    def release(self, job_ids: Sequence[JobId]) -> None:
        """Return unstarted jobs to pending."""
        if not job_ids:
            return
        released = self.services.jobs.release(self.lease, job_ids)
        self.report.released += released
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
        """Return started jobs to pending; no attempt is charged."""
        if not jobs:
            return
        result = self.services.jobs.defer(
            self.lease, _ids(jobs), error=failure, strike=strike, delay=delay
        )
        self.report.deferred += len(result.done)
        self.mark_done(result)
        limiter = self.services.limiter.allowance()
        for job in [job for job in jobs if job.id not in result.lost][:MOST_LINES]:
            emit("job.deferred", **self._job_facts(job), **self._error_facts(failure, limiter))
        emit(
            "jobs.deferred",
            count=len(result.done),
            job_ids=_ids(jobs),
            entity_names=[self._name_of(job) for job in jobs],
            attempts=[job.attempts for job in jobs],
            **self._error_facts(failure, limiter),
        )

    def fail(
        self, jobs: Sequence[EmbedJob], failure: FailureRecord, *, is_counted: bool = False
    ) -> None:
        """Charge an attempt: another one later, or the end of the job."""
        if not jobs:
            return
        failures = {job.id: failure for job in jobs}
        result = self.services.jobs.fail(self.lease, failures, is_counted=is_counted)
        self.report.failed += len(result.failed)
        self.report.retried += len(result.retried)
        self.mark_done(LeaseResult(done=(*result.failed, *result.retried), lost=result.lost))
        limiter = self.services.limiter.allowance()
        for job in jobs:
            if job.id not in result.lost:
                final = job.id in result.failed
                self._report_failure(job, failure, final=final, limiter=limiter)

    def mark_done(self, result: LeaseResult) -> None:
        """These jobs are no longer ours: done, or lost to another worker."""
        self.report.lost += len(result.lost)
        self._forget((*result.done, *result.lost))
        if result.lost:
            emit(
                "lease.lost",
                worker_id=self.lease.owner,
                count=len(result.lost),
                job_ids=result.lost,
            )

    def _report_failure(
        self, job: EmbedJob, failure: FailureRecord, *, final: bool, limiter: object
    ) -> None:
        self.report.failures.append(
            FailedJob(job_id=job.id, entity_name=self._name_of(job), failure=failure, final=final)
        )
        emit(
            "job.failed" if final else "job.retry_planned",
            **self._job_facts(job),
            **self._error_facts(failure, limiter),
        )

    def _job_facts(self, job: EmbedJob) -> dict[str, object]:
        """What every log line about the error of one job contains."""
        entity = self.entities.get(job.entity_uid)
        return {
            "job_id": job.id,
            "entity_name": self._name_of(job),
            "attempt": job.attempts + 1,
            "max_attempts": job.max_attempts,
            "cache": "miss",
            "observations": entity.texts if entity else None,
        }

    def _error_facts(self, failure: FailureRecord, limiter: object) -> dict[str, object]:
        """What every log line about an error contains."""
        return {
            "operation": "embed",
            "error_type": failure.category,
            "error_class": failure.error_type,
            "message": failure.message,
            "stack": failure.stack,
            "worker_id": self.lease.owner,
            "model": self.services.model,
            "rate_limiter": limiter,
        }

    def _name_of(self, job: EmbedJob) -> str:
        entity = self.entities.get(job.entity_uid)
        return entity.name if entity else job.entity_uid

    def _forget(self, job_ids: Collection[JobId]) -> None:
        for job_id in job_ids:
            self._open.pop(job_id, None)
        self.heartbeat.stop_extending(job_ids)

    def _give_back_probe(self) -> None:
        """A probe that sent nothing has learned nothing: other workers need not wait for it."""
        if self.lease.probe and not self.report.requests:
            breakers, provider = self.services.jobs.breakers, self.services.provider.name
            breakers.give_back_probe(provider, seen=self.lease.breaker_seen)

    def _measure(self) -> None:
        self.report.seconds = self.services.clock.monotonic() - self._started
        emit(
            "batch.measured",
            worker_id=self.lease.owner,
            model=self.services.model,
            **self.report.facts(),
        )


def _ids(jobs: Sequence[EmbedJob]) -> list[JobId]:
    return [job.id for job in jobs]
