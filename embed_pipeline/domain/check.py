"""The result of one check of `doctor`: ok, a note, or broken with a remedy."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

TOLERATED_SKEW = timedelta(seconds=5)


class Condition(StrEnum):
    OK = "ok"
    NOTE = "note"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """`remedy` is a sentence, or a `Remedy` that the interface words; None if all is well."""

    part: str
    condition: Condition
    message: str
    remedy: str | None = None


def ok(part: str, message: str) -> CheckResult:
    return CheckResult(part=part, condition=Condition.OK, message=message)


def note(part: str, message: str, remedy: str | None = None) -> CheckResult:
    return CheckResult(part=part, condition=Condition.NOTE, message=message, remedy=remedy)


def problem(part: str, message: str, remedy: str) -> CheckResult:
    return CheckResult(part=part, condition=Condition.BROKEN, message=message, remedy=remedy)


def check_clock(role: str, skew: timedelta) -> CheckResult:
    """`skew` is how far the server's clock is ahead of this machine's."""
    said = f"the {role}'s server is {abs(skew.total_seconds()):.1f} s "
    said += "ahead of this machine" if skew > timedelta(0) else "behind this machine"
    if abs(skew) <= TOLERATED_SKEW:
        return ok("clock", said)
    return note("clock", f"{said}; leases follow the server's clock, logs this machine's")
