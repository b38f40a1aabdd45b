"""The tables of a standings view, ready to print and to put on a page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from foretell.arena.standings.board import Group, Line, Rebalanced
from foretell.arena.standings.curves import LeadTimeCurve
from foretell.arena.standings.measures import MEASURES
from foretell.arena.standings.view import StandingsView
from foretell.arena.study import Column, Entry, Grid, Style, Value
from foretell.evaluate.intervals import Interval
from foretell.evaluate.significance import Comparison

ACCURACY = ("ece", "bi", "log")
MONEY = ("return0", "return0.5", "return1", "net0", "net0.5", "net1", "sharpe", "yes_side", "no_side")
AGAINST = Column(
    label="crowd − entry",
    decimals=4,
    tip="paired difference of Brier scores on the markets both have a probability for; above 0 the entry is better",
)


def grids(view: StandingsView) -> tuple[Grid, ...]:
    """All tables, the leaderboard first."""
    found = [_leaderboard(view), _accuracy(view), _money(view), _by_market(view)]
    for by, groups in view.groups.items():
        found += _groups(by, groups, view)
    found += [_rebalanced(view.rebalanced, view)] if view.rebalanced else []
    found += [_lead_times(view.lead_times)] if view.lead_times.points else []
    return tuple(found)


def flipped(comparison: Comparison) -> Comparison:
    """The other side minus this one: above 0 where a lower score is the better one."""
    return replace(comparison, diff=-comparison.diff, low=-comparison.high, high=-comparison.low)


def _leaderboard(view: StandingsView) -> Grid:
    columns = (
        Column(label="#", decimals=0),
        _measure_column("brier"),
        AGAINST,
        Column(label="events", decimals=0),
        Column(label="answered", numeric=True, tip="share of the moments that were answered"),
        Column(label="$", decimals=4, tip="mean cost of a forecast"),
    )
    entries = [
        Entry(
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
    return Grid(title="Leaderboard", head="Entry", columns=columns, entries=tuple(entries), caption=_upper(caption))


def _accuracy(view: StandingsView) -> Grid:
    columns = (
        *(_measure_column(name) for name in ACCURACY),
        Column(label="moments", decimals=0),
        Column(label="markets", decimals=0, tip="single probabilities, once for every moment"),
        Column(label="s", decimals=1, tip="mean seconds of a forecast"),
    )
    return Grid(
        title="Calibration and other scores",
        head="Entry",
        columns=columns,
        entries=tuple(
            Entry(
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


def _money(view: StandingsView) -> Grid:
    return Grid(
        title="Betting against the market",
        head="Entry",
        columns=tuple(_measure_column(name) for name in MONEY),
        entries=tuple(_entry(line, line.scores, MONEY) for line in view.lines),
        caption="Worth of a dollar per market after resolution, 1 is break-even; an event counts once. All money is "
        "bet, also where there is no edge, and ties buy Yes: so the crowd's own row is that of buying Yes everywhere.",
    )


def _by_market(view: StandingsView) -> Grid:
    names = ("brier", "ece", "return0", "return0.5", "return1", "net0", "sharpe")
    return Grid(
        title="The same with every market counting once",
        head="Entry",
        columns=(*(_measure_column(name) for name in names), Column(label="markets", decimals=0)),
        entries=tuple(
            Entry(
                name=line.entry.name,
                style=style(line),
                values=(*(line.by_market.get(name) for name in names), line.markets),
            )
            for line in view.lines
        ),
        caption="An event with many markets counts as often as it has them: the paper's calibration error and return.",
    )


def _groups(by: str, groups: Sequence[Group], view: StandingsView) -> Iterator[Grid]:
    measures = [name for name in MEASURES if any(name in line.scores for group in groups for line in group.lines)]
    for name in measures:
        columns = [Column(label=f"{group.name} ({group.events})", decimals=MEASURES[name].decimals) for group in groups]
        scores = [{line.entry.name: line.scores.get(name) for line in group.lines} for group in groups]
        yield Grid(
            title=f"{MEASURES[name].label} by {by}",
            head="Entry",
            columns=tuple(columns),
            entries=tuple(
                Entry(
                    name=line.entry.name,
                    style=style(line),
                    values=tuple(column.get(line.entry.name) for column in scores),
                )
                for line in view.lines
            ),
            caption=f"{_upper(MEASURES[name].meaning)}. In brackets after the name: events.",
        )


def _rebalanced(found: Sequence[Rebalanced], view: StandingsView) -> Grid:
    return Grid(
        title="Brier score with other shares of the categories",
        head="Entry",
        columns=(Column(label="as they came", decimals=3), *(Column(label=one.name, decimals=3) for one in found)),
        entries=tuple(
            Entry(
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


def _lead_times(curve: LeadTimeCurve) -> Grid:
    left = f" Left out, having answered too little: {', '.join(curve.left_out)}." if curve.left_out else ""
    return Grid(
        title="Brier score by time to close",
        head="Entry",
        columns=tuple(Column(label=f"{point.lead_time} ({point.events})", decimals=3) for point in curve.points),
        entries=tuple(
            Entry(name=name, values=tuple(point.scores.get(name) for point in curve.points)) for name in curve.entries
        ),
        caption="Within a column all rows are scored on the same markets; columns hold different events." + left,
    )


def _entry(line: Line, scores: Mapping[str, Interval], names: Sequence[str]) -> Entry:
    return Entry(name=line.entry.name, style=style(line), values=tuple(scores.get(name) for name in names))


def _measure_column(name: str) -> Column:
    one = MEASURES[name]
    return Column(label=one.label, decimals=one.decimals, tip=one.meaning)


def _against(versus: Mapping[str, Comparison], line: Line) -> Value:
    found = versus.get(line.entry.name)
    return None if found is None else flipped(found)


def style(line: Line) -> Style:
    """Yardsticks are marked."""
    return "anchor" if line.entry.anchor else ""


def percent(share: float) -> str:
    """A share in whole percents, never rounded to all or nothing."""
    from foretell.arena.report.wording import percent as told

    return told(share)


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]
