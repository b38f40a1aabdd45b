"""The leaderboard of an arena in the terminal, as JSON and as one web page."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from foretell.frozen import frozen
from foretell.interface import suggesting
from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Interval
from foretell.metrics.metric import METRICS
from foretell.number_text import percent, plural
from foretell.python_calls import python_errors
from foretell.questions.codec import plain_data
from foretell.questions.errors import InputError
from foretell.questions.field_checks import check_arguments
from foretell.report.charts.calibration import conservatism_plot, reliability_diagram
from foretell.report.charts.groups import distance_heatmap, score_by_group, verdict_heatmap
from foretell.report.charts.ranking import ForestRow, FrontierPoint, forest_plot, frontier
from foretell.report.charts.svg import Chart, SeriesStyle, series_styles
from foretell.report.charts.timelines import DatedLines, dated_plot
from foretell.report.numbers import CellValue, half_text
from foretell.report.provenance import call_text, current_command, running_command
from foretell.report.study import RowStyle, StudyChart, StudyColumn, StudyTable, cell_number, column, count, table
from foretell.report.study_result import StudyResult
from foretell.report.terminal import console
from foretell.scoring.arena_leaderboard import (
    ARENA_METRICS,
    INDEX,
    MAIN_METRIC,
    ArenaLeaderboardGroup,
    ArenaLeaderboardRow,
    ScoredArena,
    divergence,
    read_shares,
)
from foretell.scoring.arena_table import ArenaTable, arena_table_from_prophet_arena
from foretell.scoring.arena_view import ArenaLeaderboard, Course, scores_over_time, view_of_scored
from foretell.scoring.baselines import ALWAYS_HALF, BASE_RATE, MARKET_PRICE
from foretell.scoring.bootstrap_options import BootstrapOptions, read_bootstrap
from foretell.scoring.breakdown import Breakdown
from foretell.scoring.verdict import Finding, Verdict

if TYPE_CHECKING:
    from rich.console import Console


# The tables of an arena's leaderboard, ready to print and to put on a page.


@frozen
class ArenaColumn:
    """A column of an arena's tables: its heading, meaning and format, and how its value is found."""

    shown: StudyColumn
    value: Callable[[ArenaLeaderboard, ArenaLeaderboardRow], CellValue]
    default: bool = False
    """Whether the page of the board shows it unless other columns are chosen."""


def _score(name: str, *, default: bool = False) -> ArenaColumn:
    metric = ARENA_METRICS[name]
    shown = StudyColumn(label=metric.label, tip=metric.meaning, decimals=metric.decimals, unit=metric.unit)
    return ArenaColumn(shown=shown, value=lambda view, line: line.scores.get(name), default=default)


ARENA_COLUMNS: Mapping[str, ArenaColumn] = {
    "brier": ArenaColumn(
        shown=column(
            "Brier",
            "lower is better; adjusted for the difficulty, to the market, of what an entry left out",
            METRICS[MAIN_METRIC].decimals,
        ),
        value=lambda view, line: line.fair,
        default=True,
    ),
    "market": ArenaColumn(
        shown=StudyColumn(
            label="market − entry",
            tip="market minus entry on the markets both answered, paired, two-sided 95 %; above 0 the entry is better",
            decimals=4,
            gain=True,
        ),
        value=lambda view, line: view.versus_market.get(line.entry.name),
        default=True,
    ),
    "ece": _score("ece", default=True),
    "return": _score("return", default=True),
    "completion": ArenaColumn(
        shown=StudyColumn(
            label="answered",
            tip="share of the rounds since it joined that it answered; below half it is not ranked",
            unit="percent",
        ),
        value=lambda view, line: line.completion,
        default=True,
    ),
    "cost": ArenaColumn(
        shown=StudyColumn(label="$", tip="mean cost of a forecast in dollars", unit="dollars"),
        value=lambda view, line: line.entry.dollars,
        default=True,
    ),
    "events": ArenaColumn(
        shown=count("events", "settled events that it answered"), value=lambda view, line: line.events, default=True
    ),
    **{name: _score(name) for name in ARENA_METRICS if name not in ("brier", "ece", "return")},
    INDEX: ArenaColumn(shown=_score(INDEX).shown, value=lambda view, line: line.fair_index),
    "forecast_times": ArenaColumn(
        shown=count("times", "forecast times answered"), value=lambda view, line: line.forecast_times
    ),
    "markets": ArenaColumn(
        shown=count("markets", "single probabilities, once for every forecast time"),
        value=lambda view, line: line.markets,
    ),
    "seconds": ArenaColumn(
        shown=column("s", "mean seconds of a forecast"), value=lambda view, line: line.entry.seconds
    ),
}
"""The columns by name, for the terminal, pages, addresses and files alike."""
BOARD = ("brier", "market", "events", "completion", "cost")
ACCURACY = ("ece", "brier_index", "log", "forecast_times", "markets", "seconds")
MONEY = tuple(name for name in ARENA_METRICS if name not in ("brier", *ACCURACY))
BY_MARKET = ("brier", "ece", "return", "return_gamma0.5", "return_gamma1", "net", "sharpe")


