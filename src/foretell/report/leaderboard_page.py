"""The leaderboard as one web page: the sentence, the table, the pictures, and how to read them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from foretell.metrics.bootstrap import Interval, Resampling
from foretell.metrics.comparison import Comparison
from foretell.report.charts.calibration import reliability_diagram
from foretell.report.charts.groups import score_by_group
from foretell.report.charts.heatmap import HEATMAP_MOST_ROWS as MOST_COMPARED
from foretell.report.charts.heatmap import difference_heatmap
from foretell.report.charts.ranking import ForestRow, FrontierPoint, forest_plot, frontier
from foretell.report.headline import headline, scope
from foretell.report.html import (
    HtmlCell,
    HtmlColumn,
    HtmlRow,
    contents,
    definitions,
    name,
    number_cell,
    page,
    paragraph,
    section,
    shown,
    table,
)
from foretell.report.markup import Markup, element, join
from foretell.report.numbers import bracket, difference, metric_text, number, percent
from foretell.scoring.breakdown import BreakdownMethod, breakdown
from foretell.scoring.ranking import (
    LeaderboardRow,
    LeaderboardSection,
    comparable,
    leaderboard_sections,
    low_is_better,
    paired_matrix,
    shown_metrics,
)
from foretell.scoring.scoreboard import Scoreboard
from foretell.scoring.table import ALWAYS_HALF, ANCHORS, ForecastTable, with_anchors

# One group of the board as an HTML table.


def board_table(board: Scoreboard, found: LeaderboardSection, metrics: Sequence[str]) -> Markup:
    """The board's own metric with its interval first, beside it every other metric that any row has."""
    metrics = [m for m in metrics if m == metrics[0] or any(row.metric(m) is not None for row in found.rows)]
    level = f"{100 * float(board.settings.get('level', 0.95)):g} % interval"
    heads = [
        HtmlColumn(label="#", numeric=True),
        HtmlColumn(label="Forecaster"),
        HtmlColumn(
            label=metric_text(metrics[0]).label,
            numeric=True,
            tip=f"{metric_text(metrics[0]).meaning}; with its {level}",
        ),
        HtmlColumn(label="vs reference", numeric=True, tip=f"minus {board.reference}, on the targets both answered"),
        *(HtmlColumn(label=metric_text(m).label, numeric=True, tip=metric_text(m).meaning) for m in metrics[1:]),
        HtmlColumn(label="Targets", numeric=True),
        HtmlColumn(label="Questions", numeric=True),
        HtmlColumn(label="Answered", numeric=True, tip="share of the group's resolved targets that were forecast"),
    ]
    lines = [_board_row(row, metrics) for row in found.rows]
    return table(heads, lines, f"{found.title}: {scope(found, board)}")


def _board_row(row: LeaderboardRow, metrics: Sequence[str]) -> HtmlRow:
    style = " ".join(s for s, on in (("anchor", row.anchor), ("reference", row.reference)) if on)
    tags = [
        element("span", t, class_="tag") for t, on in (("yardstick", row.anchor), ("reference", row.reference)) if on
    ]
    own = metric_text(metrics[0])
    cells = [
        number_cell("" if row.place is None else str(row.place), row.place),
        HtmlCell(shown=join(name(row.name), *tags), style="name"),
        _with_interval(row.metric(metrics[0]), own.decimals),
        _against(row.difference, own.decimals, low_is_better(metrics[0])),
        *(_estimate(row.metric(m), metric_text(m).decimals) for m in metrics[1:]),
        number_cell(f"{row.score.n:,}", row.score.n),
        number_cell(f"{row.score.questions:,}", row.score.questions),
        number_cell(percent(row.score.completion), row.score.completion),
    ]
    return HtmlRow(cells=cells, style=style or None)


def _estimate(interval: Interval | None, decimals: int) -> HtmlCell:
    if interval is None:
        return number_cell("–", None)
    return number_cell(number(interval.estimate, decimals), interval.estimate)


def _with_interval(interval: Interval | None, decimals: int) -> HtmlCell:
    if interval is None:
        return number_cell("–", None)
    told = bracket(interval.low, interval.high, decimals)
    shown = join(number(interval.estimate, decimals), " ", element("span", told, class_="ci"))
    return number_cell(shown, interval.estimate)


