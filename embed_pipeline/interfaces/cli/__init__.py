"""The command line: `embed-pipeline`."""

from __future__ import annotations

from embed_pipeline.interfaces.cli.app import main

__all__ = ["main"]
