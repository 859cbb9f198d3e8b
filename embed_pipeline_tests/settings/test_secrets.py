from __future__ import annotations

import io
import json
import logging
import string
import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embed_pipeline import telemetry
from embed_pipeline.errors import ConfigurationError
from embed_pipeline.settings import load_settings
from embed_pipeline.telemetry.rendering import as_json
from embed_pipeline_tests.settings.environments import PRODUCTION, problems

SECRETS = ("OPENAI_API_KEY", "EMBED_QUEUE_PASSWORD", "EMBED_GRAPH_PASSWORD")

# The first letters keep a random secret from being an ordinary word of our sentences.
keys = st.text(string.ascii_letters + string.digits + "-_", min_size=8).map("Zq7".__add__)
passwords = st.text(min_size=8).map("Zq7".__add__)


def everything_reported(environ: dict[str, str]) -> str:
    """All that a start with these variables says: sentences, stack, notes and repr."""
    try:
        loaded = load_settings(environ)
    except ConfigurationError as error:
        return repr(error) + str(error) + "".join(traceback.format_exception(error))
    return f"{loaded} {loaded!r} {loaded.provider!r} {loaded.stores!r} {loaded.notes}"


def logged(**facts: object) -> str:
    """One log line, as written and as a reader of JSON sees it."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logger = logging.getLogger(telemetry.LOGGER_NAME)
    logger.addHandler(handler)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(telemetry, "_render", as_json)  # definitions of Dagster change it
            telemetry.emit("settings.noted", **facts)
    finally:
        logger.removeHandler(handler)
    line = stream.getvalue()
    return line + "".join(map(str, json.loads(line).values()))


@given(key=keys, queue_password=passwords, graph_password=passwords)
def test_secrets_are_never_echoed(key: str, queue_password: str, graph_password: str) -> None:
    secrets = dict(zip(SECRETS, (key, queue_password, graph_password), strict=True))
    good = {**PRODUCTION, **secrets}
    misplaced = {
        "EMBED_JOB_BATCH_SIZE": key,
        "EMBED_QUEUE_USER": f"{key} x",
        "EMBED_QUEUE_URI": f"bolt+s://neo4j:{queue_password}@db.example",
        "OPENAI_BASE_URL": f"https://{key}:x@api.example",
    }

    reported = everything_reported(good) + everything_reported({**good, **misplaced})
    reported += everything_reported({**good, "OPENAI_API_KEY": f"{key} with spaces"})
    written = logged(
        message=f"refused {key} {queue_password}",
        reason=f"{queue_password!r} {json.dumps(graph_password)}",
        values=[graph_password, {"x": key}],
        error=ValueError(key),
    )

    for secret in secrets.values():
        # Blanks at the ends are no secret, and a log line may lose them.
        assert secret.strip() not in reported
        assert secret.strip() not in written


@pytest.mark.parametrize("variable", ["EMBED_QUEUE_URI", "EMBED_GRAPH_URI", "OPENAI_BASE_URL"])
@pytest.mark.parametrize(
    "user_info", ["neo4j:hunter22", "hunter22", "neo4j:hunter22/x", "neo4j:12/hunter22"]
)
def test_credentials_inside_a_uri_are_refused_without_showing_them(
    variable: str, user_info: str
) -> None:
    scheme = "https" if variable == "OPENAI_BASE_URL" else "bolt+s"

    (sentence,) = problems({**PRODUCTION, variable: f"{scheme}://{user_info}@host.example"})

    assert sentence.startswith(f"{variable} must not carry credentials")
    assert "hunter22" not in sentence


def test_a_refused_key_is_not_shown() -> None:
    assert problems({**PRODUCTION, "OPENAI_API_KEY": "two words"}) == (
        "OPENAI_API_KEY must be printable ASCII without spaces.",
    )


def test_a_secret_of_undecodable_bytes_does_not_break_the_start() -> None:
    loaded = load_settings({**PRODUCTION, "EMBED_QUEUE_PASSWORD": "abc\udcff\udcfedef"})

    assert "abc" not in repr(loaded)
