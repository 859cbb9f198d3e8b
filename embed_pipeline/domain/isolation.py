"""Isolation: a job that repeatedly crashes its worker is leased in ever smaller batches.

`strikes` counts the crashes and failed shared requests that a job was part of. So the job that
causes them is finally alone and fails alone, without the others that happened to be beside it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Tier(IntEnum):
    NORMAL = 0
    SMALL = 1
    SOLO = 2


SMALL_FROM_STRIKES, SOLO_FROM_STRIKES = 2, 4
SMALL_BATCH = 16


def tier_of(strikes: int) -> Tier:
    if strikes >= SOLO_FROM_STRIKES:
        return Tier.SOLO
    return Tier.SMALL if strikes >= SMALL_FROM_STRIKES else Tier.NORMAL


class Head(NamedTuple):
    """The first due job of a rank and a tier; `due` is its time in milliseconds."""

    rank: int
    tier: int
    due: int


def lease_order(head: Head, *, probing: bool) -> tuple[int, int, int]:
    """What the heads of the queue are sorted by; the first one decides what a lease takes.

    A probe goes to the job that has waited longest, whatever its priority: a failed one is put
    behind the others, and would otherwise be the first again as soon as it is due.
    """
    rank, tier, due = head
    return (due, rank, tier) if probing else (rank, due, tier)


def batch_limit(tier: Tier, limit: int) -> int:
    """How many jobs a lease of this tier may hold."""
    match tier:
        case Tier.NORMAL:
            return limit
        case Tier.SMALL:
            return min(limit, SMALL_BATCH)
        case Tier.SOLO:
            return min(limit, 1)
