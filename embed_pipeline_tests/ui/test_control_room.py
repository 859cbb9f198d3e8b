"""What a person sees and does in the Dagster UI, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from embed_pipeline.defs.build import build_definitions
from embed_pipeline.settings import load_settings
from embed_pipeline_tests.contracts.entity_store.scene import coverage_of
from embed_pipeline_tests.defs.dev_server import within
from embed_pipeline_tests.openai_server import OpenAIServer
from embed_pipeline_tests.ui.control_room import MOST_INPUTS, ControlRoom
from embed_pipeline_tests.ui.pictures import Pictures

pytestmark = pytest.mark.ui


MANY = 20 * MOST_INPUTS
"""One lease, and many requests."""


@pytest.fixture
def slow_openai(control_room: ControlRoom) -> Iterator[OpenAIServer]:
    """The provider takes its time, so that a run can be met in the middle."""
    openai = control_room.openai
    openai.forget()
    openai.latency = timedelta(seconds=4)
    yield openai
    openai.latency, openai.fault_for = timedelta(0), None


def test_embed_job_shows_its_ops(page: Page, control_room: ControlRoom, pictures: Pictures) -> None:
    page.goto(control_room.job("embed_job"))

    for op in ("recover_stale", "lease_batch", "embed_batch"):
        expect(page.get_by_text(op, exact=True).first).to_be_visible()
    pictures.take(page, "embed_job")


def test_embed_job_is_launched_from_the_launchpad_and_succeeds(
    page: Page, control_room: ControlRoom, pictures: Pictures
) -> None:
    control_room.create(*(f"Thing {number}" for number in range(200)))

    page.goto(control_room.job("embed_job", "playground"))
    expect(page.get_by_text("No errors")).to_be_visible()
    expect(page.get_by_role("button", name="Launch Run")).to_be_enabled()
    pictures.take(page, "launchpad")
    page.get_by_role("button", name="Launch Run").click()

    expect(page.get_by_text("Success", exact=True).first).to_be_visible()
    expect(page.get_by_text("Process for run exited")).to_be_visible()
    page.wait_for_timeout(2_000)  # for the picture: the chart lags behind the log
    pictures.take(page, "run")
    status = control_room.services.jobs.get_queue_status()
    assert (status.pending, status.processing, status.failed) == (0, 0, 0)
    assert (
        coverage_of(control_room.services.graph, model=control_room.services.model).percent == 100
    )


def test_ui_lists_the_jobs(page: Page, control_room: ControlRoom, pictures: Pictures) -> None:
    page.goto(control_room.path("jobs"))

    jobs = list(build_definitions(load_settings({"EMBED_ENV": "test"})).jobs or [])
    for job in jobs:
        expect(page.get_by_role("link", name=job.name)).to_be_visible()
    expect(page.get_by_role("button", name="more_horiz")).to_have_count(len(jobs))
    pictures.take(page, "jobs")


def test_terminated_run_completes_what_had_arrived_and_gives_the_rest_back(
    page: Page, control_room: ControlRoom, slow_openai: OpenAIServer, pictures: Pictures
) -> None:
    sent: list[str] = []
    slow_openai.fault_for = lambda texts: sent.extend(texts)
    before = control_room.services.jobs.get_queue_status()
    control_room.create(*(f"Slow {number}" for number in range(MANY)))
    run = control_room.dagster.launch("embed_job")
    page.goto(control_room.path("runs", run))
    terminate = page.get_by_role("button", name="Terminate")
    expect(terminate).to_be_visible()
    within(60, lambda: len(slow_openai.requests) > 0, lambda: control_room.dagster.status_of(run))

    terminate.click()
    page.get_by_role("dialog").get_by_role("button", name="Terminate").click()
    expect(page.get_by_text("Canceled", exact=True).first).to_be_visible()

    after = control_room.services.jobs.get_queue_status()
    assert 0 < len(sent) < MANY
    assert after.completed - before.completed == len(sent)
    assert (after.pending, after.processing) == (before.pending + MANY - len(sent), 0)
    assert after.failed == before.failed
    page.get_by_placeholder("Filter…").fill("jobs.released")
    expect(page.get_by_text("unstarted jobs").first).to_be_visible()
    pictures.take(page, "terminated")
