"""The figures of one size as a table, and how one queue compares with another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.queue.measuring import Figures, Row

TITLE, CELL = 24, 23

Ratio = tuple[str, str]
"""Two contestants, by their names: the first is divided by the second."""


def show(figures: Figures, *, names: Sequence[str], ratios: Sequence[Ratio]) -> None:
    print(f"\n{figures.size:,} jobs in the queue\n")
    _show("jobs per second", figures.speeds, names, ratios, ",.0f")
    print()
    _show("median lease in ms", figures.leases, names, [], ".2f")
    print(flush=True)


def show_growth(first: Figures, last: Figures) -> None:
    """How a lease of the longest queue compares with one of the shortest."""
    print(f"Median lease at {last.size:,} jobs, as a multiple of that at {first.size:,}:\n")
    for title, row in last.leases.items():
        grown = [f"{name} {ms / first.leases[title][name]:.2f}" for name, ms in row.items()]
        print(f"    {title:14}{'   '.join(grown)}")
    print()


def _show(
    title: str,
    rows: Mapping[str, Row],
    names: Sequence[str],
    ratios: Sequence[Ratio],
    form: str,
) -> None:
    heads = [*names, *(f"{one} ÷ {other.removeprefix(one).strip()}" for one, other in ratios)]
    print(f"{title:{TITLE}}{''.join(f'{head:>{CELL}}' for head in heads)}")
    for row_title, row in rows.items():
        cells = [format(row[name], form) if name in row else "–" for name in names]
        for one, other in ratios:
            both = one in row and other in row
            cells.append(f"{row[one] / row[other]:.2f}×" if both else "–")
        print(f"{row_title:{TITLE}}{''.join(f'{cell:>{CELL}}' for cell in cells)}")
