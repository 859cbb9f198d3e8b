"""Environments that tests start from, and the way to read what is wrong with one."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from embed_pipeline.errors import ConfigurationError
from embed_pipeline.settings import load_settings

PRODUCTION: Mapping[str, str] = {
    "EMBED_ENV": "production",
    "EMBED_JOB_RETENTION_DAYS": "14",
    "OPENAI_API_KEY": "key-for-tests-only",
    "EMBED_QUEUE_URI": "neo4j+s://queue.example",
    "EMBED_QUEUE_PASSWORD": "queue-pw-for-tests",
    "EMBED_GRAPH_URI": "neo4j+s://graph.example",
    "EMBED_GRAPH_PASSWORD": "graph-pw-for-tests",
}
AZURE: Mapping[str, str] = {
    "EMBED_ENV": "test",
    "EMBEDDING_PROVIDER": "azure",
    "AZURE_OPENAI_API_KEY": "azure-key-for-tests",
    "AZURE_OPENAI_ENDPOINT": "https://team.openai.azure.example",
}


def problems(environ: Mapping[str, str]) -> tuple[str, ...]:
    with pytest.raises(ConfigurationError) as caught:
        load_settings(environ)
    return caught.value.problems
