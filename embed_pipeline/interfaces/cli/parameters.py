"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from embed_pipeline.domain.job import EntityUid

TIME_FORMATS = ["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d"]
"""How a time is given: `2026-01-31T12:00:00Z`, or only the day; always UTC."""


def utf8(text: str) -> str:
    """Refuses bytes that are not UTF-8, which Python passes on but no database stores."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise typer.BadParameter(f"{text!r} is not valid UTF-8.") from error
    return text


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Name = Annotated[
    str | None, typer.Argument(help="The entity's exact name.", metavar="NAME", parser=utf8)
]
Key = Annotated[
    EntityUid | None,
    typer.Option(help="The entity's key, for names that repeat.", metavar="KEY", parser=utf8),
]
Query = Annotated[
    str, typer.Argument(help="What to look for, in your own words.", metavar="QUERY", parser=utf8)
]
