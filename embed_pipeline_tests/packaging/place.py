"""A virtual environment far from the checkout, and commands in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
KEPT = ("PIP_", "UV_", "SSL_", "REQUESTS_", "HTTP", "LANG", "TMPDIR")
"""Variables of this machine that an installation may need."""


class Place:
    """Its folder is the working directory, the home, and where all data goes."""

    def __init__(self, folder: Path, python: str | None = None) -> None:
        self.folder, self.bin = folder, folder / "venv" / "bin"
        folder.mkdir()
        version = ["--python", python] if python else []
        self.uv("venv", "--quiet", *version, str(folder / "venv"))

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
        (self.folder / "dagster").mkdir(exist_ok=True)
        return kept | {
            "HOME": str(self.folder),
            "PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin",
            "VIRTUAL_ENV": str(self.folder / "venv"),
            "DAGSTER_HOME": str(self.folder / "dagster"),
            "EMBED_HOME": str(self.folder / "data"),
            "COLUMNS": "200",
        }

    def uv(self, *words: str) -> None:
        """With this machine's cache, so that nothing is downloaded twice."""
        subprocess.run([sys.executable, "-m", "uv", *words], cwd=self.folder, check=True)

    def install(self, *packages: str) -> None:
        self.uv("pip", "install", "--quiet", "--python", str(self.bin / "python"), *packages)

    def run(self, *words: str, cwd: Path | None = None, **variables: str) -> str:
        """What the command prints, both streams; it has to succeed."""
        ended = subprocess.run(
            [str(self.bin / words[0]), *words[1:]],
            env=self.environment | variables,
            cwd=cwd or self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )
        assert ended.returncode == 0, f"{' '.join(words)}:\n{ended.stdout}"
        return ended.stdout

    def installed(self) -> list[Path]:
        """The metadata folder of every package."""
        return sorted(self.folder.glob("venv/lib/python*/site-packages/*.dist-info"))

    def megabytes(self) -> int:
        files = (self.folder / "venv" / "lib").rglob("*")
        return sum(path.lstat().st_size for path in files if path.is_file()) // 1_000_000
