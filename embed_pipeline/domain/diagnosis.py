"""Why an entity can be found by meaning, or why not: a verdict and its sentence.

Pure: `worker.why` reads the graph and the queue, and this words what it read.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from embed_pipeline.domain.embedding import VectorDefect
from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import ENTITY_GONE, EmbedJob
from embed_pipeline.domain.lease import Refusal, RefusalReason
from embed_pipeline.errors import ErrorCategory


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
class Finding:
    """`message` says what is and what will be; `remedy` is the command that mends it, if any does.

    `findable` is also true of an entity that is found by an earlier text.
    """

    reason: Reason
    message: str
    remedy: str | None = None
    entity: Entity | None = None
    defect: VectorDefect | None = None
    findable: bool = False
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospects:
    """What the queue says of a pending job; `ahead` was counted up to `counted_to`."""

    now: datetime
    refusal: Refusal | None
    ahead: int
    counted_to: int
    somebody_works: bool


def unknown(wanted: str) -> Finding:
    return Finding(
        reason=Reason.UNKNOWN,
        message=f"No entity {wanted}: names are compared letter by letter.",
        remedy="embed-pipeline load FILE",
    )


def deleted(entity: Entity) -> Finding:
    return Finding(
        reason=Reason.DELETED,
        entity=entity,
        message=f"{_called(entity)} was deleted on {entity.valid_to:%Y-%m-%d %H:%M} UTC, "
        "so no search finds it. Loading it again revives it.",
        remedy="embed-pipeline load FILE",
    )


def without_text(entity: Entity, properties: tuple[str, ...]) -> Finding:
    return Finding(
        reason=Reason.NO_TEXT,
        entity=entity,
        defect=VectorDefect.MISSING,
        message=f"{_called(entity)} has nothing to embed: {', '.join(properties)} are all empty. "
        "Give it some text.",
        remedy="embed-pipeline load FILE",
    )


def of_other_model(entity: Entity, *, configured: str, in_use: tuple[str, ...]) -> Finding:
    return Finding(
        reason=Reason.OTHER_MODEL,
        entity=entity,
        message=f"{_called(entity)} is in a graph that is embedded with {', '.join(in_use)}, but "
        f"the settings say {configured}: set EMBEDDING_PROVIDER, EMBEDDING_MODEL and "
        "EMBEDDING_DIMENSIONS back.",
        remedy="embed-pipeline doctor",
    )


def good(entity: Entity) -> Finding:
    return Finding(
        reason=Reason.FOUND,
        entity=entity,
        findable=True,
        message=f"{_called(entity)} has a vector of its present text, so it can be found. Where a "
        "search does not show it, other entities are nearer: ask for more hits.",
        remedy="embed-pipeline search QUERY --limit 50",
    )


def not_queued(entity: Entity, defect: VectorDefect, job: EmbedJob | None) -> Finding:
    """`job` has ended well, and yet the vector is not (any more) there; None where none is."""
    past = "Its job is done, but the vector is gone" if job else "It has no job"
    return _defective(
        entity,
        defect,
        Reason.NOT_QUEUED,
        f"{past}: the next discovery queues it.",
        remedy="embed-pipeline discover",
    )


def failed(entity: Entity, defect: VectorDefect, job: EmbedJob) -> Finding:
    ended = f"{job.processed_at:%Y-%m-%d %H:%M} UTC" if job.processed_at else "some time ago"
    tries = f"after {job.attempts} of {job.max_attempts} attempts"
    told = f"Its job failed ({job.error_category}) {tries} on {ended}: {job.error}"
    forced = f"embed-pipeline force --key {shlex.quote(entity.uid)}"
    if job.fail_code == ENTITY_GONE:
        hope, remedy = "The entity is back, so discovery queues it.", "embed-pipeline discover"
    elif job.error_category is ErrorCategory.PERMANENT:
        hope = "It would fail again as it is: mend its text first, or force it."
        remedy = forced
    else:
        hope, remedy = "It may work now.", forced
    return _defective(entity, defect, Reason.FAILED, f"{_ended(told)} {hope}", remedy=remedy)


def in_work(entity: Entity, defect: VectorDefect, job: EmbedJob, *, now: datetime) -> Finding:
    if job.lock_until is None or job.lock_until < now:
        return _defective(
            entity,
            defect,
            Reason.ABANDONED,
            f"{job.lock_owner} took its job and was not heard of since; recovery gives it back.",
            remedy="embed-pipeline recover",
        )
    return _defective(
        entity, defect, Reason.IN_WORK, f"{job.lock_owner} is embedding it.", due_at=job.lock_until
    )


def pending(entity: Entity, defect: VectorDefect, job: EmbedJob, prospects: Prospects) -> Finding:
    refusal = prospects.refusal
    if refusal and refusal.reason in (RefusalReason.HALTED, RefusalReason.PAUSED):
        return _defective(
            entity,
            defect,
            Reason.STOPPED,
            f"It is queued, but the queue is {refusal.detail}.",
            remedy="embed-pipeline resume",
        )
    if refusal:
        return _defective(
            entity,
            defect,
            Reason.HELD_UP,
            f"It is queued, but {refusal.detail}; it goes on by itself.",
            due_at=refusal.until,
        )
    if job.available_at > prospects.now:
        before = f" after an error ({job.error})" if job.error else ""
        return _defective(
            entity,
            defect,
            Reason.WAITING,
            f"It is tried again{before} at {job.available_at:%H:%M:%S} UTC.",
            due_at=job.available_at,
        )
    idle = "" if prospects.somebody_works else " Nobody works on the queue just now."
    return _defective(
        entity,
        defect,
        Reason.WAITING,
        f"It is queued and due, with {_ahead(prospects)} before it.{idle}",
        remedy=None if prospects.somebody_works else "embed-pipeline run",
        due_at=prospects.now,
    )


def _defective(
    entity: Entity,
    defect: VectorDefect,
    reason: Reason,
    next_sentence: str,
    *,
    remedy: str | None = None,
    due_at: datetime | None = None,
) -> Finding:
    return Finding(
        reason=reason,
        message=f"{_called(entity)} {_STATE[defect]}. {next_sentence}",
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


def _called(entity: Entity) -> str:
    return f"{entity.name!r} ({entity.uid})"


def _ahead(prospects: Prospects) -> str:
    if prospects.ahead >= prospects.counted_to:
        return f"{prospects.counted_to:,} jobs or more"
    return f"at most {prospects.ahead:,} jobs" if prospects.ahead else "no job"


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?")) else sentence + "."
