"""Whatever mixture of faults a server injects: every job ends truly and every vector is right."""

from __future__ import annotations

import tempfile
import threading
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embed_pipeline import errors
from embed_pipeline.domain.job import EmbedJob, JobStatus
from embed_pipeline.domain.recipe import version_of
from embed_pipeline.errors import EmbedPipelineError, ErrorCategory
from embed_pipeline.worker.context import RunLimits
from embed_pipeline.worker.loop import run_until_empty
from embed_pipeline_tests import openai_faults as faults
from embed_pipeline_tests.clocks import MINUTE, FakeClock
from embed_pipeline_tests.openai_faults import Fault
from embed_pipeline_tests.openai_server import OpenAIServer, vector_for
from embed_pipeline_tests.worker.openai_scene import DIMENSIONS, OpenAIWorld, running_server
from embed_pipeline_tests.worker.scene import NOTES_ONLY, entity, uid

__all__ = ["running_server"]

WIDE = RunLimits(batch_size=6, concurrency=3, writers=2, ahead=1, write_size=3, drain_for=MINUTE)
TIMEOUT = timedelta(milliseconds=300)
REFUSED, BREAKING = "refused words", "breaking words"
WEATHER: Sequence[tuple[Fault, type[EmbedPipelineError]]] = (
    (faults.rate_limited({"Retry-After": "2"}), errors.RateLimited),
    (faults.rate_limited(), errors.RateLimited),
    (faults.request_too_large(), errors.InputTooLarge),
    (faults.refusal(400), errors.InputRefused),
    (faults.server_error(), errors.ProviderUnavailable),
    (faults.html_page(), errors.ProviderUnavailable),
    (faults.DROP, errors.ProviderUnavailable),
    (faults.CUT, errors.ProviderUnavailable),
    (faults.HANG, errors.ProviderTimeout),
    (faults.MISSING_ROW, errors.MalformedResponse),
    (faults.EXTRA_ROW, errors.MalformedResponse),
    (faults.NAN_ROW, errors.MalformedResponse),
    (faults.ZERO_ROW, errors.MalformedResponse),
    (faults.WRONG_DIMENSION, errors.MalformedResponse),
    (faults.SAME_INDEX, errors.MalformedResponse),
    (faults.SWAPPED_ROWS, errors.MalformedResponse),  # is understood, so no job meets it
    (faults.credentials_refused(), errors.CredentialsRefused),
    (faults.quota_exhausted(), errors.QuotaExhausted),
    (faults.model_not_found(), errors.ModelNotFound),
    (faults.refusal(400, param="dimensions"), errors.SettingsRefused),
)
BY_CONTENT: Mapping[str, tuple[Fault, type[EmbedPipelineError]]] = {
    REFUSED: (faults.refusal(400), errors.InputRefused),
    BREAKING: (faults.server_error(), errors.ProviderUnavailable),
}
KINDS = {
    "plain": "note {}",
    "twin": "the same words",
    "long": "note {} " + "word " * 9_000,
    "empty": "  ",
    "refused": REFUSED + " {}",
    "breaking": BREAKING + " {}",
}


class Weather:
    """A fault or none for each request, in turn; some texts meet the same one at any time."""

    def __init__(self, coming: Sequence[int | None]) -> None:
        self._coming, self._lock = deque(coming), threading.Lock()
        self.met_alone: dict[str, set[str]] = defaultdict(set)
        """The errors that each text can truly be failed for: it met them alone."""

    def calm_down(self) -> None:
        self._coming.clear()

    def __call__(self, texts: Sequence[str]) -> Fault | None:
        constant = next((BY_CONTENT[it] for it in BY_CONTENT if it in " ".join(texts)), None)
        with self._lock:
            number = self._coming.popleft() if self._coming else None
            met = constant if number is None else WEATHER[number]
            if met and constant and met[0].change:  # what is no answer has no rows to change
                met = constant
            if met and len(texts) == 1:
                self.met_alone[texts[0]].add(met[1].__name__)
        return met[0] if met else None


