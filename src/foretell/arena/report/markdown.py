"""The leaderboard as Markdown, for READMEs and documents."""

import re
from collections.abc import Collection, Sequence

from foretell.arena.anchors import ANCHORS
from foretell.arena.report.headline import headline, scope
from foretell.arena.report.markup import clean
from foretell.arena.report.ranking import Ranking, Standing, rankings, shown_metrics
from foretell.arena.report.terminal import notes
from foretell.arena.report.wording import bracket, difference, estimate, number, percent, wording
from foretell.arena.scoreboard import Scoreboard

SPECIAL = re.compile(r"([\\`*_\[\]<>|~&$]|:(?=//)|@(?=\w))")


def markdown_board(board: Scoreboard, anchors: Collection[str] = ANCHORS) -> str:
    """Headline, one table per group and the notes, as GitHub-flavoured Markdown."""
    parts = [plain(headline(board, anchors))]
    for found in rankings(board, anchors):
        if found.rows:
            parts += [f"### {plain(found.title)}", f"{scope(found, board)}.", _table(board, found)]
    parts += [plain(note) for note in notes(board)]
    return "\n\n".join(parts) + "\n"


def plain(text: str) -> str:
    r"""Text that Markdown shows as it stands: no markup, link, mention, cell border or HTML comes out of it.

    >>> plain("a|b <script>")
    'a\\|b \\<script\\>'
    """
    return SPECIAL.sub(r"\\\1", clean(text))


def _table(board: Scoreboard, found: Ranking) -> str:
    metrics = shown_metrics(board)
    heads = ["#", "Forecaster", "n", "Answered", f"{wording(metrics[0]).label} [interval]"]
    heads += ["vs reference", *(wording(m).label for m in metrics[1:])]
    rule = ["---:", "---", *["---:"] * (len(heads) - 2)]
    lines = [[plain(h) for h in heads], rule, *(_cells(row, metrics) for row in found.rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(row: Standing, metrics: Sequence[str]) -> list[str]:
    decimals = wording(metrics[0]).decimals
    against = "reference" if row.reference else difference(row.difference, decimals)
    if row.difference is not None:
        against += " " + bracket(row.difference.low, row.difference.high, decimals)
    name = plain(row.name)
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


def _one(row: Standing, metric: str) -> str:
    found = row.metric(metric)
    return "–" if found is None else number(found.estimate, wording(metric).decimals)
