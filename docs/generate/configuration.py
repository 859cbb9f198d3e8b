"""docs/configuration.md and .env.example: all settings, from their declarations."""

from __future__ import annotations

import json
from dataclasses import dataclass
from textwrap import wrap

from embed_pipeline.settings.load import GROUPS
from embed_pipeline.settings.parsing.collection_schema import json_schema
from embed_pipeline.settings.parsing.sources import FILE_SUFFIX
from embed_pipeline.settings.parsing.variables import Setting, settings_of

_PREFACE = """\
# Configuration

Everything is set by environment variables, or in a file `.env` in the current directory; where
both set a variable, the environment wins. (Dagster's own commands load `.env` over their
environment before anything of this package runs, so there the file wins. A difference that is
still visible is noted at the start.)

All bad values are reported at once, a sentence each, and nothing starts. Secrets are never shown:
not in these sentences, not in logs, not in the UI. Each secret can also be given as a file, whose
path is in the variable of its name with `_FILE` appended (one line end at its end is cut; setting
both, a missing and an empty file are refused). Variables that begin with `EMBED_` or
`EMBEDDING_` and are not in this list are noted as likely typing errors.
"""
_EXAMPLE_PREFACE = """\
# Copy to .env and uncomment what you change. Everything below is commented out, with its default.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One setting; `default` is in words where it depends on something or there is none.

    `literal` is the default as it would be written in a `.env` file, empty when it depends.
    """

    group: str
    variable: str
    default: str
    literal: str
    allowed: str
    meaning: str
    secret: bool


def reference() -> list[Row]:
    """All settings in the order of the documentation."""
    return [
        _row(title, declared)
        for title, groups in GROUPS.items()
        for group in groups
        for declared in settings_of(group).values()
    ]


def configuration_markdown() -> str:
    parts = [_PREFACE]
    for title in GROUPS:
        parts.append(
            f"\n## {title}\n\n| Variable | Default | Allowed | Meaning |\n|---|---|---|---|\n"
        )
        parts += [_table_line(row) for row in reference() if row.group == title]
    return "".join(parts)


def env_example() -> str:
    parts = [_EXAMPLE_PREFACE]
    for title in GROUPS:
        parts.append(f"\n# ---- {title} ----\n")
        parts += [_example_lines(row) for row in reference() if row.group == title]
    return "".join(parts)


def _row(title: str, declared: Setting) -> Row:
    return Row(
        group=title,
        variable=declared.variable,
        default=declared.shown or declared.default or "none",
        literal=declared.default,
        allowed=declared.kind.allowed,
        meaning=declared.meaning,
        secret=declared.kind.secret,
    )


def _table_line(row: Row) -> str:
    default = f"`{row.default}`" if row.default == row.literal else row.default
    meaning = row.meaning
    if row.secret:
        meaning += f" **Secret.** Or `{row.variable}{FILE_SUFFIX}`, the path of a file with it."
    return f"| `{row.variable}` | {default} | {row.allowed} | {meaning} |\n"


def _example_lines(row: Row) -> str:
    secret = f" Secret; or {row.variable}{FILE_SUFFIX}=path." if row.secret else ""
    texts = (f"{row.meaning}{secret}", f"Allowed: {row.allowed}.", f"Default: {row.default}.")
    lines = [line for text in texts for line in wrap(text, width=98, break_on_hyphens=False)]
    comment = "".join(f"# {line}\n" for line in lines)
    return f"\n{comment}#{row.variable}={row.literal}\n"


def collections_schema() -> str:
    """The JSON schema of EMBED_CONFIG's file, for editors."""
    return json.dumps(json_schema(), indent=2) + "\n"