def arena_grids(view: ArenaLeaderboard) -> tuple[StudyTable, ...]:
    """All tables, the leaderboard first."""
    weighing = f"{_upper(view.settings['weighing'])}; each of the m markets of an event has weight 1/m."
    level = f"{100 * view.settings['level']:g} %"
    rank = ArenaColumn(shown=count("#"), value=lambda view, line: line.rank)
    tables = [
        _table(view, "Leaderboard", [rank, *_named(BOARD)], f"{weighing} {level} intervals, events resampled."),
        _table(view, "Calibration and other scores", _named(ACCURACY), "Weighted as in the leaderboard."),
        _table(
            view,
            "Betting against the market",
            _named(MONEY),
            "Worth of a dollar per market after resolution, 1 is break-even; an event counts once. All money is bet, "
            "even without an edge, and ties buy Yes, so the row of the market price always buys Yes.",
        ),
        _table(
            view,
            "The same with every market counting once",
            [*map(_by_market, BY_MARKET), ARENA_COLUMNS["markets"]],
            "An event counts as often as it has markets, as in the paper's calibration error and return.",
        ),
    ]
    for by, groups in view.groups.items():
        there = {metric for group in groups for line in group.lines for metric in line.scores}
        for metric in (metric for name, metric in ARENA_METRICS.items() if name in there):
            columns = [_group(group, metric.name) for group in groups]
            caption = f"{_upper(metric.meaning)}. In brackets after the name: events."
            tables.append(_table(view, f"{metric.label} by {by}", columns, caption))
    tables += [_rebalanced(view)] if view.rebalanced else []
    return (*tables, *([_lead_time_table(view)] if view.lead_times.points else []))


def _named(names: Iterable[str]) -> list[ArenaColumn]:
    return [ARENA_COLUMNS[name] for name in names]


def _table(view: ArenaLeaderboard, title: str, columns: Sequence[ArenaColumn], caption: str) -> StudyTable:
    """Build a table with a row for every entry; baselines are marked."""
    rows = [(line.entry.name, [column.value(view, line) for column in columns]) for line in view.lines]
    styles: dict[str, RowStyle] = {line.entry.name: "baseline" for line in view.lines if line.entry.baseline}
    return table(
        title, "Entry", [column.shown for column in columns], rows, caption=caption, styles=styles, correct=False
    )


def _by_market(name: str) -> ArenaColumn:
    return ArenaColumn(shown=_score(name).shown, value=lambda view, line: line.by_market.get(name))


def _group(group: ArenaLeaderboardGroup, metric: str) -> ArenaColumn:
    scores = {line.entry.name: line.scores.get(metric) for line in group.lines}
    shown = column(f"{group.name} ({group.events})", decimals=ARENA_METRICS[metric].decimals)
    return _looked_up(shown, scores)


def _looked_up(shown: StudyColumn, scores: Mapping[str, Interval | None]) -> ArenaColumn:
    return ArenaColumn(shown=shown, value=lambda view, line: scores.get(line.entry.name))


REBALANCED = "Brier score with other shares of the categories"
"""Title of a table."""


def _rebalanced(view: ArenaLeaderboard) -> StudyTable:
    columns = [replace(_score("brier"), shown=column("unchanged shares", decimals=3))]
    shares: list[str] = []
    for rebalanced in view.rebalanced:
        columns.append(_looked_up(column(rebalanced.name, decimals=3), rebalanced.scores))
        shares.append(
            f"{rebalanced.name}: " + ", ".join(f"{name} {percent(share)}" for name, share in rebalanced.shares.items())
        )
    caption = f"{'; '.join(shares)}. Every event is kept, and categories are weighted."
    return _table(view, REBALANCED, columns, caption)


