"""The Python of docs/reaper.md runs as it is printed, and heeds the variables."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from embed_pipeline_tests.docs.pages import ROOT, run_examples
from embed_pipeline_tests.reaper.scene import Scene

PAGE = ROOT / "docs" / "reaper.md"
OURS = ("EMBED_", "EMBEDDING_", "OPENAI_", "REAPER_", "QUEUE_", "JOB_")


class Reader:
    """What the page leaves to its reader: an application, and the work on one job."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._stuck = scene.processing()
        self.job = scene.add("asr_jobs", stage="asr")
        self.transcribed: list[Mapping[str, Any]] = []

    def serve(self) -> None:
        deadline = time.monotonic() + 30
        while self._scene.row(self._stuck)["status"] != "queued":
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def transcribe(self, row: Mapping[str, Any]) -> None:
        self.transcribed.append(row)

    def kill_encoder(self) -> None:
        raise AssertionError("the lease was not lost")


def test_examples_of_the_page_run_and_take_the_variables(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(OURS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("REAPER_DATABASE_URL", scene.url)
    monkeypatch.setenv("JOB_HEARTBEAT_SEC", "14")
    monkeypatch.setenv("JOB_LEASE_SEC_ASR", "77")
    reader = Reader(scene)

    names: dict[str, Any] = run_examples(
        PAGE,
        serve=reader.serve,
        transcribe=reader.transcribe,
        kill_encoder=reader.kill_encoder,
    )
    names["database"].close()

    assert [row["id"] for row in reader.transcribed] == [reader.job]
    assert scene.row(reader.job, "asr_jobs")["status"] == "done"
    assert names["claim"].lease == timedelta(seconds=77)
    assert names["beating"]._interval == timedelta(seconds=14)
