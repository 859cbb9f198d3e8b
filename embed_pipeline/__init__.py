"""Keeps every entity of a knowledge graph embedded."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from embed_pipeline.defs.library.component import (
        EmbedPipelineComponent as EmbedPipelineComponent,
    )
    from embed_pipeline.defs.library.io_manager import EntityIOManager as EntityIOManager
    from embed_pipeline.defs.library.resource import EmbedPipelineResource as EmbedPipelineResource

__version__ = "0.1.0"

_LIBRARY = {
    "EmbedPipelineComponent": "component",
    "EmbedPipelineResource": "resource",
    "EntityIOManager": "io_manager",
}
"""Imported when they are asked for: the command line does without Dagster, which takes seconds."""


def __getattr__(name: str) -> object:
    if name not in _LIBRARY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"embed_pipeline.defs.library.{_LIBRARY[name]}"), name)


def __dir__() -> list[str]:
    """With the names above: `dg` finds the component by them."""
    return [*globals(), *_LIBRARY]
