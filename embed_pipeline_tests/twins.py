"""Finds what two modules have in common: runs of lines that are equal or of one shape."""

from __future__ import annotations

import ast
import io
import keyword
import tokenize
from pathlib import Path

IGNORED = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def shapes(path: Path) -> list[tuple[int, str]]:
    """The lines that say something, each with its number.

    Names and numbers are replaced by a sign: who copies code renames them. Lines of a statement in
    another language stay as they are. Imports, docstrings, comments and closing brackets say
    nothing.
    """
    source = path.read_text()
    silent = _silent_lines(ast.parse(source))
    lines: dict[int, list[str]] = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in IGNORED or token.start[0] in silent:
            continue
        for offset, text in enumerate(token.string.splitlines()):
            lines.setdefault(token.start[0] + offset, []).append(_shape(token.type, text))
    found = [(number, " ".join(parts)) for number, parts in sorted(lines.items())]
    return [(number, line) for number, line in found if any(map(str.isalnum, line))]


def _silent_lines(tree: ast.Module) -> set[int]:
    return {
        number
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def _shape(kind: int, text: str) -> str:
    if kind == tokenize.NUMBER:
        return "0"
    if kind == tokenize.NAME and not keyword.iskeyword(text):
        return "n"
    return " ".join(text.split()).lower()


def runs(lines: list[tuple[int, str]], length: int) -> dict[tuple[str, ...], int]:
    """Every run of so many lines, and the number of its first one."""
    return {
        tuple(line for _, line in lines[start : start + length]): lines[start][0]
        for start in range(len(lines) - length + 1)
    }
