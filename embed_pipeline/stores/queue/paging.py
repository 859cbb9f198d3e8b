"""Many jobs in many small transactions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

PAGE = 1_000
"""Jobs of one transaction, so that nobody waits long for a lock of it."""


def page_by_page(act: Callable[[int], Sequence[T]], *, limit: int | None) -> tuple[T, ...]:
    """What `act` has done in all, at most `limit`; fewer than it was asked for is the end."""
    done: list[T] = []
    while limit is None or len(done) < limit:
        page = PAGE if limit is None else min(PAGE, limit - len(done))
        found = act(page)
        done += found
        if len(found) < page:
            break
    return tuple(done)
