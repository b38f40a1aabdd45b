"""Pictures of a question set: how many in each group, and how often the answer was yes."""

import math

from foretell.arena.report.breakdown import Breakdown
from foretell.arena.report.markup import Markup, shorten
from foretell.arena.report.scales import Scale
from foretell.arena.report.svg import Figure, empty, figure, line, mark, rect, text
from foretell.arena.report.wording import column_name, percent
from foretell.evaluate.reliability import wilson_interval

WIDTH, ROW, LETTER = 460, 22, 6.3
HEAD = 44


def question_set(found: Breakdown, *, title: str | None = None) -> Figure:
    """Targets per group as bars, share of yes as dots with a Wilson interval (rows taken as independent)."""
    if not found.groups:
        return empty("No question")
    left = max(max(len(shorten(g, 24)) for g in found.groups) * LETTER + 16, 60.0)
    counts = Scale(low=0, high=max(1, *found.n), start=left, stop=left + 110)
    rates = Scale(low=0, high=1, start=left + 165, stop=WIDTH - 54)
    bottom = HEAD + ROW * len(found.groups)
    shown = title or f"Questions by {column_name(found.column)}"
    grid = [line(rates(v), HEAD, rates(v), bottom, "l-grid thin") for v in (0, 0.25, 0.5, 0.75, 1)]
    labels = [text(rates(v), bottom + 14, percent(v), "xs m k") for v in (0, 0.5, 1)]
    return figure(
        WIDTH,
        bottom + 22,
        f"{shown}: number of targets and share of yes",
        text(4, 16, shown, "h"),
        text(counts.start, HEAD - 8, "targets", "s k"),
        text(rates.start, HEAD - 8, "resolved yes", "s k"),
        *grid,
        *labels,
        *(part for i in range(len(found.groups)) for part in _row(found, i, counts, rates)),
    )


def _row(found: Breakdown, i: int, counts: Scale, rates: Scale) -> list[Markup]:
    y, name, n, rate = HEAD + ROW * i, found.groups[i], found.n[i], found.base_rate[i]
    parts = [
        text(4, y + 15, shorten(name, 24), tip=name),
        rect(counts.start, y + 4, counts(n) - counts.start, ROW - 8, "f-a bar", tip=f"{name}: {n} targets"),
        text(counts(n) + 5, y + 15, f"{n:,}", "s k"),
    ]
    if n and math.isfinite(rate):
        low, high = (float(v[0]) for v in wilson_interval([rate], [n]))
        parts.append(line(rates(low), y + ROW / 2, rates(high), y + ROW / 2, "l-b bold"))
        parts.append(mark(rates(rate), y + ROW / 2, 1, tip=f"{name}: {percent(rate)} yes"))
        parts.append(text(WIDTH - 4, y + 15, percent(rate), "s r"))
    return parts
