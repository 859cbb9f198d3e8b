"""reaper_sensor and its job while the database of the SQL jobs is away."""

from __future__ import annotations

import dagster as dg
import pytest

from embed_pipeline.defs.polling import SensorCheckFailed
from embed_pipeline_tests.defs.conftest import Build
from embed_pipeline_tests.defs.scene import Pipeline, sentence_of

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")


@pytest.fixture
def pipeline(build: Build) -> Pipeline:
    """Nothing listens at port 1."""
    return build(REAPER_DATABASE_URL="postgresql://reaper@127.0.0.1:1/jobs")


def test_unreachable_database_fails_the_tick_with_its_sentence(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    with pytest.raises(SensorCheckFailed) as caught, pipeline.tick("reaper_sensor", instance):
        pass

    assert "The reaper's database cannot be reached" in str(caught.value)
    assert "Traceback" not in str(caught.value)


def test_unreachable_database_fails_the_sweep_with_its_sentence(pipeline: Pipeline) -> None:
    result = pipeline.run("reap_stuck_jobs_job", raise_on_error=False)

    assert "The reaper's database cannot be reached" in sentence_of(result, "reap_stuck_jobs")
