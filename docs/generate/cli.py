"""docs/cli.md: all commands, from their signatures and docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from types import NoneType
from typing import get_args

import typer
from typer.models import ArgumentInfo, OptionInfo

from embed_pipeline.interfaces.cli.app import app

PROGRAM = "embed-pipeline"

_PREFACE = """\
# Command line

Generated from the program by `make docs`; a test fails when it is out of date.
`embed-pipeline COMMAND --help` shows the same at the terminal.

`--json` prints JSON for programs and nothing else on standard output; logs, notes and errors go to
standard error. Progress bars are shown only on a terminal. Ctrl-C and SIGTERM release leased jobs.

| exit code | means |
|---|---|
| 0 | done |
| 1 | an error, in one sentence on standard error; or a bad result (see each command) |
| 2 | wrong usage |
| 130 | interrupted; leased jobs were released |

"""


@dataclass(frozen=True, slots=True)
class Described:
    """A command by its full name, and the function behind it."""

    path: str
    function: Callable[..., object]

    @property
    def help(self) -> str:
        return inspect.getdoc(self.function) or ""


def cli_markdown() -> str:
    commands = list(_commands(app, PROGRAM))
    listed = "\n".join(
        f"| [`{one.path}`](#{one.path.replace(' ', '-')}) | {one.help.partition(chr(10))[0]} |"
        for one in commands
    )
    table = f"| command | what it does |\n|---|---|\n{listed}\n"
    return _PREFACE + "\n".join([table, *(_section(one) for one in commands)])


def _commands(group: typer.Typer, path: str) -> Iterator[Described]:
    for command in group.registered_commands:
        assert command.callback is not None
        name = command.name or command.callback.__name__.replace("_", "-")
        yield Described(f"{path} {name}", command.callback)
    for below in group.registered_groups:
        assert below.typer_instance is not None
        yield from _commands(below.typer_instance, f"{path} {below.typer_instance.info.name}")


def _section(described: Described) -> str:
    given = inspect.signature(described.function, eval_str=True).parameters.values()
    said = [(one, _metadata(one)) for one in given]
    arguments = "".join(
        f" {_argument(one)}" for one, info in said if isinstance(info, ArgumentInfo)
    )
    options = " [OPTIONS]" if any(isinstance(info, OptionInfo) for _, info in said) else ""
    usage = f"```console\n$ {described.path}{options}{arguments}\n```\n"
    rows = "".join(f"| {_spelling(one, info)} | {_meaning(one, info)} |\n" for one, info in said)
    table = f"| argument or option | meaning |\n|---|---|\n{rows}" if rows else ""
    return "\n".join([f"## {described.path}\n", usage, f"{described.help}\n", table])


def _metadata(given: inspect.Parameter) -> ArgumentInfo | OptionInfo:
    """What `Annotated` says beside the type."""
    for said in get_args(given.annotation)[1:]:
        if isinstance(said, ArgumentInfo | OptionInfo):
            return said
    raise AssertionError(f"{given.name} is neither an argument nor an option")


def _argument(given: inspect.Parameter) -> str:
    name = given.name.upper()
    return name if given.default is inspect.Parameter.empty else f"[{name}]"


def _spelling(given: inspect.Parameter, info: ArgumentInfo | OptionInfo) -> str:
    if isinstance(info, ArgumentInfo):
        return f"`{given.name.upper()}`"
    kind = _kind(given)
    long = f"--{given.name.replace('_', '-')}"
    # Inside `Annotated` the first name that an option is given stands where defaults stand.
    named = [name for name in (info.default, *(info.param_decls or ())) if isinstance(name, str)]
    if kind is bool and not named:
        return f"`{long}`, `--no-{long.removeprefix('--')}`"
    names = ", ".join(f"`{name}`" for name in named or [long])
    return names if kind is bool else f"{names} {_value(kind, info)}"


def _kind(given: inspect.Parameter) -> type:
    """The type without `| None`."""
    kind: type = get_args(given.annotation)[0]
    return next((one for one in get_args(kind) if one is not NoneType), kind)


def _value(kind: type, info: OptionInfo) -> str:
    if info.metavar:
        return info.metavar
    if issubclass(kind, Enum):
        return ", ".join(str(one.value) for one in kind)
    if info.formats:
        return "TIME"
    return {str: "TEXT", int: "NUMBER", float: "NUMBER"}.get(kind, kind.__name__.upper())


def _meaning(given: inspect.Parameter, info: ArgumentInfo | OptionInfo) -> str:
    parts = [info.help or ""]
    if info.min is not None or info.max is not None:
        least = "" if info.min is None else f"from {info.min:,}"
        most = "" if info.max is None else f"to {info.max:,}"
        parts.append(f"A number {' '.join(filter(None, (least, most)))}.")
    if info.formats:
        parts.append("`2026-01-31T12:00:00Z` or `2026-01-31`.")
    if given.default not in (None, False, inspect.Parameter.empty):
        shown = f"--{given.name}" if given.default is True else given.default
        parts.append(f"Default: `{shown}`.")
    return " ".join(parts).replace("|", "\\|")
