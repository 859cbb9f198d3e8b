"""The use cases are tested in the worker's world."""

from __future__ import annotations

from embed_pipeline_tests.worker.conftest import build, logs, transactions, world

__all__ = ["build", "logs", "transactions", "world"]
