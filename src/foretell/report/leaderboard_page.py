"""The leaderboard as one web page: the sentence, the table, the pictures, and how to read them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from foretell.metrics.bootstrap import Interval, Resampling
from foretell.metrics.calibration import calibration_line
from foretell.metrics.comparison import Comparison
from foretell.metrics.metric import METRICS, MetricRows
from foretell.report.charts.calibration import reliability_diagram
from foretell.report.charts.groups import score_by_group
from foretell.report.charts.heatmap import HEATMAP_MOST_ROWS as MOST_COMPARED
from foretell.report.charts.heatmap import difference_heatmap
from foretell.report.charts.ranking import ForestRow, FrontierPoint, forest_plot, frontier
from foretell.report.headline import headline, scope
from foretell.report.html import (
    HtmlBlock,
    HtmlCell,
    HtmlColumn,
    HtmlRow,
    advice_blocks,
    columns_of,
    number_cell,
    page,
    settings_text,
    table_block,
)
from foretell.report.numbers import bracket, difference, metric_text, number, percent
from foretell.scoring.breakdown import BreakdownMethod, breakdown
from foretell.scoring.ranking import (
    LeaderboardRow,
    LeaderboardSection,
    comparable,
    leaderboard_sections,
    paired_matrix,
    shown_metrics,
)
from foretell.scoring.scoreboard import Scoreboard
from foretell.scoring.table import ALWAYS_HALF, ANCHORS, ForecastTable, with_anchors

# One group of the board as an HTML table.


def board_table(board: Scoreboard, found: LeaderboardSection, metrics: Sequence[str]) -> HtmlBlock:
    """The board's own metric with its interval first, beside it every other metric that any row has."""
    metrics = [m for m in metrics if m == metrics[0] or any(row.metric(m) is not None for row in found.rows)]
    level = f"{100 * float(board.settings.get('level', 0.95)):g} % interval"
    own, *others = (metric_text(m) for m in metrics)
    columns = [
        HtmlColumn(label="#", numeric=True),
        HtmlColumn(label="Forecaster"),
        HtmlColumn(label=own.label, numeric=True, tip=f"{own.meaning}; with its {level}"),
        HtmlColumn(label="vs reference", numeric=True, tip=f"minus {board.reference}, on the targets both answered"),
        *(HtmlColumn(label=other.label, numeric=True, tip=other.meaning) for other in others),
        HtmlColumn(label="Targets", numeric=True),
        HtmlColumn(label="Questions", numeric=True),
        HtmlColumn(label="Answered", numeric=True, tip="share of the group's resolved targets that were forecast"),
    ]
    rows = [_board_row(row, metrics) for row in found.rows]
    return table_block(columns, rows, f"{found.title}: {scope(found, board)}")


def _board_row(row: LeaderboardRow, metrics: Sequence[str]) -> HtmlRow:
    own, *others = (metric_text(m) for m in metrics)
    marks = {"anchor": row.anchor, "reference": row.reference}
    tags = {"yardstick": row.anchor, "reference": row.reference}
    cells = [
        number_cell("" if row.place is None else str(row.place), row.place),
        HtmlCell(text=row.name, style="name", is_name=True, tags=tuple(tag for tag, on in tags.items() if on)),
        value_cell(row.metric(own.name), own.decimals),
        value_cell(row.difference, own.decimals, low_is_better=own.better == "low", missing=""),
        *(value_cell(row.metric(other.name), other.decimals, brief=True) for other in others),
        number_cell(f"{row.score.n:,}", row.score.n),
        number_cell(f"{row.score.questions:,}", row.score.questions),
        number_cell(percent(row.score.completion), row.score.completion),
    ]
    return HtmlRow(cells=cells, style=" ".join(mark for mark, on in marks.items() if on))


def value_cell(
    value: Interval | Comparison | None,
    decimals: int,
    *,
    low_is_better: bool = False,
    brief: bool = False,
    missing: str = "–",
) -> HtmlCell:
    """A number with its interval, or a difference with its stars in the colour of the better side."""
    if value is None:
        return number_cell(missing, None)
    ends = "" if brief else bracket(value.low, value.high, decimals)
    if isinstance(value, Interval):
        return number_cell(number(value.estimate, decimals), value.estimate, detail=ends)
    mark = ("good" if (value.diff < 0) == low_is_better else "bad") if value.stars else ""
    return number_cell(difference(value, decimals), value.diff, mark=mark, detail=ends)


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


def reading_notes(board: Scoreboard, table: ForecastTable) -> list[HtmlBlock]:
    """How to read the board, its settings and its notes."""
    metrics = [(metric_text(m).label, metric_text(m).meaning) for m in shown_metrics(board)]
    settings = [("reference", board.reference), ("ranked by", metric_text(board.metric).label)]
    settings += [(key, settings_text(value)) for key, value in board.settings.items()]
    notes = dict.fromkeys((*board.notes, *table.notes))
    return advice_blocks(LEADERBOARD_ADVICE, ("Metrics", metrics), ("Settings", settings), notes=notes)


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
    lead, reading = headline(board, anchors), ("reading", "How to read this", reading_notes(board, table))
    if not groups:
        return page(title, [reading], lead=lead)
    subject = _PageInput(board=board, table=_as_scored(table, board), first=groups[0], anchors=anchors)
    sections = [
        ("ranking", "Ranking", _ranking(subject)),
        ("pairs", "Who beats whom", _pairs(subject)),
        ("calibration", "Calibration", _calibration(subject)),
        ("groups", "Where it is won and lost", _by_group(subject)),
        ("frontier", "Score for money", _frontier(subject, costs or {})),
        ("tables", "Every group", _tables(board, groups[1:])),
        reading,
    ]
    return page(title, sections, lead=lead, notes=[scope(groups[0], board)])


