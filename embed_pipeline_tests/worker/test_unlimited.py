from __future__ import annotations

from datetime import timedelta

from embed_pipeline.domain.window import Allowance, Grant, RemainingQuota, Spent
from embed_pipeline.stores.queue.rate_limiter import Unlimited


def test_a_provider_without_a_budget_has_none_to_lower() -> None:
    limiter = Unlimited()

    limiter.apply_provider_limits(
        RemainingQuota(requests=0, tokens=0, back_in=timedelta(minutes=1))
    )

    assert limiter.allowance() == Allowance()
    assert isinstance(limiter.take(Spent(requests=1_000_000)), Grant)
