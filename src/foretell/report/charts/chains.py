"""The band of a chain: how likely it is that every condition so far has held."""

from collections.abc import Sequence
from itertools import pairwise

from foretell.frozen import frozen
from foretell.number_text import brief_percent, signed
from foretell.report.charts.svg import NARROW, WIDE, Chart, ChartScale, figure, line, rect, responsive, text
from foretell.report.markup import Markup

TOP, BOTTOM = 44.0, 124.0
"""Where the band is at 100 % and at 0."""
DROP = 0.55
"""Share of a column after which the band falls."""
LETTER = 5.4
"""Approximate width of a letter of the claims."""
SMALLEST_NAMED = 0.1
"""Smallest fall that has room for its number."""


@frozen
class ChainCondition:
    """One condition of a chain."""

    id: str
    claim: str
    chance: float
    """Chance that it holds if the earlier ones have."""
    so_far: float
    """Chance that it and all earlier ones hold."""


def chain_plot(links: Sequence[ChainCondition], total: float) -> Chart:
    """Draw the chance that all conditions so far have held as a band that narrows at each, and the claim at its end."""
    return responsive(*(_chain(links, total, width) for width in (WIDE, NARROW)))


def _chain(links: Sequence[ChainCondition], total: float, width: float) -> Chart:
    narrow = width == NARROW
    left, right = (6.0, width - 62.0) if narrow else (46.0, width - 110.0)
    column = (right - left) / len(links)
    y = ChartScale(low=0, high=1, start=BOTTOM, stop=TOP)
    parts: list[Markup] = []
    for p in () if narrow else (0.0, 0.5, 1.0):
        parts += [text(left - 6, y(p) + 4, f"{100 * p:.0f} %", "s r k"), line(left, y(p), right, y(p), "l-grid thin")]
    befores = [1.0, *(link.so_far for link in links)]
    for place, (link, (before, after)) in enumerate(zip(links, pairwise(befores), strict=True)):
        start = left + place * column
        falls = start + DROP * column
        words = f"{link.id} {brief_percent(link.chance)}, all so far {brief_percent(after)}: {link.claim}"
        parts += [
            rect(start, y(before), DROP * column, BOTTOM - y(before), "f-a soft", tip=words),
            rect(falls, y(after), (1 - DROP) * column, BOTTOM - y(after), "f-a soft", tip=words),
            rect(falls, y(before), (1 - DROP) * column, y(after) - y(before), "f-b soft", tip=words),
            text(start + 2, 14, link.id, "s w f-a"),
        ]
        if not narrow:
            letters = int(column / LETTER)
            claim = link.claim if len(link.claim) <= letters else f"{link.claim[: letters - 1].rstrip()}…"
            parts.append(text(start + 2, 30, claim, "xs", tip=link.claim))
            if before - after >= SMALLEST_NAMED:
                lost = signed(100 * (after - before), 0)
                parts.append(text(falls + 4, y((before + after) / 2) + 4, lost, "s f-b"))
        word = "" if place == 0 or narrow else "then "
        parts.append(text(start + 2, BOTTOM + 16, f"{word}{brief_percent(link.chance)}", "s w f-a"))
    parts.append(
        text(right + 8, y(links[-1].so_far) - 4 if links[-1].so_far < 0.8 else TOP + 16, brief_percent(total), "w f-a")
    )
    title = "; ".join(f"{link.id} {brief_percent(link.chance)}" for link in links)
    rows = [{"claim": link.id, "chance": link.chance, "so far": link.so_far, "text": link.claim} for link in links]
    return figure(
        width, BOTTOM + 26, f"Conditions in sequence: {title}; the claim {brief_percent(total)}", *parts, rows=rows
    )
