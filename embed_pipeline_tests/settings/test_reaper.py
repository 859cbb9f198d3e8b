"""The reaper's variables: their defaults, their sentences, and who may read what travels."""

from __future__ import annotations

from datetime import timedelta

import pytest

from embed_pipeline.settings import ReaperSettings, load_settings
from embed_pipeline.telemetry import redact
from embed_pipeline_tests.settings.environments import problems

BASE = {"EMBED_ENV": "test", "REAPER_DATABASE_URL": "postgresql://localhost/jobs"}
PLAIN_HOST = (
    "REAPER_DATABASE_URL must set sslmode=require, verify-ca or verify-full because its host is"
    " not loopback (REAPER_ALLOW_PLAINTEXT=true allows plain text).",
)


def loaded(**environ: str) -> ReaperSettings:
    settings = load_settings({**BASE, **environ}).reaper
    assert settings is not None
    return settings


@pytest.mark.parametrize("url", [None, "", "  "])
def test_without_a_url_there_is_no_reaper_and_nothing_of_it_is_checked(url: str | None) -> None:
    environ = {"EMBED_ENV": "test", "QUEUE_MAX_ATTEMPTS": "no limit", "JOB_LEASE_SEC_ASR": "-1"}

    settings = load_settings(environ if url is None else {**environ, "REAPER_DATABASE_URL": url})

    assert settings.reaper is None
    assert settings.notes == ()


def test_defaults() -> None:
    settings = loaded()

    assert settings.interval == timedelta(seconds=60)
    assert (settings.batch_size, settings.max_attempts) == (500, 5)
    assert (settings.backoff_base, settings.backoff_ceiling) == (None, None)
    assert settings.lease_clip == timedelta(minutes=5)
    leases = (settings.lease_asr, settings.lease_burnin, settings.lease_default)
    assert leases == (timedelta(minutes=15),) * 3
    assert settings.heartbeat_interval == timedelta(seconds=12)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://localhost/jobs",
        "postgres://reaper:secret-pw@127.0.0.1:5433/jobs",
        "postgresql://reaper@[::1]:5432/jobs",
        "postgresql:///jobs?host=/var/run/postgresql",
        "postgresql://reaper:@/jobs?host=/var/run/x",
        "postgresql://%2Fvar%2Frun%2Fpostgresql/jobs",
        "postgresql://localhost:1,127.0.0.1:2/jobs?target_session_attrs=read-write",
        "postgresql://db.example/jobs?sslmode=require",
        "postgresql://db.example,other.example/jobs?sslmode=verify-full&sslrootcert=system",
        "postgresql://db.example/jobs?hostaddr=127.0.0.1",
        "postgresql://localhost/jobs?options=-csearch_path%3Dmedia",
    ],
)
def test_loopback_sockets_and_tls_are_taken(url: str) -> None:
    assert load_settings({**BASE, "REAPER_DATABASE_URL": url}).notes == ()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://db.example/jobs",
        "postgresql://10.0.0.7/jobs?sslmode=prefer",
        "postgresql://db.example/jobs?sslmode=disable",
        "postgresql://localhost,db.example/jobs",
        "postgresql://localhost/jobs?host=db.example",
        "postgresql://localhost/jobs?hostaddr=10.0.0.7",
        "postgresql://localhost.evil.example/jobs",
        "postgresql://db.example/jobs?sslmode=require&sslmode=disable",
    ],
)
def test_plaintext_to_another_machine_needs_a_permission_which_is_noted(url: str) -> None:
    environ = {**BASE, "REAPER_DATABASE_URL": url}

    assert problems(environ) == PLAIN_HOST
    assert load_settings({**environ, "REAPER_ALLOW_PLAINTEXT": "true"}).notes == (
        "REAPER_ALLOW_PLAINTEXT is true: password and jobs travel unencrypted to"
        " REAPER_DATABASE_URL.",
    )


@pytest.mark.parametrize(
    "url",
    [
        "jobs",
        "mysql://localhost/jobs",
        "host=localhost dbname=jobs",
        "postgresql:///jobs",
        "postgresql://reaper@/jobs",
        "postgresql://localhost/jobs?sslmode=on",
        "postgresql://localhost/jobs?sslmode",
        "postgresql://u:p#w@db.example/jobs",
        "postgresql://127.0.0.1?x=y@db.example/jobs",
        "postgresql://a@b@db.example/jobs",
        "postgresql://local host/jobs",
        "postgresql://[::1/jobs",
    ],
)
def test_url_that_libpq_may_understand_otherwise_is_refused_without_showing_it(url: str) -> None:
    (sentence,) = problems({**BASE, "REAPER_DATABASE_URL": url})

    assert sentence.startswith("REAPER_DATABASE_URL must be postgresql:// followed by a host")
    assert url not in sentence


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://reaper:hunter%2222@localhost/jobs",
        "postgresql://reaper@localhost/jobs?password=hunter%2222",
    ],
)
def test_password_inside_the_url_is_never_shown(url: str) -> None:
    settings = load_settings({**BASE, "REAPER_DATABASE_URL": url})

    assert 'hunter"22' not in repr(settings) + str(settings.reaper)
    assert redact(f'refused hunter"22 of {url}') == "refused [redacted] of [redacted]"


