"""One size as a table: jobs per second, and how ours compares with pgqueuer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.queue.measuring import Round

RIVAL = "pgqueuer"
OURS = ("SQLite", "Neo4j")


def show(measured: Round, *, contestants: Sequence[str]) -> None:
    ours = [name for name in OURS if name in contestants and RIVAL in contestants]
    print(f"\n{measured.size:,} jobs in the queue\n")
    head = [f"{name:>14}" for name in contestants] + [f"{f'{name} ÷ pgq':>14}" for name in ours]
    print(f"{'jobs per second':24}{''.join(head)}")
    _row("enqueue", measured.enqueue, contestants, ours)
    for batch, worked in measured.worked.items():
        speeds = {name: one.per_second for name, one in worked.items()}
        _row(f"lease + complete {batch:,}", speeds, contestants, ours)
    _row("recover", measured.recover, contestants, ours)
    _row("cleanup", measured.cleanup, contestants, ours)
    print(f"\n{'median lease in ms':24}{''.join(f'{name:>14}' for name in contestants)}")
    for batch, worked in measured.worked.items():
        cells = [f"{worked[name].median_lease_ms:>14.2f}" for name in contestants]
        print(f"{f'lease {batch:,}':24}{''.join(cells)}")
    print(flush=True)


def _row(
    title: str, speeds: Mapping[str, float], contestants: Sequence[str], ours: Sequence[str]
) -> None:
    cells = [f"{speeds[name]:>14,.0f}" if name in speeds else f"{'–':>14}" for name in contestants]
    for name in ours:
        both = name in speeds and RIVAL in speeds
        cells.append(f"{speeds[name] / speeds[RIVAL]:>13.2f}×" if both else f"{'–':>14}")
    print(f"{title:24}{''.join(cells)}")
