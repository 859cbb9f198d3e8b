"""PostgreSQL as a backend: initialised, diagnosed and timed by its own clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from embed_pipeline.domain.check import Condition
from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.recovery import QueuePolicy
from embed_pipeline.errors import ConfigurationError, SchemaMissing
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline.stores import postgres, queue_backend
from embed_pipeline.stores.config import Server, StoreConfig
from embed_pipeline.stores.postgres import connection as connecting
from embed_pipeline_tests.contracts.job_store.scene import add_jobs, take
from embed_pipeline_tests.stores.postgres_queue import own_schema

HOUR = timedelta(hours=1)


@pytest.fixture
def server(postgres_url: str) -> Iterator[Server]:
    with own_schema(postgres_url) as server:
        yield server


@pytest.fixture
def config(server: Server, tmp_path: Path) -> StoreConfig:
    return StoreConfig(
        home=tmp_path, policy=QueuePolicy(), collections=(Collection(),), queue=server
    )


@pytest.fixture
def nothing(config: StoreConfig, postgres_url: str) -> StoreConfig:
    """The same, before anything was made."""
    assert config.queue is not None
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        drop = sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(config.queue.schema))
        connection.execute(drop)
    return config


def conditions(config: StoreConfig) -> dict[str, Condition]:
    return {check.part: check.condition for check in postgres.diagnose_queue(config)}


def test_it_is_registered_by_its_name() -> None:
    assert queue_backend("postgres") is postgres


def test_every_command_before_init_names_it(nothing: StoreConfig) -> None:
    with (
        closing(postgres.open_queue(nothing).jobs) as jobs,
        pytest.raises(SchemaMissing, match="run `embed-pipeline init`"),
    ):
        jobs.get_queue_status()


def test_init_makes_the_queue_and_says_where(nothing: StoreConfig) -> None:
    before = conditions(nothing)

    (sentence,) = postgres.initialise_queue(nothing)

    assert nothing.queue is not None
    assert before == {
        "queue": Condition.OK,
        "clock": Condition.OK,
        "queue schema": Condition.BROKEN,
    }
    assert set(conditions(nothing).values()) == {Condition.OK}
    assert sentence.startswith(f"The queue is ready in the schema {nothing.queue.schema} of ")
    with closing(postgres.open_queue(nothing).jobs) as jobs:
        assert jobs.get_queue_status().total == 0


def test_schema_of_another_program_is_refused_before_anything_is_written(
    config: StoreConfig, postgres_url: str
) -> None:
    assert config.queue is not None
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        table = sql.Identifier(config.queue.schema, "invoices")
        connection.execute(sql.SQL("CREATE TABLE {} (id int)").format(table))

    with pytest.raises(ConfigurationError, match="invoices"):
        postgres.locate_queue(config)


def test_doctor_names_a_server_that_is_not_there(
    config: StoreConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "TIMEOUT", 0.1)
    assert config.queue is not None
    nowhere = replace(config.queue, uri="postgresql://127.0.0.1:1?sslmode=disable")

    (check,) = postgres.diagnose_queue(replace(config, queue=nowhere))

    assert (check.condition, check.part) == (Condition.BROKEN, "queue")
    assert check.remedy == "Start the server, or set EMBED_QUEUE_URI."


def test_doctor_names_a_release_that_is_too_old(
    config: StoreConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "OLDEST", 99_00_00)

    (check,) = postgres.diagnose_queue(config)

    assert check.remedy == "Use PostgreSQL 99 or newer."


def test_worker_clock_off_by_an_hour_changes_nothing(
    config: StoreConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = SystemClock.now

    def ahead(self: SystemClock) -> datetime:
        return real(self) + HOUR

    with closing(postgres.open_queue(config).jobs) as jobs:
        add_jobs(jobs, 2)
        held = take(jobs, 1, owner="worker-a")
        monkeypatch.setattr(SystemClock, "now", ahead)

        recovered = jobs.recover_stale()
        (late,) = take(jobs, 2, owner="worker-b").jobs

        assert recovered.jobs == ()
        assert late.lock_until is not None
        assert late.lock_until - jobs.now() <= config.policy.lock_duration
        assert jobs.complete(held, held.job_ids).done == held.job_ids
    assert {check.part: check.condition for check in postgres.diagnose_queue(config)}[
        "clock"
    ] is Condition.NOTE
