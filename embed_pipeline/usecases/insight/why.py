"""Why an entity cannot be found by meaning, or when it will be. Changes nothing."""

from __future__ import annotations

from embed_pipeline.domain import diagnosis
from embed_pipeline.domain.diagnosis import Diagnosis, Prospects
from embed_pipeline.domain.embedding import VectorDefect
from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import EmbedJob, EntityUid, JobStatus
from embed_pipeline.errors import RequestError
from embed_pipeline.usecases.queue.readiness import find_refusal
from embed_pipeline.worker.context import Services

MOST_NAMESAKES = 10
COUNTED_AHEAD = 10_000


def why(
    services: Services, *, name: str | None = None, key: EntityUid | None = None
) -> tuple[Diagnosis, ...]:
    """A diagnosis for each entity of that name, or, if a key is given, for the one of that key.

    Deleted entities are included only if no valid entity has the name. Costs a few index seeks
    and one bounded count, whatever the size of graph and queue.
    """
    if key is not None:
        entity = services.graph.get_entity(key)
        return (
            _explain(services, entity) if entity else diagnosis.unknown(f"has the key {key!r}"),
        )
    if name is None or not name.strip():
        raise RequestError("A name or a key must be given.")
    namesakes = services.graph.find_by_name(name, limit=MOST_NAMESAKES)
    if not namesakes and name != name.strip():
        namesakes = services.graph.find_by_name(name.strip(), limit=MOST_NAMESAKES)
    if not namesakes:
        return (diagnosis.unknown(f"is named {name!r}"),)
    valid = [entity for entity in namesakes if entity.is_valid]
    return tuple(_explain(services, entity) for entity in valid or namesakes[:1])


def _explain(services: Services, entity: Entity) -> Diagnosis:
    return diagnosis.with_text_left_out(_diagnose(services, entity), entity)


def _diagnose(services: Services, entity: Entity) -> Diagnosis:
    if not entity.is_valid:
        return diagnosis.deleted(entity)
    if not entity.text:
        parts = tuple(map(str, services.graph.collection_of(entity).text))
        return diagnosis.without_text(entity, parts)
    in_use = tuple(record.model for record in services.graph.models() if record.takes_vectors)
    if in_use and services.model not in in_use:
        return diagnosis.of_other_model(entity, configured=services.model, in_use=in_use)
    defect = services.graph.classify([entity.uid], model=services.model).get(entity.uid)
    if defect is None:
        return diagnosis.good(entity)
    return _diagnose_job(services, entity, defect, _job_of(services, entity))


def _diagnose_job(
    services: Services, entity: Entity, defect: VectorDefect, job: EmbedJob | None
) -> Diagnosis:
    match job:
        case EmbedJob(status=JobStatus.FAILED):
            return diagnosis.failed(entity, defect, job)
        case EmbedJob(status=JobStatus.PROCESSING):
            return diagnosis.in_work(entity, defect, job, now=services.jobs.now())
        case EmbedJob(status=JobStatus.PENDING):
            return diagnosis.pending(entity, defect, job, _prospects(services, job))
        case _:
            return diagnosis.not_queued(entity, defect, job)


def _job_of(services: Services, entity: Entity) -> EmbedJob | None:
    """The job of the current text, otherwise a pending or running job of an earlier text.

    A worker that leases the latter notices that the text has changed and queues the current one.
    """
    jobs = [
        job for job in services.jobs.history.of_entity(entity.uid) if job.model == services.model
    ]
    current = next((job for job in jobs if job.version == entity.version), None)
    if current is not None and current.status is not JobStatus.COMPLETED:
        return current
    live = (JobStatus.PENDING, JobStatus.PROCESSING)
    return next((job for job in jobs if job.status in live), current)


def _prospects(services: Services, job: EmbedJob) -> Prospects:
    jobs = services.jobs
    state = jobs.control_state(provider=services.provider.name)
    return Prospects(
        now=state.now,
        refusal=find_refusal(state, services.limiter),
        ahead=jobs.history.ahead_of(job, limit=COUNTED_AHEAD),
        counted_to=COUNTED_AHEAD,
        has_workers=bool(jobs.live_owners()),
    )
