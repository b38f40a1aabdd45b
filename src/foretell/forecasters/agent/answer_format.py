"""Writes the probabilities of a question as JSON and parses them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from math import isfinite
from typing import Any, Literal

from foretell.models.structured_output import closed_object
from foretell.questions.forecast import Categorical, Numeric
from foretell.questions.question import Exclusivity, Question, scaled

# Questions about a number or a date: the agent states quantiles, and every threshold follows from them.

NUMERIC = "numeric"
"""The subtype of a question whose targets are thresholds of one quantity, with ids such as `>3.5` or `<=100`.

A question with a range is numeric too; if the range is one of dates, so are the ids, such as `>2027-01-31`.
"""
LEVELS: Mapping[str, float] = {
    "q05": 0.05, "q10": 0.1, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q90": 0.9, "q95": 0.95
}  # fmt: skip
LARGEST = 1e100
"""Largest value accepted: beyond this, differences of quantiles might overflow."""
_THRESHOLD = re.compile(r"\s*(<|>)=?\s*([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|\d{4}-\d\d-\d\d\S*)\s*")


@dataclass(frozen=True, kw_only=True)
class NumericThreshold:
    """A target that comes true on one side of a value."""

    side: Literal["above", "below"]
    value: float

    def chance(self, distribution: Numeric) -> float:
        """The probability of this target. Beyond the outermost quantiles half the tail counts: no more is known."""
        x, cdf = distribution.x, distribution.cdf
        below = distribution.below(self.value)
        if self.value < x[0]:
            below = cdf[0] / 2
        elif self.value > x[-1]:
            below = (1 + cdf[-1]) / 2
        return round(1 - below if self.side == "above" else below, 12)


def thresholds_of(question: Question) -> dict[str, NumericThreshold] | None:
    """The thresholds of a numeric question by target id; None for any other question."""
    if question.subtype != NUMERIC and question.range is None:
        return None
    found: dict[str, NumericThreshold] = {}
    for target in question.targets:
        read = _THRESHOLD.fullmatch(target.id)
        if read is None:
            return None
        value = seconds_of(read[2]) if "-" in read[2][1:] and "e" not in read[2].lower() else float(read[2])
        found[target.id] = NumericThreshold(side="above" if read[1] == ">" else "below", value=value)
    return found


def seconds_of(day: str) -> float:
    """Convert a date or a time to Unix seconds; UTC is assumed if no time zone is given.

    >>> seconds_of("1970-01-02"), seconds_of("1970-01-01T01:00"), seconds_of("1970-01-01T01:00:00+01:00")
    (86400.0, 3600.0, 0.0)
    """
    moment = datetime.fromisoformat(day.strip())
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def read_quantiles(given: Any, *, dates: bool = False, ties: bool = False) -> Numeric:
    """Return the distribution through the stated quantiles, or raise a `ValueError` that tells the model what to fix.

    Args:
        given: The quantiles as the model stated them.
        dates: Whether the values are dates; the distribution is then one of Unix seconds.
        ties: Whether quantiles may be equal: a quantity in whole steps has much of its probability on one value.
    """
    if not isinstance(given, Mapping):
        raise ValueError(f"quantiles must be an object with the keys {', '.join(LEVELS)}")
    values = {level: given[key] for key, level in LEVELS.items() if key in given}
    if len(values) < 3:
        raise ValueError(f"at least three of the quantiles {', '.join(LEVELS)} are needed")
    read = {level: (_read_date if dates else _read_value)(value, level) for level, value in values.items()}
    try:
        return Numeric.from_quantiles(_untied(read) if ties else read)
    except ValueError:
        what = "later" if dates else "larger"
        raise ValueError(f"each quantile must be {what} than the one before it") from None


def _read_value(value: Any, level: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LARGEST:
        raise ValueError(f"the quantile at {level:g} is not a number of usual size")
    return float(value)


def _read_date(value: Any, level: float) -> float:
    try:
        return seconds_of(value)
    except (ValueError, TypeError, AttributeError, OverflowError):
        problem = f"the quantile at {level:g} is {repr(value)[:40]}, not a date such as 2027-01-31"
        raise ValueError(problem) from None


def _untied(values: Mapping[float, float]) -> dict[float, float]:
    """Move equal neighbours slightly apart, so that all probability between their levels stays at their value.

    >>> _untied({0.1: 2.0, 0.5: 3.0, 0.9: 3.0})
    {0.1: 2.0, 0.5: 2.999..., 0.9: 3.000...}
    """
    levels = sorted(values)
    hair = 1e-6 * max(1.0, *(abs(value) for value in values.values()))
    groups = [list(group) for _, group in groupby(levels, key=lambda level: values[level])]
    return {
        level: values[level] + hair * (place - (len(group) - 1) / 2)
        for group in groups
        for place, level in enumerate(group)
    }


def write_quantiles(distribution: Numeric, *, dates: bool = False) -> dict[str, float | str]:
    """The quantiles of a distribution in the form in which a model states them."""
    stated = {key: distribution.quantile(level) for key, level in LEVELS.items()}
    return {key: date_of(value) for key, value in stated.items()} if dates else {**stated}


def date_of(seconds: float) -> str:
    """Format Unix seconds as a date, with the time unless it is midnight.

    >>> date_of(86400.0), date_of(90000.0)
    ('1970-01-02', '1970-01-02T01:00:00Z')
    """
    moment = datetime.fromtimestamp(round(seconds), UTC)
    return moment.strftime("%Y-%m-%d" if round(seconds) % 86_400 == 0 else "%Y-%m-%dT%H:%M:%SZ")


SUMS: Mapping[Exclusivity, str] = {
    "exactly one": "Sum to {whole}.",
    "at most one": "Sum to at most {whole}.",
    "independent": "",
}
"""What the schema says about the sum of the probabilities of several targets."""
_PERCENT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")
MANY_TARGETS = 8
SAFE_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Property names that every provider accepts."""