def _lead_time_table(view: ArenaLeaderboard) -> StudyTable:
    curve = view.lead_times
    left = f" Left out, because they answered too little: {', '.join(curve.left_out)}." if curve.left_out else ""
    return table(
        "Brier score by time to close",
        "Entry",
        [column(f"{point.lead_time} ({point.events})", decimals=3) for point in curve.points],
        {name: [point.scores.get(name) for point in curve.points] for name in curve.entries},
        caption="Within a column all rows are scored on the same markets; columns have different events." + left,
    )


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]


# The charts of an arena's leaderboard.


FEW_ENTRIES, SEVERAL, MOST_COURSES = 3, 7, 24
"""Maximum number of entries with their own chart, in a chart by group, and in the chart over time."""


def arena_charts(
    view: ArenaLeaderboard,
    scored: ScoredArena,
    styles: Mapping[str, SeriesStyle] | None = None,
    only: Collection[str] | None = None,
) -> tuple[StudyChart, ...]:
    """Draw the charts of the page, or `only` those named, without empty ones; `styles` are marks on other pages."""
    arena, pairs = scored.arena, view.pairs
    ranked = [line.entry.name for line in view.lines if not line.entry.baseline]
    best, several = ranked[:FEW_ENTRIES], ranked[:SEVERAL]
    marks = styles or series_styles([entry.name for entry in arena.entries if not entry.baseline])
    market = [MARKET_PRICE] if MARKET_PRICE in arena.names else []

    def scores() -> Chart:
        lines = [(line.entry, line.fair) for line in view.lines]
        rows = [ForestRow(name=entry.name, interval=brier, baseline=entry.baseline) for entry, brier in lines if brier]
        return forest_plot(rows, label="Brier score (lower is better)", decimals=3, reference=MARKET_PRICE)

    def over_time() -> Chart | None:
        courses = scores_over_time(scored, ranked[:MOST_COURSES])
        return over_time_figure(courses, marks) if courses else None

    def differences() -> Chart:
        return verdict_heatmap(pairs.names, pairs.verdicts, label="Brier", decimals=3)

    def distances() -> Chart:
        apart = [name for name in pairs.names if name != ALWAYS_HALF]
        distance = divergence(scored, apart).distance
        return distance_heatmap(apart, distance, label="mean L2 distance of an event's forecasts")

    def reliability(name: str) -> Chart:
        p = arena.row(name)
        return reliability_diagram(p, arena.markets.outcome, event_weights(arena, p), name=name)

    def conservatism(name: str) -> Chart:
        return conservatism_plot(arena.row(name), arena.row(MARKET_PRICE), name=name)

    charts: dict[str, tuple[str, Callable[[], Chart | None]]] = {
        "brier": ("Brier score", scores),
        "over-time": ("Score over time", over_time),
        "lead-time": (
            "Brier score by time to close, on the same markets",
            lambda: _lead_times(view, [MARKET_PRICE, *several], marks),
        ),
        "category": ("Brier by category", lambda: _categories(view, [*market, *several], marks)),
        "cost": ("Accuracy and cost", lambda: _frontier(view)),
        "pairs": ("Paired differences of Brier scores", differences),
        "divergence": ("How far entries are apart", distances),
    }
    with_chart = [*best, *market] + ([BASE_RATE] if BASE_RATE in arena.names else [])
    for i, name in enumerate(with_chart, 1):
        charts[f"reliability-{i}"] = (f"Reliability of {name}", partial(reliability, name))
    for i, name in enumerate(best if market else [], 1):
        charts[f"conservatism-{i}"] = (f"{name} against the market", partial(conservatism, name))
    wanted = {name: charts[name] for name in charts if only is None or name in only}
    return tuple(
        StudyChart(name=name, title=title, chart=chart)
        for name, (title, draw) in wanted.items()
        if (chart := draw()) is not None
    )


def event_weights(arena: ArenaTable, p: Floats) -> Floats:
    """Return weights for an entry's probabilities so that every event counts once, as on the leaderboard."""
    answered = np.isfinite(p)
    markets = np.bincount(arena.markets.forecast_time[answered], minlength=len(arena.forecast_times))
    times = np.bincount(arena.forecast_times.event[markets > 0], minlength=len(arena.events))
    return np.where(answered, 1 / np.maximum(markets[arena.markets.forecast_time] * times[arena.market_event], 1), 0.0)


