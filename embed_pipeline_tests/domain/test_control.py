"""May a run start, a lease be taken, a request be sent?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from embed_pipeline.domain.breaker import GRAPH, Breaker
from embed_pipeline.domain.control import ControlState, Step, Switch, SwitchState
from embed_pipeline.domain.lease import RefusalReason

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER, EARLIER = NOW + timedelta(seconds=5), NOW - timedelta(seconds=5)
STEPS = list(Step)


def breaker(name: str, until: datetime | None = None) -> Breaker:
    """Open if it has a pause, whether that is over or not."""
    return Breaker(name=name, level=1 if until else 0, until=until, reason="timeout")


def control(
    *,
    switch: SwitchState = SwitchState.RUNNING,
    provider: datetime | None = None,
    graph: datetime | None = None,
) -> ControlState:
    return ControlState(
        now=NOW,
        switch=Switch(state=switch, reason="by hand"),
        provider=breaker("openai", provider),
        graph=breaker(GRAPH, graph),
    )


@pytest.mark.parametrize("step", STEPS)
def test_nothing_stands_in_the_way_of_a_running_queue(step: Step) -> None:
    assert control().refusal(step) is None


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (SwitchState.PAUSED, RefusalReason.PAUSED),
        (SwitchState.HALTED, RefusalReason.HALTED),
    ],
)
def test_stopped_queue_refuses_every_step_until_a_person_resumes_it(
    step: Step, state: SwitchState, reason: RefusalReason
) -> None:
    refusal = control(switch=state, provider=LATER).refusal(step, probing=True)

    assert refusal is not None
    assert (refusal.reason, refusal.detail, refusal.until) == (reason, "by hand", None)


@pytest.mark.parametrize(
    ("step", "until", "is_refused"),
    [
        (Step.RUN, LATER, True),
        (Step.RUN, EARLIER, False),
        (Step.LEASE, LATER, True),
        (Step.LEASE, EARLIER, True),
        (Step.REQUEST, EARLIER, True),
    ],
)
def test_only_a_run_may_go_on_to_probe_the_graph(
    step: Step, until: datetime, is_refused: bool
) -> None:
    assert (control(graph=until).refusal(step) is not None) is is_refused


@pytest.mark.parametrize(
    ("step", "until", "probing", "is_refused"),
    [
        (Step.RUN, LATER, False, True),
        (Step.RUN, EARLIER, False, False),
        (Step.LEASE, LATER, False, True),
        (Step.LEASE, EARLIER, False, False),
        (Step.REQUEST, EARLIER, False, True),
        (Step.REQUEST, LATER, True, False),
    ],
)
def test_provider_that_does_not_answer_is_tried_by_its_probe_alone(
    step: Step, until: datetime, probing: bool, is_refused: bool
) -> None:
    refusal = control(provider=until).refusal(step, probing=probing)

    assert (refusal is not None) is is_refused
    if refusal is not None:
        assert (refusal.reason, refusal.until) == (RefusalReason.BREAKER_OPEN, until)
