"""The example that sends failed checks to a webhook does so once, and again when it is over."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from embed_pipeline_tests.defs.commands import ROOT
from embed_pipeline_tests.defs.scene import Pipeline

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")

EXAMPLE = ROOT / "examples" / "alerts" / "definitions.py"


class Webhook(HTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.texts: list[str] = []
        self.answer = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"


class _Handler(BaseHTTPRequestHandler):
    server: Webhook

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.answer == 200:
            self.server.texts.append(body["text"])
        self.send_response(self.server.answer)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Silent."""


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with Webhook() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def sensor(
    tmp_path: Path, webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> dg.SensorDefinition:
    monkeypatch.setenv("ALERT_WEBHOOK", webhook.url)
    monkeypatch.setenv("EMBED_ENV", "test")
    monkeypatch.setenv("EMBED_HOME", str(tmp_path / "home"))
    spec = spec_from_file_location("alerts", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    found = module.defs.resolve_sensor_def("alert_sensor")
    assert isinstance(found, dg.SensorDefinition)
    return found


class Ticks:
    """One tick after the other, each with the cursor of the one before."""

    def __init__(self, sensor: dg.SensorDefinition, instance: dg.DagsterInstance) -> None:
        self._sensor, self._instance, self._cursor = sensor, instance, ""

    def tick(self) -> None:
        with dg.build_sensor_context(instance=self._instance, cursor=self._cursor) as context:
            self._cursor = self._sensor.evaluate_tick(context).cursor or ""


def test_red_check_is_sent_once_and_again_when_it_is_green(
    pipeline: Pipeline, instance: dg.DagsterInstance, sensor: dg.SensorDefinition, webhook: Webhook
) -> None:
    ticks = Ticks(sensor, instance)
    ticks.tick()
    pipeline.run("observe_job")
    ticks.tick()
    quiet = list(webhook.texts)
    pipeline.services.jobs.switch.halt("the key was revoked", seen=0)
    pipeline.run("observe_job")
    ticks.tick()
    ticks.tick()
    halted = list(webhook.texts)
    pipeline.run("resume_job")
    pipeline.run("observe_job")
    ticks.tick()

    assert quiet == []
    assert len(halted) == 1
    assert halted[0].startswith("ERROR embedding_queue:health: CRITICAL: halted: the key was revok")
    assert webhook.texts[1:] == ["OK embedding_queue:health: HEALTHY."]


def test_message_that_the_webhook_refused_is_sent_by_the_next_tick(
    pipeline: Pipeline, instance: dg.DagsterInstance, sensor: dg.SensorDefinition, webhook: Webhook
) -> None:
    ticks = Ticks(sensor, instance)
    pipeline.services.jobs.switch.halt("the key was revoked", seen=0)
    pipeline.run("observe_job")
    webhook.answer = 503

    with pytest.raises(Exception, match="503"):
        ticks.tick()
    webhook.answer = 200
    ticks.tick()

    assert len(webhook.texts) == 1
