"""The tables of an arena's leaderboard, ready to print and to put on a page."""

from collections.abc import Callable, Iterable

from foretell.metrics.metric import METRICS
from foretell.report.headline import flip_comparison
from foretell.report.numbers import CellValue, percent
from foretell.report.study import StudyColumn, StudyRow, StudyTable
from foretell.scoring.arena_leaderboard import ARENA_METRICS, ArenaLeaderboardGroup, ArenaLeaderboardRow
from foretell.scoring.arena_view import ArenaLeaderboard

ACCURACY = ("ece", "bi", "log")
MONEY = ("return0", "return0.5", "return1", "net0", "net0.5", "net1", "sharpe", "yes_side", "no_side")
BY_MARKET = ("brier", "ece", "return0", "return0.5", "return1", "net0", "sharpe")
Column = tuple[StudyColumn, Callable[[ArenaLeaderboardRow], CellValue]]
"""A column and what it shows of an entry."""


def arena_grids(view: ArenaLeaderboard) -> tuple[StudyTable, ...]:
    """All tables, the leaderboard first."""
    weighing = f"{_upper(view.settings['moments mean'])}; markets of an event weigh 1/m each."
    found = [
        _table(view, "Leaderboard", _leaderboard(view), f"{weighing} 95 % intervals, events resampled."),
        _table(view, "Calibration and other scores", _accuracy(), "Weighed as in the leaderboard."),
        _table(
            view,
            "Betting against the market",
            map(_metric, MONEY),
            "Worth of a dollar per market after resolution, 1 is break-even; an event counts once. All money is bet, "
            "also where there is no edge, and ties buy Yes: so the crowd's own row is that of buying Yes everywhere.",
        ),
        _table(
            view,
            "The same with every market counting once",
            [*(_metric(name, by_market=True) for name in BY_MARKET), _markets("")],
            "An event with many markets counts as often as it has them: the paper's calibration error and return.",
        ),
    ]
    for by, groups in view.groups.items():
        there = {metric for group in groups for line in group.lines for metric in line.scores}
        for metric in (METRICS[name] for name in ARENA_METRICS if name in there):
            columns = [_group(group, metric.name) for group in groups]
            caption = f"{_upper(metric.meaning)}. In brackets after the name: events."
            found.append(_table(view, f"{metric.label} by {by}", columns, caption))
    found += [_rebalanced(view)] if view.rebalanced else []
    return (*found, *([_lead_times(view)] if view.lead_times.points else []))


def _table(view: ArenaLeaderboard, title: str, columns: Iterable[Column], caption: str) -> StudyTable:
    """A table with a row for every entry, baselines marked."""
    columns = tuple(columns)
    rows = [
        StudyRow(
            name=line.entry.name,
            style="anchor" if line.entry.anchor else "",
            values=tuple(value(line) for _, value in columns),
        )
        for line in view.lines
    ]
    shown = tuple(column for column, _ in columns)
    return StudyTable(title=title, row_header="Entry", columns=shown, rows=tuple(rows), caption=caption)


def _leaderboard(view: ArenaLeaderboard) -> list[Column]:
    def against(line: ArenaLeaderboardRow) -> CellValue:
        found = view.versus_crowd.get(line.entry.name)
        return None if found is None else flip_comparison(found)

    tip = "paired difference of Brier scores on the markets both have a probability for; above 0 the entry is better"
    return [
        (StudyColumn(label="#", decimals=0), lambda line: line.rank),
        _metric("brier"),
        (StudyColumn(label="crowd − entry", decimals=4, tip=tip), against),
        (StudyColumn(label="events", decimals=0), lambda line: line.events),
        (
            StudyColumn(label="answered", tip="share of the moments that were answered"),
            lambda line: percent(line.completion),
        ),
        (StudyColumn(label="$", decimals=4, tip="mean cost of a forecast"), lambda line: line.entry.dollars),
    ]


def _accuracy() -> list[Column]:
    return [
        *map(_metric, ACCURACY),
        (StudyColumn(label="moments", decimals=0), lambda line: line.moments),
        _markets("single probabilities, once for every moment"),
        (StudyColumn(label="s", decimals=1, tip="mean seconds of a forecast"), lambda line: line.entry.seconds),
    ]


def _metric(name: str, *, by_market: bool = False) -> Column:
    one = METRICS[name]
    column = StudyColumn(label=one.label, decimals=one.decimals, tip=one.meaning)
    return column, lambda line: (line.by_market if by_market else line.scores).get(name)


def _markets(tip: str) -> Column:
    return StudyColumn(label="markets", decimals=0, tip=tip), lambda line: line.markets


def _group(group: ArenaLeaderboardGroup, metric: str) -> Column:
    scores = {line.entry.name: line.scores.get(metric) for line in group.lines}
    column = StudyColumn(label=f"{group.name} ({group.events})", decimals=METRICS[metric].decimals)
    return column, lambda line: scores.get(line.entry.name)


def _rebalanced(view: ArenaLeaderboard) -> StudyTable:
    columns: list[Column] = [(StudyColumn(label="as they came", decimals=3), lambda line: line.scores.get("brier"))]
    shares: list[str] = []
    for one in view.rebalanced:
        scores = one.scores
        columns.append(
            (StudyColumn(label=one.name, decimals=3), lambda line, scores=scores: scores.get(line.entry.name))
        )
        shares.append(f"{one.name}: " + ", ".join(f"{name} {share:.0%}" for name, share in one.shares.items()))
    caption = f"{'; '.join(shares)}. Every event is kept and categories are weighed."
    return _table(view, "Brier score with other shares of the categories", columns, caption)


def _lead_times(view: ArenaLeaderboard) -> StudyTable:
    curve = view.lead_times
    left = f" Left out, having answered too little: {', '.join(curve.left_out)}." if curve.left_out else ""
    return StudyTable(
        title="Brier score by time to close",
        row_header="Entry",
        columns=tuple(StudyColumn(label=f"{point.lead_time} ({point.events})", decimals=3) for point in curve.points),
        rows=tuple(
            StudyRow(name=name, values=tuple(point.scores.get(name) for point in curve.points))
            for name in curve.entries
        ),
        caption="Within a column all rows are scored on the same markets; columns hold different events." + left,
    )


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]
