"""The leaderboard in a terminal, in as many columns as it has room for."""

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from foretell.report.headline import headline, level_of, pair_headline, scope
from foretell.report.markup import clean, shorten
from foretell.report.numbers import bracket, difference, estimate, metric_text, number, percent
from foretell.report.terminal import distinct, rich_table
from foretell.scoring.ranking import (
    LeaderboardRow,
    LeaderboardSection,
    group_title,
    leaderboard_sections,
    low_is_better,
    shown_metrics,
)
from foretell.scoring.score import PairComparison
from foretell.scoring.scoreboard import Scoreboard
from foretell.scoring.table import ANCHORS

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text


WIDE = 100
BOARD_LEAST_NAME = 16
PAIR_HEAD = 17
"""Characters of a name above its column of scores."""
BOARD_GAP = 2
"""Blanks between columns: one of padding, one of the box."""


def print_board(board: Scoreboard, console: "Console", anchors: Collection[str] = ANCHORS) -> None:
    """Headline, one table per group, and the notes. Names are shown as they are, never as markup."""
    from rich.text import Text

    console.print(Text(headline(board, anchors), style="bold"))
    for found in leaderboard_sections(board, anchors):
        if found.rows:
            console.print()
            console.print(Text.assemble((found.title, "bold"), (f"  {scope(found, board)}", "dim")))
            console.print(board_grid(board, found, console.width))
    console.print()
    for note in board_notes(board):
        console.print(Text(note, style="dim"))


def print_pair(pair: PairComparison, console: "Console") -> None:
    """A head-to-head: the verdict, and a line per group with both scores and their difference."""
    from rich.text import Text

    console.print(Text(pair_headline(pair), style="bold"))
    if not pair.differences:
        return
    grid = rich_table()
    for i, head in enumerate(("Group", "n", pair.first, pair.second, "Difference")):
        told = Text(shorten(head, PAIR_HEAD if console.width < WIDE else 2 * PAIR_HEAD))
        grid.add_column(told, justify="right" if i else "left", no_wrap=True)
    for line in _pair_lines(pair):
        grid.add_row(*(Text(cell) for cell in line))
    console.print()
    console.print(grid)
    console.print()
    told = "Scores are on what each one answered, differences on what both did: * p < 0.05, ** p < 0.01, *** p < 0.001."
    console.print(Text(told, style="dim"))


def _pair_lines(pair: PairComparison) -> list[list[str]]:
    scores = {(tuple(s.group.items()), s.forecaster): s.metrics for s in pair.scores}
    lines: list[list[str]] = []
    for found in pair.differences:
        decimals, key = metric_text(found.metric).decimals, tuple(found.group.items())
        both = [scores.get((key, name), {}).get(found.metric) for name in (pair.first, pair.second)]
        gap = (
            f"{difference(found.comparison, decimals)} {bracket(found.comparison.low, found.comparison.high, decimals)}"
        )
        lines.append(
            [shorten(group_title(found.group), PAIR_HEAD), f"{found.comparison.n:,}"]
            + [estimate(one, decimals) for one in both]
            + [gap.rstrip()]
        )
    return lines


def board_notes(board: Scoreboard) -> tuple[str, ...]:
    """The small print under a board, one line each."""
    told = [
        f"Intervals {level_of(board)}, resampled by {board.settings.get('cluster', 'cluster')}"
        + (f", {board.settings['draws']} draws" if "draws" in board.settings else "")
        + (f", seed {board.settings['seed']}" if "seed" in board.settings else "")
        + f". Differences to {clean(board.reference)} on shared targets, one-sided: "
        + "* p < 0.05, ** p < 0.01, *** p < 0.001.",
    ]
    return (*told, *(clean(note) for note in board.notes))


def board_grid(board: Scoreboard, found: LeaderboardSection, width: int) -> "RichTable":
    """One group as a table no wider than `width`."""
    metrics = _chosen(board, width)
    wide = width >= WIDE
    heads = [
        "#",
        "Forecaster",
        "n",
        "Done",
        metric_text(board.metric).label,
        *(metric_text(m).label for m in metrics),
        "vs ref",
    ]
    lines = [_cells(row, board.metric, metrics, wide=wide) for row in found.rows]
    widths = [max(len(line[i]) for line in (heads, *lines)) for i in range(len(heads))]
    room = max(BOARD_LEAST_NAME, width - sum(widths) + widths[1] - BOARD_GAP * (len(heads) - 1))
    grid = rich_table()
    for i, head in enumerate(heads):
        least = None if i == 1 else widths[i]
        grid.add_column(head, justify="left" if i == 1 else "right", no_wrap=True, min_width=least)
    names = distinct([line[1] for line in lines], room)
    for row, line, name in zip(found.rows, lines, names, strict=True):
        grid.add_row(*_styled(row, [line[0], name, *line[2:]], low_is_better(board.metric)))
    return grid


