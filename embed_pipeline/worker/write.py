"""Vectors into the graph first, then the jobs are completed."""

from __future__ import annotations

from collections.abc import Sequence

from embed_pipeline.errors import CriticalError, TransientError
from embed_pipeline.model.breaker import GRAPH, pause_at
from embed_pipeline.model.embedding import Vector, VectorWrite, WriteReport
from embed_pipeline.worker.failures import GONE, record_of
from embed_pipeline.worker.holding import Holding
from embed_pipeline.worker.pace import Pace
from embed_pipeline.worker.prepare import Task, supersede

Paid = tuple[Task, Vector, bool]
"""A task, its vector, and whether the text had to be cut for it."""


def write_and_complete(holding: Holding, paid: Sequence[Paid], pace: Pace) -> int:
    """How many vectors landed. While the graph is down, paid vectors wait under heartbeat."""
    landed = 0
    size = holding.tools.plan.write_size
    for start in range(0, len(paid), size):
        page = paid[start : start + size]
        try:
            report = _write_patiently(holding, page, pace)
        except (TransientError, CriticalError) as error:
            holding.defer([task.job for task, _, _ in paid[start:]], record_of(error))
            if isinstance(error, CriticalError):
                raise
            return landed
        landed += _complete(holding, page, report)
    return landed


def _write_patiently(holding: Holding, page: Sequence[Paid], pace: Pace) -> WriteReport:
    """Raises when the graph stays down for longer than there is time, or is out of order."""
    tools, breakers = holding.tools, holding.tools.jobs.breakers
    writes = [
        VectorWrite(
            uid=task.entity.uid,
            texts=task.entity.texts,
            version=task.job.version,
            vector=vector,
            truncated=truncated,
        )
        for task, vector, truncated in page
    ]
    breaker = breakers.read(GRAPH)
    while True:
        try:
            report = tools.graph.write_vectors(writes, model=tools.model)
        except TransientError as error:
            breaker = breakers.trip(GRAPH, seen=breaker.generation, error=record_of(error))
            pause = pause_at(max(1, breaker.level))
            if not pace.allows(pause):
                raise
            pace.wait(pause)
            breaker = breakers.claim_probe(GRAPH) or breakers.read(GRAPH)
        else:
            if breaker.is_open:
                breakers.close(GRAPH, seen=breaker.generation)
            return report


def _complete(holding: Holding, page: Sequence[Paid], report: WriteReport) -> int:
    tasks = {task.entity.uid: task for task, _, _ in page}
    changed = holding.tools.graph.read_entities(report.superseded) if report.superseded else {}
    gone = [uid for uid in (*report.gone, *report.superseded) if uid not in changed]
    holding.fail([tasks[uid].job for uid in gone], GONE)
    supersede(holding, [Task(job=tasks[uid].job, entity=entity) for uid, entity in changed.items()])
    written = [tasks[uid].job for uid in report.written]
    return holding.complete(written) if written else 0
