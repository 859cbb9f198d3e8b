from __future__ import annotations

import numpy as np
import pytest

from embed_pipeline.errors import MalformedResponse
from embed_pipeline.ports.embedding_provider import Vectors
from embed_pipeline.providers.checks import checked


def good() -> Vectors:
    return np.ones((3, 4), np.float32)


def test_good_vectors_pass_unchanged() -> None:
    vectors = good()

    assert checked(vectors, count=3, dimensions=4) is vectors


@pytest.mark.parametrize(
    ("vectors", "complaint"),
    [
        (np.ones((2, 4), np.float32), "2 vectors came back for 3 texts"),
        (np.ones((4, 4), np.float32), "4 vectors came back for 3 texts"),
        (np.ones((3, 5), np.float32), "5 dimensions where 4"),
        (np.ones(3, np.float32), "not a float32 table"),
        (np.ones((3, 4), np.float64), "not a float32 table"),
    ],
)
def test_wrong_shape_or_type_is_malformed(vectors: Vectors, complaint: str) -> None:
    with pytest.raises(MalformedResponse, match=complaint):
        checked(vectors, count=3, dimensions=4)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_malformed(number: float) -> None:
    vectors = good()
    vectors[1, 2] = number

    with pytest.raises(MalformedResponse, match="Vector 1 of 3 holds a number"):
        checked(vectors, count=3, dimensions=4)


def test_a_row_of_zeros_is_malformed() -> None:
    vectors = good()
    vectors[2] = 0

    with pytest.raises(MalformedResponse, match="Vector 2 of 3 is all zero"):
        checked(vectors, count=3, dimensions=4)