def over_time_figure(courses: Mapping[str, Course], styles: Mapping[str, SeriesStyle]) -> Chart:
    """Plot the scores of entries relative to the market over the four weeks before each day."""
    return dated_plot(
        DatedLines(
            title="Brier points ahead of the market, four weeks",
            lines=courses,
            label="market minus entry, Brier",
            decimals=3,
            level=0.0,
            styles=styles,
        )
    )


def _lead_times(view: ArenaLeaderboard, wanted: Sequence[str], styles: Mapping[str, SeriesStyle]) -> Chart | None:
    names = [name for name in wanted if name in view.lead_times.entries]
    groups = {
        point.lead_time: (point.events, {name: (point.scores.get(name), point.events) for name in names})
        for point in view.lead_times.points
    }
    return _by_group("time to close", groups, names, styles, ordered=True)


def _categories(view: ArenaLeaderboard, names: Sequence[str], styles: Mapping[str, SeriesStyle]) -> Chart | None:
    groups = {
        group.name: (
            group.events,
            {line.entry.name: (line.scores.get(MAIN_METRIC), line.events) for line in group.lines},
        )
        for group in view.groups.get("category", ())
    }
    return _by_group("category", groups, names, styles, ordered=False)


def _by_group(
    by: str,
    groups: Mapping[str, tuple[int, Mapping[str, tuple[Interval | None, int]]]],
    names: Sequence[str],
    styles: Mapping[str, SeriesStyle],
    *,
    ordered: bool,
) -> Chart | None:
    """Plot Brier scores of entries by group, given each group's events, and each entry's score and answered events."""
    if len(groups) < 2:
        return None
    breakdown = Breakdown(
        column=by,
        ordered=ordered,
        groups=tuple(groups),
        n=tuple(events for events, _ in groups.values()),
        base_rate=(float("nan"),) * len(groups),
        scores={name: tuple(_possible(scores[name][0]) for _, scores in groups.values()) for name in names},
        answered={name: tuple(scores[name][1] for _, scores in groups.values()) for name in names},
    )
    return score_by_group(breakdown, label="Brier", decimals=3, styles=styles)


def _possible(score: Interval | None) -> Interval | None:
    """Return a Brier score whose interval ends at 0 and 1, so that one of two events does not set the scale."""
    return None if score is None else replace(score, low=max(score.low, 0.0), high=min(score.high, 1.0))


def _frontier(view: ArenaLeaderboard) -> Chart | None:
    points = [
        FrontierPoint(name=line.entry.name, cost=line.entry.dollars, interval=brier)
        for line in view.lines
        if (brier := line.fair) is not None
        and np.isfinite(line.entry.dollars)
        and (line.entry.dollars > 0 or not line.entry.baseline)
    ]
    if not any(point.cost > 0 for point in points):
        return None
    return frontier(points, label="Brier (lower is better)", decimals=3, low_is_better=True)


ARENA_ADVICE = (
    "Brier is the mean over events of the mean squared error over an event's markets. An event with several "
    "forecast times counts once. Lower is better; 0.25 is always-0.5, and the market price is the row to beat.",
    "market − entry is a paired difference on the markets for which both have a probability, so that the difficulty of "
    "events cancels. One star means p < 0.05, two p < 0.01, three p < 0.001, two-sided, without correction for the "
    "number of rows. To compare two entries, read the table of pairs, not whether intervals overlap.",
    "Intervals resample events. Events of one match day or one news story are correlated, and intervals are then "
    "somewhat too short.",
    "The base rate counts only events of the category that had resolved before the forecast time. It is 0.5 until "
    "something has.",
    "Returns bet a dollar on every market at its asks at the forecast time, whatever the depth. They show whether a "
    "forecast had information that the price did not have, not what a trader would have earned. Net returns subtract "
    "the platform's fee. A few long shots that came true dominate them; see the interval and the Sharpe ratio.",
    "Brier scores are adjusted for the events an entry left out, by the market's score on them, so that answering only "
    "easy events gains nothing. An entry that answered less than half of what it was asked has no rank. Events from "
    "before an entry joined do not count as left out.",
)


