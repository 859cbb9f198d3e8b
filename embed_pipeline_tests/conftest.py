"""What every test may use; contract modules get pytest's readable asserts here."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("embed_pipeline_tests.contracts")

from embed_pipeline_tests.clocks import FakeClock  # noqa: E402  (after the rewrite is registered)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()
