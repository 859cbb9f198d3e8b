"""`embed-pipeline export`: tables that pandas reads, whole or not at all."""

from __future__ import annotations

import csv
import os
import re
import secrets
import stat
import sys
from pathlib import Path

import pandas as pd  # type: ignore[import-untyped]
import pytest

from embed_pipeline.domain.job import EntityUid, JobRequest
from embed_pipeline.ports.job_history import PAGE
from embed_pipeline.usecases.files.export import export_jobs
from embed_pipeline.worker.context import Services
from embed_pipeline_tests.clocks import DAY, HOUR
from embed_pipeline_tests.interfaces.conftest import CommandLine, create
from embed_pipeline_tests.interfaces.past import Past


def read(path: Path) -> pd.DataFrame:
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)


@pytest.fixture(params=["jobs.csv", "jobs.parquet"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / str(request.param)


def test_all_jobs_are_written_and_read_by_pandas(
    cli: CommandLine, past: Past, services: Services, file: Path
) -> None:
    past.completed("done", ago=HOUR)
    past.failed("failed")
    create(services, "pending")

    answer = cli("export", str(file))

    frame = read(file)
    assert (answer.code, answer.out) == (0, f"Wrote 3 jobs to {file}.\n")
    assert sorted(frame["status"]) == ["completed", "failed", "pending"]
    assert list(frame.columns[:5]) == ["id", "entity_uid", "model", "version", "status"]
    assert "lease_token" not in frame.columns


def test_failures_carry_their_errors(cli: CommandLine, past: Past, file: Path) -> None:
    past.completed("done", ago=HOUR)
    past.failed("failed")

    answer = cli("export", str(file), "--status", "failed", "--json")

    (row,) = read(file).to_dict("records")
    assert answer.json == {"jobs": 1, "file": str(file)}
    assert (row["entity_uid"], row["error_category"]) == ("failed", "PERMANENT")
    assert (row["error"], row["error_stack"]) == ("It was refused.", "the stack of it")


def test_jobs_that_ended_since_a_moment_are_chosen(
    cli: CommandLine, past: Past, services: Services, file: Path
) -> None:
    past.completed("long ago", ago=3 * DAY)
    past.completed("lately", ago=HOUR)
    past.failed("failed lately", ago=HOUR)
    since = f"{services.jobs.now() - DAY:%Y-%m-%d}"

    cli("export", str(file), "--since", since, "--status", "completed")

    assert list(read(file)["entity_uid"]) == ["lately"]


def test_queue_larger_than_a_page_is_written_whole(
    cli: CommandLine, services: Services, file: Path
) -> None:
    count = 2 * PAGE + 3
    services.jobs.enqueue(
        [JobRequest(entity_uid=EntityUid(f"e{n}"), model="m", version="1") for n in range(count)]
    )

    cli("export", str(file))

    assert read(file)["id"].nunique() == count


def test_moments_are_moments(cli: CommandLine, past: Past, tmp_path: Path) -> None:
    past.completed("done", ago=HOUR)

    cli("export", str(tmp_path / "jobs.parquet"))

    frame = read(tmp_path / "jobs.parquet")
    assert str(frame["processed_at"].dtype) == "datetime64[ms, UTC]"
    assert frame["attempts"].sum() == 0


def test_empty_queue_is_an_empty_table(cli: CommandLine, file: Path) -> None:
    assert cli("export", str(file)).code == 0
    assert len(read(file)) == 0


def test_file_that_is_there_stays_unless_told(cli: CommandLine, file: Path) -> None:
    file.write_text("precious")

    refused = cli("export", str(file))

    assert (refused.code, file.read_text()) == (1, "precious")
    assert "is there already" in refused.err
    assert cli("export", str(file), "--overwrite").code == 0
    assert len(read(file)) == 0


def test_link_planted_in_the_folder_is_not_followed(
    cli: CommandLine, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither under the name that earlier versions wrote, nor if the random name is guessed."""
    monkeypatch.setattr(secrets, "token_hex", lambda size: "guessed")
    precious = file.with_name("precious")
    precious.write_text("precious")
    links = [f".{file.name}.unfinished", f".{file.name}.guessed.unfinished"]
    file.with_name(links[0]).symlink_to(precious)

    assert cli("export", str(file)).code == 0
    file.with_name(links[1]).symlink_to(precious)
    refused = cli("export", str(file), "--overwrite")

    assert (refused.code, len(read(file))) == (1, 0)
    assert "cannot be written: File exists" in refused.err
    assert precious.read_text() == "precious"


def test_interrupted_export_leaves_the_file_of_before_and_nothing_else(
    services: Services, file: Path
) -> None:
    services.jobs.enqueue([JobRequest(entity_uid=EntityUid("e"), model="m", version="1")])
    file.write_text("precious")
    before = sorted(file.parent.iterdir())

    def interrupt(count: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_jobs(services.jobs.history, file, overwrite=True, on_page=interrupt)

    assert file.read_text() == "precious"
    assert sorted(file.parent.iterdir()) == before


def test_file_gets_the_mode_that_the_umask_leaves(cli: CommandLine, file: Path) -> None:
    before = os.umask(0o027)
    try:
        cli("export", str(file))
    finally:
        os.umask(before)

    assert stat.S_IMODE(file.stat().st_mode) == 0o640


FORMULAS = ("=1+1", "+1", "-1", "@sum", "\t=1", "\r=1")


def test_formulas_are_escaped_for_spreadsheets_alone(
    cli: CommandLine, services: Services, tmp_path: Path
) -> None:
    file = tmp_path / "jobs.csv"
    keys = (*FORMULAS, "a=1")
    services.jobs.enqueue(
        [JobRequest(entity_uid=EntityUid(key), model="m", version="1") for key in keys]
    )

    cli("export", str(file))
    assert set(keys_in(file)) == set(keys)

    cli("export", str(file), "--overwrite", "--spreadsheet")
    assert set(keys_in(file)) == {*(f"'{key}" for key in FORMULAS), "a=1"}


def keys_in(file: Path) -> list[str]:
    with file.open(newline="") as opened:
        return [row["entity_uid"] for row in csv.DictReader(opened)]


def test_spreadsheet_is_for_csv(cli: CommandLine, tmp_path: Path) -> None:
    answer = cli("export", str(tmp_path / "jobs.parquet"), "--spreadsheet")

    assert (answer.code, list(tmp_path.glob("*jobs*"))) == (1, [])
    assert "--spreadsheet is for CSV files" in answer.err


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("jobs.xlsx", "ends with one of: .csv, .parquet"),
        ("nowhere/jobs.csv", "cannot be written: No such file or directory"),
    ],
)
def test_file_that_cannot_be_written_is_one_sentence(
    cli: CommandLine, tmp_path: Path, name: str, says: str
) -> None:
    answer = cli("export", str(tmp_path / name))

    assert (answer.code, answer.out, len(answer.sentences)) == (1, "", 1)
    assert says in answer.err
    assert list(tmp_path.glob("*jobs*")) == []


def test_wrong_status_is_wrong_usage(cli: CommandLine) -> None:
    assert cli("export", "jobs.csv", "--status", "lost").code == 2
    assert cli("export", "jobs.csv", "--since", "yesterday").code == 2


def test_without_pyarrow_the_extra_is_named(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Missing("pyarrow"), *sys.meta_path])

    answer = cli("export", str(tmp_path / "jobs.parquet"))

    assert (answer.code, answer.out) == (1, "")
    assert re.fullmatch(
        r"A Parquet file needs the package pyarrow: pip install 'pyarrow>=\S+'\.\n", answer.err
    )


class Missing:
    """Python's way to find a package, for one that is not installed."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == self._package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
