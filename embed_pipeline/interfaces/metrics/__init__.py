"""Prometheus metrics: stored counters, so that short-lived runs lose nothing, and live gauges."""

from __future__ import annotations

from embed_pipeline.interfaces.metrics.collector import registry_of
from embed_pipeline.interfaces.metrics.reading import Reader
from embed_pipeline.interfaces.metrics.server import as_text, serving

__all__ = ["Reader", "as_text", "registry_of", "serving"]
