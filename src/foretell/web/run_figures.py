"""Charts of runs: scores and answers on rulers."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from foretell.report.charts.rulers import ShownAnswer, labelled_score, probability_ruler, score_ruler
from foretell.report.charts.svg import Chart
from foretell.web.run_rows import RunRowView


def ruler_ends(runs: Sequence[RunRowView]) -> tuple[int, int]:
    """Return round numbers that enclose every score of these runs."""
    scores = [run.score for run in runs if run.score.get("brier_index")]
    numbers = [value for score in scores for value in _numbers(score) if math.isfinite(value)] or [50.0]
    low, high = 10 * math.floor(min(numbers) / 10), 10 * math.ceil(max(numbers) / 10)
    return low, max(high, low + 10)


def score_rulers(runs: Sequence[RunRowView]) -> dict[str, Chart]:
    """Return a ruler with the score of each run, by run id, all on the same scale."""
    scored = {run.id: run.score for run in runs if run.score.get("brier_index")}
    low, high = ruler_ends(runs)
    return {
        id: score_ruler(
            (score["brier_index"]["estimate"], score["brier_index"]["low"], score["brier_index"]["high"]),
            low,
            high,
            price=_estimate(score["price"]),
            rate=_estimate(score["base_rate"]),
        )
        for id, score in scored.items()
    }


def run_ruler(score: Mapping[str, Any]) -> Chart | None:
    """Draw the score of one run beside the market and the base rate; None without a score."""
    if not score.get("brier_index"):
        return None
    bi = score["brier_index"]
    # On the questions that both answered, as in the numbers below it.
    against = {"price": "against_price", "base_rate": "against_base_rate"}
    price, rate = (
        score[other]["other"] if score.get(other) else _estimate(score[own]) for own, other in against.items()
    )
    beside = {"price": price, "rate": rate}
    return labelled_score((bi["estimate"], bi["low"], bi["high"]), **beside)


def _numbers(score: Mapping[str, Any]) -> list[float]:
    numbers = [score["brier_index"][end] for end in ("estimate", "low", "high")]
    return numbers + [score[name]["estimate"] for name in ("price", "base_rate") if score[name]]


def _estimate(interval: Mapping[str, float] | None) -> float | None:
    return None if interval is None else interval["estimate"]


def answer_ruler(answer: Mapping[str, Any]) -> Chart:
    """Draw the answer to a question with its trials, the market price and the outcome."""
    parts = {name: answer[name] for name in ("p", "trials", "price", "outcome")}
    return probability_ruler(ShownAnswer(**parts))
