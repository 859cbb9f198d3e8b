"""embed_pipeline with an alarm: failed checks are sent to a webhook, for example of a chat.

    ALERT_WEBHOOK=https://hooks.example.com/… dagster dev -f examples/alerts/definitions.py

`alert_sensor` looks at the newest result of each check every 30 seconds. It sends a message when a
check turns red and another one when it is green again, and nothing in between.
"""

import json
import os

import dagster as dg
import requests

from embed_pipeline.defs.build import build_definitions
from embed_pipeline.settings import load_settings

TIMEOUT = 10
"""Seconds. A webhook that does not answer must not hold up other sensors."""


def alert_sensor_for(pipeline: dg.Definitions) -> dg.SensorDefinition:
    checks = sorted(
        pipeline.resolve_asset_graph().asset_check_keys, key=lambda key: key.to_user_string()
    )

    @dg.sensor(
        name="alert_sensor",
        minimum_interval_seconds=29,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Sends a message to ALERT_WEBHOOK when a check turns red, or green again.",
    )
    def alert_sensor(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        was_red: list[str] = json.loads(context.cursor or "[]")
        red, messages = list(was_red), []
        for key in checks:
            result, name = _newest_result(context.instance, key), key.to_user_string()
            if result is None or result.passed == (name not in was_red):
                continue  # never evaluated, or as it was
            colour = "OK" if result.passed else result.severity.value
            messages.append(f"{colour} {name}: {result.description}")
            red = [one for one in red if one != name] + ([] if result.passed else [name])
        if messages:
            # If it fails, the tick fails and keeps its cursor: the next one sends them.
            body = {"text": "\n".join(messages)}
            requests.post(
                os.environ["ALERT_WEBHOOK"], json=body, timeout=TIMEOUT
            ).raise_for_status()
        context.update_cursor(json.dumps(red))
        return dg.SkipReason(f"{len(messages)} messages sent; {len(red)} checks are red")

    return alert_sensor


def _newest_result(
    instance: dg.DagsterInstance, key: dg.AssetCheckKey
) -> dg.AssetCheckEvaluation | None:
    record = instance.get_latest_asset_check_evaluation_record(key)
    event = record.event.dagster_event if record and record.event else None
    return event.asset_check_evaluation_data if event else None


pipeline = build_definitions(load_settings())

defs = dg.Definitions.merge(pipeline, dg.Definitions(sensors=[alert_sensor_for(pipeline)]))
