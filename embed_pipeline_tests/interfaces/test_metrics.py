"""`embed-pipeline metrics`, printed once and scraped over HTTP."""

from __future__ import annotations

import signal
import socket
import time
from pathlib import Path

import pytest

from embed_pipeline.worker.context import Services
from embed_pipeline_tests.interfaces.command_line import environment
from embed_pipeline_tests.interfaces.conftest import CommandLine, create
from embed_pipeline_tests.interfaces.metrics_scene import exporter, samples_of, scrape


def test_scrape_over_http_tells_what_the_store_knows(
    home: Path, tmp_path: Path, services: Services
) -> None:
    create(services, "Theremin", "Zeer pot")
    with exporter("--counts-every", "0", env=environment(home), cwd=tmp_path) as running:
        before = scrape(running.url)
        create(services, "Borscht")
        after = scrape(running.url)

    assert before["embed_pipeline_up"] == after["embed_pipeline_up"] == 1
    assert before['embed_pipeline_jobs{status="pending"}'] == 2
    assert (
        after['embed_pipeline_jobs{status="pending"}'] == services.jobs.get_queue_status().pending
    )
    stored = services.jobs.counters.read()
    assert after["embed_pipeline_jobs_enqueued_total"] == stored["jobs_enqueued"] == 3


def test_scrape_of_single_names_answers_with_these(home: Path, tmp_path: Path) -> None:
    wanted = ("embed_pipeline_up", "embed_pipeline_jobs_enqueued_total")
    query = "&".join(f"name[]={name}" for name in wanted)

    with exporter(env=environment(home), cwd=tmp_path) as running:
        found = scrape(f"{running.url}?{query}")

    assert found.keys() == set(wanted)


def test_only_this_machine_is_served_unless_told(home: Path, tmp_path: Path) -> None:
    with exporter(env=environment(home), cwd=tmp_path) as running:
        port = int(running.url.split(":")[2].partition("/")[0])
        listening = _listening_addresses(port)

    assert running.url.startswith("http://127.0.0.1:")
    assert listening == {"127.0.0.1"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_end_it_cleanly(
    home: Path, tmp_path: Path, number: signal.Signals
) -> None:
    with exporter(env=environment(home), cwd=tmp_path) as running:
        scrape(running.url)
        code, out, err = running.stop(number)

    assert (code, out, err) == (0, "Stopped.\n", "")


def test_queue_that_is_away_is_a_metric_and_comes_back_by_itself(
    home: Path, tmp_path: Path
) -> None:
    in_the_way = home / "queue.sqlite"
    in_the_way.mkdir(parents=True)
    with exporter("--counts-every", "0", env=environment(home), cwd=tmp_path) as running:
        away = [scrape(running.url), scrape(running.url)][-1]
        in_the_way.rmdir()
        back = scrape(running.url)
        code, _, err = running.stop()

    assert away["embed_pipeline_up"] == 0
    assert away['embed_pipeline_database_up{database="queue"}'] == 0
    assert away['embed_pipeline_database_up{database="graph"}'] == 1
    assert away["embed_pipeline_entities"] == 0
    assert "embed_pipeline_jobs_enqueued_total" not in away
    assert back["embed_pipeline_up"] == 1
    assert back["embed_pipeline_jobs_enqueued_total"] == 0
    assert code == 0
    assert err == f"The queue cannot be read: The database {in_the_way} cannot be opened.\n"


def test_two_servers_that_are_away_are_told_within_a_scrapes_time(tmp_path: Path) -> None:
    """Prometheus gives up after 10 s, and each driver tries for 5."""
    env = environment(
        tmp_path,
        EMBED_STORE="neo4j",
        EMBED_QUEUE_URI="bolt://127.0.0.1:1",
        EMBED_QUEUE_PASSWORD="of the queue",
        EMBED_GRAPH_URI="bolt://127.0.0.1:2",
        EMBED_GRAPH_PASSWORD="of the graph",
    )
    with exporter(env=env, cwd=tmp_path) as running:
        started = time.monotonic()
        samples = scrape(running.url)
        took = time.monotonic() - started
        _, _, err = running.stop()

    assert samples["embed_pipeline_up"] == 0
    assert samples['embed_pipeline_database_up{database="queue"}'] == 0
    assert samples['embed_pipeline_database_up{database="graph"}'] == 0
    assert took < 10
    assert "bolt://127.0.0.1:1 cannot be reached." in err
    assert "of the queue" not in err


def test_metrics_are_printed_once_without_serve(cli: CommandLine, services: Services) -> None:
    create(services, "Theremin")

    answer = cli("metrics")

    assert (answer.code, answer.err) == (0, "")
    assert samples_of(answer.out)["embed_pipeline_jobs_enqueued_total"] == 1


def test_reapers_sums_are_there_when_it_is_configured(cli: CommandLine) -> None:
    answer = cli("metrics", REAPER_DATABASE_URL="postgresql://reaper@127.0.0.1/jobs")

    assert samples_of(answer.out)["reaper_requeues_total"] == 0


def test_port_that_is_taken_is_a_sentence(cli: CommandLine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        answer = cli("metrics", "--serve", "--port", str(port))

    assert (answer.code, answer.out) == (1, "")
    assert answer.err == f"Cannot listen at 127.0.0.1:{port}: Address already in use.\n"


def test_signals_are_as_they_were_after_serving(cli: CommandLine) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())

    cli("metrics", "--serve", "--host", "no.such.host.invalid")

    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_bad_host_is_a_sentence(cli: CommandLine) -> None:
    answer = cli("metrics", "--serve", "--host", "no.such.host.invalid")

    assert answer.code == 1
    assert answer.err.startswith("Cannot listen at no.such.host.invalid:9464: ")
    assert len(answer.sentences) == 1


def _listening_addresses(port: int) -> set[str]:
    """From the kernel's own table: hexadecimal, the address's bytes in reverse."""
    found = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        local, state = line.split()[1], line.split()[3]
        address, _, in_hex = local.partition(":")
        if state == "0A" and int(in_hex, 16) == port:
            found.add(socket.inet_ntoa(bytes.fromhex(address)[::-1]))
    return found
