"""Work beside the run's own thread; what comes of it is handled in that thread alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from enum import Enum, auto
from typing import Any, TypeVar

T = TypeVar("T")


class Errand(Enum):
    LEASE = auto()
    REQUEST = auto()
    WRITE = auto()


class Crew:
    """Daemon threads: a provider that never answers does not keep the process.

    Only the thread that owns the crew starts errands and handles their outcomes, so nothing that
    it decides with needs a lock; an interrupt of it cannot tear a paid answer apart.
    """

    def __init__(self) -> None:
        self._under_way: dict[Future[Any], tuple[Errand, Callable[[Future[Any]], None]]] = {}

    @property
    def is_idle(self) -> bool:
        return not self._under_way

    def busy(self, errand: Errand) -> int:
        return sum(kind is errand for kind, _ in self._under_way.values())

    def start(
        self, errand: Errand, work: Callable[[], T], *, then: Callable[[Future[T]], None]
    ) -> None:
        """Known before it begins: an interrupt in here finds what it has to wait for."""
        future: Future[T] = Future()
        self._under_way[future] = (errand, then)
        threading.Thread(
            target=_perform, args=(future, work), name=f"embed-{errand.name.lower()}", daemon=True
        ).start()

    def handle_finished(self, *, timeout: float | None = None) -> bool:
        """Wait for the first errand to end and handle all that have; False when none did in time.

        An error of handling one leaves the others for the next call.
        """
        finished, _ = wait(self._under_way, timeout=timeout, return_when=FIRST_COMPLETED)
        # In the order in which they were started: as if one had come after the other.
        for future in [future for future in self._under_way if future in finished]:
            _, then = self._under_way.pop(future)
            then(future)
        return bool(finished)

    def abandon(self, errand: Errand, *, late: Callable[[Future[Any]], None]) -> None:
        """Wait no longer; what still comes of such errands is handled in their own threads."""
        for future, (kind, _) in self._under_way.items():
            if kind is errand:
                future.add_done_callback(late)


def _perform(future: Future[T], work: Callable[[], T]) -> None:
    try:
        result = work()
    except BaseException as error:  # handed to the one who handles the outcome
        future.set_exception(error)
    else:
        future.set_result(result)
