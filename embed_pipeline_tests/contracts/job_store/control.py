"""Halt, pause, breakers, health, events and counters: what all workers share."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from embed_pipeline.domain.breaker import GRAPH
from embed_pipeline.domain.control import SwitchState
from embed_pipeline.domain.health import HealthStatus
from embed_pipeline.domain.job import ENTITY_GONE, JobStatus
from embed_pipeline.domain.lease import RefusalReason
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.telemetry.latency import Histogram, LatencyKind, as_counters
from embed_pipeline_tests.clocks import MINUTE, SECOND, FakeClock
from embed_pipeline_tests.contracts.job_store.scene import (
    MODEL,
    PERMANENT,
    TRANSIENT,
    QueueBackend,
    add_jobs,
    failure,
    kinds,
    leased_job,
    request,
    stored,
    take,
)

PROVIDER = "mock"


class HaltContract:
    def test_halted_queue_leases_to_nobody_until_a_person_resumes(
        self, backend: QueueBackend, store: JobStore
    ) -> None:
        add_jobs(store)
        store.switch.halt("key revoked", seen=0)
        other_process = backend.open_store()

        lease = take(other_process)
        resumed = other_process.switch.resume("new key")

        assert lease.jobs == ()
        assert lease.refusal is not None
        assert (lease.refusal.reason, lease.refusal.detail) == (
            RefusalReason.HALTED,
            "key revoked",
        )
        assert resumed.state is SwitchState.RUNNING
        assert len(take(store).jobs) == 1

    def test_paused_queue_leases_to_nobody(self, store: JobStore) -> None:
        add_jobs(store)
        store.switch.pause("maintenance")

        refusal = take(store).refusal

        assert refusal is not None
        assert refusal.reason is RefusalReason.PAUSED

    def test_event_of_a_halt_names_worker_and_jobs(self, store: JobStore) -> None:
        add_jobs(store, 2)
        job_ids = take(store, 2).job_ids

        store.switch.halt("key revoked", seen=0, owner="run-1", job_ids=job_ids)

        (event,) = store.events.recent(kind="queue.halted")
        assert (event.owner, event.job_ids) == ("run-1", tuple(job_ids))

    def test_holders_finish_what_they_have_while_halted(self, store: JobStore) -> None:
        lease, job_id = leased_job(store)
        store.switch.halt("key revoked", seen=0)

        assert store.complete(lease, [job_id]).done == (job_id,)

    def test_pausing_a_halted_queue_leaves_it_halted(self, store: JobStore) -> None:
        store.switch.halt("key revoked", seen=0)

        assert store.switch.pause("lunch").state is SwitchState.HALTED

    def test_halt_of_a_paused_queue_halts_it(self, store: JobStore) -> None:
        store.switch.pause("lunch")

        assert store.switch.halt("key revoked", seen=0).state is SwitchState.HALTED

    def test_error_of_a_request_sent_before_the_last_resume_does_not_halt_again(
        self, store: JobStore
    ) -> None:
        seen = store.switch.read().generation
        store.switch.halt("key revoked", seen=seen)
        store.switch.resume("new key")

        switch = store.switch.halt("key revoked", seen=seen)

        assert switch.state is SwitchState.RUNNING

    def test_switch_remembers_why_and_since_when(self, store: JobStore, clock: FakeClock) -> None:
        store.switch.halt("key revoked", seen=0)

        switch = store.switch.read()

        assert (switch.reason, switch.since) == ("key revoked", clock.now())

    def test_each_turn_of_the_switch_is_one_event(self, store: JobStore) -> None:
        for _ in range(2):
            store.switch.pause("lunch")
        for _ in range(2):
            store.switch.resume("back")

        assert kinds(store) == ["queue.paused", "queue.resumed"]


class BreakerContract:
    def test_switch_and_breakers_are_read_together(self, store: JobStore, clock: FakeClock) -> None:
        store.switch.pause("by hand")
        store.breakers.trip(PROVIDER, seen=0, error=TRANSIENT)

        state = store.control_state(provider=PROVIDER)

        assert state.now == clock.now()
        assert state.switch == store.switch.read()
        assert state.provider == store.breakers.read(PROVIDER)
        assert (state.graph.name, state.graph.is_open) == (GRAPH, False)

    def test_open_breaker_leases_to_nobody_until_its_pause_is_over(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        add_jobs(store)
        store.breakers.trip(PROVIDER, seen=0, error=TRANSIENT)

        refusal = take(store).refusal

        assert refusal is not None
        assert refusal.reason is RefusalReason.BREAKER_OPEN
        assert refusal.until == clock.now() + SECOND

    def test_breaker_of_another_provider_stops_nobody(self, store: JobStore) -> None:
        add_jobs(store)
        store.breakers.trip("openai", seen=0, error=TRANSIENT)

        assert len(take(store).jobs) == 1

    def test_graphs_breaker_stops_everybody(self, store: JobStore, clock: FakeClock) -> None:
        add_jobs(store)
        store.breakers.trip(GRAPH, seen=0, error=TRANSIENT)
        clock.advance(2 * SECOND)

        # Its probe is a cheap write and not an embedding, so no job is leased for it.
        refusal = take(store).refusal

        assert refusal is not None
        assert refusal.detail.startswith("graph")

    def test_pauses_double_up_to_a_minute(self, store: JobStore, clock: FakeClock) -> None:
        pauses: list[timedelta] = []
        seen = 0
        for _ in range(9):
            breaker = store.breakers.trip(PROVIDER, seen=seen, error=TRANSIENT)
            assert breaker.until is not None
            pauses.append(breaker.until - clock.now())
            clock.advance(pauses[-1])
            claimed = store.breakers.claim_probe(PROVIDER)
            assert claimed is not None
            seen = claimed.generation

        assert [pause.total_seconds() for pause in pauses] == [1, 2, 4, 8, 16, 32, 60, 60, 60]

    def test_requests_that_failed_together_open_it_once(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        for _ in range(5):
            breaker = store.breakers.trip(PROVIDER, seen=0, error=TRANSIENT)

        assert breaker.until == clock.now() + SECOND
        assert store.health.report().consecutive_failures == 1

    def test_after_the_pause_one_caller_gets_one_job_as_the_probe(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        add_jobs(store, 5)
        store.breakers.trip(PROVIDER, seen=0, error=TRANSIENT)
        clock.advance(SECOND)

        probe = take(store, 5, owner="worker-a")
        other = take(store, 5, owner="worker-b")

        assert (len(probe.jobs), probe.probe) == (1, True)
        assert other.refusal is not None

    def test_repeated_lease_of_many_jobs_is_no_probe_though_the_breaker_opened_meanwhile(
        self, store: JobStore
    ) -> None:
        add_jobs(store, 2)
        first = store.lease(owner="worker-a", model=MODEL, limit=2, token="lost-answer")
        store.breakers.trip(PROVIDER, seen=0, error=TRANSIENT)

        again = store.lease(owner="worker-a", model=MODEL, limit=2, token="lost-answer")

        assert (again.job_ids, again.probe) == (first.job_ids, False)

    def test_nobody_claims_the_probe_without_a_due_job(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        store.breakers.trip(PROVIDER, seen=0, error=TRANSIENT)
        clock.advance(SECOND)
        take(store)

        add_jobs(store)

        assert take(store).probe

    def test_prober_that_dies_blocks_nobody(self, store: JobStore, clock: FakeClock) -> None:
        add_jobs(store, 2)
        store.breakers.trip(PROVIDER, seen=0, error=TRANSIENT)
        clock.advance(SECOND)
        take(store, owner="dies")
        clock.advance(SECOND)

        assert take(store, owner="worker-b").probe

    def test_answered_probe_closes_the_breaker(self, store: JobStore, clock: FakeClock) -> None:
        add_jobs(store, 5)
        store.breakers.trip(PROVIDER, seen=0, error=TRANSIENT)
        clock.advance(SECOND)
        probe = take(store)

        store.breakers.close(PROVIDER, seen=probe.breaker_seen)

        assert not store.breakers.read(PROVIDER).is_open
        assert len(take(store).jobs) == 4

    def test_straggler_from_before_neither_closes_nor_doubles(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        store.breakers.trip(PROVIDER, seen=0, error=TRANSIENT)

        store.breakers.close(PROVIDER, seen=0)
        breaker = store.breakers.trip(PROVIDER, seen=0, error=TRANSIENT)

        assert breaker.until == clock.now() + SECOND

    def test_probe_is_the_job_that_waits_longest_whatever_its_priority(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        add_jobs(store, 3)
        clock.advance(SECOND)
        store.enqueue([request("urgent", priority=9)])
        store.breakers.trip(PROVIDER, seen=0, error=TRANSIENT)
        probed = []
        for _ in range(5):
            clock.advance(60 * SECOND)
            probe = take(store)
            probed += [job.entity_uid for job in probe.jobs]
            store.breakers.trip(PROVIDER, seen=probe.breaker_seen, error=TRANSIENT)
            store.defer(probe, probe.job_ids, error=TRANSIENT, delay=60 * SECOND)

        assert sorted(probed[:3]) == ["e0", "e1", "e2"]
        assert probed[3:] == ["urgent", probed[0]], "everybody has a turn"

    def test_answer_to_a_slow_probe_closes_though_another_was_claimed_meanwhile(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        add_jobs(store, 2)
        store.breakers.trip(PROVIDER, seen=0, error=TRANSIENT)
        clock.advance(SECOND)
        slow = take(store, owner="slow")
        clock.advance(SECOND)
        other = take(store, owner="other")

        breaker = store.breakers.close(PROVIDER, seen=slow.breaker_seen)

        assert other.probe
        assert not breaker.is_open

    def test_only_the_first_result_of_two_probes_counts(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        add_jobs(store, 2)
        store.breakers.trip(PROVIDER, seen=0, error=TRANSIENT)
        clock.advance(SECOND)
        slow = take(store, owner="slow")
        clock.advance(SECOND)
        other = take(store, owner="other")

        store.breakers.trip(PROVIDER, seen=other.breaker_seen, error=TRANSIENT)
        store.breakers.trip(PROVIDER, seen=slow.breaker_seen, error=TRANSIENT)
        closed = store.breakers.close(PROVIDER, seen=slow.breaker_seen)

        assert (closed.level, closed.until) == (2, clock.now() + 2 * SECOND)

    def test_probe_that_is_given_back_is_there_for_the_next_at_once(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        add_jobs(store, 2)
        store.breakers.trip(PROVIDER, seen=0, error=TRANSIENT)
        clock.advance(SECOND)
        unused = take(store, owner="worker-a")

        breaker = store.breakers.give_back_probe(PROVIDER, seen=unused.breaker_seen)

        assert (breaker.level, breaker.until) == (1, clock.now())
        assert take(store, owner="worker-b").probe

    def test_probe_given_back_after_a_result_changes_nothing(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        add_jobs(store)
        store.breakers.trip(PROVIDER, seen=0, error=TRANSIENT)
        clock.advance(SECOND)
        probe = take(store)
        tripped = store.breakers.trip(PROVIDER, seen=probe.breaker_seen, error=TRANSIENT)

        assert store.breakers.give_back_probe(PROVIDER, seen=probe.breaker_seen) == tripped
        assert not store.breakers.give_back_probe("openai", seen=0).is_open

    def test_probe_is_claimed_by_one_of_many(self, backend: QueueBackend, clock: FakeClock) -> None:
        backend.open_store().breakers.trip(GRAPH, seen=0, error=TRANSIENT)
        clock.advance(SECOND)
        claims: list[object] = []
        start = threading.Barrier(4)

        def claim(store: JobStore) -> None:
            start.wait()
            claims.append(store.breakers.claim_probe(GRAPH))

        threads = [threading.Thread(target=claim, args=(backend.open_store(),)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert sum(claimed is not None for claimed in claims) == 1


class HealthContract:
    def test_new_queue_is_healthy_and_its_success_rate_unknown(self, store: JobStore) -> None:
        report = store.health.report()

        assert (report.status, report.success_rate) == (HealthStatus.HEALTHY, None)
        assert (report.consecutive_failures, report.last_success_at) == (0, None)

    def test_five_consecutive_failures_degrade_health_with_the_count(self, store: JobStore) -> None:
        add_jobs(store, 5)
        lease = take(store, 5)
        states = []
        for job_id in lease.job_ids:
            store.fail(lease, {job_id: PERMANENT})
            states.append(store.health.report().status)

        assert states == [HealthStatus.HEALTHY] * 4 + [HealthStatus.DEGRADED]
        assert store.health.report().consecutive_failures == 5
        (event,) = store.events.recent(kind="health.degraded")
        assert event.facts["consecutive_failures"] == 5

    def test_success_returns_health_to_healthy(self, store: JobStore, clock: FakeClock) -> None:
        add_jobs(store, 6)
        lease = take(store, 6)
        store.fail(lease, dict.fromkeys(lease.job_ids[:5], PERMANENT))

        store.complete(lease, lease.job_ids[5:])

        report = store.health.report()
        assert (report.status, report.consecutive_failures) == (HealthStatus.HEALTHY, 0)
        assert report.last_success_at == clock.now()
        assert kinds(store).count("health.recovered") == 1

    def test_success_after_three_failures_writes_the_recovery_entry(self, store: JobStore) -> None:
        add_jobs(store, 4)
        lease = take(store, 4)
        store.fail(lease, dict.fromkeys(lease.job_ids[:3], PERMANENT))

        store.complete(lease, lease.job_ids[3:])

        (event,) = store.events.recent(kind="health.recovered")
        assert event.facts["consecutive_failures"] == 3

    def test_health_tells_success_rate_and_error_patterns(self, store: JobStore) -> None:
        add_jobs(store, 10)
        lease = take(store, 10)
        store.complete(lease, lease.job_ids[:7])
        store.fail(lease, {lease.job_ids[7]: failure(message="timeout after 61 s")})
        store.fail(lease, {lease.job_ids[8]: failure(message="timeout after 62 s")})

        report = store.health.report()

        assert report.success_rate == 7 / 9
        assert report.error_patterns == (("ProviderUnavailable: timeout after # s", 2),)

    def test_success_rate_is_of_the_last_hundred(self, store: JobStore) -> None:
        add_jobs(store, 150)
        lease = take(store, 150)
        store.fail(lease, dict.fromkeys(lease.job_ids[:50], PERMANENT))

        store.complete(lease, lease.job_ids[50:])

        assert store.health.report().success_rate == 1.0

    def test_error_that_a_breaker_has_counted_is_not_counted_again(self, store: JobStore) -> None:
        lease, job_id = leased_job(store)
        store.breakers.trip(PROVIDER, seen=0, error=TRANSIENT)

        report = store.fail(lease, {job_id: TRANSIENT}, is_counted=True)

        assert report.retried == (job_id,)
        assert store.health.report().consecutive_failures == 1

    def test_gone_entity_says_nothing_about_health(self, store: JobStore) -> None:
        lease, job_id = leased_job(store)

        store.fail(lease, {job_id: failure(ErrorCategory.PERMANENT, fail_code=ENTITY_GONE)})

        assert stored(store, job_id).status is JobStatus.FAILED
        assert store.health.report().consecutive_failures == 0

    def test_open_breaker_is_at_least_degraded(self, store: JobStore) -> None:
        store.breakers.trip(PROVIDER, seen=0, error=TRANSIENT)

        report = store.health.report()

        assert report.status is HealthStatus.DEGRADED
        assert report.reasons == ("breaker of mock is open: connection reset",)

    def test_halt_is_critical(self, store: JobStore) -> None:
        store.switch.halt("key revoked", seen=0)

        report = store.health.report()

        assert report.status is HealthStatus.CRITICAL
        assert report.reasons == ("halted: key revoked",)

    def test_health_is_shared_by_all_handles(self, backend: QueueBackend, store: JobStore) -> None:
        lease, job_id = leased_job(store)

        store.fail(lease, {job_id: PERMANENT})

        assert backend.open_store().health.report().consecutive_failures == 1


class EventsContract:
    def test_every_transition_appends_one_event_with_owner_and_ids(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        add_jobs(store, 4)
        lease = take(store, 4, owner="run-1")
        store.release(lease, lease.job_ids[:1])
        store.defer(lease, lease.job_ids[1:2], error=TRANSIENT)
        store.complete(lease, lease.job_ids[2:3], reason="superseded")
        store.fail(lease, {lease.job_ids[3]: PERMANENT})

        latest_first = store.events.recent()
        assert kinds(store) == [
            "jobs.enqueued",
            "jobs.leased",
            "jobs.released",
            "jobs.deferred",
            "jobs.completed",
            "jobs.failed",
        ]
        assert {event.owner for event in latest_first[:5]} == {"run-1"}
        assert latest_first[0].job_ids == lease.job_ids[3:]
        assert latest_first[1].reason == "superseded"
        assert set(latest_first[4].job_ids) == set(lease.job_ids)
        assert latest_first[0].at == clock.now()

    def test_events_are_found_by_kind(self, store: JobStore) -> None:
        add_jobs(store)
        take(store)

        assert [event.kind for event in store.events.recent(kind="jobs.leased")] == ["jobs.leased"]


def latency(store: JobStore, kind: LatencyKind, *, model: str = MODEL) -> Histogram:
    (found,) = (
        each
        for each in store.counters.latencies(model=model)
        if (each.kind, each.model) == (kind, model)
    )
    return found


class CountersContract:
    def test_counters_sum_over_all_handles(self, backend: QueueBackend, store: JobStore) -> None:
        store.counters.add({"requests": 2, "tokens": 100})
        backend.open_store().counters.add({"requests": 1, "tokens": 0})

        counters = store.counters.read()

        assert (counters["requests"], counters["tokens"]) == (3, 100)

    def test_latencies_sum_over_all_handles_and_are_not_among_the_counters(
        self, backend: QueueBackend, store: JobStore
    ) -> None:
        quick = as_counters(LatencyKind.REQUEST, "ollama/a:b@2", [0.2, 0.21, 70.0])
        store.counters.add({"requests": 3, **quick})
        backend.open_store().counters.add(as_counters(LatencyKind.REQUEST, "ollama/a:b@2", [0.2]))

        found = latency(store, LatencyKind.REQUEST, model="ollama/a:b@2")

        assert store.counters.read() == {"requests": 3}
        assert (found.counts[5], found.counts[-1], sum(found.counts)) == (3, 1, 4)
        assert found.seconds == pytest.approx(70.61)
        assert sum(latency(store, LatencyKind.WRITE).counts) == 0

    def test_completed_jobs_are_timed_from_the_request_on(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        add_jobs(store, 3)
        clock.advance(40 * SECOND)
        lease = take(store, 3)
        store.complete(lease, lease.job_ids[:1])
        store.complete(lease, lease.job_ids[:1])
        store.complete(lease, lease.job_ids[1:2], reason="superseded")
        store.defer(lease, lease.job_ids[2:], error=TRANSIENT)
        clock.advance(MINUTE)
        again = take(store, 1)
        store.complete(again, again.job_ids)

        found = latency(store, LatencyKind.JOB)

        assert (sum(found.counts), found.seconds) == (2, 40 + 100)
        assert (found.counts[6], found.counts[7]) == (1, 1)  # up to 60 s, up to 300 s

    def test_job_that_is_forced_is_timed_from_then_on(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        lease, job_id = leased_job(store)
        store.complete(lease, [job_id])
        clock.advance(60 * MINUTE)
        store.enqueue([request("e1", force=True)])
        clock.advance(SECOND)
        again = take(store)
        store.complete(again, again.job_ids)

        assert latency(store, LatencyKind.JOB).seconds == 1

    def test_transitions_are_counted(self, store: JobStore) -> None:
        add_jobs(store, 3)
        lease = take(store, 3)
        store.complete(lease, lease.job_ids[:2])
        store.fail(lease, {lease.job_ids[2]: PERMANENT})

        counters = store.counters.read()

        assert counters["jobs_enqueued"] == counters["jobs_leased"] == 3
        assert (counters["jobs_completed"], counters["jobs_failed"]) == (2, 1)
        store.enqueue([request("e2", force=True)])
        assert store.counters.read()["jobs_enqueued"] == 4
