"""One group of the board as an HTML table."""

from collections.abc import Sequence

from foretell.arena.report.headline import scope
from foretell.arena.report.markup import Markup, element, join
from foretell.arena.report.page import Cell, Head, Line, name, number_cell, table
from foretell.arena.report.ranking import Ranking, Standing, low_is_better
from foretell.arena.report.wording import bracket, difference, number, percent, wording
from foretell.arena.scoreboard import Scoreboard
from foretell.evaluate.intervals import Interval
from foretell.evaluate.significance import Comparison


def board_table(board: Scoreboard, found: Ranking, metrics: Sequence[str]) -> Markup:
    """The board's own metric with its interval first, beside it every other metric that any row has."""
    metrics = [m for m in metrics if m == metrics[0] or any(row.metric(m) is not None for row in found.rows)]
    level = f"{100 * float(board.settings.get('level', 0.95)):g} % interval"
    heads = [
        Head(label="#", numeric=True),
        Head(label="Forecaster"),
        Head(label=wording(metrics[0]).label, numeric=True, tip=f"{wording(metrics[0]).meaning}; with its {level}"),
        Head(label="vs reference", numeric=True, tip=f"minus {board.reference}, on the targets both answered"),
        *(Head(label=wording(m).label, numeric=True, tip=wording(m).meaning) for m in metrics[1:]),
        Head(label="Targets", numeric=True),
        Head(label="Questions", numeric=True),
        Head(label="Answered", numeric=True, tip="share of the group's resolved targets that were forecast"),
    ]
    lines = [_line(row, metrics) for row in found.rows]
    return table(heads, lines, f"{found.title}: {scope(found, board)}")


def _line(row: Standing, metrics: Sequence[str]) -> Line:
    style = " ".join(s for s, on in (("anchor", row.anchor), ("reference", row.reference)) if on)
    tags = [
        element("span", t, class_="tag") for t, on in (("yardstick", row.anchor), ("reference", row.reference)) if on
    ]
    own = wording(metrics[0])
    cells = [
        number_cell("" if row.place is None else str(row.place), row.place),
        Cell(shown=join(name(row.name), *tags), style="name"),
        _with_interval(row.metric(metrics[0]), own.decimals),
        _against(row.difference, own.decimals, low_is_better(metrics[0])),
        *(_estimate(row.metric(m), wording(m).decimals) for m in metrics[1:]),
        number_cell(f"{row.score.n:,}", row.score.n),
        number_cell(f"{row.score.questions:,}", row.score.questions),
        number_cell(percent(row.score.completion), row.score.completion),
    ]
    return Line(cells=cells, style=style or None)


def _estimate(interval: Interval | None, decimals: int) -> Cell:
    if interval is None:
        return number_cell("–", None)
    return number_cell(number(interval.estimate, decimals), interval.estimate)


def _with_interval(interval: Interval | None, decimals: int) -> Cell:
    if interval is None:
        return number_cell("–", None)
    told = bracket(interval.low, interval.high, decimals)
    shown = join(number(interval.estimate, decimals), " ", element("span", told, class_="ci"))
    return number_cell(shown, interval.estimate)


def _against(comparison: Comparison | None, decimals: int, low: bool) -> Cell:
    if comparison is None:
        return number_cell("", None)
    style = ("good" if (comparison.diff < 0) == low else "bad") if comparison.stars else None
    told = bracket(comparison.low, comparison.high, decimals)
    shown = join(
        element("span", difference(comparison, decimals), class_=style), " ", element("span", told, class_="ci")
    )
    return number_cell(shown, comparison.diff)
