"""Export jobs as a table in a file, for pandas and the like; one page of jobs in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields
from datetime import datetime
from pathlib import Path

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

ENDED = (JobStatus.COMPLETED, JobStatus.FAILED)


def export_jobs(
    history: JobHistory,
    path: Path,
    *,
    status: JobStatus | None = None,
    since: datetime | None = None,
    overwrite: bool = False,
    on_page: Callable[[int], None] = lambda count: None,
) -> int:
    """Export all jobs, those of one status, or those that ended since; returns the count.

    A row is the state of its job when its page was read.
    """
    count = 0
    with _open_table(path, overwrite=overwrite) as write:
        for page in _pages(history, status=status, since=since):
            write([asdict(job) for job in page])
            count += len(page)
            on_page(count)
    return count


@contextmanager
def _open_table(path: Path, *, overwrite: bool) -> Iterator[Write]:
    """The file appears whole, at the end of the block, or not at all."""
    open_writer = writer_of(path)
    if path.exists() and not overwrite:
        raise RequestError(f"{path} is there already: choose another name, or say --overwrite.")
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        with open_writer(unfinished, COLUMNS) as write:
            yield write
        unfinished.replace(path)
    except OSError as error:
        raise RequestError(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


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