def _against(comparison: Comparison | None, decimals: int, low: bool) -> HtmlCell:
    if comparison is None:
        return number_cell("", None)
    style = ("good" if (comparison.diff < 0) == low else "bad") if comparison.stars else None
    told = bracket(comparison.low, comparison.high, decimals)
    shown = join(
        element("span", difference(comparison, decimals), class_=style), " ", element("span", told, class_="ci")
    )
    return number_cell(shown, comparison.diff)


# The small print of a report: what the numbers mean, what was set, and what was left out.

LEADERBOARD_ADVICE = (
    "An interval says where the number could have landed had other questions of the same kind been asked. Questions "
    "that hang together (one series, one event, one day) are resampled together, so a thousand rows on one stock "
    "count as little more than one.",
    "To tell two forecasters apart, read the difference, not whether their intervals overlap: both answer the same "
    "questions, and what makes a question hard is hard for both. One star means p < 0.05, two p < 0.01, three "
    "p < 0.001, one-sided, without correction for the number of rows compared.",
    "Whiskers in reliability diagrams and base rates are Wilson intervals that take rows as independent, so with "
    "questions that hang together they are somewhat too short.",
    "The leader was picked after seeing the scores, so its lead is a little flattered; with many rows, the more so.",
    "A forecaster that left questions out is scored on what it answered. Compare it by its difference to the "
    "reference, which uses shared targets only.",
)


def reading_notes(board: Scoreboard, table: ForecastTable) -> Markup:
    """How to read the board, its settings and its notes."""
    metrics = [(metric_text(m).label, metric_text(m).meaning) for m in shown_metrics(board)]
    settings = [(key, settings_text(value)) for key, value in board.settings.items()]
    told = dict.fromkeys((*board.notes, *table.notes))
    return join(
        *(paragraph(advice) for advice in LEADERBOARD_ADVICE),
        element("h3", "Metrics"),
        definitions(metrics),
        element("h3", "Settings") if settings else None,
        definitions([("reference", board.reference), ("ranked by", metric_text(board.metric).label), *settings]),
        element("h3", "Notes") if told else None,
        element("ul", *(element("li", note) for note in told)) if told else None,
    )


def settings_text(value: object) -> str:
    """A setting on one line.

    >>> settings_text(["market", "dataset"]), settings_text(None), settings_text(0.95)
    ('market, dataset', 'none', '0.95')
    """
    if value is None:
        return "none"
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(str(item) for item in value) or "none"  # pyright: ignore[reportUnknownVariableType]
    return str(value)


TOP_FEW = 3
PICTURE_DRAWS = 2000
PICTURED = ("source", "horizon", "category", "due")
"""Columns that get a picture where the table has them."""


@dataclass(frozen=True, kw_only=True)
class _PageInput:
    """What every section of the page draws from."""

    board: Scoreboard
    table: ForecastTable
    first: LeaderboardSection
    anchors: Collection[str]

    @property
    def method(self) -> BreakdownMethod:
        """The board's own metric, clusters and seed, with no more draws than pictures need."""
        settings = self.board.settings
        cluster = str(settings.get("cluster") or "")
        draws = min(int(settings.get("draws", PICTURE_DRAWS)), PICTURE_DRAWS)
        return BreakdownMethod(
            metric=self.board.metric,
            cluster=tuple(cluster.split(" × ")) if cluster else (),
            resampling=Resampling(draws=draws, seed=int(settings.get("seed", 0))),
        )

    @property
    def few(self) -> tuple[str, ...]:
        """The best few forecasters and the anchors that say something, as far as the table knows them."""
        known = self.table.forecasters
        best = [row.name for row in self.first.rows if row.name in known and not row.anchor][:TOP_FEW]
        # An anchor may be missing from the first group: the crowd has no price for datasets.
        yardsticks = [name for name in self.anchors if name in known and name != ALWAYS_HALF]
        return (*best, *yardsticks[:2])


