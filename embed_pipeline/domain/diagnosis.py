"""What an entity or the whole graph lacks, and what to do about it.

Pure: the use cases read the graph and the queue and pass in what they read. A remedy is a value;
each interface words it for its readers, as a command, a tool or a Dagster job.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from embed_pipeline.domain.embedding import VectorDefect
from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import ENTITY_GONE, EmbedJob
from embed_pipeline.domain.lease import Refusal, RefusalReason
from embed_pipeline.domain.partition import Coverage
from embed_pipeline.domain.recipe import MOST_RELATIONSHIPS
from embed_pipeline.errors import ErrorCategory


class Remedy(StrEnum):
    """What a person or an agent can do; None, where one is expected, means: wait."""

    CREATE = "create"
    UPDATE = "update"
    DISCOVER = "discover"
    FORCE = "force"
    RETRY_FAILED = "retry failed"
    RUN = "run"
    RESUME = "resume"
    RECOVER = "recover"
    SEARCH_MORE = "search more"
    FIX_SETTINGS = "fix settings"


class Reason(StrEnum):
    FOUND = "can be found"
    UNKNOWN = "unknown"
    DELETED = "deleted"
    NO_TEXT = "no text"
    OTHER_MODEL = "other model"
    NOT_QUEUED = "not queued"
    WAITING = "waiting"
    STOPPED = "queue stopped"
    HELD_UP = "held up"
    IN_WORK = "in work"
    ABANDONED = "abandoned"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Why one entity can or cannot be found by meaning.

    `message` says what is the case and what happens without intervention. `findable` is also true
    for an entity that is found by an earlier text.
    """

    reason: Reason
    message: str
    remedy: Remedy | None = None
    entity: Entity | None = None
    defect: VectorDefect | None = None
    findable: bool = False
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospects:
    """What the queue says about a pending job; `ahead` was counted up to `counted_to`."""

    now: datetime
    refusal: Refusal | None
    ahead: int
    counted_to: int
    has_workers: bool


def remedies_for_gaps(
    coverage: Coverage, *, queued: int, parked: int, stopped: bool
) -> dict[Remedy, int]:
    """What closes the gaps, in the order to do it, and for how many jobs or entities.

    Discovery skips entities whose job is queued or parked, so it is a remedy only for the gaps
    beyond these. Counts cannot tell which entity a job belongs to: a job of an entity that has a
    good vector can hide a gap until the job has ended.
    """
    gaps = coverage.gaps
    counts = {
        Remedy.DISCOVER: gaps - queued - parked,
        Remedy.RESUME if stopped else Remedy.RUN: queued,
        Remedy.RETRY_FAILED: parked,
    }
    return {remedy: count for remedy, count in counts.items() if count > 0}


def unknown(wanted: str) -> Diagnosis:
    """`wanted` is what no entity is or has, such as "is named 'Ada'"."""
    return Diagnosis(
        reason=Reason.UNKNOWN,
        message=f"No entity {wanted}. It must match exactly, letter by letter.",
        remedy=Remedy.CREATE,
    )


def deleted(entity: Entity) -> Diagnosis:
    how = "was erased: it is never embedded again, so no search finds it."
    if not entity.erased:
        how = f"was deleted on {entity.valid_to:%Y-%m-%d %H:%M} UTC, so no search finds it. "
        how += "Loading it again restores it."
    remedy = None if entity.erased else Remedy.UPDATE
    message = f"{_title(entity)} {how}"
    return Diagnosis(reason=Reason.DELETED, entity=entity, message=message, remedy=remedy)


def without_text(entity: Entity, properties: tuple[str, ...]) -> Diagnosis:
    return Diagnosis(
        reason=Reason.NO_TEXT,
        entity=entity,
        defect=VectorDefect.MISSING,
        message=f"{_title(entity)} has nothing to embed: {', '.join(properties)} are all empty.",
        remedy=Remedy.UPDATE,
    )


def with_text_left_out(found: Diagnosis, entity: Entity) -> Diagnosis:
    """The same, with a sentence on neighbours that are not in the entity's text."""
    if not entity.left_out:
        return found
    message = (
        f"{found.message} Its text is without {' and '.join(entity.left_out)}: it has more than "
        f"{MOST_RELATIONSHIPS:,} of these relationships."
    )
    return replace(found, message=message)


def of_other_model(entity: Entity, *, configured: str, in_use: tuple[str, ...]) -> Diagnosis:
    return Diagnosis(
        reason=Reason.OTHER_MODEL,
        entity=entity,
        message=f"{_title(entity)} is in a graph that is embedded with {', '.join(in_use)}, but "
        f"the settings say {configured}: set EMBEDDING_PROVIDER, EMBEDDING_MODEL and "
        "EMBEDDING_DIMENSIONS back.",
        remedy=Remedy.FIX_SETTINGS,
    )


