"""The leaderboard in a terminal, in as many columns as it has room for."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from foretell.arena.anchors import ANCHORS
from foretell.arena.pairing import Pair
from foretell.arena.report.headline import headline, level_of, pair_headline, scope
from foretell.arena.report.markup import clean, shorten
from foretell.arena.report.ranking import Ranking, Standing, group_title, low_is_better, rankings, shown_metrics
from foretell.arena.report.wording import bracket, difference, estimate, number, percent, wording
from foretell.arena.scoreboard import Scoreboard

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

WIDE = 100
LEAST_NAME = 16
PAIR_HEAD = 17
"""Characters of a name above its column of scores."""
GAP = 2
"""Blanks between columns: one of padding, one of the box."""


def print_board(board: Scoreboard, console: "Console", anchors: Collection[str] = ANCHORS) -> None:
    """Headline, one table per group, and the notes. Names are shown as they are, never as markup."""
    from rich.text import Text

    console.print(Text(headline(board, anchors), style="bold"))
    for found in rankings(board, anchors):
        if found.rows:
            console.print()
            console.print(Text.assemble((found.title, "bold"), (f"  {scope(found, board)}", "dim")))
            console.print(board_grid(board, found, console.width))
    console.print()
    for note in notes(board):
        console.print(Text(note, style="dim"))


def print_pair(pair: Pair, console: "Console") -> None:
    """A head-to-head: the verdict, and a line per group with both scores and their difference."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    console.print(Text(pair_headline(pair), style="bold"))
    if not pair.differences:
        return
    grid = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
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


def _pair_lines(pair: Pair) -> list[list[str]]:
    scores = {(tuple(s.group.items()), s.forecaster): s.metrics for s in pair.scores}
    lines: list[list[str]] = []
    for found in pair.differences:
        decimals, key = wording(found.metric).decimals, tuple(found.group.items())
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


def notes(board: Scoreboard) -> tuple[str, ...]:
    """The small print under a board, one line each."""
    told = [
        f"Intervals {level_of(board)}, resampled by {board.settings.get('cluster', 'cluster')}"
        + (f", {board.settings['draws']} draws" if "draws" in board.settings else "")
        + (f", seed {board.settings['seed']}" if "seed" in board.settings else "")
        + f". Differences to {clean(board.reference)} on shared targets, one-sided: "
        + "* p < 0.05, ** p < 0.01, *** p < 0.001.",
    ]
    return (*told, *(clean(note) for note in board.notes))


def board_grid(board: Scoreboard, found: Ranking, width: int) -> "RichTable":
    """One group as a table no wider than `width`."""
    from rich import box
    from rich.table import Table as RichTable

    metrics = _chosen(board, width)
    wide = width >= WIDE
    heads = [
        "#",
        "Forecaster",
        "n",
        "Done",
        wording(board.metric).label,
        *(wording(m).label for m in metrics),
        "vs ref",
    ]
    lines = [_cells(row, board.metric, metrics, wide=wide) for row in found.rows]
    widths = [max(len(line[i]) for line in (heads, *lines)) for i in range(len(heads))]
    room = max(LEAST_NAME, width - sum(widths) + widths[1] - GAP * (len(heads) - 1))
    grid = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for i, head in enumerate(heads):
        least = None if i == 1 else widths[i]
        grid.add_column(head, justify="left" if i == 1 else "right", no_wrap=True, min_width=least)
    for row, line in zip(found.rows, lines, strict=True):
        grid.add_row(*_styled(row, line, room, low_is_better(board.metric)))
    return grid


def _chosen(board: Scoreboard, width: int) -> tuple[str, ...]:
    usual = ("brier", "bi", "ms", "ece") if width >= WIDE else ("brier",) if board.metric != "brier" else ("bi",)
    present = shown_metrics(board)
    return tuple(name for name in usual if name in present and name != board.metric)


def _cells(row: Standing, metric: str, metrics: Sequence[str], *, wide: bool) -> list[str]:
    word = wording(metric)
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
        *("–" if i is None else number(i.estimate, wording(m).decimals) for i, m in zip(others, metrics, strict=True)),
        against,
    ]


def _styled(row: Standing, cells: Sequence[str], room: int, low: bool) -> list["Text"]:
    from rich.text import Text

    base = "italic yellow" if row.anchor else ""
    told = [Text(cell, style=base) for cell in cells]
    told[1] = Text(shorten(cells[1], room), style=base)
    if row.difference is not None and row.difference.stars:
        better = (row.difference.diff < 0) == low
        told[-1] = Text(cells[-1], style="green" if better else "red")
    return told
