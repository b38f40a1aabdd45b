"""Questions about a number or a date, whose targets are thresholds of one quantity."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Literal

from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.questions.forecast import Numeric
from foretell.questions.question import Question

NUMERIC = "numeric"
"""The subtype of a question whose targets are thresholds of one quantity, with ids such as `>3.5` or `<=100`.

A question with a range is numeric too; if the range is one of dates, so are the ids, such as `>2027-01-31`.
"""
LEVELS: Mapping[str, float] = {
    "q05": 0.05, "q10": 0.1, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q90": 0.9, "q95": 0.95
}  # fmt: skip
"""Levels of the quantiles that are stated for a quantity, by name."""
_THRESHOLD = pattern(r"\s*(<|>)=?\s*([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|\d{4}-\d\d-\d\d\S*)\s*")


@frozen
class NumericThreshold:
    """A target that comes true on one side of a value."""

    side: Literal["above", "below"]
    value: float

    def chance(self, distribution: Numeric) -> float:
        """Return the probability of this target."""
        p = distribution.above(self.value) if self.side == "above" else distribution.below(self.value)
        return min(1.0, max(0.0, round(p, 12)))


def thresholds_of(question: Question) -> dict[str, NumericThreshold] | None:
    """Return the thresholds of a numeric question by target id; None for any other question."""
    if question.subtype != NUMERIC and question.range is None:
        return None
    return read_thresholds([target.id for target in question.targets])


def read_thresholds(ids: Iterable[str]) -> dict[str, NumericThreshold] | None:
    """Return the thresholds that these ids of targets name; None if one names none."""
    thresholds: dict[str, NumericThreshold] = {}
    for id in ids:
        match = _THRESHOLD.fullmatch(id)
        if match is None:
            return None
        try:
            value = seconds_of(match[2]) if "-" in match[2][1:] and "e" not in match[2].lower() else float(match[2])
        except ValueError:  # Not a day of the calendar.
            return None
        thresholds[id] = NumericThreshold(side="above" if match[1] == ">" else "below", value=value)
    return thresholds


def seconds_of(day: str) -> float:
    """Convert a date or a time to Unix seconds; UTC is assumed if no time zone is given.

    >>> seconds_of("1970-01-02"), seconds_of("1970-01-01T01:00"), seconds_of("1970-01-01T01:00:00+01:00")
    (86400.0, 3600.0, 0.0)
    """
    timestamp = datetime.fromisoformat(day.strip())
    return (timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)).timestamp()


def date_of(seconds: float) -> str:
    """Format Unix seconds as a date, with the time unless it is midnight.

    >>> date_of(86400.0), date_of(90000.0)
    ('1970-01-02', '1970-01-02T01:00:00Z')
    """
    timestamp = datetime.fromtimestamp(round(seconds), UTC)
    return timestamp.strftime("%Y-%m-%d" if round(seconds) % 86_400 == 0 else "%Y-%m-%dT%H:%M:%SZ")