def leaderboard_page(
    board: Scoreboard,
    table: ForecastTable,
    title: str,
    *,
    anchors: Collection[str] = ANCHORS,
    costs: Mapping[str, float] | None = None,
) -> str:
    """A whole HTML document; `costs` (dollars per forecast, by forecaster) adds the frontier."""
    groups = leaderboard_sections(board, anchors)
    lead = paragraph(headline(board, anchors), "lead")
    if not groups:
        return page(title, lead, reading_notes(board, table))
    subject = _PageInput(board=board, table=_as_scored(table, board), first=groups[0], anchors=anchors)
    parts = [
        ("ranking", "Ranking", _ranking(subject)),
        ("pairs", "Who beats whom", _pairs(subject)),
        ("calibration", "Calibration", _calibration(subject)),
        ("groups", "Where it is won and lost", _by_group(subject)),
        ("frontier", "Score for money", _frontier(subject, costs or {})),
        ("tables", "Every group", _tables(board, groups[1:])),
        ("reading", "How to read this", reading_notes(board, table)),
    ]
    kept = [(anchor, name, body) for anchor, name, body in parts if body is not None]
    return page(
        title,
        lead,
        paragraph(scope(groups[0], board), "quiet"),
        contents([(anchor, name) for anchor, name, _ in kept]),
        *(section(name, body, anchor=anchor) for anchor, name, body in kept),
    )


def _as_scored(table: ForecastTable, board: Scoreboard) -> ForecastTable:
    """The table with the rows that scoring added to it: anchors, and what stands in for missing forecasts."""
    value = board.settings.get("missing")
    table = table.filled(float(value)) if isinstance(value, float | int) else table
    known = {score.forecaster for score in board.scores} & set(ANCHORS)
    return table if known.issubset(table.forecasters) else with_anchors(table)


def _ranking(subject: _PageInput) -> Markup:
    word = metric_text(subject.board.metric)
    rows = [
        ForestRow(name=row.name, interval=interval, anchor=row.anchor)
        for row in subject.first.rows
        if (interval := row.metric(subject.board.metric)) is not None
    ]
    roomy, narrow = (
        forest_plot(rows, label=word.label, decimals=word.decimals, reference=subject.board.reference, stacked=stacked)
        for stacked in (False, True)
    )
    table = board_table(subject.board, subject.first, shown_metrics(subject.board))
    return join(table, shown(roomy, "roomy"), shown(narrow, "narrow"))


def _pairs(subject: _PageInput) -> Markup | None:
    names = [row.name for row in subject.first.rows if row.name in subject.table.forecasters]
    if len(names) < 2:
        return None
    matrix = paired_matrix(subject.table, names[:MOST_COMPARED], subject.first.group, subject.method)
    used = comparable(subject.board.metric)
    word = metric_text(used)
    picture = difference_heatmap(
        names, matrix, label=word.label, decimals=word.decimals, low_is_better=low_is_better(used)
    )
    told = f"Difference in {word.label} on the targets both answered, both recomputed on the same resamples."
    return join(paragraph(told, "quiet"), shown(picture))


def _calibration(subject: _PageInput) -> Markup | None:
    if not subject.few:
        return None
    targets = subject.table.targets
    diagrams = [
        shown(reliability_diagram(subject.table.p_of(name), targets.outcome, targets.weight, name=name))
        for name in subject.few
    ]
    told = "A calibrated forecaster lies on the diagonal: of what it called 70 %, 70 % happened."
    return join(paragraph(told, "quiet"), element("div", *diagrams, class_="grid"))


def _by_group(subject: _PageInput) -> Markup | None:
    columns = [c for c in PICTURED if c in subject.table.targets.groups]
    word = metric_text(subject.board.metric)
    found = [breakdown(subject.table, column, subject.few, subject.method) for column in columns]
    figures = [
        shown(score_by_group(b, label=word.label, decimals=word.decimals)) for b in found if 2 <= len(b.groups) <= 30
    ]
    told = "Faint marks: answered fewer than nine tenths of what others did there, so about other questions."
    return join(paragraph(told, "quiet"), element("div", *figures, class_="pair")) if figures else None


def _frontier(subject: _PageInput, costs: Mapping[str, float]) -> Markup | None:
    metric = subject.board.metric
    points = [
        FrontierPoint(name=row.name, cost=costs[row.name], interval=interval)
        for row in subject.first.rows
        if row.name in costs and (interval := row.metric(metric)) is not None
    ]
    if not points:
        return None
    word = metric_text(metric)
    return shown(frontier(points, label=word.label, decimals=word.decimals, low_is_better=low_is_better(metric)))


def _tables(board: Scoreboard, groups: Collection[LeaderboardSection]) -> Markup | None:
    metrics = shown_metrics(board)
    parts = [join(element("h3", group.title), board_table(board, group, metrics)) for group in groups if group.rows]
    return join(*parts) if parts else None
