"""Why an entity cannot be found by meaning, or when it will be: read, never changed."""

from __future__ import annotations

from embed_pipeline.errors import RequestError
from embed_pipeline.model import finding as findings
from embed_pipeline.model.embedding import Flaw
from embed_pipeline.model.entity import Entity
from embed_pipeline.model.finding import Finding, Prospects
from embed_pipeline.model.job import EmbedJob, EntityUid, JobStatus
from embed_pipeline.worker.look import held_up_by, stopped_by_hand
from embed_pipeline.worker.tools import Tools

MOST_NAMESAKES = 10
COUNTED_AHEAD = 10_000


def why(
    tools: Tools, *, name: str | None = None, key: EntityUid | None = None
) -> tuple[Finding, ...]:
    """A finding for each entity of that name, or for the one of that key, which wins.

    Deleted namesakes are told only where no valid entity has the name. Costs a few seeks and one
    bounded count, whatever the size of graph and queue.
    """
    if key is not None:
        entity = tools.graph.get_entity(key)
        return (_finding(tools, entity) if entity else findings.unknown(f"has the key {key!r}"),)
    if name is None or not name.strip():
        raise RequestError("A name or a key must be given.")
    namesakes = tools.graph.find_by_name(name, limit=MOST_NAMESAKES)
    if not namesakes and name != name.strip():
        namesakes = tools.graph.find_by_name(name.strip(), limit=MOST_NAMESAKES)
    if not namesakes:
        return (findings.unknown(f"is named {name!r}"),)
    valid = [entity for entity in namesakes if entity.is_valid]
    return tuple(_finding(tools, entity) for entity in valid or namesakes[:1])


def _finding(tools: Tools, entity: Entity) -> Finding:
    if not entity.is_valid:
        return findings.deleted(entity)
    if not entity.text:
        return findings.without_text(entity, tools.graph.mapping.text)
    in_use = tuple(record.model for record in tools.graph.models() if record.takes_vectors)
    if in_use and tools.model not in in_use:
        return findings.of_other_model(entity, configured=tools.model, in_use=in_use)
    flaw = tools.graph.judge([entity.uid], model=tools.model).get(entity.uid)
    if flaw is None:
        return findings.good(entity)
    return _finding_of_job(tools, entity, flaw, _job_of(tools, entity))


def _finding_of_job(tools: Tools, entity: Entity, flaw: Flaw, job: EmbedJob | None) -> Finding:
    match job:
        case EmbedJob(status=JobStatus.FAILED):
            return findings.failed(entity, flaw, job)
        case EmbedJob(status=JobStatus.PROCESSING):
            return findings.in_work(entity, flaw, job, now=tools.jobs.now())
        case EmbedJob(status=JobStatus.PENDING):
            return findings.pending(entity, flaw, job, _prospects(tools, job))
        case _:
            return findings.not_queued(entity, flaw, job)


def _job_of(tools: Tools, entity: Entity) -> EmbedJob | None:
    """The job of the present text; else one of an earlier text that is under way.

    Whoever takes the latter sees that the text has changed, and queues the present one.
    """
    jobs = [job for job in tools.jobs.history.of_entity(entity.uid) if job.model == tools.model]
    present = next((job for job in jobs if job.version == entity.version), None)
    if present is not None and present.status is not JobStatus.COMPLETED:
        return present
    live = (JobStatus.PENDING, JobStatus.PROCESSING)
    return next((job for job in jobs if job.status in live), present)


def _prospects(tools: Tools, job: EmbedJob) -> Prospects:
    jobs, now = tools.jobs, tools.jobs.now()
    refusal = stopped_by_hand(jobs) or held_up_by(jobs, tools.limiter, model=tools.model, now=now)
    return Prospects(
        now=now,
        refusal=refusal,
        ahead=jobs.history.ahead_of(job, limit=COUNTED_AHEAD),
        counted_to=COUNTED_AHEAD,
        somebody_works=bool(jobs.live_owners()),
    )