def _chosen(board: Scoreboard, width: int) -> tuple[str, ...]:
    usual = ("brier", "bi", "ms", "ece") if width >= WIDE else ("brier",) if board.metric != "brier" else ("bi",)
    present = shown_metrics(board)
    return tuple(name for name in usual if name in present and name != board.metric)


def _cells(row: LeaderboardRow, metric: str, metrics: Sequence[str], *, wide: bool) -> list[str]:
    word = metric_text(metric)
    against = (
        difference(row.difference, word.decimals) if row.difference is not None else ("ref" if row.reference else "–")
    )
    if wide and row.difference is not None:
        against = f"{against} {bracket(row.difference.low, row.difference.high, word.decimals)}".rstrip()
    others = [row.metric(name) for name in metrics]
    return [
        "" if row.place is None else str(row.place),
        clean(row.name),
        f"{row.score.n:,}",
        percent(row.score.completion).replace(" ", ""),
        estimate(row.metric(metric), word.decimals),
        *(
            "–" if i is None else number(i.estimate, metric_text(m).decimals)
            for i, m in zip(others, metrics, strict=True)
        ),
        against,
    ]


def _styled(row: LeaderboardRow, cells: Sequence[str], low: bool) -> list["Text"]:
    from rich.text import Text

    base = "italic yellow" if row.anchor else ""
    told = [Text(cell, style=base) for cell in cells]
    if row.difference is not None and row.difference.stars:
        better = (row.difference.diff < 0) == low
        told[-1] = Text(cells[-1], style="green" if better else "red")
    return told


# The leaderboard as Markdown, for READMEs and documents.

MARKDOWN_SPECIAL = re.compile(r"([\\`*_\[\]<>|~&$]|:(?=//)|@(?=\w))")


def markdown_board(board: Scoreboard, anchors: Collection[str] = ANCHORS) -> str:
    """Headline, one table per group and the notes, as GitHub-flavoured Markdown."""
    parts = [markdown_text(headline(board, anchors))]
    for found in leaderboard_sections(board, anchors):
        if found.rows:
            parts += [f"### {markdown_text(found.title)}", f"{scope(found, board)}.", _markdown_table(board, found)]
    parts += [markdown_text(note) for note in board_notes(board)]
    return "\n\n".join(parts) + "\n"


def markdown_text(text: str) -> str:
    r"""Text that Markdown shows as it stands: no markup, link, mention, cell border or HTML comes out of it.

    >>> markdown_text("a|b <script>")
    'a\\|b \\<script\\>'
    """
    return MARKDOWN_SPECIAL.sub(r"\\\1", clean(text))


def _markdown_table(board: Scoreboard, found: LeaderboardSection) -> str:
    metrics = shown_metrics(board)
    heads = ["#", "Forecaster", "n", "Answered", f"{metric_text(metrics[0]).label} [interval]"]
    heads += ["vs reference", *(metric_text(m).label for m in metrics[1:])]
    rule = ["---:", "---", *["---:"] * (len(heads) - 2)]
    lines = [[markdown_text(h) for h in heads], rule, *(_markdown_cells(row, metrics) for row in found.rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _markdown_cells(row: LeaderboardRow, metrics: Sequence[str]) -> list[str]:
    decimals = metric_text(metrics[0]).decimals
    against = "reference" if row.reference else difference(row.difference, decimals)
    if row.difference is not None:
        against += " " + bracket(row.difference.low, row.difference.high, decimals)
    name = markdown_text(row.name)
    cells = [
        "" if row.place is None else str(row.place),
        f"*{name}*" if row.anchor else name,
        f"{row.score.n:,}",
        percent(row.score.completion),
        estimate(row.metric(metrics[0]), decimals),
        against.rstrip(),
        *(_one(row, m) for m in metrics[1:]),
    ]
    return [*cells[:4], *(cell.replace("*", r"\*").replace("[", r"\[") for cell in cells[4:])]


def _one(row: LeaderboardRow, metric: str) -> str:
    found = row.metric(metric)
    return "–" if found is None else number(found.estimate, metric_text(metric).decimals)
