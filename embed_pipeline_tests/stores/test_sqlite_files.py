"""Who may read the SQLite files, and what is said of those on a network mount."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.recovery import QueuePolicy
from embed_pipeline.stores import sqlite
from embed_pipeline.stores.config import StoreConfig
from embed_pipeline.stores.sqlite import files
from embed_pipeline_tests.contracts.job_store.scene import add_jobs
from embed_pipeline_tests.worker.logbook import recording

posix = pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX files")

MOUNTED = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 22 0:40 / {share} rw,relatime shared:2 - {kind} server:/export rw
41 40 0:41 / {share}/local\\040disk rw,relatime - xfs /dev/sdb1 rw
"""


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def modes_in(home: Path) -> set[int]:
    return {mode_of(path) for path in home.iterdir()}


@contextmanager
def opened(home: Path) -> Iterator[None]:
    """Both files, with what SQLite keeps beside them."""
    config = StoreConfig(home=home, policy=QueuePolicy(), collections=(Collection(),))
    with (
        closing(sqlite.open_queue(config).jobs) as jobs,
        closing(sqlite.open_graph(config)) as graph,
    ):
        add_jobs(jobs)
        graph.models()
        yield


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@posix
def test_new_files_are_their_owners_alone_in_a_folder_of_the_same(tmp_path: Path) -> None:
    home = tmp_path / "some" / "home"

    with opened(home):
        assert len([*home.iterdir()]) >= 4, "with -wal and -shm"
        assert modes_in(home) == {0o600}
    assert mode_of(home) == 0o700
    assert mode_of(home.parent) == 0o755


@posix
def test_older_files_are_set_right_by_their_owner(tmp_path: Path) -> None:
    home = tmp_path / files.DEFAULT_FOLDER
    with opened(home):
        home.chmod(0o755)
        for path in home.iterdir():
            path.chmod(0o644)

        with opened(home):
            assert modes_in(home) == {0o600}
            assert mode_of(home) == 0o700


@posix
def test_folder_of_a_user_stays_as_it_is(tmp_path: Path) -> None:
    home = tmp_path / "shared"
    home.mkdir()
    home.chmod(0o777)

    with opened(home):
        assert mode_of(home) == 0o777
        assert modes_in(home) == {0o600}


@posix
def test_files_that_a_group_shares_on_purpose_stay_so(tmp_path: Path) -> None:
    home = tmp_path / files.DEFAULT_FOLDER
    with opened(home):
        pass
    home.chmod(0o770)
    for path in home.iterdir():
        path.chmod(0o660)

    with opened(home):
        assert (mode_of(home), modes_in(home)) == (0o770, {0o660})


@posix
def test_files_of_another_owner_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / files.DEFAULT_FOLDER
    with opened(home):
        pass
    (home / "queue.sqlite").chmod(0o666)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)

    with opened(home):
        assert mode_of(home / "queue.sqlite") == 0o666


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs", "ext4", "overlay", "fuse.ntfs-3g"])
def test_network_mounts_are_told_from_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    share = tmp_path / "share"
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTED.format(share=share, kind=kind))
    monkeypatch.setattr(files, "MOUNTS", mounts)

    found = files.network_filesystem(share / "home")

    assert found == (kind if kind in ("nfs4", "cifs", "fuse.sshfs") else None)
    assert files.network_filesystem(share / "local disk" / "home") is None
    assert files.network_filesystem(tmp_path) is None


def test_network_mount_is_logged_once_and_shown_by_the_doctor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, mounts = tmp_path / "share" / "home", tmp_path / "mountinfo"
    mounts.write_text(MOUNTED.format(share=tmp_path / "share", kind="nfs"))
    monkeypatch.setattr(files, "MOUNTS", mounts)
    config = StoreConfig(home=home, policy=QueuePolicy(), collections=(Collection(),))

    with recording() as logs:
        for _ in range(2):
            with opened(home):
                pass

    (line,) = logs.of("store.network_mount")
    assert (line["folder"], line["filesystem"]) == (str(home), "nfs")
    assert "one machine only" in line["message"]
    (check,) = [check for check in sqlite.diagnose_queue(config) if check.part == "files"]
    assert "network mount (nfs)" in check.message
    assert check.remedy is not None


def test_without_a_list_of_mounts_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOUNTS", tmp_path / "none")

    assert files.network_filesystem(tmp_path) is None
