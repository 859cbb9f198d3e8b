"""What the metrics say is what the stores know."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from embed_pipeline import wiring
from embed_pipeline.domain.breaker import GRAPH
from embed_pipeline.domain.job import FailureRecord
from embed_pipeline.domain.window import Spent
from embed_pipeline.errors import ErrorCategory, StoreUnavailable
from embed_pipeline.interfaces.metrics import Reader, as_text, registry_of
from embed_pipeline.interfaces.metrics.reader import Cached
from embed_pipeline.settings import Settings, load_settings
from embed_pipeline.usecases.insight.search import search
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.loop import run_until_empty
from embed_pipeline.worker.stop import Deadline
from embed_pipeline_tests.clocks import MINUTE, SECOND, FakeClock
from embed_pipeline_tests.contracts.entity_store.scene import coverage_of
from embed_pipeline_tests.interfaces.conftest import create
from embed_pipeline_tests.interfaces.metrics_scene import Samples, samples_of

TIMEOUT = FailureRecord(
    category=ErrorCategory.TRANSIENT, error_type="ProviderTimeout", message="no answer"
)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def settings(home: Path) -> Settings:
    return load_settings(
        {
            "EMBED_ENV": "test",
            "EMBED_HOME": str(home),
            "EMBEDDING_RATE_LIMIT_TOKENS": "20",
            "EMBEDDING_TOKEN_BUDGET": "1000",
        }
    )


@pytest.fixture
def services(settings: Settings, clock: FakeClock) -> Iterator[Services]:
    queue = wiring.open_queue(settings, clock=clock)
    opened = Services(
        jobs=queue.jobs,
        graph=wiring.open_entity_store(settings, clock=clock),
        provider=wiring.open_embedding_provider(settings),
        limiter=wiring.limiter_of(settings, queue),
        clock=clock,
    )
    with closing(opened.jobs), closing(opened.graph):
        yield opened


def scraped(services: Services, **more: bool) -> Samples:
    return samples_of(as_text(registry_of(Reader(services), **more)))


def embed_all(services: Services) -> None:
    run_until_empty(
        services,
        owner="a run",
        recovery_interval=MINUTE,
        deadline=Deadline(services.clock, limit=None),
    )


def test_every_stored_counter_is_exported_with_its_value(services: Services) -> None:
    create(services, "Theremin", "Zeer pot", "Borscht")
    embed_all(services)
    services.jobs.counters.add({"a_sum_of_tomorrow": 7})

    samples = scraped(services)

    stored = services.jobs.counters.read()
    assert stored["jobs_completed"] == stored["vectors_embedded"] == 3
    assert stored["provider_tokens"] > 0
    assert {f"embed_pipeline_{name}_total": value for name, value in stored.items()}.items() <= (
        samples.items()
    )


def test_latencies_are_histograms_by_provider_and_model(services: Services) -> None:
    labels = '{model="mock/mock@64",provider="mock"}'
    first = scraped(services)
    create(services, "Theremin", "Zeer pot", "Borscht")
    embed_all(services)
    search(services, "an instrument")
    services.unsaved_times.save(services.jobs)

    samples = scraped(services)

    counts = {
        name: samples[f"embed_pipeline_{name}_duration_seconds_count{labels}"]
        for name in ("provider_request", "job", "vector_write", "search")
    }
    assert counts == {"provider_request": 2, "job": 3, "vector_write": 1, "search": 1}
    first_bucket = '{le="0.5",model="mock/mock@64",provider="mock"}'
    assert samples[f"embed_pipeline_job_duration_seconds_bucket{first_bucket}"] == 3
    assert samples[f"embed_pipeline_job_duration_seconds_sum{labels}"] == 0  # the clock stands
    assert first[f"embed_pipeline_search_duration_seconds_count{labels}"] == 0


def test_counters_are_there_from_the_first_scrape(services: Services) -> None:
    samples = scraped(services)

    assert samples["embed_pipeline_jobs_failed_total"] == 0
    assert samples["embed_pipeline_provider_tokens_total"] == 0


def test_reapers_sums_keep_their_own_names(services: Services) -> None:
    services.jobs.counters.add({"reaper_requeues": 4, "reaper_sweeps": 2})

    samples = scraped(services, with_reaper=True)

    assert samples["reaper_requeues_total"] == 4
    assert samples["reaper_sweeps_total"] == 2
    assert samples["reaper_failures_total"] == 0


def test_reapers_sums_are_not_shown_where_there_is_no_reaper(services: Services) -> None:
    assert not any(name.startswith("reaper_") for name in scraped(services))


def test_jobs_and_entities_are_counted_exactly(services: Services) -> None:
    create(services, "Theremin", "Zeer pot", "Borscht")
    embed_all(services)
    create(services, "Svalbard")

    samples = scraped(services)

    status = services.jobs.get_queue_status()
    coverage = coverage_of(services.graph, model=services.model)
    assert samples['embed_pipeline_jobs{status="pending"}'] == status.pending == 1
    assert samples['embed_pipeline_jobs{status="completed"}'] == status.completed == 3
    assert samples["embed_pipeline_entities"] == coverage.entities == 4
    assert samples['embed_pipeline_entity_vectors{state="missing"}'] == 1
    assert samples[f'embed_pipeline_coverage_ratio{{model="{services.model}"}}'] == 0.75


def test_empty_graph_has_no_coverage_instead_of_a_wrong_one(services: Services) -> None:
    assert not any(name.startswith("embed_pipeline_coverage") for name in scraped(services))


def test_oldest_leasable_age_grows_until_the_job_is_taken(
    services: Services, clock: FakeClock
) -> None:
    create(services, "Theremin")
    clock.advance(90 * SECOND)

    waiting = scraped(services)["embed_pipeline_oldest_leasable_age_seconds"]
    services.jobs.lease(owner="a run", model=services.model, limit=1, token="t")
    taken = scraped(services)

    assert waiting == 90
    assert taken["embed_pipeline_oldest_leasable_age_seconds"] == 0
    assert taken["embed_pipeline_lease_owners"] == 1


def test_job_that_is_not_due_yet_has_no_age(services: Services) -> None:
    create(services, "Theremin")
    lease = services.jobs.lease(owner="a run", model=services.model, limit=1, token="t")
    services.jobs.fail(lease, {job.id: TIMEOUT for job in lease.jobs})

    assert scraped(services)["embed_pipeline_oldest_leasable_age_seconds"] == 0


def test_lease_of_a_vanished_worker_is_shown(services: Services, clock: FakeClock) -> None:
    create(services, "Theremin")
    services.jobs.lease(owner="a run", model=services.model, limit=1, token="t")

    before = scraped(services)["embed_pipeline_stale_leases"]
    clock.advance(10 * MINUTE)

    assert (before, scraped(services)["embed_pipeline_stale_leases"]) == (0, 1)


def test_halt_breaker_and_health_are_shown(services: Services) -> None:
    services.jobs.breakers.trip(GRAPH, seen=0, error=TIMEOUT)
    services.jobs.switch.halt("the key was revoked", seen=0)

    samples = scraped(services)

    assert samples['embed_pipeline_breaker_open{breaker="graph"}'] == 1
    assert samples['embed_pipeline_breaker_open{breaker="mock"}'] == 0
    assert samples['embed_pipeline_queue_state{state="halted"}'] == 1
    assert samples['embed_pipeline_queue_state{state="running"}'] == 0
    assert samples['embed_pipeline_health_status{status="CRITICAL"}'] == 1
    assert samples['embed_pipeline_health_status{status="HEALTHY"}'] == 0
    assert samples["embed_pipeline_consecutive_failures"] == 1


def test_last_success_and_its_share_are_shown_once_there_is_one(
    services: Services, clock: FakeClock
) -> None:
    assert "embed_pipeline_success_ratio" not in scraped(services)

    create(services, "Theremin")
    embed_all(services)

    samples = scraped(services)
    assert samples["embed_pipeline_success_ratio"] == 1
    assert samples["embed_pipeline_last_success_timestamp_seconds"] == clock.now().timestamp()


def test_budget_is_shown_as_it_is_spent(services: Services) -> None:
    services.limiter.take(Spent(requests=8, tokens=300))
    some = scraped(services)
    services.limiter.take(Spent(requests=12, tokens=1))
    none = scraped(services)

    assert some['embed_pipeline_budget_limit{unit="requests"}'] == 20
    assert some['embed_pipeline_budget_left{unit="requests"}'] == 12
    assert some['embed_pipeline_budget_left{unit="tokens"}'] == 700
    assert some["embed_pipeline_budget_back_seconds"] == 0
    assert none['embed_pipeline_budget_left{unit="requests"}'] == 0
    assert 0 < none["embed_pipeline_budget_back_seconds"] <= 64


def test_exact_counts_are_taken_anew_only_when_they_are_old(
    services: Services, clock: FakeClock
) -> None:
    registry = registry_of(Reader(services, counts_every=timedelta(seconds=30)))

    def pending() -> tuple[float, float]:
        samples = samples_of(as_text(registry))
        return (
            samples['embed_pipeline_jobs{status="pending"}'],
            samples["embed_pipeline_jobs_enqueued_total"],
        )

    first = pending()
    create(services, "Theremin")
    soon = pending()
    clock.advance(30 * SECOND)

    assert (first, soon, pending()) == ((0, 0), (0, 1), (1, 1))


def test_scrape_does_not_wait_for_a_count_that_takes_long(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience = "embed_pipeline.interfaces.metrics.reader.PATIENCE"
    may_end, counts = threading.Event(), iter(range(100))

    def count() -> int:
        number = next(counts)
        if number:
            assert may_end.wait(30)
        return number

    recent = Cached(count, for_=10 * SECOND, clock=clock)
    first = recent()
    clock.advance(10 * SECOND)
    monkeypatch.setattr(patience, 0 * SECOND)
    meanwhile = [recent(), recent()]
    monkeypatch.setattr(patience, MINUTE)
    may_end.set()

    assert (first, meanwhile, recent()) == (0, [0, 0], 1)
    assert next(counts) == 2, "the scrapes shared one count"


def test_failed_count_is_not_repeated_before_its_time(clock: FakeClock) -> None:
    asked: list[float] = []

    def count() -> int:
        asked.append(clock.monotonic())
        raise StoreUnavailable("The database is away.")

    recent = Cached(count, for_=10 * SECOND, clock=clock)
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            recent()
        clock.advance(5 * SECOND)

    assert asked == [0, 10]
