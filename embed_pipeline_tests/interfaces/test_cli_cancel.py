"""`embed-pipeline cancel`: pending jobs go, nothing else does."""

from __future__ import annotations

import pytest

from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.worker.context import Services
from embed_pipeline_tests.clocks import HOUR
from embed_pipeline_tests.interfaces.conftest import CommandLine, create
from embed_pipeline_tests.interfaces.past import Past


def test_cancel_by_name_deletes_that_entitys_jobs(cli: CommandLine, services: Services) -> None:
    create(services, "wanted", "unwanted")

    answer = cli("cancel", "unwanted")

    (left,) = services.jobs.history.walk()
    assert (answer.code, answer.out) == (0, "Cancelled 1 pending jobs.\n")
    assert left.entity_uid == services.graph.find_by_name("wanted")[0].uid


def test_cancel_by_key_needs_no_entity(cli: CommandLine, services: Services) -> None:
    entity = NewEntity(name="gone")
    create(services, "other")
    services.graph.create_entities([entity], model=services.model)
    cli("discover")
    services.graph.soft_delete([entity.identity])

    assert cli("cancel", "--key", entity.identity, "--json").json == {"cancelled": 1}
    assert cli("cancel", "--key", "unheard-of", "--json").json == {"cancelled": 0}


def test_cancel_all_deletes_pending_jobs_and_touches_no_other(
    cli: CommandLine, services: Services, past: Past
) -> None:
    past.completed("done", ago=HOUR)
    past.leased("in work", ago=HOUR)
    past.failed("failed")
    create(services, "a", "b", "c")

    answer = cli("cancel", "--all", "--yes", "--json")

    status = services.jobs.get_queue_status()
    assert answer.json == {"cancelled": 3}
    assert (status.pending, status.processing, status.completed, status.failed) == (0, 1, 1, 1)


def test_cancel_all_stops_at_its_limit(cli: CommandLine, services: Services) -> None:
    create(services, "a", "b", "c")

    cli("cancel", "--all", "--yes", "--limit", "2")

    assert services.jobs.get_queue_status().pending == 1


def test_cancel_all_asks_first(cli: CommandLine, services: Services) -> None:
    create(services, "a", "b")

    answer = cli("cancel", "--all")

    assert (answer.code, answer.out) == (1, "")
    assert answer.err == "This would delete 2 jobs: confirm it with --yes.\n"
    assert services.jobs.get_queue_status().pending == 2


def test_cancelled_entities_are_found_again_by_discovery(
    cli: CommandLine, services: Services
) -> None:
    create(services, "a")
    cli("cancel", "--all", "--yes")

    assert cli("discover", "--json").json["new_jobs"] == 1


def test_cancel_of_nobody_is_one_sentence(cli: CommandLine) -> None:
    answer = cli("cancel", "Nobody")

    assert (answer.code, answer.out) == (1, "")
    assert answer.err == "No entity is named 'Nobody'.\n"


@pytest.mark.parametrize(
    "words", [(), ("name", "--all"), ("--key", "k", "--all"), ("--all", "--limit", "0")]
)
def test_cancel_of_nothing_or_of_both_is_wrong_usage(
    cli: CommandLine, words: tuple[str, ...]
) -> None:
    assert cli("cancel", *words).code == 2
