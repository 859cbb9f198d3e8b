"""What a doctor says of one part: fine, worth a word, or broken and how to mend it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    OK = "ok"
    NOTE = "note"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """`remedy` says what to do; a part that is fine needs none."""

    part: str
    verdict: Verdict
    message: str
    remedy: str | None = None


def ok(part: str, message: str) -> Check:
    return Check(part=part, verdict=Verdict.OK, message=message)


def note(part: str, message: str, remedy: str | None = None) -> Check:
    return Check(part=part, verdict=Verdict.NOTE, message=message, remedy=remedy)


def broken(part: str, message: str, remedy: str) -> Check:
    return Check(part=part, verdict=Verdict.BROKEN, message=message, remedy=remedy)
