"""Dashboard and alarms in a real Prometheus that scrapes the real exporter."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from embed_pipeline_tests.deploy.files import ROOT
from embed_pipeline_tests.deploy.test_monitoring import dashboard, rules
from embed_pipeline_tests.interfaces.command_line import environment, run_program
from embed_pipeline_tests.interfaces.metrics_scene import exporter

pytestmark = [
    pytest.mark.outside,
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs prometheus on the PATH"),
]

ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yaml"
LONGEST_WAIT = 120.0


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A pipeline that has worked, with a budget and a reaper, so that every metric is there."""
    folder = tmp_path_factory.mktemp("prometheus")
    settings = environment(
        folder / "home",
        EMBEDDING_RATE_LIMIT_TOKENS="20",
        EMBEDDING_TOKEN_BUDGET="1000",
        REAPER_DATABASE_URL="postgresql://127.0.0.1:1/nowhere",
    )
    rows = folder / "rows.jsonl"
    rows.write_text('{"name": "Theremin"}\n{"name": "Zeer pot"}\n')
    for words in (("load", str(rows)), ("run",), ("search", "pot"), ("audit",)):
        done = run_program(*words, env=settings, cwd=folder)
        assert done.code == 0, done.err
    return settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Prometheus:
    url: str

    def ask(self, path: str, **parameters: str) -> Any:
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{query}", timeout=30) as answer:
            said = json.load(answer)
        assert said["status"] == "success", said
        return said["data"]

    def wait_for(self, is_so: Callable[[], bool]) -> None:
        ends = time.monotonic() + LONGEST_WAIT
        while True:
            try:
                if is_so():
                    return
            except OSError:  # it does not listen yet
                pass
            assert time.monotonic() < ends, "Prometheus did not come so far"
            time.sleep(0.2)

    def scrapes(self) -> int:
        found = self.ask("query", query="count_over_time(embed_pipeline_up[10m])")["result"]
        return int(found[0]["value"][1]) if found else 0


@contextmanager
def running(folder: Path, target: str) -> Iterator[Prometheus]:
    config = folder / "prometheus.yaml"
    config.write_text(
        json.dumps(  # JSON is YAML
            {
                "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": [str(ALERTS)],
                "scrape_configs": [
                    {"job_name": "exporter", "static_configs": [{"targets": [target]}]}
                ],
            }
        )
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    words = [
        "prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
    ]
    with (folder / "log").open("w") as log, subprocess.Popen(words, stdout=log, stderr=log) as one:
        try:
            yield Prometheus(url=f"http://{address}")
        finally:
            one.terminate()


@pytest.fixture(scope="module")
def prometheus(
    env: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("server")
    with exporter("--counts-every", "0", env=env, cwd=folder) as scraped:
        target = urllib.parse.urlsplit(scraped.url).netloc
        with running(folder, target) as server:
            server.wait_for(lambda: server.scrapes() >= 3)  # a rate needs two
            yield server


def queries() -> Iterator[tuple[str, str]]:
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", []):
            asked = target["expr"].replace("$instance", ".*").replace("$__rate_interval", "1m")
            yield f"{panel['title']} {target['refId']}", asked


def test_every_panel_has_data(prometheus: Prometheus) -> None:
    asked = list(queries())

    assert len(asked) > 30
    assert [one for one in asked if not prometheus.ask("query", query=one[1])["result"]] == []


def test_every_alarm_is_evaluated_without_an_error(prometheus: Prometheus) -> None:
    def loaded() -> list[dict[str, Any]]:
        return [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]

    prometheus.wait_for(lambda: all(rule["health"] != "unknown" for rule in loaded()))

    assert [rule["name"] for rule in loaded()] == [rule["alert"] for rule in rules()]
    assert [rule for rule in loaded() if rule["health"] != "ok"] == []
    assert [rule["name"] for rule in loaded() if rule["state"] == "firing"] == []


def test_alarms_pass_the_strict_check() -> None:
    checked = subprocess.run(
        ["promtool", "check", "rules", "--lint=all", ALERTS], capture_output=True, text=True
    )

    assert (checked.returncode, checked.stderr) == (0, "")


def test_only_the_name_that_a_requirement_asks_for_breaks_the_conventions(
    env: dict[str, str], tmp_path: Path
) -> None:
    text = run_program("metrics", env=env, cwd=tmp_path).out
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True
    )

    assert "embed_pipeline_job_duration_seconds_bucket" in text
    assert checked.stderr.splitlines() == [
        "reaper_scan_duration_ms_total metric names should not contain abbreviated units"
    ], f"{checked.stdout}{os.linesep}{checked.stderr}"
