"""The leaderboard as one web page: the sentence, the table, the pictures, and how to read them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from foretell.arena.anchors import ALWAYS_HALF, ANCHORS, with_anchors
from foretell.arena.report.board_table import board_table
from foretell.arena.report.breakdown import Method, breakdown
from foretell.arena.report.figures import (
    ForestRow,
    FrontierPoint,
    difference_heatmap,
    forest_plot,
    frontier,
    reliability_diagram,
    score_by_group,
)
from foretell.arena.report.figures.heatmap import MOST as MOST_COMPARED
from foretell.arena.report.headline import headline, scope
from foretell.arena.report.markup import Markup, element, join
from foretell.arena.report.page import contents, page, paragraph, section, shown
from foretell.arena.report.pairs import comparable, paired_matrix
from foretell.arena.report.ranking import Ranking, low_is_better, rankings, shown_metrics
from foretell.arena.report.reading import reading
from foretell.arena.report.wording import wording
from foretell.arena.scoreboard import Scoreboard
from foretell.arena.table import Table
from foretell.evaluate.bootstrap import Resampling

TOP_FEW = 3
PICTURE_DRAWS = 2000
PICTURED = ("source", "horizon", "category", "due")
"""Columns that get a picture where the table has them."""


@dataclass(frozen=True, kw_only=True)
class _Subject:
    """What every section of the page draws from."""

    board: Scoreboard
    table: Table
    first: Ranking
    anchors: Collection[str]

    @property
    def method(self) -> Method:
        """The board's own metric, clusters and seed, with no more draws than pictures need."""
        settings = self.board.settings
        cluster = str(settings.get("cluster") or "")
        draws = min(int(settings.get("draws", PICTURE_DRAWS)), PICTURE_DRAWS)
        return Method(
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
    table: Table,
    title: str,
    *,
    anchors: Collection[str] = ANCHORS,
    costs: Mapping[str, float] | None = None,
) -> str:
    """A whole HTML document; `costs` (dollars per forecast, by forecaster) adds the frontier."""
    groups = rankings(board, anchors)
    lead = paragraph(headline(board, anchors), "lead")
    if not groups:
        return page(title, lead, reading(board, table))
    subject = _Subject(board=board, table=_as_scored(table, board), first=groups[0], anchors=anchors)
    parts = [
        ("ranking", "Ranking", _ranking(subject)),
        ("pairs", "Who beats whom", _pairs(subject)),
        ("calibration", "Calibration", _calibration(subject)),
        ("groups", "Where it is won and lost", _by_group(subject)),
        ("frontier", "Score for money", _frontier(subject, costs or {})),
        ("tables", "Every group", _tables(board, groups[1:])),
        ("reading", "How to read this", reading(board, table)),
    ]
    kept = [(anchor, name, body) for anchor, name, body in parts if body is not None]
    return page(
        title,
        lead,
        paragraph(scope(groups[0], board), "quiet"),
        contents([(anchor, name) for anchor, name, _ in kept]),
        *(section(name, body, anchor=anchor) for anchor, name, body in kept),
    )


def _as_scored(table: Table, board: Scoreboard) -> Table:
    """The table with the rows that scoring added to it: anchors, and what stands in for missing forecasts."""
    value = board.settings.get("missing")
    table = table.filled(float(value)) if isinstance(value, float | int) else table
    known = {score.forecaster for score in board.scores} & set(ANCHORS)
    return table if known.issubset(table.forecasters) else with_anchors(table)


def _ranking(subject: _Subject) -> Markup:
    word = wording(subject.board.metric)
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


def _pairs(subject: _Subject) -> Markup | None:
    names = [row.name for row in subject.first.rows if row.name in subject.table.forecasters]
    if len(names) < 2:
        return None
    matrix = paired_matrix(subject.table, names[:MOST_COMPARED], subject.first.group, subject.method)
    used = comparable(subject.board.metric)
    word = wording(used)
    picture = difference_heatmap(
        names, matrix, label=word.label, decimals=word.decimals, low_is_better=low_is_better(used)
    )
    told = f"Difference in {word.label} on the targets both answered, both recomputed on the same resamples."
    return join(paragraph(told, "quiet"), shown(picture))


def _calibration(subject: _Subject) -> Markup | None:
    if not subject.few:
        return None
    targets = subject.table.targets
    diagrams = [
        shown(reliability_diagram(subject.table.p_of(name), targets.outcome, targets.weight, name=name))
        for name in subject.few
    ]
    told = "A calibrated forecaster lies on the diagonal: of what it called 70 %, 70 % happened."
    return join(paragraph(told, "quiet"), element("div", *diagrams, class_="grid"))


def _by_group(subject: _Subject) -> Markup | None:
    columns = [c for c in PICTURED if c in subject.table.targets.groups]
    word = wording(subject.board.metric)
    found = [breakdown(subject.table, column, subject.few, subject.method) for column in columns]
    figures = [
        shown(score_by_group(b, label=word.label, decimals=word.decimals)) for b in found if 2 <= len(b.groups) <= 30
    ]
    told = "Faint marks: answered fewer than nine tenths of what others did there, so about other questions."
    return join(paragraph(told, "quiet"), element("div", *figures, class_="pair")) if figures else None


def _frontier(subject: _Subject, costs: Mapping[str, float]) -> Markup | None:
    metric = subject.board.metric
    points = [
        FrontierPoint(name=row.name, cost=costs[row.name], interval=interval)
        for row in subject.first.rows
        if row.name in costs and (interval := row.metric(metric)) is not None
    ]
    if not points:
        return None
    word = wording(metric)
    return shown(frontier(points, label=word.label, decimals=word.decimals, low_is_better=low_is_better(metric)))


def _tables(board: Scoreboard, groups: Collection[Ranking]) -> Markup | None:
    metrics = shown_metrics(board)
    parts = [join(element("h3", group.title), board_table(board, group, metrics)) for group in groups if group.rows]
    return join(*parts) if parts else None
