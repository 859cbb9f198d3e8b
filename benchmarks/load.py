"""How quickly entities are loaded from a file, and how much memory that takes.

Each load runs in a process of its own on an empty home, with the real stores and the mock
provider: rows per second and the peak of resident memory, at two sizes. A second load of the same
file shows what it costs to find nothing new.

    python -m benchmarks.load
    python -m benchmarks.load --rows 10000 --format csv
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from embed_pipeline import wiring
from embed_pipeline.settings import load_settings
from embed_pipeline.usecases.files.load import load_file

SIZES = (10_000, 100_000)
FORMATS = ("csv", "jsonl", "parquet")
WORDS = ("clay", "sand", "water", "loom", "silk", "salt", "lens", "copper", "wire", "drum")


def rows(count: int) -> Iterator[dict[str, object]]:
    for number in range(count):
        first, second = WORDS[number % 10], WORDS[number // 10 % 10]
        facts = [f"Made of {first} and {second}.", f"Number {number} of its kind.", "Still in use."]
        yield {"name": f"Thing {number}", "entityType": "Thing", "observations": facts}


def write(path: Path, count: int) -> None:
    if path.suffix == ".parquet":
        import pandas as pd  # type: ignore[import-untyped]  # not where memory is measured

        pd.DataFrame(rows(count)).to_parquet(path, index=False)
        return
    with path.open("w", newline="") as file:
        if path.suffix == ".jsonl":
            file.writelines(json.dumps(row) + "\n" for row in rows(count))
            return
        writer = csv.DictWriter(file, ["name", "entityType", "observations"])
        writer.writeheader()
        for row in rows(count):
            writer.writerow(row | {"observations": json.dumps(row["observations"])})


def measure(path: Path, home: Path) -> None:
    """In a process of its own: prints seconds, new entities and the peak of memory in MiB."""
    services = wiring.open_services(load_settings({"EMBED_ENV": "test", "EMBED_HOME": str(home)}))
    with closing(services.jobs), closing(services.graph):
        before = time.perf_counter()
        report = load_file(services, path)
        seconds = time.perf_counter() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "created": report.created, "peak": peak}))


def measured(path: Path, home: Path) -> dict[str, float]:
    answer: dict[str, float] = json.loads(apart("--measure", str(path), str(home)))
    return answer


def apart(*words: str) -> str:
    """In a process of its own; a large parent would be seen in a child's peak of memory."""
    program = [sys.executable, "-m", "benchmarks.load", *words]
    return subprocess.run(program, check=True, capture_output=True, text=True).stdout


def compare(sizes: list[int], formats: list[str]) -> None:
    print("| format | rows | rows/s | again, rows/s | peak RSS |\n|---|---:|---:|---:|---:|")
    for ending in formats:
        for count in sizes:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"entities.{ending}"
                apart("--write", str(path), "--rows", str(count))
                first = measured(path, Path(folder) / "home")
                again = measured(path, Path(folder) / "home")
                assert (first["created"], again["created"]) == (count, 0)
            speeds = " | ".join(f"{count / run['seconds']:,.0f}" for run in (first, again))
            print(f"| {ending} | {count:,} | {speeds} | {first['peak']:,.0f} MiB |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--format", choices=FORMATS, nargs="+", default=list(FORMATS))
    parser.add_argument("--measure", type=Path, nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        measure(*given.measure)
    elif given.write:
        write(given.write, given.rows[0])
    else:
        compare(given.rows, given.format)


if __name__ == "__main__":
    main()
