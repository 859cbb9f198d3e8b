"""Jobs that no worker takes are named by health and by the doctor."""

from __future__ import annotations

from embed_pipeline.usecases.insight.doctor import check_queue_state
from embed_pipeline.usecases.insight.health import read_health, untaken_jobs
from embed_pipeline_tests.contracts.job_store.scene import request
from embed_pipeline_tests.worker.scene import World, entity

WAITING = "2 jobs wait for a worker of openai/other@8; the settings say "


def test_jobs_of_a_model_that_no_worker_serves_are_named(world: World) -> None:
    world.create(entity(1))
    before = untaken_jobs(world.jobs, model=world.services.model)
    world.jobs.enqueue([request(uid, model="openai/other@8") for uid in ("a", "b")])

    health = read_health(world.jobs, model=world.services.model)
    checks = check_queue_state(world.services)

    sentence = WAITING + world.services.model
    assert before == []
    assert (health.status.value, health.reasons) == ("HEALTHY", (sentence,))
    assert sentence in [check.message for check in checks]
