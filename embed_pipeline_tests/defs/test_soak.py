"""The soak itself: it makes what it measures, and reports every problem."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from embed_pipeline_tests.defs.commands import ROOT, Homes
from embed_pipeline_tests.defs.soak_outcome import MEASURED, Outcome, Sample, problems_in

SAMPLE = Sample(
    ticks=4,
    day=1.0,
    storage_mb=10.0,
    files=10,
    ticks_stored=10,
    run_events=10,
    queue_mb=10.0,
    queue_events=10,
    rss_mb=10.0,
)
WELL = Outcome(samples=[SAMPLE] * 4, failed_ticks=0, embed_runs=1, entities=2, embedded=2)


def test_well_is_well() -> None:
    assert problems_in(WELL) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"samples": [replace(SAMPLE, ticks_stored=0)] * 4}, "no tick was stored"),
        ({"failed_ticks": 3}, "3 ticks failed"),
        ({"embed_runs": 0}, "no embed run was launched"),
        ({"embedded": 1}, "1 of 2 entities are embedded"),
        ({"entities": 0, "embedded": 0}, "0 of 0 entities are embedded"),
    ],
)
def test_soak_in_which_nothing_happened_fails(change: dict[str, Any], problem: str) -> None:
    assert problems_in(replace(WELL, **change)) == [problem]


@pytest.mark.parametrize("name", sorted(MEASURED))
def test_whatever_grows_after_half_time_fails(name: str) -> None:
    grown = replace(SAMPLE, **{name: 12})

    growing = problems_in(replace(WELL, samples=[SAMPLE, SAMPLE, SAMPLE, grown]))
    grown_before = problems_in(replace(WELL, samples=[SAMPLE, grown, grown, grown]))

    assert growing == [f"{name} grew from 10 to 12 after half-time"]
    assert grown_before == []


@pytest.mark.slow
def test_four_rounds_over_four_days_end_well(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "embed_pipeline_tests.defs.soak", "--ticks", "20"],
        env=Homes.below(tmp_path).environment(PYTHONPATH=str(ROOT)),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr[-3_000:]
    assert "20 ticks in" in ended.stdout
    assert ended.stdout.endswith("All 1 entities are embedded; all stays flat.\n")