def _as_scored(table: ForecastTable, board: Scoreboard) -> ForecastTable:
    """The table with the rows that scoring added to it: anchors, and what stands in for missing forecasts."""
    value = board.settings.get("missing")
    table = table.filled(float(value)) if isinstance(value, float | int) else table
    known = {score.forecaster for score in board.scores} & set(ANCHORS)
    return table if known.issubset(table.forecasters) else with_anchors(table)


def _ranking(subject: _PageInput) -> list[HtmlBlock]:
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
    return [table, HtmlBlock(charts=[(roomy, "roomy"), (narrow, "narrow")])]


def _pairs(subject: _PageInput) -> list[HtmlBlock]:
    names = [row.name for row in subject.first.rows if row.name in subject.table.forecasters]
    if len(names) < 2:
        return []
    matrix = paired_matrix(subject.table, names[:MOST_COMPARED], subject.first.group, subject.method)
    used = metric_text(comparable(subject.board.metric))
    chart = difference_heatmap(
        names, matrix, label=used.label, decimals=used.decimals, low_is_better=used.better == "low"
    )
    text = f"Difference in {used.label} on the targets both answered, both recomputed on the same resamples."
    return [HtmlBlock(text=text, style="quiet"), HtmlBlock(charts=[chart])]


def _calibration(subject: _PageInput) -> list[HtmlBlock]:
    if not subject.few:
        return []
    targets = subject.table.targets
    charts = [
        reliability_diagram(subject.table.p_of(name), targets.outcome, targets.weight, name=name)
        for name in subject.few
    ]
    text = "A calibrated forecaster lies on the diagonal: of what it called 70 %, 70 % happened."
    rows = [_calibration_row(subject.table, name) for name in subject.few]
    return [
        HtmlBlock(text=text, style="quiet"),
        HtmlBlock(charts=charts, style="grid"),
        table_block(columns_of(CALIBRATION_COLUMNS), [row for row in rows if row is not None], CALIBRATION_CAPTION),
    ]


CALIBRATION_COLUMNS = ("Forecaster", "Slope", "Intercept", "Reliability", "Resolution", "Uncertainty", "ECE")
CALIBRATION_CAPTION = (
    "Slope and intercept of the log-odds of what happened on those of the forecast, rows taken as independent: 1 and 0 "
    "are calibrated, a slope below 1 is overconfident. Brier = reliability − resolution + uncertainty, up to ten bins"
)


def _calibration_row(table: ForecastTable, name: str) -> HtmlRow | None:
    """What the reliability diagram shows, in numbers."""
    p, outcome, weight = table.p_of(name), table.targets.outcome, table.targets.weight
    answered = np.isfinite(p) & (weight > 0)
    if not answered.any():
        return None
    rows = MetricRows.of(p[answered], outcome[answered], weight[answered])
    parts = [METRICS[metric].population(rows) for metric in ("reliability", "resolution", "uncertainty", "ece")]
    line = calibration_line(rows.p, rows.outcome)
    cells = [number_cell(number(value, 2), value) for value in (line.slope, line.intercept)]
    cells += [number_cell(number(value, 3), value) for value in parts]
    return HtmlRow(cells=[HtmlCell(text=name, style="name", is_name=True), *cells])


def _by_group(subject: _PageInput) -> list[HtmlBlock]:
    columns = [c for c in PICTURED if c in subject.table.targets.groups]
    word = metric_text(subject.board.metric)
    found = [breakdown(subject.table, column, subject.few, subject.method) for column in columns]
    charts = [score_by_group(b, label=word.label, decimals=word.decimals) for b in found if 2 <= len(b.groups) <= 30]
    text = "Faint marks: answered fewer than nine tenths of what others did there, so about other questions."
    return [HtmlBlock(text=text, style="quiet"), HtmlBlock(charts=charts, style="pair")] if charts else []


def _frontier(subject: _PageInput, costs: Mapping[str, float]) -> list[HtmlBlock]:
    word = metric_text(subject.board.metric)
    points = [
        FrontierPoint(name=row.name, cost=costs[row.name], interval=interval)
        for row in subject.first.rows
        if row.name in costs and (interval := row.metric(word.name)) is not None
    ]
    if not points:
        return []
    low = word.better == "low"
    return [HtmlBlock(charts=[frontier(points, label=word.label, decimals=word.decimals, low_is_better=low)])]


def _tables(board: Scoreboard, groups: Collection[LeaderboardSection]) -> list[HtmlBlock]:
    metrics = shown_metrics(board)
    blocks: list[HtmlBlock] = []
    for group in groups:
        if group.rows:
            blocks += [HtmlBlock(heading=group.title), board_table(board, group, metrics)]
    return blocks
