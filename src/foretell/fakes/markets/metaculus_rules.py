"""What Metaculus refuses in a forecast, written down apart from the code that keeps to it."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

FIELDS = {
    "binary": "probability_yes",
    "multiple_choice": "probability_yes_per_category",
    "numeric": "continuous_cdf",
    "discrete": "continuous_cdf",
    "date": "continuous_cdf",
}


def complaint(question: Mapping[str, Any], forecast: Mapping[str, Any]) -> str:
    """Why a forecast is refused; empty if it is not."""
    field = FIELDS[question["type"]]
    others = [name for name in set(FIELDS.values()) - {field} if forecast.get(name) is not None]
    if others or forecast.get(field) is None:
        return f"Only {field} should be provided for {question['type']} questions"
    if field == "probability_yes":
        good = 0.001 <= float(forecast[field]) <= 0.999
        return "" if good else "probability_yes should be between 0.001 and 0.999"
    if field == "probability_yes_per_category":
        return _choice(forecast[field], question["options"])
    return _continuous([float(value) for value in forecast[field]], question)


def _choice(told: Mapping[str, float | None], options: list[str]) -> str:
    given = {option: p for option, p in told.items() if p is not None}
    if set(given) != set(options):
        return "Forecast must include all options"
    # As close to one as numpy.isclose wants it.
    good = all(0.001 <= p <= 0.999 for p in given.values()) and abs(sum(given.values()) - 1) <= 1e-8 + 1e-5
    return "" if good else "All probabilities must be between 0.001 and 0.999 and sum to 1.0"


def _continuous(cdf: list[float], question: Mapping[str, Any]) -> str:
    cells = question.get("inbound_outcome_count") or 200
    if len(cdf) != cells + 1:
        return f"CDF Invalid: continuous_cdf for question {question['id']} must have {cells + 1} values."
    cdf = [round(value, 10) for value in cdf]
    steps = [round(b - a, 10) for a, b in pairwise(cdf)]
    least, most = round(0.01 / cells, 9), 0.2 * 200 / cells
    rules = {
        f"must be increasing by at least {least} at every step": min(steps) >= least,
        f"must be increasing by no more than {most} at every step": max(steps) <= most,
        "at lower bound must be at least 0.001": not question["open_lower_bound"] or cdf[0] >= 0.001,
        "at lower bound must be 0.00": question["open_lower_bound"] or cdf[0] == 0.0,
        "at upper bound must be at most 0.999": not question["open_upper_bound"] or cdf[-1] <= 0.999,
        "at upper bound must be 1.00": question["open_upper_bound"] or cdf[-1] == 1.0,
    }
    broken = [rule for rule, kept in rules.items() if not kept]
    return f"CDF Invalid: continuous_cdf {'; '.join(broken)}" if broken else ""
