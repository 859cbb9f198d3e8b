"""`make run` with the Pythons of three Debian releases, without a compiler (`make test-roots`).

Needs to be root, the package debootstrap, and a gigabyte of downloads for each root. A root that
is there already is used again; each starts with a fresh copy of what is committed.

ARM is not run: a dry installation checks that every locked package has a wheel for it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
SUITES = {"bookworm": "3.11", "trixie": "3.13", "sid": "3.14"}
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = ("aarch64-manylinux_2_28", "x86_64-manylinux_2_28")
PACKAGES = "python3,python3-venv,make,ca-certificates"
NETWORK = ("etc/resolv.conf", "etc/ssl/certs/ca-certificates.crt")
"""Copied from this machine, which may have authorities of its own."""

IN_ROOT = """
set -e
mount --bind /dev "$1/dev"
mount -t proc proc "$1/proc"
exec chroot "$1" /bin/sh -ec '
  ! command -v cc && ! command -v gcc || { echo "there is a compiler in this root"; exit 1; }
  python3 --version
  cd /src && rm -rf .venv .embed_pipeline && make run'
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("suites", nargs="*", metavar="SUITE", default=list(SUITES))
    parser.add_argument("--home", type=Path, default=Path(".embed_pipeline/roots"))
    options = parser.parse_args(arguments)
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        sys.exit("This needs to be root, and debootstrap: apt-get install debootstrap")
    for python in PYTHONS:
        for platform in PLATFORMS:
            wheels_exist(python, platform)
    for suite in options.suites:
        run_in(suite, options.home.absolute() / suite)
    return 0


def wheels_exist(python: str, platform: str) -> None:
    """Resolves against the index, but downloads no wheel."""
    uv = [sys.executable, "-m", "uv", "pip", "install", "--dry-run", "--quiet", "--no-deps"]
    only = ["--only-binary", ":all:", "--python-version", python, "--python-platform", platform]
    lock = ["--require-hashes", "--requirement", "requirements.txt", "--target", "/nonexistent"]
    subprocess.run([*uv, *only, *lock], cwd=CHECKOUT, check=True)
    say(f"{platform}, Python {python}: every locked package has a wheel")


def run_in(suite: str, root: Path) -> None:
    say(f"\n{suite}: Python {SUITES.get(suite, 'unknown')}")
    ready = root / ".ready"
    if not ready.exists():
        bootstrap = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", suite, str(root)]
        subprocess.run(bootstrap, check=True, stdout=subprocess.DEVNULL)
        ready.touch()
    for path in NETWORK:
        shutil.copyfile(Path("/") / path, root / path)
    source = root / "src"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=CHECKOUT, check=True, stdout=-1)
    subprocess.run(["tar", "-x", "-C", str(source)], input=archive.stdout, check=True)
    # A mount namespace of its own: whatever happens, nothing stays mounted.
    alone = ["unshare", "--mount", "--fork", "--kill-child", "sh", "-c", IN_ROOT, "sh", str(root)]
    subprocess.run(alone, check=True, env=_environment())


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _environment() -> dict[str, str]:
    """Pip's settings come along, but no folder of this machine."""
    pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    pip.pop("PIP_FIND_LINKS", None)
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return pip | {"PATH": path, "HOME": "/root", "LANG": "C.UTF-8"}


if __name__ == "__main__":
    sys.exit(main())
