"""The real worker on the real stores through everything that can happen, by seed.

Whatever the order: every job ends or waits for a time, no entity is lost, and no stored vector
is wrong for the text that it is labelled with.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from embed_pipeline.domain.job import EmbedJob, JobStatus
from embed_pipeline.domain.recipe import version_of
from embed_pipeline.errors import (
    CredentialsRefused,
    InputRefused,
    MalformedResponse,
    ProviderTimeout,
    ProviderUnavailable,
    RateLimited,
    StoreFull,
    StoreUnavailable,
)
from embed_pipeline.usecases.entities.discover import discover
from embed_pipeline.usecases.entities.force import force_embedding
from embed_pipeline.worker.context import RunLimits
from embed_pipeline.worker.loop import run_until_empty
from embed_pipeline.worker.recover import recover_stale
from embed_pipeline_tests.clocks import HOUR, MINUTE, SECOND, FakeClock
from embed_pipeline_tests.worker.scene import ONE_BY_ONE, World, entity, uid

ENTITIES = 12
OVERLAPPED = RunLimits(concurrency=3, writers=2, ahead=1)
"""Threads decide the order, so a seed does not repeat it; what is promised holds all the same."""
STEPS = 40
REFUSED = "refused words"
FAULTS: Sequence[Callable[[], Exception]] = (
    lambda: ProviderUnavailable("500"),
    lambda: ProviderTimeout("no answer"),
    lambda: MalformedResponse("garbage"),
    lambda: RateLimited("slow down", retry_after=3 * SECOND),
    lambda: CredentialsRefused("key revoked"),
    lambda: ZeroDivisionError("a bug"),
)


class Simulation:
    def __init__(self, home: Path, seed: int, run_limits: RunLimits) -> None:
        self.chance = random.Random(seed)
        random.seed(seed)  # the jitter of the backoff
        self.clock = FakeClock()
        self.world = World(
            home,
            self.clock,
            max_inputs=4,
            requests=30,
            run_limits=replace(run_limits, drain_for=MINUTE, write_size=3),
        )
        self.world.provider.always = self._answer
        self.texts: dict[str, str] = {}
        self.faulty = True
        self.leases = 0
        self._put(self.world.create, *range(ENTITIES))

    # -- what happens -----------------------------------------------------------------------

    def step(self) -> None:
        self.chance.choice(
            (
                self._run,
                self._run,
                self._edit,
                self._edit_as_another_program,
                self._soft_delete,
                self._restore,
                self._crash,
                self._force,
                self._graph_trouble,
                lambda: discover(self.world.services),
                lambda: recover_stale(self.world.jobs),
                lambda: self.clock.advance(self.chance.choice((SECOND, 10 * SECOND, 6 * MINUTE))),
                lambda: self.world.jobs.switch.resume("a person"),
                lambda: self.world.jobs.retry_failed(limit=2),
            )
        )()

    def finish(self) -> None:
        """Everything works again; a few rounds of the ordinary schedule."""
        self.faulty = False
        self.world.graph.come_back()
        self.world.graph.trouble_with_writes.clear()
        self.world.jobs.switch.resume("all is well")
        for _ in range(4):
            self.clock.advance(15 * MINUTE)
            discover(self.world.services)
            run_until_empty(
                self.world.services,
                owner="last",
                recovery_interval=MINUTE,
                deadline=self.world.deadline(HOUR),
            )

    def _run(self) -> None:
        owner = f"run-{self.chance.randrange(3)}"
        self.world.run(owner=owner, limit=self.chance.choice((None, 1, 5)))

    def _answer(self, texts: Sequence[str]) -> None:
        if self.faulty:
            if self.chance.random() < 0.15:
                self._edit()
            if self.chance.random() < 0.35:
                raise self.chance.choice(FAULTS)()
        if any(REFUSED in text for text in texts):
            raise InputRefused("refused")

    def _edit(self) -> None:
        self._put(self.world.upsert, self.chance.randrange(ENTITIES))

    def _edit_as_another_program(self) -> None:
        number, note = self.chance.randrange(ENTITIES), self._note()
        self._remember(entity(number).name, note)
        self.world.write_as_another_program(uid(number), note)

    def _soft_delete(self) -> None:
        self.world.graph.soft_delete([uid(self.chance.randrange(ENTITIES))])

    def _restore(self) -> None:
        self._put(self.world.upsert, *range(ENTITIES))

    def _crash(self) -> None:
        """A worker takes jobs and is never heard of again."""
        self.leases += 1
        self.world.lease(self.chance.randrange(1, 5), owner="crashed", token=f"c{self.leases}")

    def _force(self) -> None:
        key = uid(self.chance.randrange(ENTITIES))
        found = self.world.graph.get_entity(key)
        if found is not None and found.is_valid:
            force_embedding(self.world.services, key=key)

    def _graph_trouble(self) -> None:
        errors = (StoreUnavailable("down"), StoreUnavailable("down"), StoreFull("disk full"))
        self.world.graph.trouble_with_writes.append(self.chance.choice(errors))

    # -- texts ------------------------------------------------------------------------------

    def _note(self) -> str:
        return self.chance.choice(("A", "B", "C", REFUSED))

    def _put(self, how: Callable[..., object], *numbers: int) -> None:
        notes = {number: self._note() for number in numbers}
        for number, note in notes.items():
            self._remember(entity(number).name, note)
        how(*(entity(number, note) for number, note in notes.items()))

    def _remember(self, *lines: str) -> None:
        text = "\n".join(lines)
        self.texts[version_of(text)] = text


@pytest.mark.parametrize(
    ("run_limits", "seed"),
    [(ONE_BY_ONE, seed) for seed in range(24)] + [(OVERLAPPED, seed) for seed in range(8)],
    ids=lambda value: value if isinstance(value, int) else f"{value.concurrency} requests",
)
def test_whatever_happens_every_job_ends_truly_and_every_vector_is_right(
    tmp_path: Path, run_limits: RunLimits, seed: int
) -> None:
    simulation = Simulation(tmp_path, seed, run_limits)
    world = simulation.world

    for _ in range(STEPS):
        simulation.step()
        check_vectors(simulation)
        check_entities(world)
    simulation.finish()

    check_vectors(simulation)
    check_entities(world)
    for job in world.all_jobs:
        assert job.status is not JobStatus.PROCESSING, f"seed {seed}: no job is held"
        if job.status is JobStatus.FAILED:
            assert is_true_reason(job), f"seed {seed}: {job}"
    for number in range(ENTITIES):
        found = world.graph.get_entity(uid(number))
        assert found is not None
        if found.is_valid and REFUSED not in found.text:
            assert world.is_embedded(uid(number)), f"seed {seed}: {number}"
    world.close()


def check_vectors(simulation: Simulation) -> None:
    for number in range(ENTITIES):
        stored = simulation.world.stored(uid(number))
        if stored is not None:
            version, vector = stored
            text = simulation.texts[version]
            expected = simulation.world.provider.answer([text]).vectors[0]
            assert np.array_equal(vector, expected), f"{uid(number)} has not the vector of {text!r}"


def check_entities(world: World) -> None:
    keys = [uid(number) for number in range(ENTITIES)]
    assert set(world.graph.read_entities(keys)) == set(keys), "no entity is lost"


def is_true_reason(job: EmbedJob) -> bool:
    """Refused, gone, or tried as often as may be, each with what a person needs to know."""
    refused = job.error_type == "InputRefused"
    gone = job.fail_code == "entity_gone"
    exhausted = job.attempts >= job.max_attempts or job.fail_code == "timeout"
    return bool(job.error) and job.error_category is not None and (refused or gone or exhausted)
