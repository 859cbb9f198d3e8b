"""What can be wrong with a PostgreSQL server, and what is said about it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg import errors, sql

from embed_pipeline.domain.job import JobStatus
from embed_pipeline.errors import (
    ConfigurationError,
    ErrorCategory,
    RequestError,
    SchemaMissing,
    StoreAccessDenied,
    StoreBusy,
    StoreCorrupted,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from embed_pipeline.stores.config import Server
from embed_pipeline.stores.postgres import connection as connecting
from embed_pipeline.stores.postgres.connection import Connection, PostgresDatabase
from embed_pipeline.stores.postgres.queue import schema
from embed_pipeline.stores.queue.job_store import QueueJobStore
from embed_pipeline_tests.contracts.job_store.scene import (
    add_jobs,
    failure,
    leased_job,
    request,
    stored,
    take,
)
from embed_pipeline_tests.postgres_server import own_server
from embed_pipeline_tests.stores.postgres_queue import create, open_jobs, own_schema, server_of

Run = Callable[[str], list[tuple[object, ...]]]
PID = "SELECT pg_backend_pid() AS pid"


@pytest.fixture
def server(postgres_url: str) -> Iterator[Server]:
    with own_schema(postgres_url) as server:
        yield server


@pytest.fixture
def store(server: Server) -> Iterator[QueueJobStore]:
    with closing(open_jobs(server)) as store:
        yield store


@pytest.fixture
def database(server: Server) -> Iterator[PostgresDatabase]:
    with closing(PostgresDatabase(server)) as database:
        yield database


@pytest.fixture
def run(postgres_url: str, server: Server) -> Iterator[Run]:
    """Runs SQL as the server's owner; {} is the queue's schema."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:

        def execute(statement: str) -> list[tuple[object, ...]]:
            text = sql.SQL(statement).format(sql.Identifier(server.schema))
            cursor = connection.execute(text)
            return cursor.fetchall() if cursor.description else []

        yield execute


def indexes_of(run: Run) -> list[tuple[object, ...]]:
    """Their names and definitions."""
    return run(
        "SELECT indexname, indexdef FROM pg_indexes"
        " WHERE quote_ident(schemaname) = '{}' ORDER BY indexname"
    )


