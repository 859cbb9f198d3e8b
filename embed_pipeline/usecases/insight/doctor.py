"""Checks of `doctor` that need several parts: versions, provider, model, state of the queue.

The checks of a single database are in its store.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata

from embed_pipeline.domain.breaker import GRAPH
from embed_pipeline.domain.check import CheckResult, note, ok, problem
from embed_pipeline.domain.control import SwitchState
from embed_pipeline.domain.diagnosis import Remedy
from embed_pipeline.domain.window import Denied, Spent
from embed_pipeline.errors import EXTRAS, EmbedPipelineError, install_command
from embed_pipeline.settings import address_variables
from embed_pipeline.usecases.insight.coverage import quick_coverage
from embed_pipeline.usecases.insight.health import untaken_jobs
from embed_pipeline.worker.context import Services

PACKAGES = ("dagster", "neo4j", "neo4j-rust-ext", "openai", "pandas", "typer")
SAMPLE = "hello"


def versions(own: str, python: str) -> CheckResult:
    found = ", ".join(f"{name} {metadata.version(name)}" for name in PACKAGES)
    return ok("versions", f"embed-pipeline {own}, Python {python}, {found}")


def extras() -> CheckResult:
    there = {package: _version_of(package) for package in EXTRAS.values()}
    missing = [extra for extra, package in EXTRAS.items() if there[package] is None]
    found = ", ".join(f"{name} {version}" for name, version in there.items() if version)
    if not missing:
        return ok("extras", found)
    return note(
        "extras",
        f"not installed: {', '.join(missing)}; installed: {found or 'none'}",
        f"{install_command(*missing)} if you need them",
    )


def _version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def check_provider(services: Services, *, within_budget: bool = True) -> CheckResult:
    """Sends one request of one word. `within_budget` takes it from the shared budget."""
    if within_budget:
        taken = services.limiter.take(Spent(requests=1, tokens=len(SAMPLE)))
        if isinstance(taken, Denied):
            return note("provider", f"the budget is used up until {taken.retry_at:%H:%M:%S} UTC")
    before = services.clock.monotonic()
    try:
        answer = services.provider.embed([SAMPLE])
    except EmbedPipelineError as error:
        return problem(
            "provider", f"{services.model}: {error}", _remedy_for(services.provider.name)
        )
    took = (services.clock.monotonic() - before) * 1000
    size = answer.vectors.shape[1]
    return ok("provider", f"{services.model} answered in {took:,.0f} ms with {size} dimensions")


def _remedy_for(provider: str) -> str:
    if variables := address_variables(provider):
        return f"Check {', '.join(variables)}, EMBEDDING_MODEL and the network."
    return "Check EMBEDDING_PROVIDER and EMBEDDING_MODEL."


def check_model(services: Services) -> Sequence[CheckResult]:
    records = services.graph.models()
    if not records:
        return [note("model", f"the graph has none yet: {services.model} becomes its first")]
    taking = [record.model for record in records if record.takes_vectors]
    if services.model in taking:
        return [ok("model", f"the graph is embedded with {services.model}")]
    in_use = ", ".join(taking) or "no active model"
    return [
        problem(
            "model",
            f"the graph is embedded with {in_use}, the settings say {services.model}",
            "Set EMBEDDING_PROVIDER, EMBEDDING_MODEL and EMBEDDING_DIMENSIONS back.",
        )
    ]


def check_audit(services: Services) -> Sequence[CheckResult]:
    """When changes of other programs were last looked for."""
    coverage = quick_coverage(services)
    if coverage.audit is None:
        said = "no audit is complete, so changes of other programs may be unknown"
        return [note("audit", said, "embed-pipeline audit")] if coverage.entities else []
    ended, took = coverage.audit.at, coverage.audit.duration
    said = f"the last one ended on {ended:%Y-%m-%d %H:%M} UTC and took {took:,.0f} s"
    return [ok("audit", said)]


def check_unseen(services: Services) -> Sequence[CheckResult]:
    """Nodes of a collection's label that have no usable key are invisible to everything else."""
    collections = {one.name: one for one in services.graph.collections}
    return [
        note(
            "unseen",
            f"{counts.unseen:,} nodes labelled {collections[name].label} have no "
            f"{collections[name].key} that is a usable {collections[name].key_type}",
            f"Give them a {collections[name].key}, or describe another key.",
        )
        for name, counts in services.graph.counts_by_collection(model=services.model).items()
        if counts.unseen
    ]


def check_queue_state(services: Services) -> Sequence[CheckResult]:
    switch = services.jobs.switch.read()
    if switch.state is SwitchState.HALTED:
        state = problem("work", f"the queue is halted: {switch.reason}", Remedy.RESUME)
    elif switch.state is SwitchState.PAUSED:
        state = note("work", f"the queue is paused: {switch.reason}", Remedy.RESUME)
    elif services.jobs.has_stale():
        state = note("work", "jobs with an expired lease wait for recovery", Remedy.RECOVER)
    else:
        state = ok("work", "the queue is running")
    breakers = (services.jobs.breakers.read(name) for name in (GRAPH, services.provider.name))
    return [
        state,
        *_check_untaken_jobs(services),
        *(
            note("work", f"{breaker.name} does not answer ({breaker.reason}); it is retried")
            for breaker in breakers
            if breaker.is_open
        ),
    ]


def _check_untaken_jobs(services: Services) -> Sequence[CheckResult]:
    return [
        note(
            "work",
            sentence,
            "Set their status or model right, start such a worker, or delete them.",
        )
        for sentence in untaken_jobs(services.jobs, model=services.model)
    ]
