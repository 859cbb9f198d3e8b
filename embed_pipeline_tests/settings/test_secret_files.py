"""Secrets in files: `…_FILE` for every secret, refused by name where it cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from embed_pipeline.settings import load_settings
from embed_pipeline.settings.load import SECRETS
from embed_pipeline.telemetry import redact
from embed_pipeline_tests.settings.environments import PRODUCTION, problems

PASSWORD = "EMBED_QUEUE_PASSWORD"
WITHOUT = {name: text for name, text in PRODUCTION.items() if name != PASSWORD}


def queue_password(path: Path, text: str) -> str:
    path.write_bytes(text.encode())
    server = load_settings({**WITHOUT, f"{PASSWORD}_FILE": str(path)}).stores.queue_server
    assert server is not None
    return server.password.get_secret_value()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("pw-in-a-file", "pw-in-a-file"),
        ("pw-in-a-file\n", "pw-in-a-file"),
        ("pw-in-a-file\r\n", "pw-in-a-file"),
        ("pw-in-a-file\n\n", "pw-in-a-file\n"),
        (" pw in a file ", " pw in a file "),
    ],
)
def test_one_line_end_is_cut_and_nothing_else(tmp_path: Path, text: str, value: str) -> None:
    assert queue_password(tmp_path / "secret", text) == value


def test_a_secret_of_a_file_is_redacted(tmp_path: Path) -> None:
    queue_password(tmp_path / "secret", "pw-of-this-very-test\n")

    assert redact("refused pw-of-this-very-test") == "refused [redacted]"


@pytest.mark.parametrize("secret", SECRETS)
def test_every_secret_can_be_in_a_file_but_not_in_both(tmp_path: Path, secret: str) -> None:
    file = tmp_path / "secret"
    file.write_text("from-a-file")

    reported = problems({**PRODUCTION, secret: "from-a-variable", f"{secret}_FILE": str(file)})

    assert reported[0] == f"{secret}_FILE must not be set beside {secret}."


@pytest.mark.parametrize("secret", SECRETS)
def test_a_missing_file_is_refused_by_name_and_once(tmp_path: Path, secret: str) -> None:
    environ = {name: text for name, text in PRODUCTION.items() if name != secret}

    reported = problems({**environ, f"{secret}_FILE": str(tmp_path / "none")})

    assert reported == (
        f"{secret}_FILE must name a file that can be read: No such file or directory.",
    )


@pytest.mark.parametrize("text", [b"", b"\n", b" \n"])
def test_an_empty_file_is_refused(tmp_path: Path, text: bytes) -> None:
    file = tmp_path / "secret"
    file.write_bytes(text)

    reported = problems({**WITHOUT, f"{PASSWORD}_FILE": str(file)})

    assert reported == (f"{PASSWORD}_FILE must name a file that is not empty.",)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(b"\xff\xfe")

    reported = problems({**WITHOUT, f"{PASSWORD}_FILE": str(file)})

    assert reported == (
        f"{PASSWORD}_FILE must name a file that can be read: it is not UTF-8 text.",
    )


def test_an_empty_variable_names_no_file() -> None:
    assert load_settings({**PRODUCTION, f"{PASSWORD}_FILE": ""}).notes == ()
