"""A provider that answers with the key it refuses: nothing that a run stores repeats it."""

from __future__ import annotations

from pathlib import Path

import pytest

from embed_pipeline_tests.defs.commands import Homes, dagster
from embed_pipeline_tests.defs.live import Live
from embed_pipeline_tests.openai_faults import credentials_refused
from embed_pipeline_tests.openai_server import OpenAIServer

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")


def files_with(text: str, homes: Homes) -> list[str]:
    """All that Dagster and we have written, whatever the format."""
    return [
        str(path)
        for home in (homes.dagster, homes.embed)
        for path in home.rglob("*")
        if path.is_file() and text.encode() in path.read_bytes()
    ]


def test_key_that_a_401_echoes_is_in_no_log_event_or_file_of_the_run(tmp_path: Path) -> None:
    with OpenAIServer(keep_texts=False) as provider:
        live = Live(tmp_path, provider)
        live.create(["a"])
        live.close()
        key = live.variables["OPENAI_API_KEY"]
        provider.fault_for = lambda _texts: credentials_refused(key)
        ended = dagster(
            *("job", "execute", "-m", "embed_pipeline.definitions", "-j", "embed_job"),
            homes=live.homes,
            **live.variables,
        )

    assert ended.returncode == 1
    assert "The queue is halted" in ended.stdout
    assert key not in ended.stdout
    assert files_with("Incorrect API key", live.homes)
    assert files_with(key, live.homes) == []