@frozen
class ArenaReport:
    """The scores of an arena, ready to print, to save as JSON and to show as a page."""

    view: ArenaLeaderboard
    scored: ScoredArena
    shares: Sequence[str] = ()
    """The shares of categories that were asked for; the terminal then shows their table too."""
    command: str = field(default_factory=current_command, compare=False)
    """The command or call that made it."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return self.view.to_dict()

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for every entry with the board's columns, for CSV and Parquet."""
        rows: list[dict[str, Any]] = []
        for line in self.view.lines:
            row: dict[str, Any] = {"entry": line.entry.name, "rank": line.rank}
            for name, arena_column in ARENA_COLUMNS.items():
                value = arena_column.value(self.view, line)
                row[name] = plain_data(cell_number(value, gain=arena_column.shown.gain))
                ends = value.gain_interval if isinstance(value, Verdict) else value
                if isinstance(ends, Interval):
                    row |= {f"{name}_low": plain_data(ends.low), f"{name}_high": plain_data(ends.high)}
            rows.append(row)
        return rows

    def study(self, *, pictures: bool = False) -> StudyResult:
        """Return the tables as a study; charts take longer to draw, so they are left out unless `pictures` is set."""
        return StudyResult(
            name="standings",
            title=f"Standings of {self.view.arena}",
            sentences=(arena_finding(self.view),),
            tables=arena_grids(self.view),
            charts=arena_charts(self.view, self.scored) if pictures else (),
            notes=self.view.notes,
            settings=self.view.settings,
            how_to_read=ARENA_ADVICE,
            command=self.command,
        )

    def print(self, console: "Console", *, by: Sequence[str] = ()) -> None:
        """Print the leaderboard and the requested tables; the page and the JSON have the rest."""
        study = self.study()
        wanted = {REBALANCED} if self.shares else set[str]()
        brief = [
            grid
            for i, grid in enumerate(study.tables)
            if i < 3 or grid.title.rpartition(" by ")[2] in by or grid.title in wanted
        ]
        replace(study, tables=tuple(brief)).print(console)

    def text(self, *, by: Sequence[str] = (), width: int = 120) -> str:
        """Return the text for a terminal of this width."""
        out = StringIO()
        self.print(console(file=out, width=width, color_system=None), by=by)
        return out.getvalue()

    def page(self) -> str:
        """Return a complete HTML document that needs no network."""
        return self.study(pictures=True).to_html()


def arena_report(
    arena: ArenaTable, *, by: Sequence[str] = (), shares: Sequence[str] = (), bootstrap: Any = ""
) -> ArenaReport:
    """Score an arena; parameters are those of `score_arena`. Whole events are resampled, so `cluster` is refused."""
    options = BootstrapOptions.model_validate(read_bootstrap(bootstrap))
    if options.cluster:
        raise InputError("has no part cluster here: whole events are resampled", column="--bootstrap")
    scored = ScoredArena.of(arena, options.resampling)
    wanted = {text: read_shares(text) for text in shares}
    return ArenaReport(view=view_of_scored(arena, scored, by=by, shares=wanted), scored=scored, shares=shares)


@suggesting
@python_errors()
@check_arguments
def score_arena(
    path: str | Path,
    *,
    by: Sequence[str] = (),
    shares: Sequence[str] = (),
    bootstrap: str | Mapping[str, Any] | None = None,
) -> ArenaReport:
    """Score a published file of Prophet Arena events, with the baselines alone.

    Args:
        path: The CSV subset, or events.jsonl.
        by: Columns (category, platform, lead time) for tables with more numbers for each group.
        shares: Other shares of the categories for the Brier score, such as "Sports=0.25,Politics=0.25,other=0.5".
        bootstrap: How intervals are computed: {"draws": 2000, "seed": 0, "level": 0.95, "interval": "percentile"};
            keys may be left out. Whole events are resampled.

    Returns:
        An `ArenaReport` with the leaderboard as `view`; it prints as text and has a `page()`.

    Raises:
        InputError: If there is no such file, or it is none of these.
    """
    if not Path(path).is_file():
        raise InputError("no such file", path=path)
    options = {"by": by, "shares": shares, "bootstrap": bootstrap}
    with running_command(call_text("score_arena", path, **{name: value for name, value in options.items() if value})):
        return arena_report(arena_table_from_prophet_arena(path), by=by, shares=shares, bootstrap=bootstrap or "")


