"""pyarrow, where it is installed: an extra, so imported only when a Parquet file is at hand."""

from __future__ import annotations

from typing import Any

from embed_pipeline.errors import ConfigurationError


def arrow() -> Any:
    """The package with its Parquet part; where it is missing, a sentence on how to get it."""
    try:
        import pyarrow as pa  # type: ignore[import-untyped]
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        raise ConfigurationError(
            ["Parquet files need pyarrow: pip install 'embed-pipeline[parquet]'."]
        ) from error
    return pa
