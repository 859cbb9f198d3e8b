"""Dagster's own commands, started as a person would start them in the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DAGSTER = Path(sys.executable).with_name("dagster")
OURS = ("EMBED_", "EMBEDDING_", "OPENAI_", "REAPER_", "DAGSTER_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Homes:
    """Where Dagster keeps its history, and we our data."""

    dagster: Path
    embed: Path

    @classmethod
    def below(cls, folder: Path) -> Homes:
        homes = cls(dagster=folder / "dagster", embed=folder / "embed")
        homes.dagster.mkdir()
        shutil.copy(ROOT / "dagster.yaml", homes.dagster)
        return homes

    def environment(self, **variables: str) -> dict[str, str]:
        """Nothing but these of our own settings."""
        foreign = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        homes = {"DAGSTER_HOME": str(self.dagster), "EMBED_HOME": str(self.embed)}
        return foreign | homes | variables


def dagster(*words: str, homes: Homes, **variables: str) -> subprocess.CompletedProcess[str]:
    """Its output is one stream: Dagster writes to both."""
    return subprocess.run(
        [DAGSTER, *words],
        env=homes.environment(**variables),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )


DAGSTERS_OWN = (".tmp_dagster_home_*", "storage", "history", "schedules", "logs", ".telemetry")


def left_in_the_checkout() -> list[Path]:
    """What Dagster would leave where it does not know its home."""
    return [path for pattern in DAGSTERS_OWN for path in ROOT.glob(pattern)]
