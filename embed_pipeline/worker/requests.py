"""Requests: distinct texts, packed as full as the provider and the budget take them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from embed_pipeline.model.job import EmbedJob, JobId
from embed_pipeline.model.window import RateLimit, Spent
from embed_pipeline.worker.prepare import Task

MOST_TOKENS = 300_000
"""OpenAI's limit for one request, counted as it estimates: a token per four bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Tasks grouped by text: each text is sent once, whoever else has it."""

    groups: tuple[tuple[Task, ...], ...]
    started: bool = False
    """Part of a request that was sent before: it waits for budget under heartbeat."""

    @property
    def texts(self) -> list[str]:
        return [group[0].entity.text for group in self.groups]

    @property
    def jobs(self) -> list[EmbedJob]:
        return [task.job for group in self.groups for task in group]

    @property
    def job_ids(self) -> list[JobId]:
        return [job.id for job in self.jobs]

    @property
    def travels_alone(self) -> bool:
        return len(self.groups) == 1

    def cost(self, limit: RateLimit | None) -> Spent:
        tokens = sum(estimated_tokens(text) for text in self.texts)
        if limit is None or limit.tokens is None:
            return Spent(requests=1, tokens=tokens)
        # A text over the whole budget takes all of it; it would never fit otherwise.
        return Spent(requests=1, tokens=min(tokens, limit.tokens))

    def halves(self) -> tuple[Request, Request]:
        middle = len(self.groups) // 2
        return (
            Request(groups=self.groups[:middle], started=True),
            Request(groups=self.groups[middle:], started=True),
        )


def estimated_tokens(text: str) -> int:
    return max(1, -(-len(text.encode()) // 4))


def pack(tasks: Sequence[Task], *, max_inputs: int, limit: RateLimit | None) -> Iterator[Request]:
    most_tokens = min(MOST_TOKENS, (limit and limit.tokens) or MOST_TOKENS)
    groups: list[tuple[Task, ...]] = []
    tokens = 0
    for group in _by_text(tasks):
        cost = estimated_tokens(group[0].entity.text)
        if groups and (len(groups) == max_inputs or tokens + cost > most_tokens):
            yield Request(groups=tuple(groups))
            groups, tokens = [], 0
        groups.append(group)
        tokens += cost
    if groups:
        yield Request(groups=tuple(groups))


def _by_text(tasks: Sequence[Task]) -> Iterator[tuple[Task, ...]]:
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        groups.setdefault(task.job.version, []).append(task)
    return (tuple(group) for group in groups.values())
