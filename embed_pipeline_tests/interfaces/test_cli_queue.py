"""The commands on the queue: status, recover, cleanup, pause, resume, failed, retry-failed."""

from __future__ import annotations

import pytest

from embed_pipeline.worker.context import Services
from embed_pipeline_tests.clocks import DAY, HOUR, MINUTE
from embed_pipeline_tests.interfaces.conftest import CommandLine, create
from embed_pipeline_tests.interfaces.past import MODEL, Past, failure


def test_status_counts_the_jobs_of_every_state(cli: CommandLine, past: Past) -> None:
    past.completed("done", "done too", ago=HOUR)
    past.failed("bad")
    past.leased("held", ago=MINUTE)

    answer = cli("status", "--json")

    assert (answer.code, answer.err) == (0, "")
    assert answer.json == {
        "pending": 0,
        "processing": 1,
        "completed": 2,
        "failed": 1,
        "other": 0,
        "total": 4,
        "queue": "running",
        "left": 1,
        "per_second": None,
        "eta_seconds": None,
        "done": False,
    }


def test_status_is_readable(cli: CommandLine, services: Services) -> None:
    create(services, *(f"thing {number}" for number in range(1_234)))

    answer = cli("status")

    lines = [line.split() for line in answer.out.splitlines()]
    assert answer.code == 0
    assert ["pending", "1,234"] in lines
    assert ["queue", "running"] in lines


def test_status_says_why_the_queue_stands_still(cli: CommandLine, services: Services) -> None:
    services.jobs.switch.pause("[/b] tonight :boom:")

    readable, parsed = cli("status"), cli("status", "--json").json

    assert "[/b] tonight :boom:" in readable.out
    assert (parsed["queue"], parsed["reason"]) == ("paused", "[/b] tonight :boom:")


def test_recover_names_the_jobs_and_their_previous_owners(cli: CommandLine, past: Past) -> None:
    job_ids = past.leased("one", "two", ago=HOUR, owner="worker-7")

    answer = cli("recover", "--json")

    assert answer.code == 0
    assert sorted(answer.json["recovered"]) == sorted(job_ids)
    assert answer.json["previous_owners"] == ["worker-7"]
    assert answer.json["failed"] == []


def test_recover_tells_in_a_sentence_and_finds_nothing_twice(cli: CommandLine, past: Past) -> None:
    past.leased("one", ago=HOUR, owner="worker-7")

    first, second = cli("recover"), cli("recover")

    assert first.out == "Recovered 1 jobs of worker-7.\n"
    assert (second.code, second.out) == (0, "Recovered 0 jobs.\n")


def test_recover_leaves_a_live_lease_alone(cli: CommandLine, past: Past) -> None:
    past.leased("held", ago=MINUTE)

    cli("recover")

    assert cli("status", "--json").json["processing"] == 1


def test_recover_works_by_hand_where_automatic_recovery_is_off(
    cli: CommandLine, past: Past
) -> None:
    past.leased("one", ago=HOUR)

    answer = cli("recover", "--json", EMBED_JOB_RECOVERY_INTERVAL="0")

    assert len(answer.json["recovered"]) == 1
    assert "automatic recovery is OFF" in answer.err


def test_cleanup_deletes_what_ended_before_the_retention(cli: CommandLine, past: Past) -> None:
    past.completed("old", ago=15 * DAY)
    past.failed("old and bad", ago=15 * DAY)
    past.completed("young", ago=13 * DAY)

    answer = cli("cleanup")

    assert answer.code == 0
    assert "Deleted 1 completed and 1 failed jobs" in answer.out
    assert "older than 14 days" in answer.out
    assert cli("status", "--json").json["total"] == 1


def test_cleanup_follows_the_configured_retention_and_the_option(
    cli: CommandLine, past: Past
) -> None:
    past.completed("a", ago=29 * DAY)
    past.completed("b", ago=13 * DAY)

    by_setting = cli("cleanup", "--json", EMBED_JOB_RETENTION_DAYS="30").json
    by_option = cli("cleanup", "--older-than", "20", "--json").json
    everything = cli("cleanup", "--older-than", "0", "--json").json

    assert [answer["completed"] for answer in (by_setting, by_option, everything)] == [0, 1, 1]


@pytest.mark.parametrize("days", ["-1", "99999999999", "7.5", "soon"])
def test_cleanup_refuses_impossible_ages(cli: CommandLine, past: Past, days: str) -> None:
    past.completed("a", ago=29 * DAY)

    answer = cli("cleanup", "--older-than", days)

    assert (answer.code, answer.out) == (2, "")
    assert "--older-than" in answer.err
    assert cli("status", "--json").json["completed"] == 1


