"""The budget of one provider, shared by all workers and runs."""

from __future__ import annotations

from abc import abstractmethod
from datetime import timedelta
from typing import Protocol

from embed_pipeline.domain.window import Allowance, Denied, Grant, RateLimit, RemainingQuota, Spent


class RateLimiter(Protocol):
    @property
    @abstractmethod
    def limit(self) -> RateLimit | None:
        """None: the provider has no limit, so every request is granted."""

    @abstractmethod
    def take(self, cost: Spent) -> Grant | Denied:
        """Never more than the limit in any window of the interval, summed over all workers."""

    @abstractmethod
    def give_back(self, grant: Grant) -> None:
        """Return a grant that was not sent."""

    @abstractmethod
    def record_actual(self, grant: Grant, *, tokens: int) -> None:
        """The provider's own count in the place of our estimate, whether it is less or more."""

    @abstractmethod
    def pause(self, duration: timedelta) -> None:
        """No worker gets a grant until then: the provider asked for it, or too little is left.

        Never shortens a pause.
        """

    @abstractmethod
    def apply_provider_limits(self, remaining: RemainingQuota) -> None:
        """Spend no more than the provider says is left: others may use the same key.

        What is missing counts as spent now; where nothing is left, all workers pause.
        """

    @abstractmethod
    def allowance(self) -> Allowance: ...

    @abstractmethod
    def close(self) -> None: ...
