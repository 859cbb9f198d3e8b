"""Folder and files: who may read them, and whether they are on this machine's disk."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from functools import cache
from pathlib import Path

from embed_pipeline.errors import StoreUnavailable
from embed_pipeline.telemetry import emit

DEFAULT_FOLDER = ".embed_pipeline"
"""Ours by its name. Any other folder that exists already is its owner's business."""

MOUNTS = Path("/proc/self/mountinfo")
_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "glusterfs", "beegfs")
_NETWORK_IN_USER_SPACE = ("sshfs", "glusterfs", "ceph", "s3fs", "rclone", "gcsfuse", "smb", "nfs")

_OTHERS = stat.S_IRWXO


def prepare_file(path: Path) -> None:
    """A new file is 0600 in a new folder of 0700; SQLite gives its `-wal` and `-shm` the same.

    Older ones that all users may read are set right by their owner. A file or folder that only a
    group may use was made so on purpose, and stays.
    """
    _make_folder(path.parent)
    if os.name == "posix":
        # Only a new file is opened here: closing one drops the locks that SQLite has on it.
        with suppress(OSError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
            _close_to_others(path.with_name(name), 0o600)
        if path.parent.name == DEFAULT_FOLDER:
            _close_to_others(path.parent, 0o700)
    warn_of_network(path.parent)


def _make_folder(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(f"The folder {path} cannot be made: {error.strerror}.") from error


def _close_to_others(path: Path, mode: int) -> None:
    if not hasattr(os, "geteuid"):  # Windows: files inherit the permissions of their folder
        return
    with suppress(OSError):
        found = path.stat()
        if found.st_mode & _OTHERS and found.st_uid == os.geteuid():
            path.chmod(mode)


@cache  # logged once per process
def warn_of_network(folder: Path) -> None:
    if filesystem := network_filesystem(folder):
        emit("store.network_mount", folder=str(folder), filesystem=filesystem)


def network_filesystem(folder: Path) -> str | None:
    """The type of the mount if it is a network's; None if it is not, or unknown (no Linux)."""
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    place, longest, kind = folder.resolve(), -1, ""
    for line in lines:
        fields, _, rest = line.partition(" - ")
        mount = Path(fields.split(" ")[4].replace("\\040", " "))
        # A later mount on the same folder hides the earlier one.
        if place.is_relative_to(mount) and len(mount.parts) >= longest:
            longest, kind = len(mount.parts), rest.split(" ")[0]
    name = kind.removeprefix("fuse.")
    is_remote = kind in _NETWORK or (name != kind and name.startswith(_NETWORK_IN_USER_SPACE))
    return kind if is_remote else None
