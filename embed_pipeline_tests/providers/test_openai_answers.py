"""What is read from a body: the rows as they are, or nothing at all."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from embed_pipeline.errors import MalformedResponse
from embed_pipeline.providers.checks import checked
from embed_pipeline.providers.openai.answers import decoded


def body(*items: tuple[Any, Any]) -> bytes:
    data = [{"index": index, "embedding": embedding} for index, embedding in items]
    return json.dumps({"data": data, "usage": {"total_tokens": 5}}).encode()


def test_rows_stand_in_the_order_of_their_index() -> None:
    vectors, tokens = decoded(body((1, [3, 4]), (0, [1, 2])))

    assert np.array_equal(vectors, np.array([[1, 2], [3, 4]], np.float32))
    assert tokens == 5


@pytest.mark.parametrize(
    "usage",
    [
        *(
            {"total_tokens": reported}
            for reported in ("n/a", None, [5], {"a": 5}, float("inf"), -5)
        ),
        *({}, None, [], "none", 5),
    ],
)
def test_vectors_are_kept_though_their_cost_cannot_be_read(usage: Any) -> None:
    answer = json.loads(body((0, [1, 2])))

    vectors, tokens = decoded(json.dumps({**answer, "usage": usage}).encode())

    assert vectors.tolist() == [[1, 2]]
    assert tokens == 0


@pytest.mark.parametrize(
    "items",
    [
        [(0, [1, 2]), (1, [3])],
        [(0, [3]), (1, [1, 2])],
        [(0, [[1, 2]]), (1, [[3, 4]])],
        [(0, [1, 2]), (None, [3, 4])],
        [(0, [1, 2]), (1.0, [3, 4])],
        [(0, [1, 2]), (2, [3, 4])],
        [(0, [1, 2]), (-1, [3, 4])],
        [(0, 7), (1, [3, 4])],
    ],
    ids=["short", "long", "nested", "no index", "real index", "beyond", "negative", "number"],
)
def test_nothing_is_guessed_from_rows_that_cannot_be_read(items: list[tuple[Any, Any]]) -> None:
    with pytest.raises(MalformedResponse):
        decoded(body(*items))


def test_row_that_none_fills_is_no_vector() -> None:
    vectors, _ = decoded(body((0, [1, 2]), (0, [3, 4])))

    with pytest.raises(MalformedResponse, match="Vector 1 of 2"):
        checked(vectors, count=2, dimensions=2)
