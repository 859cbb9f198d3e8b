"""Prometheus metrics: counters stored in the queue, which outlive short runs, and live gauges."""

from __future__ import annotations

from embed_pipeline.interfaces.metrics.collector import as_text, registry_of, serving
from embed_pipeline.interfaces.metrics.reader import COUNTS_EVERY, Reader

__all__ = ["COUNTS_EVERY", "Reader", "as_text", "registry_of", "serving"]
