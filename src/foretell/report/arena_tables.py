"""The tables of an arena's leaderboard, ready to print and to put on a page."""

from collections.abc import Iterator, Mapping, Sequence

from foretell.metrics.bootstrap import Interval
from foretell.metrics.comparison import Comparison
from foretell.metrics.metric import METRICS
from foretell.report.headline import flip_comparison
from foretell.report.numbers import percent
from foretell.report.study import CellValue, RowStyle, StudyColumn, StudyRow, StudyTable
from foretell.scoring.arena_leaderboard import (
    ARENA_METRICS,
    ArenaLeaderboardGroup,
    ArenaLeaderboardRow,
    RebalancedScores,
)
from foretell.scoring.arena_view import ArenaLeaderboard, LeadTimeCurve

ACCURACY = ("ece", "bi", "log")
MONEY = ("return0", "return0.5", "return1", "net0", "net0.5", "net1", "sharpe", "yes_side", "no_side")
AGAINST_CROWD = StudyColumn(
    label="crowd − entry",
    decimals=4,
    tip="paired difference of Brier scores on the markets both have a probability for; above 0 the entry is better",
)


def arena_grids(view: ArenaLeaderboard) -> tuple[StudyTable, ...]:
    """All tables, the leaderboard first."""
    found = [_leaderboard(view), _accuracy(view), _money(view), _by_market(view)]
    for by, groups in view.groups.items():
        found += _groups(by, groups, view)
    found += [_rebalanced(view.rebalanced, view)] if view.rebalanced else []
    found += [_lead_times(view.lead_times)] if view.lead_times.points else []
    return tuple(found)


def _leaderboard(view: ArenaLeaderboard) -> StudyTable:
    columns = (
        StudyColumn(label="#", decimals=0),
        _measure_column("brier"),
        AGAINST_CROWD,
        StudyColumn(label="events", decimals=0),
        StudyColumn(label="answered", numeric=True, tip="share of the moments that were answered"),
        StudyColumn(label="$", decimals=4, tip="mean cost of a forecast"),
    )
    entries = [
        StudyRow(
            name=line.entry.name,
            style=style(line),
            values=(
                line.rank,
                line.scores.get("brier"),
                _against(view.versus_crowd, line),
                line.events,
                percent(line.completion),
                line.entry.dollars,
            ),
        )
        for line in view.lines
    ]
    caption = f"{view.settings['moments mean']}; markets of an event weigh 1/m each. 95 % intervals, events resampled."
    return StudyTable(
        title="Leaderboard", row_header="Entry", columns=columns, rows=tuple(entries), caption=_upper(caption)
    )


def _accuracy(view: ArenaLeaderboard) -> StudyTable:
    columns = (
        *(_measure_column(name) for name in ACCURACY),
        StudyColumn(label="moments", decimals=0),
        StudyColumn(label="markets", decimals=0, tip="single probabilities, once for every moment"),
        StudyColumn(label="s", decimals=1, tip="mean seconds of a forecast"),
    )
    return StudyTable(
        title="Calibration and other scores",
        row_header="Entry",
        columns=columns,
        rows=tuple(
            StudyRow(
                name=line.entry.name,
                style=style(line),
                values=(
                    *(line.scores.get(name) for name in ACCURACY),
                    line.moments,
                    line.markets,
                    line.entry.seconds,
                ),
            )
            for line in view.lines
        ),
        caption="Weighed as in the leaderboard.",
    )


def _money(view: ArenaLeaderboard) -> StudyTable:
    return StudyTable(
        title="Betting against the market",
        row_header="Entry",
        columns=tuple(_measure_column(name) for name in MONEY),
        rows=tuple(_entry(line, line.scores, MONEY) for line in view.lines),
        caption="Worth of a dollar per market after resolution, 1 is break-even; an event counts once. All money is "
        "bet, also where there is no edge, and ties buy Yes: so the crowd's own row is that of buying Yes everywhere.",
    )


def _by_market(view: ArenaLeaderboard) -> StudyTable:
    names = ("brier", "ece", "return0", "return0.5", "return1", "net0", "sharpe")
    return StudyTable(
        title="The same with every market counting once",
        row_header="Entry",
        columns=(*(_measure_column(name) for name in names), StudyColumn(label="markets", decimals=0)),
        rows=tuple(
            StudyRow(
                name=line.entry.name,
                style=style(line),
                values=(*(line.by_market.get(name) for name in names), line.markets),
            )
            for line in view.lines
        ),
        caption="An event with many markets counts as often as it has them: the paper's calibration error and return.",
    )


def _groups(by: str, groups: Sequence[ArenaLeaderboardGroup], view: ArenaLeaderboard) -> Iterator[StudyTable]:
    measures = [name for name in ARENA_METRICS if any(name in line.scores for group in groups for line in group.lines)]
    for name in measures:
        columns = [
            StudyColumn(label=f"{group.name} ({group.events})", decimals=METRICS[name].decimals) for group in groups
        ]
        scores = [{line.entry.name: line.scores.get(name) for line in group.lines} for group in groups]
        yield StudyTable(
            title=f"{METRICS[name].label} by {by}",
            row_header="Entry",
            columns=tuple(columns),
            rows=tuple(
                StudyRow(
                    name=line.entry.name,
                    style=style(line),
                    values=tuple(column.get(line.entry.name) for column in scores),
                )
                for line in view.lines
            ),
            caption=f"{_upper(METRICS[name].meaning)}. In brackets after the name: events.",
        )


def _rebalanced(found: Sequence[RebalancedScores], view: ArenaLeaderboard) -> StudyTable:
    return StudyTable(
        title="Brier score with other shares of the categories",
        row_header="Entry",
        columns=(
            StudyColumn(label="as they came", decimals=3),
            *(StudyColumn(label=one.name, decimals=3) for one in found),
        ),
        rows=tuple(
            StudyRow(
                name=line.entry.name,
                style=style(line),
                values=(line.scores.get("brier"), *(one.scores.get(line.entry.name) for one in found)),
            )
            for line in view.lines
        ),
        caption="; ".join(
            f"{one.name}: " + ", ".join(f"{name} {share:.0%}" for name, share in one.shares.items()) for one in found
        )
        + ". Every event is kept and categories are weighed.",
    )


def _lead_times(curve: LeadTimeCurve) -> StudyTable:
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


def _entry(line: ArenaLeaderboardRow, scores: Mapping[str, Interval], names: Sequence[str]) -> StudyRow:
    return StudyRow(name=line.entry.name, style=style(line), values=tuple(scores.get(name) for name in names))


def _measure_column(name: str) -> StudyColumn:
    one = METRICS[name]
    return StudyColumn(label=one.label, decimals=one.decimals, tip=one.meaning)


def _against(versus: Mapping[str, Comparison], line: ArenaLeaderboardRow) -> CellValue:
    found = versus.get(line.entry.name)
    return None if found is None else flip_comparison(found)


def style(line: ArenaLeaderboardRow) -> RowStyle:
    """Baselines are marked."""
    return "anchor" if line.entry.anchor else ""


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]
