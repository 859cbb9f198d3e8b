"""What can be wrong with a SQLite file, and what is said about it."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from embed_pipeline.errors import (
    EmbedPipelineError,
    ErrorCategory,
    SchemaMissing,
    StoreBusy,
    StoreCorrupted,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from embed_pipeline.stores.queue.job_store import QueueJobStore
from embed_pipeline.stores.queue.transaction import Transaction
from embed_pipeline.stores.sqlite import connection as connecting
from embed_pipeline.stores.sqlite.queue.backend import QueueFile
from embed_pipeline_tests.contracts.job_store.scene import add_jobs, take
from embed_pipeline_tests.stores.sqlite_queue import connection_of, run_sql

PATIENCE = 30


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "queue.sqlite"


def store_at(path: Path) -> QueueJobStore:
    return QueueJobStore(QueueFile(path))


def test_missing_folders_are_made(tmp_path: Path) -> None:
    store = store_at(tmp_path / "deep" / "down" / "queue.sqlite")

    add_jobs(store)

    assert store.get_queue_status().pending == 1
    store.close()


def test_file_that_is_no_database_is_corrupted(path: Path) -> None:
    path.write_text("this is a letter to a friend, not a database, and long enough to tell")

    with pytest.raises(StoreCorrupted, match="is not a SQLite database"):
        store_at(path).get_queue_status()


def test_folder_instead_of_a_file_is_unavailable(path: Path) -> None:
    path.mkdir()

    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        store_at(path).get_queue_status()


def test_home_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")

    with pytest.raises(StoreUnavailable, match="cannot be made"):
        store_at(tmp_path / "home" / "sub" / "queue.sqlite").get_queue_status()


def test_newer_schema_is_refused_with_advice(path: Path) -> None:
    store_at(path).get_queue_status()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()

    with pytest.raises(SchemaMissing, match="schema version 99"):
        store_at(path).get_queue_status()


def test_file_of_an_earlier_version_is_brought_up_with_its_jobs(path: Path) -> None:
    store = store_at(path)
    add_jobs(store, 3)
    store.close()
    with sqlite3.connect(path) as connection:
        connection.executescript("""
            DROP INDEX job_ended; DROP INDEX job_failed; DROP INDEX job_holder;
            DROP INDEX job_malformed;
            CREATE INDEX job_ended ON embed_job (processed_at)
                WHERE status IN ('completed', 'failed');
            CREATE INDEX job_failed ON embed_job (processed_at) WHERE status = 'failed';
            CREATE INDEX job_owner ON embed_job (lock_owner, lock_until)
                WHERE status = 'processing';
            CREATE INDEX job_token ON embed_job (lease_token) WHERE status = 'processing';
            CREATE TABLE budget_bucket (provider TEXT, bucket INTEGER);
            PRAGMA user_version = 1;
        """)
    connection.close()

    upgraded = store_at(path)

    assert upgraded.get_queue_status().pending == 3
    assert indexes_of(upgraded) == indexes_of(store_at(path.with_name("new.sqlite")))


def indexes_of(store: QueueJobStore) -> dict[str, str]:
    found = run_sql(store, "SELECT name, sql FROM sqlite_master WHERE type = 'index'")
    return {row["name"]: row["sql"] for row in found}


def test_full_disk_is_critical_and_loses_nothing(path: Path) -> None:
    store = store_at(path)
    add_jobs(store, 10)
    pages = run_sql(store, "PRAGMA page_count")[0][0]
    run_sql(store, f"PRAGMA max_page_count = {pages + 2}")

    with pytest.raises(StoreFull, match="disk is full") as raised:
        add_jobs(store, 5_000, prefix="more")

    assert raised.value.category is ErrorCategory.CRITICAL
    assert store.get_queue_status().pending >= 10
    assert len(take(store, 3).jobs) == 3
    store.close()


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX files")
def test_read_only_file_is_critical(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_jobs(store_at(path))
    # Root may write everything, so the connection itself is made read-only.
    store = store_at(path)
    run_sql(store, "PRAGMA query_only = ON")

    with pytest.raises(StoreReadOnly) as raised:
        add_jobs(store, prefix="more")

    assert raised.value.category is ErrorCategory.CRITICAL
    store.close()


def test_file_locked_for_too_long_is_busy_and_transient(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_at(path)
    add_jobs(store)
    monkeypatch.setattr(connecting, "BUSY_PATIENCE", 0.05)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StoreBusy) as raised:
        take(store)

    other.execute("ROLLBACK")
    other.close()
    assert raised.value.category is ErrorCategory.TRANSIENT
    assert len(take(store).jobs) == 1
    store.close()


class LateTime:
    """A clock that jumps, and tells when it was first asked; nobody may wait by it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.was_asked = threading.Event()

    def monotonic(self) -> float:
        self.was_asked.set()
        return self.now

    def sleep(self, _: float) -> None:
        raise AssertionError("it has waited for its turn already")


def test_turn_behind_other_threads_counts_as_waiting(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a run with many threads would take minutes to say that its queue is locked."""
    store = store_at(path)
    add_jobs(store)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    late = LateTime()
    monkeypatch.setattr(connecting, "time", late)
    with ThreadPoolExecutor(1) as threads:
        with connection_of(store):
            second = threads.submit(take, store)
            assert late.was_asked.wait(PATIENCE)
            late.now = connecting.BUSY_PATIENCE + 1

        assert isinstance(second.exception(PATIENCE), StoreBusy)

    other.close()
    store.close()


def test_short_lock_of_another_process_is_waited_for(path: Path) -> None:
    store = store_at(path)
    add_jobs(store)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(0.1, lambda: other.execute("COMMIT")).start()

    assert len(take(store).jobs) == 1
    other.close()
    store.close()


def test_error_inside_a_transaction_leaves_nothing_behind(path: Path) -> None:
    store = store_at(path)
    add_jobs(store)

    def dies_in_mid_transaction(transaction: Transaction) -> None:
        transaction.record("jobs.leased")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        store.database.write(dies_in_mid_transaction)

    assert [event.kind for event in store.events.recent()] == ["jobs.enqueued"]
    store.close()


def _count_in_child(store: QueueJobStore, answers: multiprocessing.Queue[int | str]) -> None:
    try:
        answers.put(store.get_queue_status().pending)
    except EmbedPipelineError as error:
        answers.put(str(error))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_child_opens_a_connection_of_its_own(path: Path) -> None:
    store = store_at(path)
    add_jobs(store, 3)
    forking = multiprocessing.get_context("fork")
    answers: multiprocessing.Queue[int | str] = forking.Queue()

    child = forking.Process(target=_count_in_child, args=(store, answers))
    child.start()
    counted = answers.get(timeout=30)
    child.join()

    assert counted == 3
    assert store.get_queue_status().pending == 3
    store.close()