def arena_finding(view: ArenaLeaderboard) -> str:
    """Summarize the result in a few sentences."""
    scale = f"Based on {view.counts.resolved:,} resolved events with {view.counts.markets_scored:,} outcomes."
    scores = {line.entry.name: line.fair for line in view.lines}
    entries = [line for line in view.lines if line.rank]
    price = scores.get(MARKET_PRICE)
    market = f"the market's {price.estimate:.4f}" if price else "there is no market price"
    if not entries:
        return f"{_nobody(view)}; {market}. {scale}"
    best = entries[0]
    assert best.fair is not None
    text = f"{best.entry.name} is the best entry: Brier score {best.fair.estimate:.4f}, {market}."
    verdict = view.versus_market.get(best.entry.name)
    if verdict is not None:
        text += f" {verdict.sentence}"
    return " ".join(filter(None, (f"{text}{_runner_up(view, entries)}", below_half(view), scale)))


def arena_headline(view: ArenaLeaderboard) -> str:
    """Return a sentence on which entries are better than the market, which are worse, and which are undecided."""
    entries = [line.entry.name for line in view.lines if line.rank]
    if not entries:
        return _nobody(view)
    by_finding: dict[Finding, list[str]] = {}
    for name in entries:
        if (verdict := view.versus_market.get(name)) is not None:
            by_finding.setdefault(verdict.says, []).append(name)
    if not by_finding:
        return f"{_quoted(entries[0])} has the best score"
    better, few = by_finding.get("better", []), by_finding.get("too few to tell", [])
    if len(few) == sum(map(len, by_finding.values())):
        events = plural(view.counts.resolved, "event")
        return f"{events} {'is' if view.counts.resolved == 1 else 'are'} too few to tell who is better"
    parts = [f"{_listed(better)} {_verb(better, 'beat')} the market" if better else "No entry beats the market"]
    for finding, words in HEADLINE_PARTS.items():
        if names := by_finding.get(finding):
            parts.append(f"{_listed(names)} {_verb(names, 'be')} {words}")
    return parts[0] + (f": {'; '.join(parts[1:])}" if parts[1:] else "")


def below_half(view: ArenaLeaderboard) -> str:
    """Return a sentence on the entries that scored below always 0.5; empty if there are none."""
    entries = {line.entry.name for line in view.lines if line.rank}
    ways = [way for verdict in view.pairs.verdicts for way in (verdict, verdict.swapped())]
    behind: dict[str, Finding] = {
        way.first: way.says for way in ways if way.second == ALWAYS_HALF and way.first in entries and way.gain < 0
    }
    return half_text(behind) if behind else ""


HEADLINE_PARTS: Mapping[Finding, str] = {
    "no difference that matters": "equal to it",
    "could be chance": "level with it",
    "worse": "behind by more than chance",
    "too few to tell": "asked too rarely to tell",
}


def _nobody(view: ArenaLeaderboard) -> str:
    """Return why no entry is ranked."""
    scored = any(not line.entry.baseline and line.fair is not None for line in view.lines)
    return "No entry has answered enough to be ranked" if scored else "No entry has a scored forecast yet"


MOST_NAMED = 3
"""Maximum number of entries that a headline names; more are only counted."""


def _listed(names: Sequence[str]) -> str:
    if len(names) > MOST_NAMED:
        return f"{len(names)} entries"
    *first, last = map(_quoted, names)
    return f"{', '.join(first)} and {last}" if first else last


def _quoted(name: str) -> str:
    """Return the name, in quotation marks if it would be misread in a list of names."""
    return f"“{name}”" if "," in name or " and " in name else name


def _verb(names: Sequence[str], verb: str) -> str:
    many = len(names) > 1
    return ("are" if many else "is") if verb == "be" else verb if many else f"{verb}s"


def _runner_up(view: ArenaLeaderboard, entries: Sequence[ArenaLeaderboardRow]) -> str:
    """Return the verdict on the first entry and the second."""
    pair = tuple(line.entry.name for line in entries[:2])
    for verdict in view.pairs.verdicts:
        if (verdict.first, verdict.second) in (pair, pair[::-1]):
            ordered = verdict if verdict.first == pair[0] else verdict.swapped()
            return f" {ordered.sentence}"
    return ""