def good(entity: Entity) -> Diagnosis:
    return Diagnosis(
        reason=Reason.FOUND,
        entity=entity,
        findable=True,
        message=f"{_title(entity)} has a vector of its current text, so it can be found. If a "
        "search does not show it, other entities are nearer: ask for more hits.",
        remedy=Remedy.SEARCH_MORE,
    )


def not_queued(entity: Entity, defect: VectorDefect, job: EmbedJob | None) -> Diagnosis:
    """`job` is the completed job whose vector is gone; None if the entity has no job."""
    past = "Its job is completed, but the vector is gone" if job else "It has no job"
    message = f"{past}. The next discovery queues it."
    return _defective(entity, defect, Reason.NOT_QUEUED, message, remedy=Remedy.DISCOVER)


def failed(entity: Entity, defect: VectorDefect, job: EmbedJob) -> Diagnosis:
    ended = f"{job.processed_at:%Y-%m-%d %H:%M} UTC" if job.processed_at else "an unknown date"
    attempts = f"after {job.attempts} of {job.max_attempts} attempts"
    failure = f"Its job failed ({job.error_category}) {attempts} on {ended}: {job.error}"
    if not failure.endswith((".", "!", "?")):
        failure += "."
    if job.fail_code == ENTITY_GONE:
        advice, remedy = "The entity is back, so the next discovery queues it.", Remedy.DISCOVER
    elif job.error_category is ErrorCategory.PERMANENT:
        advice = "It would fail again as it is: correct its text first, or force it."
        remedy = Remedy.FORCE
    else:
        advice, remedy = "It may succeed now.", Remedy.FORCE
    return _defective(entity, defect, Reason.FAILED, f"{failure} {advice}", remedy=remedy)


def in_work(entity: Entity, defect: VectorDefect, job: EmbedJob, *, now: datetime) -> Diagnosis:
    if job.lock_until is None or job.lock_until < now:
        message = f"Its job was leased by {job.lock_owner}, whose lease expired without a result."
        return _defective(entity, defect, Reason.ABANDONED, message, remedy=Remedy.RECOVER)
    message = f"{job.lock_owner} is embedding it."
    return _defective(entity, defect, Reason.IN_WORK, message, due_at=job.lock_until)


def pending(entity: Entity, defect: VectorDefect, job: EmbedJob, prospects: Prospects) -> Diagnosis:
    refusal = prospects.refusal
    if refusal and refusal.reason in (RefusalReason.HALTED, RefusalReason.PAUSED):
        message = f"It is queued, but the queue is {refusal.detail}."
        return _defective(entity, defect, Reason.STOPPED, message, remedy=Remedy.RESUME)
    if refusal:
        message = f"It is queued, but {refusal.detail}; it continues by itself."
        return _defective(entity, defect, Reason.HELD_UP, message, due_at=refusal.until)
    if job.available_at > prospects.now:
        after = f" after an error ({job.error})" if job.error else ""
        message = f"It is tried again{after} at {job.available_at:%H:%M:%S} UTC."
        return _defective(entity, defect, Reason.WAITING, message, due_at=job.available_at)
    idle = "" if prospects.has_workers else " No worker is running."
    return _defective(
        entity,
        defect,
        Reason.WAITING,
        f"It is queued and due, with {_ahead(prospects)} before it.{idle}",
        remedy=None if prospects.has_workers else Remedy.RUN,
        due_at=prospects.now,
    )


def _defective(
    entity: Entity,
    defect: VectorDefect,
    reason: Reason,
    message: str,
    *,
    remedy: Remedy | None = None,
    due_at: datetime | None = None,
) -> Diagnosis:
    return Diagnosis(
        reason=reason,
        message=f"{_title(entity)} {_STATE[defect]}. {message}",
        remedy=remedy,
        entity=entity,
        defect=defect,
        findable=defect is VectorDefect.STALE,
        due_at=due_at,
    )


_STATE = {
    VectorDefect.MISSING: "has no vector yet, so no search finds it",
    VectorDefect.STALE: "is found only by an earlier text: it has changed since it was embedded",
    VectorDefect.WRONG_MODEL: "has a vector of another model, which no search uses",
    VectorDefect.WRONG_DIMENSION: "has a vector of a wrong length, which no search uses",
}


def _title(entity: Entity) -> str:
    return f"{entity.name!r} ({entity.uid})"


def _ahead(prospects: Prospects) -> str:
    if prospects.ahead >= prospects.counted_to:
        return f"{prospects.counted_to:,} jobs or more"
    return f"at most {prospects.ahead:,} jobs" if prospects.ahead else "no job"