def test_job_names_override_queue_names() -> None:
    queue = {
        "QUEUE_MAX_ATTEMPTS": "7",
        "QUEUE_RETRY_BACKOFF_MS_BASE": "1000",
        "QUEUE_RETRY_BACKOFF_MS_MAX": "8000",
    }

    queued = loaded(**queue)
    jobbed = loaded(**queue, JOB_MAX_ATTEMPTS="2", JOB_RETRY_BACKOFF_MS_MAX="4000")

    assert (queued.max_attempts, jobbed.max_attempts) == (7, 2)
    assert (queued.backoff_base, queued.backoff_ceiling) == (
        timedelta(seconds=1),
        timedelta(seconds=8),
    )
    assert (jobbed.backoff_base, jobbed.backoff_ceiling) == (
        timedelta(seconds=1),
        timedelta(seconds=4),
    )


@pytest.mark.parametrize(
    ("environ", "base", "ceiling"),
    [
        ({"QUEUE_RETRY_BACKOFF_MS_BASE": "1000"}, 1, 600),
        ({"JOB_RETRY_BACKOFF_MS_BASE": "900000"}, 900, 900),
        ({"QUEUE_RETRY_BACKOFF_MS_MAX": "10000"}, 10, 10),
        ({"JOB_RETRY_BACKOFF_MS_MAX": "60000"}, 30, 60),
    ],
)
def test_one_of_base_and_maximum_brings_the_other(
    environ: dict[str, str], base: int, ceiling: int
) -> None:
    settings = loaded(**environ)

    assert settings.backoff_base == timedelta(seconds=base)
    assert settings.backoff_ceiling == timedelta(seconds=ceiling)


def test_maximum_below_the_base_is_refused() -> None:
    environ = {"QUEUE_RETRY_BACKOFF_MS_BASE": "5000", "JOB_RETRY_BACKOFF_MS_MAX": "4000"}

    assert problems({**BASE, **environ}) == (
        "JOB_RETRY_BACKOFF_MS_MAX must be at least the base, which is 5000 milliseconds,"
        " got '4000'.",
    )


def test_factors_multiply_and_a_stages_own_wins() -> None:
    settings = loaded(JOB_SLA_FACTOR="2", JOB_SLA_FACTOR_ASR="0.5", JOB_LEASE_SEC_CLIP="60")

    assert settings.lease_clip == timedelta(minutes=2)
    assert settings.lease_asr == timedelta(seconds=450)
    assert settings.lease_burnin == timedelta(minutes=30)
    assert settings.lease_default == timedelta(minutes=30)


def test_lease_that_its_factor_makes_too_short_is_refused() -> None:
    assert problems({**BASE, "JOB_LEASE_SEC_CLIP": "60", "JOB_SLA_FACTOR_CLIP": "0.4"}) == (
        "JOB_LEASE_SEC_CLIP must make at least 30 seconds with its SLA factor, got 60 × 0.4.",
    )


@pytest.mark.parametrize(
    ("variable", "refused", "taken"),
    [
        ("REAPER_INTERVAL_SEC", ["0", "-1", "86401", "1.5", "", "1m"], ["1", "90", "86400"]),
        ("REAPER_BATCH_SIZE", ["0", "10001"], ["1", "10000"]),
        ("QUEUE_MAX_ATTEMPTS", ["0", "101", "three"], ["1", "100"]),
        ("JOB_MAX_ATTEMPTS", ["0", ""], ["1"]),
        ("JOB_RETRY_BACKOFF_MS_BASE", ["0", "-5", "86400001"], ["1", "86400000"]),
        ("JOB_LEASE_SEC_BURNIN", ["0", "29", "86401"], ["30", "86400"]),
        ("JOB_SLA_FACTOR", ["0", "0.09", "101", "nan", "1e1", "-1", "١"], ["0.1", "100", "1.50"]),
        ("JOB_HEARTBEAT_SEC", ["9", "16"], ["10", "15"]),
        ("REAPER_ALLOW_PLAINTEXT", ["maybe"], ["true", "no"]),
    ],
)
def test_values_outside_their_range_are_refused_in_a_sentence(
    variable: str, refused: list[str], taken: list[str]
) -> None:
    for text in refused:
        (sentence,) = problems({**BASE, variable: text})
        assert sentence.startswith(f"{variable} must be ")
        assert sentence.endswith(f", got {text!r}.")
    for text in taken:
        loaded(**{variable: text})
