from __future__ import annotations

from datetime import timedelta

import pytest

from embed_pipeline.providers.openai.headers import LONGEST, retry_after

DATE = "Wed, 21 Oct 2026 07:28:00 GMT"
LATER = "Wed, 21 Oct 2026 07:28:30 GMT"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "20"}, timedelta(seconds=20)),
        ({"retry-after": "0.5"}, timedelta(seconds=0.5)),
        ({"retry-after": "0"}, timedelta()),
        ({"retry-after-ms": "1500", "retry-after": "20"}, timedelta(seconds=1.5)),
        ({"retry-after-ms": "soon", "retry-after": "20"}, timedelta(seconds=20)),
        ({"retry-after": LATER, "date": DATE}, timedelta(seconds=30)),
        ({"retry-after": DATE, "date": LATER}, timedelta()),
        ({"retry-after": "-5"}, timedelta()),
        ({"retry-after": "86400"}, LONGEST),
        ({"retry-after": "1e300"}, LONGEST),
        ({"retry-after-ms": "inf"}, LONGEST),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT", "date": DATE}, LONGEST),
    ],
)
def test_the_wait_is_read_and_bounded(headers: dict[str, str], expected: timedelta) -> None:
    assert retry_after(headers) == expected


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"retry-after": ""},
        {"retry-after": "soon"},
        {"retry-after": "nan"},
        {"retry-after": LATER},
        {"retry-after": LATER, "date": "today"},
    ],
)
def test_nothing_readable_is_no_wait(headers: dict[str, str]) -> None:
    assert retry_after(headers) is None
