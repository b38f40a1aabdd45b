"""Questions about a number: the agent states quantiles, and every threshold follows from them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from foretell.questions.distribution import Numeric
from foretell.questions.question import Question

NUMERIC = "numeric"
"""The subtype of a question whose targets are thresholds of one quantity, with ids such as `>3.5` or `<=100`."""
LEVELS: Mapping[str, float] = {
    "q05": 0.05, "q10": 0.1, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q90": 0.9, "q95": 0.95
}  # fmt: skip
LARGEST = 1e100
"""Beyond this, differences of quantiles might overflow."""
_THRESHOLD = re.compile(r"\s*(<|>)=?\s*([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*")


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """A target that comes true on one side of a value."""

    side: Literal["above", "below"]
    value: float

    def chance(self, distribution: Numeric) -> float:
        """The probability of this target. Beyond the outermost quantiles half of the tail counts: nobody described it.

        >>> Threshold(side="above", value=9).chance(Numeric.from_quantiles({0.1: 1.0, 0.9: 5.0}))
        0.05
        """
        x, cdf = distribution.x, distribution.cdf
        below = distribution.below(self.value)
        if self.value < x[0]:
            below = cdf[0] / 2
        elif self.value > x[-1]:
            below = (1 + cdf[-1]) / 2
        return round(1 - below if self.side == "above" else below, 12)


def thresholds_of(question: Question) -> dict[str, Threshold] | None:
    """The thresholds of a numeric question by target id; None for any other question.

    >>> from foretell.questions import Target
    >>> q = Question(id="q", source="own", text="How many?", due="2025-10-26", subtype="numeric",
    ...              targets=(Target(id=">10"), Target(id="<=5")))
    >>> thresholds_of(q)["<=5"]
    Threshold(side='below', value=5.0)
    """
    if question.subtype != NUMERIC:
        return None
    found: dict[str, Threshold] = {}
    for target in question.targets:
        read = _THRESHOLD.fullmatch(target.id)
        if read is None:
            return None
        found[target.id] = Threshold(side="above" if read[1] == ">" else "below", value=float(read[2]))
    return found


def read_quantiles(given: Any) -> Numeric:
    """The distribution through the stated quantiles, or a `ValueError` that tells the model what to mend.

    >>> read_quantiles({"q10": 1, "q50": 2, "q90": 5}).below(2.0)
    0.5
    """
    if not isinstance(given, Mapping):
        raise ValueError(f"quantiles must be an object with the keys {', '.join(LEVELS)}")
    values = {level: given[key] for key, level in LEVELS.items() if key in given}
    if len(values) < 3:
        raise ValueError(f"at least three of the quantiles {', '.join(LEVELS)} are needed")
    for level, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LARGEST:
            raise ValueError(f"the quantile at {level:g} is not a number of usual size")
    try:
        return Numeric.from_quantiles({level: float(value) for level, value in values.items()})
    except ValueError:
        raise ValueError("each quantile must be larger than the one before it") from None


def write_quantiles(distribution: Numeric) -> dict[str, float]:
    """The quantiles as a model states them."""
    return {key: distribution.quantile(level) for key, level in LEVELS.items()}
