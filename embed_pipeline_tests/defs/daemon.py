"""The daemon's own evaluation of sensors, in this process and by a clock that a test moves."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from typing import Any

import dagster as dg
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.scheduler.instigation import InstigatorTick
from dagster._core.test_utils import create_test_daemon_workspace_context, freeze_time
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.load_target import WorkspaceLoadTarget
from dagster._daemon.sensor import execute_sensor_iteration

from embed_pipeline.ports.clock import SystemClock

ROUND = timedelta(seconds=5)


class OneLocation(WorkspaceLoadTarget):
    def __init__(self, module: str) -> None:
        self._origin = InProcessCodeLocationOrigin(
            LoadableTargetOrigin(module_name=module, executable_path=sys.executable),
            location_name="embed_pipeline",
        )

    def create_origins(self) -> list[InProcessCodeLocationOrigin]:
        return [self._origin]


class SensorDaemon:
    """Evaluates all sensors of one location, five seconds of its clock apart."""

    def __init__(self, instance: dg.DagsterInstance, workspace: Any) -> None:
        self.instance, self._workspace = instance, workspace
        self.now: datetime = SystemClock().now()
        self._log = logging.getLogger("embed_pipeline_tests.daemon")

    def round(self, step: timedelta = ROUND) -> None:
        self.now += step
        with freeze_time(self.now):
            for _ in execute_sensor_iteration(self._workspace, self._log, None, None):
                pass

    def last_tick(self, sensor: str) -> InstigatorTick:
        return self.ticks(sensor)[0]

    def ticks(self, sensor: str) -> list[InstigatorTick]:
        """The latest first."""
        request = self._workspace.create_request_context()
        (location,) = request.code_locations
        found = location.get_repository("__repository__").get_sensor(sensor)
        return list(
            self.instance.get_ticks(found.get_remote_origin_id(), found.selector_id, limit=1_000)
        )


@contextmanager
def sensor_daemon(instance: dg.DagsterInstance, module: str) -> Iterator[SensorDaemon]:
    with ExitStack() as stack:
        workspace = stack.enter_context(
            create_test_daemon_workspace_context(OneLocation(module), instance)
        )
        yield SensorDaemon(instance, workspace)
