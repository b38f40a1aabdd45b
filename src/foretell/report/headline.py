"""The result in one sentence: who leads, by how much, and whether that could be chance."""

import math
from collections.abc import Collection
from dataclasses import replace

from foretell.metrics.comparison import Comparison
from foretell.report.markup import clean
from foretell.report.numbers import bracket, estimate, metric_text, number, plural
from foretell.scoring.ranking import LeaderboardRow, LeaderboardSection, leaderboard_section, low_is_better
from foretell.scoring.score import PairComparison
from foretell.scoring.scoreboard import OVERALL, Scoreboard
from foretell.scoring.table import ANCHORS


def headline(board: Scoreboard, anchors: Collection[str] = ANCHORS) -> str:
    """One or two plain sentences about the first group of the board.

    The margin is the paired difference on the targets both answered, so it can differ from the gap between the
    two rows of the table.
    """
    groups = board.groups()
    if not groups:
        return "Nothing was scored."
    found = leaderboard_section(board, groups[0], anchors)
    scored = [row for row in found.rows if _has(row, board.metric)]
    if not scored:
        return "No forecaster has a score yet."
    if len(scored) == 1:
        return _alone(scored[0], board)
    first, second = scored[0], scored[1]
    comparison = _between(first, second)
    if comparison is not None:
        return _lead(first, second.name, comparison, board) + _beaten_by_anchor(first)
    return _without_pair(first, second, board) + _beaten_by_anchor(first)


def pair_headline(pair: PairComparison) -> str:
    """The outcome of a head-to-head, and how many targets would settle it where it is open."""
    if not pair.differences:
        return f"{clean(pair.first)} and {clean(pair.second)} share no target."
    found = pair.differences[0]
    margin, word = _margin(found.comparison, found.metric), metric_text(found.metric)
    ahead, behind = (pair.first, pair.second) if margin.diff >= 0 else (pair.second, pair.first)
    margin = margin if margin.diff >= 0 else _flipped(margin)
    verb = "beats" if margin.low > 0 else "is ahead of"
    told = (
        f"{clean(ahead)} {verb} {clean(behind)} by {number(margin.diff, word.decimals)} {word.label} on the "
        f"{plural(margin.n, 'target')} both answered{_verdict(margin, found.metric, f'{100 * pair.level:g} %')}"
    )
    if margin.low > 0 or pair.pilot is None or not pair.pilot.gain:
        return told
    return f"{told} A true gap of this size would take about {pair.pilot.questions_needed():,} targets to show."


def level_of(board: Scoreboard) -> str:
    """The confidence level of the board's intervals, in words."""
    return f"{100 * float(board.settings.get('level', 0.95)):g} %"


def _has(row: LeaderboardRow, metric: str) -> bool:
    found = row.metric(metric)
    return found is not None and math.isfinite(found.estimate)


def _alone(row: LeaderboardRow, board: Scoreboard) -> str:
    word, score = metric_text(board.metric), row.metric(board.metric)
    told = estimate(score, word.decimals)
    return f"Only {clean(row.name)} was scored: {word.label} {told} on {plural(row.score.n, 'target')}."


def _between(first: LeaderboardRow, second: LeaderboardRow) -> Comparison | None:
    """The comparison first − second, where the board has one (one of the two is its reference)."""
    if second.reference:
        return first.difference
    return None if not first.reference or second.difference is None else _flipped(second.difference)


def _flipped(c: Comparison) -> Comparison:
    return replace(c, diff=-c.diff, low=-c.high, high=-c.low)


def _margin(comparison: Comparison, metric: str) -> Comparison:
    """The comparison with positive = better."""
    return _flipped(comparison) if low_is_better(metric) else comparison


def _lead(first: LeaderboardRow, other: str, comparison: Comparison, board: Scoreboard) -> str:
    word, margin = metric_text(board.metric), _margin(comparison, board.metric)
    name, other = clean(first.name), clean(other)
    by = number(abs(margin.diff), word.decimals)
    if margin.diff < 0:
        return (
            f"{name} ranks first, but on the {plural(margin.n, 'target')} both answered {other} is better "
            f"by {by} {word.label}{_verdict(_flipped(margin), board.metric, level_of(board))}"
        )
    return f"{name} leads by {by} {word.label} over {other}{_verdict(margin, board.metric, level_of(board))}"


def _verdict(margin: Comparison, metric: str, level: str) -> str:
    """Whether a positive margin could be chance."""
    interval = bracket(margin.low, margin.high, metric_text(metric).decimals)
    if not interval:
        return "; there are too few questions for an interval."
    sure = margin.low > 0 or margin.high < 0
    told = f"the {level} interval {interval} excludes zero" if sure else f"within noise, {level} interval {interval}"
    care = f" (only {plural(margin.n_clusters, 'cluster')}: take it with care)" if margin.warning else ""
    return f"; {told}{care}."


def _without_pair(first: LeaderboardRow, second: LeaderboardRow, board: Scoreboard) -> str:
    word = metric_text(board.metric)
    a, b = first.metric(board.metric), second.metric(board.metric)
    if a is None or b is None:
        return ""
    gap = number(abs(a.estimate - b.estimate), word.decimals)
    told = f"{clean(first.name)} has the best {word.label}, {estimate(a, word.decimals)}, {gap} ahead of "
    told += f"{clean(second.name)} (pair not tested)."
    if first.difference is None:
        return told
    margin = _margin(first.difference, board.metric)
    side = "ahead of" if margin.diff >= 0 else "behind"
    by = number(abs(margin.diff), word.decimals)
    margin = margin if margin.diff >= 0 else _flipped(margin)
    verdict = _verdict(margin, board.metric, level_of(board))
    return f"{told} It is {by} {side} the reference {clean(board.reference)}{verdict}"


def _beaten_by_anchor(first: LeaderboardRow) -> str:
    return " No forecaster beats this yardstick." if first.anchor else ""


def scope(found: LeaderboardSection, board: Scoreboard) -> str:
    """What a group rests on, e.g. "791 targets of 375 questions, 12 forecasters"."""
    if not found.rows:
        return "nothing"
    n, questions = max(r.score.n for r in found.rows), max(r.score.questions for r in found.rows)
    forecasters = sum(not r.anchor for r in found.rows)
    kinds = any(group.get("kind", OVERALL) != OVERALL for group in board.groups())
    mean = "; mean over kinds" if kinds and found.group.get("kind") == OVERALL else ""
    told = f"{plural(n, 'target')} of {plural(questions, 'question')}"
    return f"{told}, {plural(forecasters, 'forecaster')}{mean}"
