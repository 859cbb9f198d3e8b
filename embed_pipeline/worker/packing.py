"""Pack distinct texts into requests, as full as the provider and the budget allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from embed_pipeline.domain.job import EmbedJob, JobId
from embed_pipeline.domain.window import RateLimit, Spent
from embed_pipeline.errors import InputRefused
from embed_pipeline.ports.embedding_provider import EmbeddingProvider, Input, Limits
from embed_pipeline.worker.batch import Task

HARMLESS = Input(text="text", tokens=1)
"""A text that no provider has a reason to refuse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UniqueText:
    """One text, sent once for all jobs that have it."""

    input: Input
    tasks: tuple[Task, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    texts: tuple[UniqueText, ...]
    started: bool = False
    """Whether it was part of a request sent before: then it waits for budget under heartbeat."""
    refusal: InputRefused | None = None
    """The answer to its only text, unconfirmed: a harmless text is sent in its place first."""

    @property
    def inputs(self) -> list[Input]:
        """What is sent."""
        return [text.input for text in self.texts] if self.refusal is None else [HARMLESS]

    @property
    def jobs(self) -> list[EmbedJob]:
        return [task.job for text in self.texts for task in text.tasks]

    @property
    def job_ids(self) -> list[JobId]:
        return [job.id for job in self.jobs]

    @property
    def is_one_text(self) -> bool:
        return len(self.texts) == 1

    @property
    def is_one_job(self) -> bool:
        """Whether only this job can have caused an error; several jobs may have one text."""
        return len(self.jobs) == 1 and self.refusal is None

    @property
    def is_shared(self) -> bool:
        """Whether any of several jobs may have caused an error."""
        return len(self.jobs) > 1 and self.refusal is None

    def cost(self, limit: RateLimit | None) -> Spent:
        tokens = sum(each.tokens for each in self.inputs)
        if limit is None or limit.tokens is None:
            return Spent(requests=1, tokens=tokens)
        # A text larger than the whole budget takes all of it: otherwise it would never fit.
        return Spent(requests=1, tokens=min(tokens, limit.tokens))

    def cut_to(self, tokens: int) -> list[Request]:
        """One request of the texts that fit, one of the others; empty if no text fits."""
        fitting: list[UniqueText] = []
        rest: list[UniqueText] = []
        for text in self.texts:
            fits = text.input.tokens <= tokens
            (fitting if fits else rest).append(text)
            tokens -= text.input.tokens if fits else 0
        if not fitting:
            return []
        return [replace(self, texts=tuple(part)) for part in (fitting, rest) if part]

    def halves(self) -> tuple[Request, Request]:
        middle = len(self.texts) // 2
        return (
            Request(texts=self.texts[:middle], started=True),
            Request(texts=self.texts[middle:], started=True),
        )

    def with_harmless_text(self, refusal: InputRefused) -> Request:
        """To confirm a refusal: if a harmless text is refused too, the settings are at fault."""
        return replace(self, started=True, refusal=refusal)


def pack(
    tasks: Sequence[Task], *, provider: EmbeddingProvider, budget: RateLimit | None
) -> list[Request]:
    """Each distinct text once, truncated to what the provider accepts."""
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        groups.setdefault(task.job.version, []).append(task)
    inputs = provider.fit([group[0].entity.text for group in groups.values()])
    texts = [
        UniqueText(input=fitted, tasks=tuple(group))
        for fitted, group in zip(inputs, groups.values(), strict=True)
    ]
    return list(_requests(texts, provider.limits, budget))


def _requests(
    texts: Sequence[UniqueText], limits: Limits, budget: RateLimit | None
) -> Iterator[Request]:
    budgeted = budget.tokens if budget else None
    most_tokens = min(
        (most for most in (limits.tokens, budgeted) if most is not None), default=None
    )
    packed: list[UniqueText] = []
    tokens = 0
    for text in texts:
        is_over = most_tokens is not None and tokens + text.input.tokens > most_tokens
        if packed and (is_over or len(packed) == limits.inputs):
            yield Request(texts=tuple(packed))
            packed, tokens = [], 0
        packed.append(text)
        tokens += text.input.tokens
    if packed:
        yield Request(texts=tuple(packed))
