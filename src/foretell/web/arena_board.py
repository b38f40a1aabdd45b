"""The page of an arena's board: selected columns, score over time, calibration, categories and lead times."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from statistics import median
from typing import Annotated, Any

import numpy as np
from fastapi import Query

from foretell.arena.status import event_history
from foretell.arena.store import ArenaStore
from foretell.metrics.bootstrap import Interval
from foretell.metrics.metric import METRICS
from foretell.report.arena_report import ArenaReport, event_weights
from foretell.report.charts.calibration import reliability_diagram
from foretell.report.charts.rulers import ShownAnswer, interval_ruler, probability_ruler
from foretell.report.charts.svg import Chart, SeriesStyle, mark, series_styles
from foretell.report.document import study_parts
from foretell.report.markup import Markup, element
from foretell.report.numbers import bracket, difference_text, dollars, interval_ends, number
from foretell.scoring.arena_leaderboard import LEAD_TIMES, MAIN_METRIC, ArenaLeaderboardRow, lead_time_of
from foretell.scoring.arena_table import ArenaEntry
from foretell.scoring.arena_view import ArenaLeaderboard
from foretell.scoring.table import CROWD

MAIN_CHARTS = ("over-time", "lead-time", "category", "cost")
"""Charts shown on their own; the others come further down, as does the last of these if it has hundreds of marks."""
FIRST_ROWS = 50
"""Number of rows shown until the visitor asks for all of them."""
FIRST_COLUMNS = ("brier", "completion", "cost", "events", "seconds")
"""Columns that can be shown before any interval has been computed."""
_MOMENTS_SQL = "select taken_at, closes_at from moment where arena = ? and taken_at is not null"


@dataclass(frozen=True, kw_only=True)
class BoardCell:
    """A cell of the board: a number and the text beside it."""

    text: str
    detail: str = ""
    mark: str = ""
    """CSS class of the text: good, bad."""
    sort_key: str = ""


CellOf = Callable[[ArenaLeaderboard, ArenaLeaderboardRow], BoardCell]


@dataclass(frozen=True, kw_only=True)
class BoardColumn:
    """A column that visitors can select."""

    label: str
    tip: str
    cell: CellOf
    usual: bool = False
    """Whether the column is shown by default."""


METRIC_WORDS: Mapping[str, str] = {
    "brier": "Brier score",
    "adjusted_brier": "Brier score",
    "brier_index": "Brier index",
    "ece": "Calibration error",
    "return": "Return per $1",
}
"""Column headings for readers who do not know the abbreviations."""


def metric_label(name: str) -> str:
    """Return the name of a metric as shown on pages."""
    return METRIC_WORDS.get(name, METRICS[name].label)


def _metric(name: str, *, usual: bool = False) -> BoardColumn:
    metric = METRICS[name]

    def cell(view: ArenaLeaderboard, line: ArenaLeaderboardRow) -> BoardCell:
        one = line.scores.get(name)
        if one is None:
            return BoardCell(text="–")
        interval = bracket(one.low, one.high, metric.decimals)
        return BoardCell(text=number(one.estimate, metric.decimals), detail=interval, sort_key=f"{one.estimate:.6g}")

    return BoardColumn(label=metric_label(name), tip=metric.meaning, cell=cell, usual=usual)


def _fair(view: ArenaLeaderboard, line: ArenaLeaderboardRow) -> BoardCell:
    """Return the Brier score that ranks an entry and, if it was adjusted, the score on what the entry answered."""
    one, own, places = line.fair, line.scores.get(MAIN_METRIC), METRICS[MAIN_METRIC].decimals
    if one is None or own is None:
        return BoardCell(text="–")
    detail = bracket(one.low, one.high, places)
    if abs(one.estimate - own.estimate) > 0.5 * 10**-places:
        detail = f"{detail} · {number(own.estimate, places)} on what it answered".removeprefix(" · ")
    return BoardCell(text=number(one.estimate, places), detail=detail, sort_key=f"{one.estimate:.6g}")


def _against(view: ArenaLeaderboard, line: ArenaLeaderboardRow) -> BoardCell:
    found = view.versus_crowd.get(line.entry.name)
    if found is None:
        return BoardCell(text="the yardstick" if line.entry.name == CROWD else "–")
    tone = {"better": "good", "worse": "bad"}.get(found.says, "")
    detail = f"{found.says} {interval_ends(found, 4, gain=True)}".rstrip()
    return BoardCell(text=difference_text(found, 4, gain=True), detail=detail, mark=tone, sort_key=f"{found.gain:.6g}")


def _plain(value: Callable[[ArenaLeaderboardRow], tuple[float, str]]) -> CellOf:
    def cell(view: ArenaLeaderboard, line: ArenaLeaderboardRow) -> BoardCell:
        found, text = value(line)
        return BoardCell(
            text=text if np.isfinite(found) else "–", sort_key=f"{found:.6g}" if np.isfinite(found) else ""
        )

    return cell


BOARD_COLUMNS: Mapping[str, BoardColumn] = {
    "brier": BoardColumn(
        label=METRIC_WORDS[MAIN_METRIC],
        tip="lower is better; adjusted for what an entry left out, by how hard the market found it",
        cell=_fair,
        usual=True,
    ),
    "market": BoardColumn(
        label="Against the market",
        tip="market minus entry on the markets both answered, paired, two-sided 95 %; above 0 the entry is better",
        cell=_against,
        usual=True,
    ),
    "ece": _metric("ece", usual=True),
    "return": _metric("return", usual=True),
    "completion": BoardColumn(
        label="Completion",
        tip="share of the rounds since it joined that it answered; below half it is not ranked",
        cell=_plain(lambda line: (line.completion, f"{100 * line.completion:.1f} %")),
        usual=True,
    ),
    "cost": BoardColumn(
        label="Cost a forecast",
        tip="mean dollars of a forecast",
        cell=_plain(lambda line: (line.entry.dollars, dollars(line.entry.dollars))),
        usual=True,
    ),
    "events": BoardColumn(
        label="Events",
        tip="settled events that it answered",
        cell=_plain(lambda line: (float(line.events), f"{line.events:,}")),
        usual=True,
    ),
    "brier_index": _metric("brier_index"),
    "log": _metric("log"),
    "net": _metric("net"),
    "sharpe": _metric("sharpe"),
    "seconds": BoardColumn(
        label="Seconds a forecast",
        tip="mean time of a forecast",
        cell=_plain(lambda line: (line.entry.seconds, f"{line.entry.seconds:.1f}")),
    ),
}
"""The columns of the board, keyed by their name in the page address."""


@dataclass(frozen=True, kw_only=True)
class BoardChoice:
    """What to show of a board, as given in the page address."""

    columns: Annotated[tuple[str, ...], Query(max_length=30)] = ()
    """Names of the selected columns; empty for the default ones."""
    entry: Annotated[str, Query(max_length=200)] = ""
    """Name of the entry whose calibration is shown; empty for the leader."""
    every: bool = False
    """Whether to show all rows of a long board."""

    def shown(self) -> dict[str, BoardColumn]:
        """Return the selected columns in the order of the board, ignoring unknown names."""
        chosen = {name: one for name, one in BOARD_COLUMNS.items() if name in self.columns}
        return chosen or {name: one for name, one in BOARD_COLUMNS.items() if one.usual}


@dataclass(frozen=True, kw_only=True)
class BoardRow:
    """A row of the board."""

    name: str
    rank: int | None
    anchor: bool
    unranked: bool
    """Whether the entry answered too little to be ranked."""
    entered: bool
    """Whether it is an entry with forecasts of its own, which has a page."""
    mark: Markup
    ruler: Chart | None
    cells: tuple[BoardCell, ...]


@dataclass(frozen=True, kw_only=True)
class BoardView:
    """Everything the page of a board shows."""

    columns: tuple[BoardColumn, ...]
    rows: tuple[BoardRow, ...]
    view: ArenaLeaderboard
    charts: Mapping[str, Chart] = field(default_factory=dict[str, Chart])
    calibration: Chart | None = None
    calibrated: str = ""
    """Name of the entry whose calibration is shown."""
    names: tuple[str, ...] = ()
    """Names of the entries whose calibration can be selected."""
    ends: tuple[str, str] = ("", "")
    """The scores at both ends of the rulers, as text."""
    parts: Sequence[tuple[str, str, Markup]] = ()
    """Anchor, title and markup of all other sections, which the page shows on request."""


def board_view(report: ArenaReport, choice: BoardChoice) -> BoardView:
    """Build the board with the selected columns and calibration."""
    view, arena = report.view, report.scored.arena
    columns = choice.shown()
    styles = series_styles([entry.name for entry in arena.entries if not entry.anchor])
    study = report.study(pictures=True)
    real = [line.entry.name for line in view.lines if not line.entry.anchor]
    calibrated = choice.entry if choice.entry in arena.names else (real or list(arena.names))[0]
    p = arena.row(calibrated)
    main = MAIN_CHARTS if len(real) <= FIRST_ROWS else MAIN_CHARTS[:-1]
    apart = {one.name: one.chart for one in study.charts if one.name in main}
    rest = tuple(one for one in study.charts if one.name not in (*main, "brier"))
    others = replace(study, tables=study.tables[1:], charts=rest)
    return BoardView(
        columns=tuple(columns.values()),
        rows=_rows(view, choice, columns, styles),
        charts=apart,
        calibration=reliability_diagram(p, arena.markets.outcome, event_weights(arena, p), name=calibrated),
        calibrated=calibrated,
        names=(*real, *(line.entry.name for line in view.lines if line.entry.anchor)),
        ends=_end_texts(view),
        parts=study_parts(others),
        view=view,
    )


def first_board_view(view: ArenaLeaderboard, entries: Sequence[ArenaEntry], choice: BoardChoice) -> BoardView:
    """Build what is known of a board at once: the ranking, with the selected columns that need no interval."""
    columns = {name: one for name, one in choice.shown().items() if name in FIRST_COLUMNS}
    styles = series_styles([entry.name for entry in entries if not entry.anchor])
    return BoardView(columns=tuple(columns.values()), rows=_rows(view, choice, columns, styles), view=view)


def _rows(
    view: ArenaLeaderboard,
    choice: BoardChoice,
    columns: Mapping[str, BoardColumn],
    styles: Mapping[str, SeriesStyle],
) -> tuple[BoardRow, ...]:
    known = series_styles([line.entry.name for line in view.lines], styles)
    main = {line.entry.name: one for line in view.lines if (one := line.fair) is not None}
    ends, market = _ends(list(main.values())), main.get(CROWD)
    rows: list[BoardRow] = []
    for line in view.lines[: None if choice.every else FIRST_ROWS]:
        name = line.entry.name
        drawn = mark(8, 8, known[name])
        own = element(
            "svg", drawn, class_="ft key-mark", viewBox="0 0 16 16", width="16", height="16", aria_hidden="true"
        )
        ruler = (
            interval_ruler(main[name], ends, market.estimate if market else None, known[name]) if name in main else None
        )
        rows.append(
            BoardRow(
                name=name,
                rank=line.rank,
                anchor=line.entry.anchor,
                unranked=not (line.entry.anchor or line.rank) and line.fair is not None,
                entered=line.entry.forecasts > 0,
                mark=own,
                ruler=ruler,
                cells=tuple(column.cell(view, line) for column in columns.values()),
            )
        )
    return tuple(rows)


def _end_texts(view: ArenaLeaderboard) -> tuple[str, str]:
    low, high = _ends([one for line in view.lines if (one := line.fair) is not None])
    return number(max(low, 0.0), 2), number(high, 2)


def _ends(intervals: Sequence[Interval]) -> tuple[float, float]:
    """Return the ends of the rulers: they cover all estimates, with a margin of one median interval width."""
    values = [one.estimate for one in intervals] or [0.0]
    widths = [one.high - one.low for one in intervals if np.isfinite(one.high - one.low)]
    air = float(np.median(widths)) if widths else 0.01
    return max(min(values) - air, 0.0), max(max(values) + air, min(values) + 1e-6)


def board_offer(book: ArenaStore) -> dict[str, list[str]]:
    """Return the categories, platforms and lead times to filter by."""
    rows = book.db.read(
        "select distinct category, platform from listed where arena = ? and decision = 'selected'", (book.arena,)
    )
    hours = [_hours(taken, closes) for taken, closes in book.db.read(_MOMENTS_SQL, (book.arena,))]
    used = set(lead_time_of(np.array(hours, np.float64)).tolist())
    return {
        "categories": sorted({category for category, _ in rows}),
        "platforms": sorted({platform for _, platform in rows}),
        "lead_times": [one.name for place, one in enumerate(LEAD_TIMES) if place in used],
    }


def _hours(taken: str, closes: str | None) -> float:
    if closes is None:
        return float("nan")
    return (datetime.fromisoformat(closes) - datetime.fromisoformat(taken)).total_seconds() / 3600


def arena_stands(book: ArenaStore) -> dict[str, Any]:
    """Return the number of open and of settled events, and when the next forecasts are due."""
    query = """select coalesce(sum(case when settled = 0 and status = 'open' then 1 else 0 end), 0),
        coalesce(sum(settled), 0) from listed where arena = ? and decision = 'selected'"""
    ((still_open, settled),) = book.db.read(query, (book.arena,))
    return {"open": int(still_open), "settled": int(settled), "next": book.moments.next_due()}


def coming_up(book: ArenaStore, most: int = 8) -> list[dict[str, Any]]:
    """Return the open events that close next, with the market's likeliest outcome and the latest forecasts of it."""
    rows = book.db.read(
        """select event, category, closes_at, body from listed where arena = ? and decision = 'selected'
        and settled = 0 and status = 'open' order by coalesce(closes_at, '9'), event limit ?""",
        (book.arena, most),
    )
    return [
        {"id": id, "category": category, "closes_at": closes, "title": json.loads(body)["text"], **_now(book, id)}
        for id, category, closes, body in rows
    ]


def _now(book: ArenaStore, event: str) -> dict[str, Any]:
    history = event_history(book, event)
    prices = {target: found[-1][1] for target, found in history.prices.items() if found}
    target = max(prices or history.prices, key=lambda one: prices.get(one, 0.0))
    last: dict[str, Mapping[str, float]] = {}
    for moment in history.moments:
        last.update(moment.said)
    said = {name: p[target] for name, p in last.items() if target in p and name != CROWD}
    shown = ShownAnswer(
        p=median(said.values()) if said else None, trials=tuple(said.values()), price=prices.get(target)
    )
    return {
        "outcome": history.labels[target] if len(history.prices) > 1 else "",
        "outcomes": len(history.prices),
        "price": prices.get(target),
        "median": shown.p,
        "ruler": probability_ruler(shown),
        "next": next((one.at for one in history.moments if one.state == "planned"), None),
    }
