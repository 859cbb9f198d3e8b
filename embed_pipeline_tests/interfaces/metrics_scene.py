"""A real exporter process and what a scrape of it says."""

from __future__ import annotations

import re
import signal
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from embed_pipeline_tests.interfaces.command_line import SCRIPT

Samples = Mapping[str, float]
"""By name and labels, as Prometheus writes them: `jobs{status="failed"}`."""


def samples_of(text: str) -> Samples:
    return {
        sample.name + _labels(sample.labels): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def names_in(text: str) -> set[str]:
    return {name.partition("{")[0] for name in samples_of(text)}


def scrape(url: str) -> Samples:
    with urllib.request.urlopen(url, timeout=60) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        return samples_of(answer.read().decode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporter:
    url: str
    process: subprocess.Popen[str]

    def stop(self, number: signal.Signals = signal.SIGINT) -> tuple[int, str, str]:
        """Its exit code, and what it wrote to stdout and stderr until then."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


@contextmanager
def exporter(*words: str, env: Mapping[str, str], cwd: Path) -> Iterator[Exporter]:
    with subprocess.Popen(
        [SCRIPT, "metrics", "--serve", "--port", "0", *words],
        env=env,
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            address = re.search(r"http://\S+/metrics", first)
            assert address, first or (process.stderr and process.stderr.read())
            yield Exporter(url=address.group(), process=process)
        finally:
            process.kill()


def _labels(labels: Mapping[str, str]) -> str:
    shown = ",".join(f'{name}="{value}"' for name, value in sorted(labels.items()))
    return f"{{{shown}}}" if shown else ""