def target_keys(question: Question) -> dict[str, str]:
    """Target ids by the keys that stand for them: the ids, or target_1, target_2, … if any id is not a safe name.

    If there are many targets the keys are shorter, because each is written out three times.
    """
    ids = [target.id for target in question.targets]
    if all(SAFE_KEY.fullmatch(target) for target in ids):
        return {target: target for target in ids}
    name = "t" if len(ids) > MANY_TARGETS else "target_"
    return {f"{name}{place}": target for place, target in enumerate(ids, start=1)}


@dataclass(frozen=True, kw_only=True)
class StatedProbabilities:
    """Probabilities as a model stated them: those that could be parsed, and what was wrong with the others."""

    p: Mapping[str, float]
    """Probability by target id."""
    distribution: Numeric | None = None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AnswerFormat:
    """The form of an answer: one probability per target, a bare number if there is one target, or quantiles."""

    targets: Mapping[str, str]
    """Target id by the key the model uses. Providers reject odd characters in keys, so ids with such get short keys."""
    exclusivity: Exclusivity = "independent"
    percent: bool = False
    """Use whole percents instead of fractions: a grammar can hold a small model to a range of integers only."""
    thresholds: Mapping[str, NumericThreshold] | None = None
    dates: bool = False
    """Whether the quantiles are dates."""
    whole_steps: bool = False
    """Whether the quantity comes in whole steps, so that several quantiles may be equal."""

    @classmethod
    def of(cls, question: Question, *, percent: bool = False) -> "AnswerFormat":
        """The answer format for a question."""
        keys = target_keys(question)
        return cls(
            targets=keys,
            exclusivity=question.exclusivity,
            percent=percent,
            thresholds=thresholds_of(question),
            dates=question.range is not None and question.range.dates,
            whole_steps=question.range is not None and question.range.whole,
        )

    @property
    def field(self) -> str:
        """The name of the field that holds the answer."""
        return "quantiles" if self.thresholds is not None else "percent" if self.percent else "p"

    @property
    def many(self) -> bool:
        """Whether there are so many targets that the schema must be short: it does not repeat what the prompt says."""
        return self.thresholds is None and len(self.targets) > MANY_TARGETS

    @property
    def whole(self) -> int:
        """The number that stands for certainty on the scale of the answer."""
        return 100 if self.percent else 1

    def schema(self) -> dict[str, Any]:
        """JSON schema of the answer field."""
        if self.thresholds is not None:
            kind = {"type": "string", "description": "YYYY-MM-DD"} if self.dates else {"type": "number"}
            what = "Date" if self.dates else "Value"
            return closed_object(dict.fromkeys(LEVELS, kind), f"{what} at each quantile, increasing.")
        if len(self.targets) == 1:
            return {**self._number(), "description": "Probability that it resolves YES."}
        # Keys that are ids are explained in the question: here it would be sent twice. The others get a short reminder.
        numbers = {
            key: self._number() if key == id or self.many else {**self._number(), "description": id[:80]}
            for key, id in self.targets.items()
        }
        return closed_object(numbers, "" if self.many else SUMS[self.exclusivity].format(whole=self.whole))

    def read(self, given: Mapping[str, Any]) -> StatedProbabilities:
        """Parse what an object says about the targets; never raises."""
        if self.thresholds is not None:
            return self._read_quantiles(given.get("quantiles", given.get("p")))
        if given.get("percent") is not None:
            return self._read_p(given["percent"], as_percent)
        raw = next((given[name] for name in ("p", "probability", "probabilities") if name in given), None)
        if raw is None:
            return StatedProbabilities(p={}, problems=(f"{self.field} is missing",))
        return self._read_p(raw, as_probability)

    def write(self, p: Mapping[str, float], distribution: Numeric | None = None) -> Any:
        """The field's value for given probabilities, in the form that `read` parses."""
        if distribution is not None:
            return write_quantiles(distribution, dates=self.dates)
        values = {key: round(100 * p[id]) if self.percent else p[id] for key, id in self.targets.items()}
        return next(iter(values.values())) if len(values) == 1 else values

    def named(self, id: str) -> str:
        """The name of a target in the prompt: the key that the model uses, or the threshold as it is stated."""
        if self.thresholds is None:
            return next(key for key, target in self.targets.items() if target == id)
        mark = ">" if self.thresholds[id].side == "above" else "<"
        return f"{mark}{date_of(self.thresholds[id].value)[:10]}" if self.dates else id

    def missing(self, p: Mapping[str, float]) -> tuple[str, ...]:
        """Keys of the targets that have no probability yet."""
        return tuple(key for key, id in self.targets.items() if id not in p)

    def coherent(self, p: Mapping[str, float]) -> dict[str, float]:
        """Scale the probabilities to a valid sum if the options exclude each other; otherwise return them as stated."""
        return dict(p) if self.missing(p) else scaled(p, self.exclusivity)

    def distribution(self, p: Mapping[str, float], numeric: Numeric | None) -> Categorical | Numeric | None:
        """The whole distribution behind the probabilities, if the question has one."""
        return Categorical(p=p, normalise=True) if self.exclusivity == "exactly one" else numeric

    def _read_quantiles(self, raw: Any) -> StatedProbabilities:
        assert self.thresholds is not None
        try:
            distribution = read_quantiles(raw, dates=self.dates, ties=self.whole_steps)
        except (ValueError, OverflowError) as problem:
            return StatedProbabilities(p={}, problems=(str(problem),))
        p = {id: min(1.0, max(0.0, t.chance(distribution))) for id, t in self.thresholds.items()}
        return StatedProbabilities(p=p, distribution=distribution)

    def _number(self) -> dict[str, Any]:
        if self.many and not self.percent:
            return {"type": "number"}
        return {"type": "integer" if self.percent else "number", "minimum": 0, "maximum": self.whole}

    def _read_p(self, raw: Any, read: Callable[[Any], float]) -> StatedProbabilities:
        if not isinstance(raw, Mapping):
            if len(self.targets) > 1:
                problem = f"{self.field} must be an object with the keys {', '.join(self.targets)}"
                return StatedProbabilities(p={}, problems=(problem,))
            raw = {next(iter(self.targets)): raw}
        p: dict[str, float] = {}
        problems: list[str] = []
        for key, id in self.targets.items():
            try:
                p[id] = read(raw[key] if key in raw else raw[id])
            except KeyError:
                problems.append(f"p of {key} is missing")
            except ValueError as problem:
                problems.append(f"p of {key} {problem}")
        if self.exclusivity == "exactly one" and not self.missing(p) and sum(p.values()) <= 0:
            return StatedProbabilities(p={}, problems=("exactly one option comes true, so they cannot all have p = 0",))
        return StatedProbabilities(p=p, problems=tuple(problems))


def read_number(value: Any) -> float:
    """Parse a finite number, also given as text or as a percentage, which becomes a fraction; reject anything else."""
    try:
        percent = _PERCENT.fullmatch(value) if isinstance(value, str) else None
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError
        number = float(percent[1]) / 100 if percent else float(value)
        if not isfinite(number) or (percent and not 0 <= number <= 1):
            raise ValueError
    except (ValueError, OverflowError):
        raise ValueError(f"is {repr(value)[:40]}, not a number from 0 to 1") from None
    return number


def as_probability(value: Any) -> float:
    """Parse a number in [0, 1], also given as text or as a percentage; 35 is rejected, not taken to mean 35 %.

    >>> as_probability("35 %"), as_probability("0.2")
    (0.35, 0.2)
    """
    number = read_number(value)
    if not 0 <= number <= 1:
        raise ValueError(f"is {repr(value)[:40]}, not a number from 0 to 1")
    return number


def as_percent(value: Any) -> float:
    """Convert a whole number of percents to a probability. 0.35 is rejected because it may be meant as a fraction."""
    percent = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    number = float(percent[1]) if percent else value
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= 100 or number % 1:
        raise ValueError(f"is {repr(value)[:40]}, not a whole number from 0 to 100")
    return float(number) / 100
