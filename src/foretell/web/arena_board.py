"""The page of an arena's board: selected columns, score over time, calibration, categories and lead times."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from statistics import median
from typing import Annotated, Any

import numpy as np
from fastapi import Query

from foretell.arena.listing import events_by
from foretell.arena.status import event_history
from foretell.arena.store import ArenaStore
from foretell.frozen import frozen
from foretell.metrics.bootstrap import Interval
from foretell.number_text import number
from foretell.report.arena_report import ARENA_COLUMNS, REBALANCED, ArenaReport, event_weights
from foretell.report.charts.calibration import reliability_diagram
from foretell.report.charts.rulers import ShownAnswer, interval_ruler, probability_ruler
from foretell.report.charts.svg import Chart, SeriesStyle, mark, series_styles
from foretell.report.document import study_parts
from foretell.report.html import HtmlCell, html_cell
from foretell.report.markup import Markup, element
from foretell.report.study import StudyColumn
from foretell.scoring.arena_leaderboard import LEAD_TIMES, MAIN_METRIC, ArenaLeaderboardRow, lead_time_of
from foretell.scoring.arena_table import ArenaEntry
from foretell.scoring.arena_view import ArenaLeaderboard
from foretell.scoring.baselines import MARKET_PRICE
from foretell.scoring.verdict import Verdict

MAIN_CHARTS = ("over-time", "lead-time", "category", "cost")
"""Charts shown on their own; the others come further down, as does the last of these if it has hundreds of marks."""
FIRST_ROWS = 50
"""Number of rows shown until the visitor asks for all of them."""
FIRST_COLUMNS = ("brier", "completion", "cost", "events", "seconds")
"""Columns that can be shown before any interval has been computed."""
COST = "cost"
"""Name of the column and of the chart that say what was spent; strangers see neither."""


def _cell(name: str, view: ArenaLeaderboard, line: ArenaLeaderboardRow) -> HtmlCell:
    """Return a cell; beside the score that ranks an entry stands the one on what it answered, if they differ."""
    column = ARENA_COLUMNS[name]
    value = column.value(view, line)
    cell = html_cell(value, column.shown)
    if isinstance(value, Verdict):
        return cell._replace(detail=f"{value.says} {cell.detail}".rstrip())
    own, places = line.scores.get(MAIN_METRIC), column.shown.decimals
    if name == "brier" and line.fair and own and abs(line.fair.estimate - own.estimate) > 0.5 * 10**-places:
        answered = f"{number(own.estimate, places)} on what it answered"
        return cell._replace(detail=f"{cell.detail} · {answered}".removeprefix(" · "))
    return cell


@frozen
class BoardChoice:
    """What to show of a board, as given in the page address."""

    columns: Annotated[tuple[str, ...], Query(max_length=30)] = ()
    """Names of the selected columns; empty for the default ones."""
    entry: Annotated[str, Query(max_length=200)] = ""
    """Name of the entry whose calibration is shown; empty for the leader."""
    every: bool = False
    """Whether to show all rows of a long board."""

    def shown(self) -> dict[str, StudyColumn]:
        """Return the selected columns in the order of the board, ignoring unknown names."""
        chosen = {name: column.shown for name, column in ARENA_COLUMNS.items() if name in self.columns}
        return chosen or {name: column.shown for name, column in ARENA_COLUMNS.items() if column.default}


@frozen
class BoardRow:
    """A row of the board."""

    name: str
    rank: int | None
    baseline: bool
    unranked: bool
    """Whether the entry answered too little to be ranked."""
    entered: bool
    """Whether it is an entry with forecasts of its own, which has a page."""
    mark: Markup
    ruler: Chart | None
    cells: tuple[HtmlCell, ...]


@frozen
class BoardView:
    """Everything the page of a board shows."""

    columns: tuple[StudyColumn, ...]
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

    def best_by_category(self) -> dict[str, list[tuple[str, int]]]:
        """Return by ranked entry the categories in which its score is best, with their numbers of events."""
        best: dict[str, list[tuple[str, int]]] = {}
        ranked = {line.entry.name for line in self.view.lines if line.rank}
        for group in self.view.groups.get("category", ()):
            scores = {line.entry.name: line.scores.get(MAIN_METRIC) for line in group.lines}
            there = {name: score.estimate for name, score in scores.items() if score is not None and name in ranked}
            if there:
                best.setdefault(min(there, key=lambda name: there[name]), []).append((group.name, group.events))
        return best

    def without_costs(self) -> "BoardView":
        """Return the same without what was spent, for visitors who may not see it."""
        shown = [place for place, column in enumerate(self.columns) if column is not ARENA_COLUMNS[COST].shown]
        return replace(
            self,
            columns=tuple(self.columns[place] for place in shown),
            rows=tuple(replace(row, cells=tuple(row.cells[place] for place in shown)) for row in self.rows),
            charts={name: chart for name, chart in self.charts.items() if name != COST},
            parts=[part for part in self.parts if part[0] != COST],
        )

    def part_groups(self) -> dict[str, list[tuple[str, str]]]:
        """Return anchor and title of these sections by what they divide the events by."""
        groups: dict[str, list[tuple[str, str]]] = {"All events": []}
        for anchor, title, _ in self.parts:
            by = "category" if title == REBALANCED else title.rpartition(" by ")[2]
            groups.setdefault("All events" if by == title else f"By {by}", []).append((anchor, title))
        return groups


def board_view(report: ArenaReport, choice: BoardChoice) -> BoardView:
    """Build the board with the selected columns and calibration."""
    view, arena = report.view, report.scored.arena
    columns = choice.shown()
    styles = series_styles([entry.name for entry in arena.entries if not entry.baseline])
    study = report.study(pictures=True)
    real = [line.entry.name for line in view.lines if not line.entry.baseline]
    calibrated = choice.entry if choice.entry in arena.names else (real or list(arena.names))[0]
    p = arena.row(calibrated)
    main = MAIN_CHARTS if len(real) <= FIRST_ROWS else MAIN_CHARTS[:-1]
    apart = {chart.name: chart.chart for chart in study.charts if chart.name in main}
    rest = tuple(chart for chart in study.charts if chart.name not in (*main, "brier"))
    others = replace(study, tables=study.tables[1:], charts=rest)
    return BoardView(
        columns=tuple(columns.values()),
        rows=_rows(view, choice, columns, styles),
        charts=apart,
        calibration=reliability_diagram(p, arena.markets.outcome, event_weights(arena, p), name=calibrated),
        calibrated=calibrated,
        names=(*real, *(line.entry.name for line in view.lines if line.entry.baseline)),
        ends=_end_texts(view),
        parts=study_parts(others),
        view=view,
    )


def first_board_view(view: ArenaLeaderboard, entries: Sequence[ArenaEntry], choice: BoardChoice) -> BoardView:
    """Build what is known of a board at once: the ranking, with the selected columns that need no interval."""
    columns = {name: column for name, column in choice.shown().items() if name in FIRST_COLUMNS}
    styles = series_styles([entry.name for entry in entries if not entry.baseline])
    return BoardView(columns=tuple(columns.values()), rows=_rows(view, choice, columns, styles), view=view)


def _rows(
    view: ArenaLeaderboard,
    choice: BoardChoice,
    columns: Iterable[str],
    styles: Mapping[str, SeriesStyle],
) -> tuple[BoardRow, ...]:
    line_styles = series_styles([line.entry.name for line in view.lines], styles)
    main = {line.entry.name: fair for line in view.lines if (fair := line.fair) is not None}
    ends, market = _ends(list(main.values())), main.get(MARKET_PRICE)
    rows: list[BoardRow] = []
    for line in view.lines[: None if choice.every else FIRST_ROWS]:
        name = line.entry.name
        drawn = mark(8, 8, line_styles[name])
        own = element(
            "svg", drawn, class_="ft key-mark", viewBox="0 0 16 16", width="16", height="16", aria_hidden="true"
        )
        ruler = (
            interval_ruler(main[name], ends, market.estimate if market else None, line_styles[name])
            if name in main
            else None
        )
        rows.append(
            BoardRow(
                name=name,
                rank=line.rank,
                baseline=line.entry.baseline,
                unranked=not (line.entry.baseline or line.rank) and line.fair is not None,
                entered=line.entry.forecasts > 0,
                mark=own,
                ruler=ruler,
                cells=tuple(_cell(column, view, line) for column in columns),
            )
        )
    return tuple(rows)


def _end_texts(view: ArenaLeaderboard) -> tuple[str, str]:
    low, high = _ends([fair for line in view.lines if (fair := line.fair) is not None])
    return number(max(low, 0.0), 2), number(high, 2)


def _ends(intervals: Sequence[Interval]) -> tuple[float, float]:
    """Return the ends of the rulers: they cover all estimates, with a margin of one median interval width."""
    values = [interval.estimate for interval in intervals] or [0.0]
    widths = [interval.high - interval.low for interval in intervals if np.isfinite(interval.high - interval.low)]
    margin = float(np.median(widths)) if widths else 0.01
    return max(min(values) - margin, 0.0), max(max(values) + margin, min(values) + 1e-6)


def filter_values(store: ArenaStore) -> dict[str, list[str]]:
    """Return the categories, platforms and lead times to filter by."""
    used = set(lead_time_of(np.array(store.forecast_times.hours_to_close(), np.float64)).tolist())
    return {
        "categories": list(events_by(store, "category")),
        "platforms": list(events_by(store, "platform")),
        "lead_times": [lead_time.name for place, lead_time in enumerate(LEAD_TIMES) if place in used],
    }


def coming_up(store: ArenaStore, most: int = 8) -> list[dict[str, Any]]:
    """Return the open events that close next, with the market's likeliest outcome and the latest forecasts of it."""
    return [{"row": row, **_now(store, row.event)} for row in store.closing_next(most)]


def _now(store: ArenaStore, event: str) -> dict[str, Any]:
    history = event_history(store, event)
    prices = {target: points[-1][1] for target, points in history.prices.items() if points}
    target = max(prices or history.prices, key=lambda price: prices.get(price, 0.0))
    last: dict[str, Mapping[str, float]] = {}
    for forecast_time in history.forecast_times:
        last.update(forecast_time.said)
    latest = {name: p[target] for name, p in last.items() if target in p and name != MARKET_PRICE}
    answer = ShownAnswer(
        p=median(latest.values()) if latest else None, trials=tuple(latest.values()), price=prices.get(target)
    )
    return {
        "outcome": history.labels[target] if len(history.prices) > 1 else "",
        "outcomes": len(history.prices),
        "price": prices.get(target),
        "median": answer.p,
        "ruler": probability_ruler(answer),
        "next": next(
            (forecast_time.at for forecast_time in history.forecast_times if forecast_time.state == "planned"), None
        ),
    }
