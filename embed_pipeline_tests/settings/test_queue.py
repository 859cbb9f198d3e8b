from __future__ import annotations

from datetime import timedelta

import pytest

from embed_pipeline.settings import load_settings
from embed_pipeline_tests.settings.environments import PRODUCTION, problems


@pytest.mark.parametrize("value", ["6", "31", "", " ", "7.5", "7.0", "-7", "1_4", "١٤", "a week"])
def test_retention_outside_7_to_30_days_stops_the_boot(value: str) -> None:
    assert problems({"EMBED_JOB_RETENTION_DAYS": value}) == (
        f"EMBED_JOB_RETENTION_DAYS must be a whole number of days from 7 to 30, got {value!r}.",
    )


@pytest.mark.parametrize("days", [7, 14, 30])
def test_retention_of_7_to_30_days_is_taken(days: int) -> None:
    settings = load_settings({"EMBED_JOB_RETENTION_DAYS": str(days)})

    assert settings.queue.retention == timedelta(days=days)


def test_missing_retention_stops_production_and_is_14_days_elsewhere() -> None:
    unset = {name: text for name, text in PRODUCTION.items() if "RETENTION" not in name}

    reported = problems(unset)

    assert reported == (
        "EMBED_JOB_RETENTION_DAYS must be set in production,"
        " to a whole number of days from 7 to 30.",
    )
    assert load_settings({"EMBED_ENV": "test"}).queue.retention == timedelta(days=14)


def test_durations_have_the_documented_defaults() -> None:
    queue = load_settings({}).queue

    assert queue.recovery_interval == timedelta(seconds=60)
    assert queue.lock_duration == timedelta(minutes=5)
    assert queue.heartbeat_interval == timedelta(minutes=2)
    assert (queue.max_attempts, queue.max_recoveries, queue.batch_size) == (3, 5, 2000)
    assert queue.max_runs == 2


def test_recovery_interval_0_turns_recovery_off_and_says_so_loudly() -> None:
    settings = load_settings({"EMBED_ENV": "test", "EMBED_JOB_RECOVERY_INTERVAL": "0"})

    assert settings.queue.recovery_interval is None
    assert len(settings.notes) == 1
    assert "automatic recovery is OFF" in settings.notes[0]


@pytest.mark.parametrize(
    ("variable", "refused", "taken"),
    [
        ("EMBED_JOB_RECOVERY_INTERVAL", ["-1", "1", "999", "86400001"], ["1000", "86400000"]),
        ("EMBED_JOB_LOCK_DURATION", ["0", "999", "86400001"], ["1000", "86400000"]),
        ("EMBED_JOB_HEARTBEAT_INTERVAL", ["0", "99", "-5"], ["100", "120000"]),
        ("EMBED_JOB_MAX_ATTEMPTS", ["0", "101", "three"], ["1", "100"]),
        ("EMBED_JOB_MAX_RECOVERIES", ["0", "16"], ["1", "15"]),
        ("EMBED_JOB_BATCH_SIZE", ["0", "10001", "1e3"], ["1", "10000", " 5 "]),
        ("EMBED_MAX_RUNS", ["0", "101"], ["1", "100"]),
    ],
)
def test_numbers_outside_their_range_are_refused(
    variable: str, refused: list[str], taken: list[str]
) -> None:
    for text in refused:
        (sentence,) = problems({variable: text})
        assert sentence.startswith(f"{variable} must be ")
        assert " from " in sentence
        assert sentence.endswith(f", got {text!r}.")
    for text in taken:
        load_settings({variable: text})
