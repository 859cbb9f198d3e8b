"""Faults of the database get our names at the border."""

from __future__ import annotations

import threading

import psycopg
import pytest
from psycopg import errors

from embed_pipeline.errors import (
    EmbedPipelineError,
    SchemaMissing,
    StoreAccessDenied,
    StoreBusy,
    StoreCorrupted,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from embed_pipeline.reaper import JobQueue, PostgresDatabase
from embed_pipeline.reaper.connection import named_error
from embed_pipeline_tests.reaper.scene import Scene


def fault(database: PostgresDatabase, statement: str = "SELECT 1") -> EmbedPipelineError:
    with pytest.raises(EmbedPipelineError) as caught, database.transaction() as connection:
        connection.execute(statement.encode())
    return caught.value


def test_refused_connection_is_unavailable_without_its_password() -> None:
    error = fault(PostgresDatabase("postgresql://reaper:hunter22@127.0.0.1:1/jobs"))

    assert isinstance(error, StoreUnavailable)
    assert str(error).startswith("The reaper's database cannot be reached (connection failed")
    assert "hunter22" not in str(error) + repr(error)


def test_role_that_may_not_log_in_is_access_denied(scene: Scene) -> None:
    unknown = scene.url.replace("//postgres:@", "//role_that_does_not_exist:@")
    if unknown == scene.url:
        pytest.skip("the server was named by REAPER_TEST_DATABASE_URL")

    assert isinstance(fault(PostgresDatabase(unknown)), StoreAccessDenied)


@pytest.mark.parametrize(
    "message",
    [
        'connection failed: FATAL:  password authentication failed for user "reaper"',
        'connection failed: FATAL:  no pg_hba.conf entry for host "10.0.0.1", no encryption',
        "connection failed: fe_sendauth: no password supplied",
        'connection failed: FATAL:  role "reaper" is not permitted to log in',
    ],
)
def test_words_of_a_refused_login_are_known(message: str) -> None:
    assert isinstance(named_error(psycopg.OperationalError(message)), StoreAccessDenied)


def test_missing_database_is_unavailable_and_named() -> None:
    said = 'connection failed: FATAL:  database "jobs" does not exist'

    error = named_error(psycopg.OperationalError(said))

    assert isinstance(error, StoreUnavailable)
    assert said in str(error)


@pytest.mark.parametrize("statement", ["SELECT * FROM nowhere", "SELECT nothing FROM jobs"])
def test_missing_table_or_column_names_the_remedy(scene: Scene, statement: str) -> None:
    error = fault(scene.database, statement)

    assert isinstance(error, SchemaMissing)
    assert "run `embed-pipeline reaper init`" in str(error)


def test_read_only_server_is_named(scene: Scene) -> None:
    scene.add(stage="clip")
    database = PostgresDatabase(
        scene.url.replace("options=", "options=-cdefault_transaction_read_only%3Don%20")
    )

    with pytest.raises(StoreReadOnly):
        JobQueue(database).claim("clip", "worker-a")
    database.close()


def test_missing_right_is_access_denied(scene: Scene) -> None:
    scene.execute("CREATE ROLE reaper_without_rights")
    ((schema,),) = scene.execute("SELECT current_schema")
    scene.execute(f"GRANT USAGE ON SCHEMA {schema} TO reaper_without_rights")

    error = fault(scene.database, "SET LOCAL ROLE reaper_without_rights; SELECT * FROM jobs")

    assert isinstance(error, StoreAccessDenied)
    scene.execute("DROP OWNED BY reaper_without_rights")
    scene.execute("DROP ROLE reaper_without_rights")


def test_row_locked_for_too_long_is_busy(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    key = scene.add(stage="clip")
    holder = PostgresDatabase(scene.url)
    with holder.transaction() as connection:
        connection.execute("SELECT 1 FROM jobs WHERE id = %s FOR UPDATE", (key,))
        error = fault(scene.database, "SET LOCAL lock_timeout = 50; UPDATE jobs SET stage = 'x'")
    holder.close()

    assert isinstance(error, StoreBusy)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (errors.DiskFull("no space left on device"), StoreFull),
        (errors.DataCorrupted("invalid page"), StoreCorrupted),
        (errors.InsufficientPrivilege("permission denied"), StoreAccessDenied),
        (errors.AdminShutdown("terminating connection"), StoreUnavailable),
        (errors.TooManyConnections("too many clients"), StoreUnavailable),
        (errors.DeadlockDetected("deadlock detected"), StoreBusy),
        (errors.QueryCanceled("statement timeout"), StoreBusy),
    ],
)
def test_codes_of_the_server_have_names(
    error: psycopg.Error, kind: type[EmbedPipelineError]
) -> None:
    assert isinstance(named_error(error), kind)


def test_bug_of_ours_keeps_its_own_name(scene: Scene) -> None:
    with pytest.raises(psycopg.errors.SyntaxError), scene.database.transaction() as connection:
        connection.execute("SELEKT 1")


def test_broken_connection_is_opened_again(scene: Scene) -> None:
    reaper = scene.reaper()
    reaper.sweep()
    with scene.database.transaction() as connection:
        pid = connection.info.backend_pid
    scene.execute("SELECT pg_terminate_backend(%s, 10000)", pid)
    key = scene.processing()

    first, second = reaper.sweep(), reaper.sweep()

    # The break costs the first table its sweep; the second table has a new connection already.
    assert [problem[:5] for problem in first.problems] == ["jobs:"]
    assert second.problems == ()
    assert scene.row(key)["status"] == "queued"


def test_threads_of_one_database_wait_for_each_other(scene: Scene) -> None:
    scene.execute("INSERT INTO jobs (stage) SELECT 'clip' FROM generate_series(1, 100)")
    queue = scene.queue()
    taken: list[object] = []

    def drain() -> None:
        while claim := queue.claim("clip", "worker-a"):
            taken.append(claim.key)

    threads = [threading.Thread(target=drain) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)

    assert len(taken) == len(set(taken)) == 100


def test_undefined_service_does_not_refuse_the_connection(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGSERVICE", "defined nowhere")
    database = PostgresDatabase(scene.url)

    with database.transaction() as connection:
        connection.execute("SELECT 1")

    database.close()


def test_address_in_the_environment_does_not_replace_the_host(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings check the URL's host; libpq would connect to PGHOSTADDR instead."""
    monkeypatch.setenv("PGHOSTADDR", "192.0.2.1")
    monkeypatch.setenv("PGCONNECT_TIMEOUT", "2")
    database = PostgresDatabase(scene.url)

    with database.transaction() as connection:
        reached = connection.info.hostaddr

    assert reached != "192.0.2.1"
    database.close()
