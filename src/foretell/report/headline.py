"""The result in one sentence: who leads, by how much, and whether that could be chance."""

import math
from collections.abc import Collection

from foretell.metrics.comparison import Comparison
from foretell.report.markup import clean
from foretell.report.numbers import bracket, estimate, metric_text, number, plural
from foretell.scoring.score import PairComparison
from foretell.scoring.scoreboard import LeaderboardRow, LeaderboardSection, Scoreboard, low_is_better
from foretell.scoring.table import ANCHORS, OVERALL

PLAIN = {"bi": "Brier index", "brier": "Brier score", "ms": "Metaculus score", "log": "log score"}
"""Metrics as a sentence says them; a table's heads have less room."""


def _called(metric: str) -> str:
    return PLAIN.get(metric) or metric_text(metric).label


def _by(amount: float, metric: str) -> str:
    """How far one is ahead, in words: "2.1 points of Brier index"."""
    by = number(abs(amount), metric_text(metric).decimals)
    return f"{by} points of {_called(metric)}" if metric == "bi" else f"{by} in {_called(metric)}"


def headline(board: Scoreboard, anchors: Collection[str] = ANCHORS) -> str:
    """One or two plain sentences about the first group of the board.

    The margin is the paired difference on the targets both answered, so it can differ from the gap between the
    two rows of the table.
    """
    groups, word = board.groups(), metric_text(board.metric)
    if not groups:
        return "Nothing was scored."
    section = board.section(groups[0], anchors)
    scored = [row for row in section.rows if (one := row.metric(word.name)) and math.isfinite(one.estimate)]
    if not scored:
        return "No forecaster has a score yet."
    first = scored[0]
    if len(scored) == 1:
        score = estimate(first.metric(word.name), word.decimals)
        on = plural(first.score.n, "target")
        return f"Only {clean(first.name)} was scored: {_called(board.metric)} {score} on {on}."
    yardstick = " No forecaster beats this yardstick." if first.anchor else ""
    second = scored[1]
    if second.reference:
        comparison = first.difference
    else:  # The board compares with its reference alone: it knows the pair where one of the two is that.
        tested = first.reference and second.difference is not None
        comparison = second.difference.times(-1) if tested and second.difference else None
    if comparison is None:
        return _untested_lead(first, second, board) + yardstick
    return _lead(first, second, comparison, board) + yardstick


def pair_headline(pair: PairComparison) -> str:
    """The outcome of a head-to-head, and how many targets would settle it where it is open."""
    if not pair.differences:
        return f"{clean(pair.first)} and {clean(pair.second)} share no target."
    found = pair.differences[0]
    margin, word = _gain(found.comparison, found.metric), metric_text(found.metric)
    ahead, behind = (pair.first, pair.second) if margin.diff >= 0 else (pair.second, pair.first)
    margin = margin if margin.diff >= 0 else margin.times(-1)
    verb = "beats" if margin.low > 0 else "is ahead of"
    text = (
        f"{clean(ahead)} {verb} {clean(behind)} by {_by(margin.diff, found.metric)} on the "
        f"{plural(margin.n, 'target')} both answered{_verdict(margin, word.decimals, f'{100 * pair.level:g} %')}"
    )
    if margin.low > 0 or pair.pilot is None or not pair.pilot.gain:
        return text
    return f"{text} A true gap of this size would take about {pair.pilot.questions_needed():,} targets to show."


def run_headline(against_rate: Comparison | None, against_price: Comparison | None) -> str:
    """How a run stands to the base rate and to the market, each with its interval.

    >>> run_headline(None, None)
    'Too little has come out to say how good it is.'
    """
    said = [
        _standing(gap, name) for gap, name in ((against_rate, "the base rate"), (against_price, "the market")) if gap
    ]
    if not said:
        return "Too little has come out to say how good it is."
    text = ", ".join(said)
    return f"{text[0].upper()}{text[1:]} (points of Brier index, 95 % intervals)."


def _standing(gap: Comparison, name: str) -> str:
    interval, by = bracket(gap.low, gap.high, 1), number(abs(gap.diff), 1)
    if not interval:
        return f"{'ahead of' if gap.diff >= 0 else 'behind'} {name} by {by} on too few questions for an interval"
    if gap.low > 0 or gap.high < 0:
        return f"{'better' if gap.diff > 0 else 'worse'} than {name} by {by} {interval}"
    return f"level with {name}: a gap of {number(gap.diff, 1)} {interval} could be chance"


def scope(section: LeaderboardSection, board: Scoreboard) -> str:
    """What a group rests on, e.g. "791 targets of 375 questions, 12 forecasters"."""
    if not section.rows:
        return "nothing"
    n, questions = (max(getattr(row.score, name) for row in section.rows) for name in ("n", "questions"))
    forecasters = sum(not row.anchor for row in section.rows)
    kinds = any(group.get("kind", OVERALL) != OVERALL for group in board.groups())
    mean = "; mean over kinds" if kinds and section.group.get("kind") == OVERALL else ""
    return f"{plural(n, 'target')} of {plural(questions, 'question')}, {plural(forecasters, 'forecaster')}{mean}"


def level_text(board: Scoreboard) -> str:
    """The confidence level of the board's intervals, in words."""
    return f"{100 * float(board.settings.get('level', 0.95)):g} %"


def _gain(comparison: Comparison, metric: str) -> Comparison:
    """The comparison with positive = better."""
    return comparison.times(-1) if low_is_better(metric) else comparison


def _lead(first: LeaderboardRow, second: LeaderboardRow, comparison: Comparison, board: Scoreboard) -> str:
    word, margin = metric_text(board.metric), _gain(comparison, board.metric)
    name, other, by = clean(first.name), clean(second.name), _by(margin.diff, board.metric)
    if margin.diff >= 0:
        verdict = _verdict(margin, word.decimals, level_text(board))
        return f"{name} leads {other} by {by}{verdict}"
    verdict = _verdict(margin.times(-1), word.decimals, level_text(board))
    return (
        f"{name} ranks first, but on the {plural(margin.n, 'target')} both answered {other} is better by {by}{verdict}"
    )


def _untested_lead(first: LeaderboardRow, second: LeaderboardRow, board: Scoreboard) -> str:
    word = metric_text(board.metric)
    best, next_best = first.metric(word.name), second.metric(word.name)
    if best is None or next_best is None:
        return ""
    gap = number(abs(best.estimate - next_best.estimate), word.decimals)
    text = f"{clean(first.name)} has the best {_called(board.metric)}, {estimate(best, word.decimals)}, {gap} ahead of "
    text += f"{clean(second.name)} (pair not tested)."
    if first.difference is None:
        return text
    margin = _gain(first.difference, word.name)
    side, by = "ahead of" if margin.diff >= 0 else "behind", number(abs(margin.diff), word.decimals)
    margin = margin if margin.diff >= 0 else margin.times(-1)
    verdict = _verdict(margin, word.decimals, level_text(board))
    return f"{text} It is {by} {side} the reference {clean(board.reference)}{verdict}"


def _verdict(margin: Comparison, decimals: int, level: str) -> str:
    """Whether a positive margin could be chance."""
    interval = bracket(margin.low, margin.high, decimals)
    if not interval:
        return "; there are too few questions for an interval."
    sure = margin.low > 0 or margin.high < 0
    text = f"{'more than chance' if sure else 'this could be chance'} ({level} interval {interval})"
    care = f"; only {plural(margin.n_clusters, 'cluster')}: take it with care" if margin.warning else ""
    return f"; {text}{care}."
