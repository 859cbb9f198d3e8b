"""Four processes, one provider: together they never send more than the budget of any window."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from embed_pipeline_tests.acceptance.budget import ENTITIES, VARIABLES, assert_kept
from embed_pipeline_tests.openai_server import OpenAIServer


@pytest.mark.slow
def test_four_processes_never_send_more_than_the_budget_in_any_window(tmp_path: Path) -> None:
    with OpenAIServer(api_key="key-of-four-workers") as server:
        environment = worker_environment(tmp_path, server)
        load(tmp_path, environment)

        workers = [
            subprocess.Popen(
                [sys.executable, "-m", "embed_pipeline", "run", "--json"],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(4)
        ]
        endings = [worker.communicate(timeout=120) for worker in workers]

        assert [worker.returncode for worker in workers] == [0] * 4, endings
        assert_kept(server)


def worker_environment(home: Path, server: OpenAIServer) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}
    return (
        kept
        | VARIABLES
        | {
            "EMBED_ENV": "local",
            "EMBED_HOME": str(home),
            "EMBEDDING_PROVIDER": "openai",
            "OPENAI_API_KEY": "key-of-four-workers",
            "OPENAI_BASE_URL": server.base_url,
        }
    )


def load(home: Path, environment: dict[str, str]) -> None:
    table = home / "entities.csv"
    lines = [f"entity {number},about {number}" for number in range(ENTITIES)]
    table.write_text("\n".join(["name,observations", *lines]))
    subprocess.run(
        [sys.executable, "-m", "embed_pipeline", "load", str(table)],
        env=environment,
        check=True,
        capture_output=True,
    )