class TestConnecting:
    def test_variables_of_libpq_are_not_read(
        self, server: Server, store: QueueJobStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for option in psycopg.pq.Conninfo.get_defaults():
            if option.envvar and option.envvar != b"PGSERVICE":
                monkeypatch.setenv(option.envvar.decode(), "192.0.2.1")

        add_jobs(store)

        assert store.get_queue_status().pending == 1

    def test_service_does_not_replace_what_is_given(
        self, store: QueueJobStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        services = tmp_path / "services.conf"
        services.write_text("[elsewhere]\nhost=192.0.2.1\nhostaddr=192.0.2.1\nport=1\n")
        monkeypatch.setenv("PGSERVICE", "elsewhere")
        monkeypatch.setenv("PGSERVICEFILE", str(services))

        assert store.get_queue_status().total == 0

    def test_undefined_service_does_not_refuse_the_connection(
        self, store: QueueJobStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PGSERVICE", "defined nowhere")

        assert store.get_queue_status().total == 0

    def test_unreachable_server_is_named_without_user_and_password(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(connecting, "SHORT_TIMEOUT", 0.1)
        nowhere = Server(
            uri="postgresql://127.0.0.1:1?sslmode=disable",
            user="reader",
            password="hunter22",
            database="jobs",
            schema="embed_pipeline",
        )
        database = PostgresDatabase(nowhere, fail_fast=True)

        with pytest.raises(StoreUnavailable, match=r"jobs at 127\.0\.0\.1:1 cannot") as said:
            database.read(lambda connection: connection.execute("SELECT 1"))

        assert "hunter22" not in repr(said.value) + repr(database)

    def test_unknown_role_is_access_denied(self, server: Server) -> None:
        unknown = PostgresDatabase(replace(server, user="role_that_does_not_exist"))

        with pytest.raises(StoreAccessDenied):
            unknown.read(lambda connection: connection.execute("SELECT 1"))

    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            (errors.DiskFull("no space left on device"), StoreFull),
            (errors.DataCorrupted("invalid page"), StoreCorrupted),
            (errors.InsufficientPrivilege("permission denied"), StoreAccessDenied),
            (errors.InvalidPassword("password authentication failed"), StoreAccessDenied),
            (psycopg.OperationalError("FATAL: no pg_hba.conf entry for host"), StoreAccessDenied),
            (errors.AdminShutdown("terminating connection"), StoreUnavailable),
            (errors.TooManyConnections("too many clients"), StoreUnavailable),
            (errors.DeadlockDetected("deadlock detected"), StoreBusy),
            (errors.QueryCanceled("statement timeout"), StoreBusy),
            (errors.SyntaxError("syntax error"), errors.SyntaxError),
        ],
    )
    def test_codes_of_the_server_have_names(
        self, database: PostgresDatabase, error: psycopg.Error, kind: type[Exception]
    ) -> None:
        assert isinstance(database.named_error(error), kind)

    def test_nothing_of_a_session_is_left_behind(self, store: QueueJobStore, run: Run) -> None:
        """So that a pooler may give every transaction another session."""
        lease, job_id = leased_job(store)
        store.complete(lease, [job_id])

        left = store.database.database.read(  # type: ignore
            lambda connection: connection.execute(
                "SELECT (SELECT count(*) FROM pg_prepared_statements) AS statements,"
                " current_setting('statement_timeout') AS timeout"
            ).fetchone()
        )

        assert left == {"statements": 0, "timeout": "0"}
        assert run("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == [(0,)]


class TestSchema:
    def test_schema_without_a_queue_names_init(self, server: Server) -> None:
        nothing = open_jobs(replace(server, schema="nothing here"))

        with closing(nothing) as store, pytest.raises(SchemaMissing, match="`embed-pipeline init`"):
            store.get_queue_status()

    def test_queue_that_is_made_while_a_process_waits_is_used_without_a_restart(
        self, store: QueueJobStore, server: Server, run: Run
    ) -> None:
        run("DROP SCHEMA {} CASCADE")
        with pytest.raises(SchemaMissing):
            store.get_queue_status()

        create(server)

        assert store.get_queue_status().total == 0

    def test_newer_queue_is_refused(self, server: Server, run: Run) -> None:
        run("UPDATE {}.queue_version SET version = 99")

        with closing(open_jobs(server)) as store, pytest.raises(SchemaMissing, match="version 99"):
            store.get_queue_status()
        with pytest.raises(SchemaMissing, match="version 99"):
            create(server)

    def test_older_queue_names_init_which_brings_it_up_with_its_jobs(
        self, server: Server, run: Run
    ) -> None:
        with closing(open_jobs(server)) as store:
            add_jobs(store, 3)
        assert (fresh := indexes_of(run))
        run("DROP INDEX {}.job_malformed")
        run("UPDATE {}.queue_version SET version = 1")

        with closing(open_jobs(server)) as store:
            with pytest.raises(SchemaMissing, match=r"version 1, .*`embed-pipeline init`"):
                store.get_queue_status()
            create(server)

            assert store.get_queue_status().pending == 3
        assert indexes_of(run) == fresh

    def test_job_that_failed_for_want_of_a_text_is_completed(
        self, server: Server, run: Run
    ) -> None:
        with closing(open_jobs(server)) as store:
            lease, job_id = leased_job(store)
            store.fail(lease, {job_id: failure(ErrorCategory.PERMANENT)})
            ended_at = stored(store, job_id).processed_at
            run("UPDATE {}.embed_job SET error_type = 'EmptyText'")
            run("UPDATE {}.queue_version SET version = 2")

            create(server)

            job, event = stored(store, job_id), store.events.recent(limit=1)[0]
            assert (job.status, job.processed_at) == (JobStatus.COMPLETED, ended_at)
            assert (job.error, job.error_type, job.error_category) == (None, None, None)
            assert (event.kind, event.reason) == ("jobs.completed", "nothing to embed")
            assert event.job_ids == (job_id,)

    def test_steps_of_an_upgrade_run_in_order_and_all_or_none(
        self, server: Server, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        steps = {
            schema.VERSION: "ALTER TABLE {embed_job} ADD COLUMN cost integer;\n"
            "UPDATE {embed_job} SET cost = {highest}",
            schema.VERSION + 1: "ALTER TABLE {embed_job} RENAME COLUMN cost TO price",
        }
        monkeypatch.setattr(schema, "VERSION", schema.VERSION + 2)
        monkeypatch.setattr(schema, "_UPGRADES", steps | {schema.VERSION - 1: "SELECT 1 / 0"})
        with pytest.raises(psycopg.errors.DivisionByZero):
            create(server)
        assert run("SELECT version FROM {}.queue_version") == [(schema.VERSION - 2,)]

        monkeypatch.setattr(schema, "_UPGRADES", steps)
        create(server)

        assert run("SELECT version FROM {}.queue_version") == [(schema.VERSION,)]
        assert run("SELECT price FROM {}.embed_job") == []

    def test_init_may_be_repeated_and_keeps_the_jobs(
        self, store: QueueJobStore, server: Server
    ) -> None:
        add_jobs(store, 3)

        create(server)

        assert store.get_queue_status().pending == 3

    def test_two_inits_at_once_both_succeed(self, server: Server, run: Run) -> None:
        run("DROP SCHEMA {} CASCADE")
        problems: list[Exception] = []

        def init() -> None:
            try:
                create(server)
            except Exception as error:
                problems.append(error)

        threads = [threading.Thread(target=init) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert problems == []

    @pytest.mark.parametrize(
        "statements",
        [
            ["CREATE TABLE {}.invoices (id int)"],
            ["DROP TABLE {}.queue_version"],
        ],
        ids=["beside ours", "under our names"],
    )
    def test_schema_with_tables_of_others_is_refused_by_init(
        self,
        server: Server,
        run: Run,
        statements: list[str],
    ) -> None:
        for statement in statements:
            run(statement)

        with pytest.raises(ConfigurationError, match="EMBED_QUEUE_SCHEMA"):
            create(server)

    def test_init_needs_no_right_on_the_database_where_the_schema_is_there(
        self, server: Server, run: Run
    ) -> None:
        role = server.schema.replace(" ", "_")
        run("DROP SCHEMA {} CASCADE")
        run(f"CREATE ROLE {role} LOGIN")
        run(f"CREATE SCHEMA {{}} AUTHORIZATION {role}")

        create(replace(server, user=role))

        with closing(open_jobs(replace(server, user=role))) as store:
            add_jobs(store)
            assert store.get_queue_status().pending == 1
        run(f"DROP OWNED BY {role} CASCADE")
        run("CREATE SCHEMA {}")
        run(f"DROP ROLE {role}")

    def test_role_without_rights_is_access_denied(self, server: Server, run: Run) -> None:
        role = server.schema.replace(" ", "_")
        run(f"CREATE ROLE {role} LOGIN")

        powerless = open_jobs(replace(server, user=role))

        with closing(powerless) as store, pytest.raises(StoreAccessDenied):
            store.get_queue_status()
        run(f"DROP ROLE {role}")

    def test_read_only_role_is_read_only(self, server: Server, run: Run) -> None:
        role = server.schema.replace(" ", "_")
        run(f"CREATE ROLE {role} LOGIN SUPERUSER")
        run(f"ALTER ROLE {role} SET default_transaction_read_only = on")

        with closing(open_jobs(replace(server, user=role))) as store:
            assert store.get_queue_status().total == 0
            with pytest.raises(StoreReadOnly):
                add_jobs(store)
        run(f"DROP ROLE {role}")


class TestOutages:
    def test_connection_that_broke_while_idle_is_opened_again(
        self, store: QueueJobStore, run: Run
    ) -> None:
        add_jobs(store)
        terminate_all(run)

        assert len(take(store).jobs) == 1

    def test_transaction_that_is_killed_before_its_commit_is_repeated_once(
        self, database: PostgresDatabase, server: Server, postgres_url: str, store: QueueJobStore
    ) -> None:
        runs: list[int] = []

        def work(connection: Connection) -> None:
            pid = next(connection.execute(PID))["pid"]
            runs.append(pid)
            add = sql.SQL("INSERT INTO {} (name, slot, value) VALUES ('n', 0, 1)")
            connection.execute(add.format(sql.Identifier(server.schema, "counter")))
            if len(runs) == 1:
                terminate(postgres_url, pid)
            connection.execute("SELECT 1").fetchone()

        database.write(work)

        assert len(set(runs)) == 2
        assert store.counters.read() == {"n": 1}

    def test_commit_whose_answer_is_lost_is_not_repeated(
        self, database: PostgresDatabase, postgres_url: str
    ) -> None:
        """It may have happened; a verb of the queue knows its token when it is called again."""
        runs: list[int] = []

        def work(connection: Connection) -> None:
            runs.append(next(connection.execute(PID))["pid"])
            terminate(postgres_url, runs[-1])

        with pytest.raises(StoreUnavailable):
            database.write(work)

        assert len(runs) == 1

    def test_locked_row_is_busy_after_a_while(
        self,
        store: QueueJobStore,
        server: Server,
        postgres_url: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        lease, job_id = leased_job(store)
        quick = connecting.LIMITS.replace("'lock_timeout', '10s'", "'lock_timeout', '50ms'")
        monkeypatch.setattr(connecting, "LIMITS", quick)

        with psycopg.connect(postgres_url) as other:
            lock = sql.SQL("SELECT 1 FROM {} FOR UPDATE")
            other.execute(lock.format(sql.Identifier(server.schema, "embed_job")))
            with pytest.raises(StoreBusy, match="locked by another session"):
                store.heartbeat(lease, [job_id])

        assert store.heartbeat(lease, [job_id]).done == (job_id,)

    def test_server_that_is_stopped_and_started_is_used_again(self, tmp_path: Path) -> None:
        with own_server() as postgres:
            server = server_of(postgres.url, schema_name="embed_pipeline")
            create(server)
            with closing(open_jobs(server)) as store, closing(open_jobs(server)) as hasty:
                hasty.database.database._timeout = 0.5  # type: ignore
                lease, job_id = leased_job(store)
                postgres.stop()
                with pytest.raises(StoreUnavailable):
                    hasty.get_queue_status()
                postgres.start()

                assert store.complete(lease, [job_id]).done == (job_id,)
                assert hasty.get_queue_status().completed == 1


class TestValues:
    def test_characters_that_postgresql_cannot_store_are_replaced(
        self, store: QueueJobStore
    ) -> None:
        store.enqueue([request("a\0b")])
        lease = take(store)
        store.fail(lease, {lease.job_ids[0]: failure(message="nul \0 in it")})

        job = stored(store, lease.job_ids[0])

        assert (job.entity_uid, job.error) == ("a\ufffdb", "nul \ufffd in it")

    def test_key_too_long_for_an_index_is_refused_by_name(self, store: QueueJobStore) -> None:
        key = "".join(chr(0x4E00 + n) for n in range(9_000))  # does not compress

        with pytest.raises(RequestError, match="cannot index a value"):
            store.enqueue([request(key)])

        assert store.get_queue_status().total == 0

    @pytest.mark.parametrize("name", ['a"b', "percent %% %(s)s", "colon :now {jobs}", "ümlaut"])
    def test_schema_of_any_name_is_quoted(self, postgres_url: str, name: str) -> None:
        server = server_of(postgres_url, schema_name=name)
        create(server)
        with closing(open_jobs(server)) as store:
            lease, job_id = leased_job(store)
            assert store.complete(lease, [job_id]).done == (job_id,)
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))


def terminate(url: str, pid: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))


def terminate_all(run: Run) -> None:
    run(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
        " WHERE application_name = 'embed-pipeline'"
    )
