"""The jobs of one lease until each is settled; every way out leads through here, once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import cached_property

from embed_pipeline.domain.breaker import GRAPH
from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.isolation import Tier, tier_of
from embed_pipeline.domain.job import EmbedJob, EntityUid, FailureRecord, JobId
from embed_pipeline.domain.lease import Lease, LeaseResult
from embed_pipeline.domain.switch import SwitchState
from embed_pipeline.errors import EmbedPipelineError
from embed_pipeline.telemetry import emit
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.heartbeat import Heartbeat
from embed_pipeline.worker.report import Ending, FailedJob, Tally


class LeasedBatch:
    """One batch, extended by its heartbeat until closed; changed by the run's own thread alone."""

    def __init__(self, services: Services, lease: Lease) -> None:
        self.services, self.lease = services, lease
        self.tally = Tally(leased=len(lease.jobs))
        self.entities: Mapping[EntityUid, Entity] = {}
        self._open: dict[JobId, EmbedJob] = {job.id: job for job in lease.jobs}
        self.switch_seen = services.jobs.switch.read().generation
        self.graph_seen = services.jobs.breakers.read(GRAPH)
        self._begun = services.clock.monotonic()
        self.heartbeat = Heartbeat(
            services.jobs,
            lease,
            interval=services.run_limits.heartbeat_interval,
            clock=services.clock,
        )
        self.heartbeat.start()

    @property
    def rest(self) -> tuple[JobId, ...]:
        return tuple(self._open)

    @property
    def is_settled(self) -> bool:
        return not self._open

    @cached_property
    def is_isolated(self) -> bool:
        """Whether these jobs are under suspicion, or a probe: then they travel without others."""
        jobs = self.lease.jobs
        return self.lease.probe or any(tier_of(job.strikes) is not Tier.NORMAL for job in jobs)

    def close(self) -> None:
        """Give back what is left, end the heartbeat, and tell what this batch has done."""
        try:
            self.release(self.rest)
            # Neither of these is worth an error that hides why the batch ended.
            with suppress(EmbedPipelineError):
                self._give_back_probe()
                self.services.jobs.counters.add(self.tally.counters())
        finally:
            self.heartbeat.stop()
            self._measure()

    def let_go(self) -> None:
        """Where the queue does not answer: extend no longer, so that the lease ends by itself."""
        self.heartbeat.stop(wait=False)
        self._measure()

    def complete(self, jobs: Sequence[EmbedJob], *, reason: str | None = None) -> int:
        settled = self.services.jobs.complete(self.lease, _ids(jobs), reason=reason)
        self.mark_done(settled)
        return len(settled.done)

    def release(self, job_ids: Sequence[JobId]) -> None:
        if not job_ids:
            return
        released = self.services.jobs.release(self.lease, job_ids)
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
        settled = self.services.jobs.defer(
            self.lease, _ids(jobs), error=failure, strike=strike, delay=delay
        )
        self.tally.deferred += len(settled.done)
        self.mark_done(settled)
        emit(
            "jobs.deferred",
            count=len(settled.done),
            job_ids=_ids(jobs),
            entity_names=[self._name_of(job) for job in jobs],
            attempts=[job.attempts for job in jobs],
            **self._circumstances(failure, limiter=self.services.limiter.allowance()),
        )

    def fail(
        self, jobs: Sequence[EmbedJob], failure: FailureRecord, *, is_counted: bool = False
    ) -> None:
        if not jobs:
            return
        failures = {job.id: failure for job in jobs}
        report = self.services.jobs.fail(self.lease, failures, is_counted=is_counted)
        self.tally.failed += len(report.failed)
        self.tally.retried += len(report.retried)
        done = (*report.failed, *report.retried)
        self.mark_done(LeaseResult(done=done, lost=report.lost))
        limiter = self.services.limiter.allowance()
        for job in jobs:
            if job.id in report.lost:
                continue
            final = job.id in report.failed
            self._tell_failure(job, failure, final=final, limiter=limiter)

    def halt(self, failure: FailureRecord, *, seen: int) -> Ending:
        """Stop everybody until a person resumes, unless one has since `seen` was read."""
        switch = self.services.jobs.switch.halt(failure.message, seen=seen)
        if switch.state is not SwitchState.HALTED:
            return Ending.REFUSED
        self.tally.critical = failure.message
        return Ending.HALTED

    def mark_done(self, settled: LeaseResult) -> None:
        """These are no longer ours: done, or lost to somebody else."""
        self.tally.lost += len(settled.lost)
        self._forget((*settled.done, *settled.lost))
        if settled.lost:
            emit(
                "lease.lost",
                worker_id=self.lease.owner,
                count=len(settled.lost),
                job_ids=settled.lost,
            )

    def _tell_failure(
        self, job: EmbedJob, failure: FailureRecord, *, final: bool, limiter: object
    ) -> None:
        entity, name = self.entities.get(job.entity_uid), self._name_of(job)
        self.tally.failures.append(
            FailedJob(job_id=job.id, entity_name=name, failure=failure, final=final)
        )
        emit(
            "job.failed" if final else "job.retry_planned",
            job_id=job.id,
            entity_name=name,
            attempt=job.attempts + 1,
            max_attempts=job.max_attempts,
            cache="miss",
            observations=entity.texts if entity else None,
            **self._circumstances(failure, limiter=limiter),
        )

    def _circumstances(self, failure: FailureRecord, *, limiter: object) -> dict[str, object]:
        """What every line about an error tells."""
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

    def _forget(self, job_ids: Iterable[JobId]) -> None:
        for job_id in job_ids:
            self._open.pop(job_id, None)
        self.heartbeat.stop_extending(job_ids)

    def _give_back_probe(self) -> None:
        """A probe that sent nothing has found nothing out: others need not wait for it."""
        if self.lease.probe and not self.tally.requests:
            breakers, provider = self.services.jobs.breakers, self.services.provider.name
            breakers.give_back_probe(provider, seen=self.lease.breaker_seen)

    def _measure(self) -> None:
        self.tally.seconds = self.services.clock.monotonic() - self._begun
        emit(
            "batch.measured",
            worker_id=self.lease.owner,
            model=self.services.model,
            **self.tally.facts(),
        )


def _ids(jobs: Sequence[EmbedJob]) -> list[JobId]:
    return [job.id for job in jobs]
