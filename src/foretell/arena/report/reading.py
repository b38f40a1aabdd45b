"""The small print of a report: what the numbers mean, what was set, and what was left out."""

from foretell.arena.report.markup import Markup, element, join
from foretell.arena.report.page import definitions, paragraph
from foretell.arena.report.ranking import shown_metrics
from foretell.arena.report.wording import wording
from foretell.arena.scoreboard import Scoreboard
from foretell.arena.table import Table

ADVICE = (
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


def reading(board: Scoreboard, table: Table) -> Markup:
    """How to read the board, its settings and its notes."""
    metrics = [(wording(m).label, wording(m).meaning) for m in shown_metrics(board)]
    settings = [(key, setting(value)) for key, value in board.settings.items()]
    told = dict.fromkeys((*board.notes, *table.notes))
    return join(
        *(paragraph(advice) for advice in ADVICE),
        element("h3", "Metrics"),
        definitions(metrics),
        element("h3", "Settings") if settings else None,
        definitions([("reference", board.reference), ("ranked by", wording(board.metric).label), *settings]),
        element("h3", "Notes") if told else None,
        element("ul", *(element("li", note) for note in told)) if told else None,
    )


def setting(value: object) -> str:
    """A setting on one line.

    >>> setting(["market", "dataset"]), setting(None), setting(0.95)
    ('market, dataset', 'none', '0.95')
    """
    if value is None:
        return "none"
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(str(item) for item in value) or "none"  # pyright: ignore[reportUnknownVariableType]
    return str(value)
