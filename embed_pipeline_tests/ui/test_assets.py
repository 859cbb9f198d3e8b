"""Graphs over time and checks, as a person sees them on the page of an asset."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from embed_pipeline_tests.contracts.entity_store.scene import coverage_of
from embed_pipeline_tests.defs.dev_server import within
from embed_pipeline_tests.ui.control_room import ControlRoom
from embed_pipeline_tests.ui.pictures import Pictures

pytestmark = pytest.mark.ui

COLOURED_PIXELS = """canvas => {
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let coloured = 0;
  for (let i = 0; i < data.length; i += 4)
    if (data[i + 3] > 200 && data[i + 2] > data[i] + 60) coloured++;
  return coloured;
}"""
"""The axes are grey, so what is blue is the line."""


@pytest.fixture(scope="module")
def observed(control_room: ControlRoom) -> ControlRoom:
    """Looked at before and after its new entities were embedded."""
    control_room.create(*(f"Observed {number}" for number in range(30)))
    for job in ("observe_job", "embed_job", "observe_job"):
        control_room.succeed(job)
    return control_room


def test_asset_page_plots_coverage(page: Page, observed: ControlRoom, pictures: Pictures) -> None:
    page.goto(observed.path("assets", "entity_embeddings"))
    page.get_by_role("button", name="Plots").click()

    expect(page.get_by_text("coverage (%)", exact=True)).to_be_visible()
    drawn = page.locator("canvas").all()
    assert len(drawn) > 5
    # A figure that only the last observation has, such as that of the first audit, is no line yet.
    within(30, lambda: sum(canvas.evaluate(COLOURED_PIXELS) > 100 for canvas in drawn) > 5)
    pictures.take(page, "entity_embeddings")


def test_check_of_coverage_says_what_it_found(
    page: Page, observed: ControlRoom, pictures: Pictures
) -> None:
    page.goto(observed.path("assets", "entity_embeddings?view=checks"))

    expect(page.get_by_text("Passed")).to_be_visible()
    entities = coverage_of(observed.services.graph, model=observed.services.model).entities
    expect(page.get_by_text(f"All {entities} entities with text have a vector.")).to_be_visible()
    pictures.take(page, "checks")
