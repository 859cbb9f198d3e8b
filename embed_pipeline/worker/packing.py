"""Requests: distinct texts, packed as full as the provider and the budget take them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from embed_pipeline.domain.job import EmbedJob, JobId
from embed_pipeline.domain.window import RateLimit, Spent
from embed_pipeline.errors import InputRefused
from embed_pipeline.ports.embedding_provider import EmbeddingProvider, Input, Limits
from embed_pipeline.worker.prepare import Task

HARMLESS = Input(text="text", tokens=1)
"""What no provider has a reason to refuse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UniqueText:
    """One text, and all who have it: it is sent once."""

    input: Input
    tasks: tuple[Task, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    parcels: tuple[UniqueText, ...]
    started: bool = False
    """Part of a request that was sent before: it waits for budget under heartbeat."""
    refusal: InputRefused | None = None
    """The answer to its only text, not yet believed: a harmless text is sent in its place."""

    @property
    def inputs(self) -> list[Input]:
        return [parcel.input for parcel in self.parcels] if self.refusal is None else [HARMLESS]

    @property
    def texts(self) -> list[str]:
        return [each.text for each in self.inputs]

    @property
    def jobs(self) -> list[EmbedJob]:
        return [task.job for parcel in self.parcels for task in parcel.tasks]

    @property
    def job_ids(self) -> list[JobId]:
        return [job.id for job in self.jobs]

    @property
    def is_one_text(self) -> bool:
        return len(self.parcels) == 1

    @property
    def travels_alone(self) -> bool:
        """Whether an error can only be this one job's; several may have the same text."""
        return len(self.jobs) == 1 and self.refusal is None

    @property
    def is_shared(self) -> bool:
        """Whether an error may be any of these jobs'."""
        return len(self.jobs) > 1 and self.refusal is None

    def cost(self, limit: RateLimit | None) -> Spent:
        tokens = sum(each.tokens for each in self.inputs)
        if limit is None or limit.tokens is None:
            return Spent(requests=1, tokens=tokens)
        # A text over the whole budget takes all of it; it would never fit otherwise.
        return Spent(requests=1, tokens=min(tokens, limit.tokens))

    def cut_to(self, tokens: int) -> list[Request]:
        """What fits in so many tokens, and the rest behind it; nothing where no text fits."""
        fitting: list[UniqueText] = []
        rest: list[UniqueText] = []
        for parcel in self.parcels:
            fits = parcel.input.tokens <= tokens
            (fitting if fits else rest).append(parcel)
            tokens -= parcel.input.tokens if fits else 0
        if not fitting:
            return []
        return [replace(self, parcels=tuple(part)) for part in (fitting, rest) if part]

    def halves(self) -> tuple[Request, Request]:
        middle = len(self.parcels) // 2
        return (
            Request(parcels=self.parcels[:middle], started=True),
            Request(parcels=self.parcels[middle:], started=True),
        )

    def doubting(self, refusal: InputRefused) -> Request:
        """The same jobs, and a harmless text: where that is refused too, no text is at fault."""
        return replace(self, started=True, refusal=refusal)


def requests_for(
    tasks: Sequence[Task], *, provider: EmbeddingProvider, budget: RateLimit | None
) -> list[Request]:
    """Each distinct text once, cut to what the provider takes."""
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        groups.setdefault(task.job.version, []).append(task)
    inputs = provider.fit([group[0].entity.text for group in groups.values()])
    parcels = [
        UniqueText(input=fitted, tasks=tuple(group))
        for fitted, group in zip(inputs, groups.values(), strict=True)
    ]
    return list(_packed(parcels, provider.limits, budget))


def _packed(
    parcels: Sequence[UniqueText], limits: Limits, budget: RateLimit | None
) -> Iterator[Request]:
    budgeted = budget.tokens if budget else None
    most_tokens = min(
        (most for most in (limits.tokens, budgeted) if most is not None), default=None
    )
    packed: list[UniqueText] = []
    tokens = 0
    for parcel in parcels:
        is_over = most_tokens is not None and tokens + parcel.input.tokens > most_tokens
        if packed and (is_over or len(packed) == limits.inputs):
            yield Request(parcels=tuple(packed))
            packed, tokens = [], 0
        packed.append(parcel)
        tokens += parcel.input.tokens
    if packed:
        yield Request(parcels=tuple(packed))
