"""What closes a gap: decided once, worded by every interface."""

from __future__ import annotations

import pytest

from embed_pipeline.domain.diagnosis import Remedy, remedies_for_gaps
from embed_pipeline.domain.partition import Coverage

DISCOVER, RUN, RESUME = Remedy.DISCOVER, Remedy.RUN, Remedy.RESUME
RETRY_FAILED = Remedy.RETRY_FAILED


@pytest.mark.parametrize(
    ("gaps", "queued", "parked", "remedies"),
    [
        (0, 0, 0, {}),
        (5, 0, 0, {DISCOVER: 5}),
        (5, 5, 0, {RUN: 5}),
        (5, 2, 0, {DISCOVER: 3, RUN: 2}),
        (5, 0, 5, {RETRY_FAILED: 5}),
        (5, 0, 2, {DISCOVER: 3, RETRY_FAILED: 2}),
        (5, 3, 2, {RUN: 3, RETRY_FAILED: 2}),
        (5, 1, 2, {DISCOVER: 2, RUN: 1, RETRY_FAILED: 2}),
        (0, 4, 0, {RUN: 4}),
        (0, 0, 4, {RETRY_FAILED: 4}),
        (2, 9, 9, {RUN: 9, RETRY_FAILED: 9}),
    ],
)
def test_each_gap_has_the_remedy_that_closes_it(
    gaps: int, queued: int, parked: int, remedies: dict[Remedy, int]
) -> None:
    coverage = Coverage(entities=10, embedded=10 - gaps, missing=gaps)

    found = remedies_for_gaps(coverage, queued=queued, parked=parked, stopped=False)

    assert list(found.items()) == list(remedies.items())


@pytest.mark.parametrize(
    ("queued", "remedies"), [(0, {DISCOVER: 5}), (2, {DISCOVER: 3, RESUME: 2}), (5, {RESUME: 5})]
)
def test_a_stopped_queue_is_resumed_before_it_is_run(
    queued: int, remedies: dict[Remedy, int]
) -> None:
    coverage = Coverage(entities=10, embedded=5, stale=5)

    found = remedies_for_gaps(coverage, queued=queued, parked=0, stopped=True)

    assert list(found.items()) == list(remedies.items())