mixed = given(
    kinds=st.lists(st.sampled_from(sorted(KINDS)), min_size=6, max_size=16),
    coming=st.lists(st.none() | st.integers(0, len(WEATHER) - 1), max_size=25),
    budget=st.sampled_from([20, 1_000]),
)


@settings(max_examples=16, derandomize=True)
@mixed
def test_whatever_faults_are_mixed_every_job_ends_truly_and_every_vector_is_right(
    running_server: OpenAIServer, kinds: list[str], coming: list[int | None], budget: int
) -> None:
    run_in(Weather(coming), running_server, kinds, budget=budget)


@pytest.mark.stress
@settings(max_examples=400)
@mixed
def test_hundreds_of_mixtures_that_were_never_tried_before(
    running_server: OpenAIServer, kinds: list[str], coming: list[int | None], budget: int
) -> None:
    run_in(Weather(coming), running_server, kinds, budget=budget)


def run_in(weather: Weather, server: OpenAIServer, kinds: Sequence[str], *, budget: int) -> None:
    server.forget()
    server.fault_for = weather
    with tempfile.TemporaryDirectory() as home:
        clock = FakeClock()
        world = OpenAIWorld(
            Path(home),
            clock,
            server,
            timeout=TIMEOUT,
            budget=budget,
            run_limits=WIDE,
            mapping=NOTES_ONLY,
        )
        world.create(*(entity(n, KINDS[kind].format(n)) for n, kind in enumerate(kinds)))

        for _ in range(4):
            work(world, for_=MINUTE)
            check_what_holds_at_any_time(world, weather, kinds)
            world.jobs.switch.resume("a person")
            clock.advance(MINUTE)
        weather.calm_down()
        work(world, for_=10 * MINUTE)

        check_what_holds_at_any_time(world, weather, kinds)
        check_what_holds_when_all_is_well_again(world, kinds)
        world.close()


def work(world: OpenAIWorld, *, for_: timedelta) -> None:
    run_until_empty(
        world.services, owner="cli", recovery_interval=MINUTE, deadline=world.deadline(for_)
    )


def check_what_holds_at_any_time(
    world: OpenAIWorld, weather: Weather, kinds: Sequence[str]
) -> None:
    jobs = {job.entity_uid: job for job in world.all_jobs}
    with_text = [number for number, kind in enumerate(kinds) if kind != "empty"]
    assert [*jobs] == [uid(number) for number in with_text], "no entity is lost"
    assert len(jobs) == len(world.all_jobs)
    for number in with_text:
        job = jobs[uid(number)]
        text = world.text_of(job.entity_uid)
        (fitted,) = world.services.provider.fit([text])
        stored = world.stored(job.entity_uid)
        assert job.status is not JobStatus.PROCESSING, "no job is held after a run"
        assert (stored is not None) == (job.status is JobStatus.COMPLETED)
        if stored is not None:
            assert stored[0] == version_of(text)
            assert np.allclose(stored[1], vector_for(fitted.text, DIMENSIONS), atol=1e-6)
        if job.status is JobStatus.FAILED:
            assert_reason_is_true(job, weather.met_alone[fitted.text])


def assert_reason_is_true(job: EmbedJob, met_alone: set[str]) -> None:
    assert job.error
    assert job.error_type in met_alone
    is_final = job.error_type in ("InputRefused", "InputTooLarge")
    assert (job.error_category, job.attempts) in (
        [(ErrorCategory.PERMANENT, attempt) for attempt in (1, 2, 3)]
        if is_final
        else [(ErrorCategory.TRANSIENT, job.max_attempts)]
    ), job


def check_what_holds_when_all_is_well_again(world: OpenAIWorld, kinds: Sequence[str]) -> None:
    for number, kind in enumerate(kinds):
        if kind == "empty":
            continue
        job = world.job_of(uid(number))
        if kind == "refused":
            assert job.status is JobStatus.FAILED
        elif kind == "breaking":
            # Only an answer to another request tells it from an outage, which fails no job.
            assert job.status in (JobStatus.FAILED, JobStatus.PENDING)
        else:
            assert job.status in (JobStatus.COMPLETED, JobStatus.FAILED)
        if job.status is JobStatus.COMPLETED and kind == "long":
            assert world.is_noted_as_cut(job.entity_uid)