def test_pause_stops_leasing_until_resume(cli: CommandLine, services: Services) -> None:
    create(services, "waiting")

    paused = cli("pause", "--reason", "maintenance [tonight]")
    refused = services.jobs.lease(owner="w", model=MODEL, limit=1, token="1")
    resumed = cli("resume", "--reason", "done")
    leased = services.jobs.lease(owner="w", model=MODEL, limit=1, token="2")

    assert paused.out == "The queue is paused: maintenance [tonight].\n"
    assert resumed.out == "The queue is running.\n"
    assert refused.refusal is not None
    assert "maintenance [tonight]" in refused.refusal.detail
    assert len(leased.jobs) == 1


def test_pause_and_resume_answer_programs(cli: CommandLine) -> None:
    paused, resumed = cli("pause", "--json"), cli("resume", "--json")

    assert paused.json["state"] == "paused"
    assert paused.json["reason"] == "paused by hand"
    assert resumed.json["state"] == "running"
    assert resumed.json["generation"] == paused.json["generation"] + 1


def test_pause_does_not_hide_a_halt(cli: CommandLine, services: Services) -> None:
    services.jobs.switch.halt("the key was revoked", seen=services.jobs.switch.read().generation)

    answer = cli("pause")

    assert answer.out == "The queue is halted: the key was revoked.\n"


def test_failed_shows_the_latest_with_category_message_and_attempts(
    cli: CommandLine, past: Past
) -> None:
    past.failed("older", ago=HOUR, how=failure(message="first [/red] trouble"))
    past.failed("newer", how=failure(message="last trouble"))

    readable, parsed = cli("failed"), cli("failed", "--json").json

    assert readable.out.index("last trouble") < readable.out.index("first [/red] trouble")
    assert [row["entity"] for row in parsed] == ["newer", "older"]
    assert parsed[0]["category"] == "PERMANENT"
    assert parsed[0]["attempts"] == 1
    assert "stack" not in parsed[0]


def test_failed_shows_stacks_and_limits_on_request(cli: CommandLine, past: Past) -> None:
    past.failed("a", "b", "c")

    rows = cli("failed", "--stack", "--limit", "2", "--json").json

    assert [row["stack"] for row in rows] == ["the stack of it"] * 2


@pytest.mark.parametrize("words", [("--limit", "0"), ("--limit", "-1"), ("--category", "ODD")])
def test_failed_refuses_impossible_options(cli: CommandLine, words: tuple[str, str]) -> None:
    answer = cli("failed", *words)

    assert (answer.code, answer.out) == (2, "")


def test_failed_counts_all_by_category_and_error(cli: CommandLine, past: Past) -> None:
    past.failed(*(f"entity {number}" for number in range(1_001)), ago=HOUR)
    past.failed("c", how=failure(message="It was refused again."))
    past.completed("d", ago=HOUR)

    readable, parsed = cli("failed", "--by-category"), cli("failed", "--by-category", "--json")

    (group,) = parsed.json
    assert (group["category"], group["error_type"], group["jobs"]) == (
        "PERMANENT",
        "Refused",
        1_002,
    )
    assert group["example"] == "It was refused again."
    assert "It was refused again." in readable.out
    assert cli("failed", "--by-category", "--category", "CRITICAL", "--json").json == []


def test_failed_says_when_there_is_nothing_to_show(cli: CommandLine) -> None:
    assert cli("failed").out == "No job has failed.\n"
    assert cli("failed", "--json").json == []


def test_retry_failed_gives_one_category_a_fresh_start(
    cli: CommandLine, past: Past, services: Services
) -> None:
    (oldest,) = past.failed("oldest", ago=HOUR)
    past.failed("latest")

    none = cli("retry-failed", "--category", "transient", "--json").json
    some = cli("retry-failed", "--category", "permanent", "--limit", "1", "--json").json

    retried = services.jobs.get(oldest)
    assert (none, some) == ({"retried": []}, {"retried": [oldest]})
    assert retried is not None
    assert (retried.status, retried.attempts) == ("pending", 0)


def test_retry_failed_tells_how_many(cli: CommandLine, past: Past) -> None:
    past.failed("a", "b")

    answer = cli("retry-failed")

    assert answer.out == "2 failed jobs are pending again.\n"
    assert cli("failed").out == "No job has failed.\n"
