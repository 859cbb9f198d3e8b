"""Export jobs as a table in a file, for pandas and the like; one page of jobs in memory."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from embed_pipeline.domain.job import EmbedJob, JobStatus
from embed_pipeline.errors import RequestError
from embed_pipeline.ports.job_history import JobHistory
from embed_pipeline.usecases.files.formats import Columns, Write, writer_of

_INTERNAL = ("lease_token", "again")
_TYPES = {"int": int, "bool": bool, "datetime": datetime, "datetime | None": datetime}

COLUMNS: Columns = {
    each.name: _TYPES.get(str(each.type), str)
    for each in fields(EmbedJob)
    if each.name not in _INTERNAL
}

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
"""A spreadsheet runs a cell of CSV that starts with one of these as a formula."""

ENDED = (JobStatus.COMPLETED, JobStatus.FAILED)


def export_jobs(
    history: JobHistory,
    path: Path,
    *,
    status: JobStatus | None = None,
    since: datetime | None = None,
    overwrite: bool = False,
    spreadsheet: bool = False,
    on_page: Callable[[int], None] = lambda count: None,
) -> int:
    """Export all jobs, those of one status, or those that ended since; returns the count.

    A row is the state of its job when its page was read. Texts are written exactly as they are;
    `spreadsheet` puts an apostrophe before those that a spreadsheet would run as a formula.
    """
    if spreadsheet and path.suffix.lower() != ".csv":
        raise RequestError("--spreadsheet is for CSV files: other formats hold no formulas.")
    prepare = _without_formulas if spreadsheet else asdict
    count = 0
    with _open_table(path, overwrite=overwrite) as write:
        for page in _pages(history, status=status, since=since):
            write([prepare(job) for job in page])
            count += len(page)
            on_page(count)
    return count


@contextmanager
def _open_table(path: Path, *, overwrite: bool) -> Iterator[Write]:
    """The file appears whole, at the end of the block, or not at all.

    It is written under a random name that must be new: a link that was planted under a name that
    can be guessed would lead to another file.
    """
    open_writer = writer_of(path)
    if path.exists() and not overwrite:
        raise RequestError(f"{path} is there already: choose another name, or say --overwrite.")
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(8)}.unfinished")
    try:
        with unfinished.open("xb") as file, open_writer(file, COLUMNS) as write:
            yield write
        unfinished.replace(path)
    except OSError as error:
        raise RequestError(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def _without_formulas(job: EmbedJob) -> dict[str, Any]:
    return {
        name: f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value
        for name, value in asdict(job).items()
    }


def _pages(
    history: JobHistory, *, status: JobStatus | None, since: datetime | None
) -> Iterator[tuple[EmbedJob, ...]]:
    last: EmbedJob | None = None
    while True:
        if since is not None or status in ENDED:
            page = history.ended(
                since=since, status=status if status in ENDED else None, after=last
            )
        else:
            page = history.walk(after=last.id if last else None)
        if not page:
            return
        yield tuple(job for job in page if status in (None, job.status))
        last = page[-1]
