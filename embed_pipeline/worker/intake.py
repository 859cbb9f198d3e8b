"""Take in a batch: lease it, read its entities, sort its jobs and pack the texts to embed."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from embed_pipeline.domain.embedding import StoredVector
from embed_pipeline.domain.job import EmbedJob, JobRequest
from embed_pipeline.domain.lease import Lease
from embed_pipeline.errors import CriticalError, TransientError
from embed_pipeline.worker.batch import LeasedBatch, Task
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.leasing import lease_batch
from embed_pipeline.worker.outcomes import entity_gone, pause_for_graph, record_of
from embed_pipeline.worker.packing import Request, pack


@dataclass(slots=True, kw_only=True)
class SortedJobs:
    """The jobs of a batch by what they need."""

    gone: list[EmbedJob] = field(default_factory=list)
    superseded: list[Task] = field(default_factory=list)
    empty: list[EmbedJob] = field(default_factory=list)
    """The entity has nothing to embed, and its label says so."""
    refilled: list[EmbedJob] = field(default_factory=list)
    """The entity had no text when it was read, but has one now."""
    embedded: list[EmbedJob] = field(default_factory=list)
    """The entity has the vector of this very version already."""
    reusable: list[tuple[Task, StoredVector]] = field(default_factory=list)
    """Another entity has the same text, and its vector is paid for."""
    fresh: list[Task] = field(default_factory=list)
    """Only these are sent to the provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """What a lease brought: no jobs, jobs ready to send, or an error of reading their texts."""

    lease: Lease
    batch: LeasedBatch | None = None
    jobs: SortedJobs = field(default_factory=SortedJobs)
    requests: list[Request] = field(default_factory=list)
    error: TransientError | CriticalError | None = None


def take_in(
    services: Services, *, owner: str, limit: int | None = None, lease: Lease | None = None
) -> Intake:
    """Lease and read a batch, or read one leased before; its heartbeat starts in here."""
    lease = lease or lease_batch(services, owner=owner, limit=limit)
    if lease.refusal is not None or not lease.jobs:
        return Intake(lease=lease)
    batch = LeasedBatch(services, lease)
    try:
        return _read(services, batch)
    except BaseException:
        # If the queue is down too, this still stops the heartbeat, and the lease expires.
        with suppress(Exception):
            batch.close()
        raise


def _read(services: Services, batch: LeasedBatch) -> Intake:
    lease, seen = batch.lease, batch.control.graph.generation
    try:
        jobs = sort_jobs(batch)
        if jobs.fresh:
            services.provider.get_ready()
        requests = pack(jobs.fresh, provider=services.provider, budget=services.limiter.limit)
    except TransientError as error:
        instead = pause_for_graph(services, error, seen=seen, entities=len(lease.jobs))
        return Intake(lease=lease, batch=batch, error=instead or error)
    except CriticalError as error:
        return Intake(lease=lease, batch=batch, error=error)
    return Intake(lease=lease, batch=batch, jobs=jobs, requests=requests)


def sort_jobs(batch: LeasedBatch) -> SortedJobs:
    """Read the entities of the whole batch at once, and sort its jobs by them."""
    graph, model = batch.services.graph, batch.services.model
    uids = [job.entity_uid for job in batch.lease.jobs]
    batch.entities = graph.read_entities(uids)
    stored = graph.embedded_versions(uids, model=model)
    found = SortedJobs()
    unembedded: list[Task] = []
    for job in batch.lease.jobs:
        entity = batch.entities.get(job.entity_uid)
        if entity is None or not entity.is_valid:
            found.gone.append(job)
        elif not entity.text:
            found.empty.append(job)
        elif entity.version != job.version:
            found.superseded.append(Task(job=job, entity=entity))
        elif stored.get(job.entity_uid) == job.version and not job.force:
            found.embedded.append(job)
        else:
            unembedded.append(Task(job=job, entity=entity))
    _label_empty(batch.services, found)
    _sort_reusable(batch.services, unembedded, found)
    return found


def _label_empty(services: Services, found: SortedJobs) -> None:
    uids = [job.entity_uid for job in found.empty]
    relabelled = services.graph.relabel(uids) if uids else ()
    labelled = {one.entity.uid for one in relabelled if one.labels.nothing_to_embed}
    found.refilled = [job for job in found.empty if job.entity_uid not in labelled]
    found.empty = [job for job in found.empty if job.entity_uid in labelled]


def _sort_reusable(services: Services, tasks: list[Task], found: SortedJobs) -> None:
    versions = {task.job.version for task in tasks if not task.job.force}
    vectors = services.graph.vectors_of_versions(versions, model=services.model)
    for task in tasks:
        stored = None if task.job.force else vectors.get(task.job.version)
        if stored is None:
            found.fresh.append(task)
        else:
            found.reusable.append((task, stored))


def finish_without_request(batch: LeasedBatch, jobs: SortedJobs) -> None:
    """Finish the jobs that need neither a request nor a vector."""
    if jobs.gone:
        batch.fail(jobs.gone, entity_gone())
    batch.release([job.id for job in jobs.refilled])
    if jobs.empty:
        batch.report.nothing_to_embed += batch.complete(jobs.empty, reason="nothing to embed")
    supersede(batch, jobs.superseded)
    if jobs.embedded:
        batch.report.reused += batch.complete(jobs.embedded, reason="already embedded")


def supersede(batch: LeasedBatch, tasks: list[Task]) -> None:
    """The text has changed: queue its current version first, then complete the old job.

    A text that was emptied has no version to queue.
    """
    if not tasks:
        return
    jobs = [task.job for task in tasks]
    try:
        _queue_current(batch.services, tasks)
    except TransientError as error:  # whoever leases the job next finds the same
        batch.defer(jobs, record_of(error))
    else:
        batch.report.superseded += batch.complete(jobs, reason="superseded")


def _queue_current(services: Services, tasks: list[Task]) -> None:
    emptied = [task.entity.uid for task in tasks if not task.entity.text]
    if emptied:
        services.graph.relabel(emptied)
    versions = {task.entity.uid: task.entity.version for task in tasks if task.entity.text}
    if not versions:
        return
    stored = services.graph.embedded_versions(list(versions), model=services.model)
    services.jobs.enqueue(
        [
            JobRequest(
                entity_uid=uid,
                model=services.model,
                version=version,
                embedded=stored.get(uid) == version,
            )
            for uid, version in versions.items()
        ]
    )
