"""Writes the probabilities of a question as JSON and parses them."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from math import isfinite
from typing import Any

from foretell.frozen import frozen
from foretell.models.structured_output import closed_object
from foretell.patterns import pattern
from foretell.questions.forecast import Categorical, Numeric
from foretell.questions.question import Exclusivity, NumericRange, Question, scaled
from foretell.questions.thresholds import LEVELS, NumericThreshold, date_of, seconds_of, thresholds_of

# Questions about a number or a date: the agent states quantiles, from which the thresholds are computed.

NEVER = "never"
"""The key beside the quantiles of a date for the chance that it never comes."""
MOST_NEVER = 0.99
"""Largest chance of never: the quantiles must describe something."""
LARGEST = 1e100
"""Largest value accepted: beyond this, differences of quantiles might overflow."""


def read_quantiles(quantiles: Any, *, dates: bool = False, ties: bool = False) -> Numeric:
    """Return the distribution through the stated quantiles. Raises `ValueError` with a message for the model.

    With `dates` it is one of Unix seconds. With `ties`, as of a quantity in whole steps, quantiles may be equal.
    """
    if not isinstance(quantiles, Mapping):
        raise ValueError(f"quantiles must be an object with the keys {', '.join(LEVELS)}")
    values = {level: quantiles[key] for key, level in LEVELS.items() if key in quantiles}
    if len(values) < 3:
        raise ValueError(f"at least three of the quantiles {', '.join(LEVELS)} are needed")
    parsed = {level: (_read_date if dates else _read_value)(value, level) for level, value in values.items()}
    never = _read_never(quantiles[NEVER]) if dates and NEVER in quantiles else 0.0
    try:
        return Numeric.from_quantiles(_untied(parsed) if ties else parsed, never=never)
    except ValueError:
        order = "later" if dates else "larger"
        raise ValueError(f"each quantile must be {order} than the one before it") from None


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


def _read_never(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_NEVER:
        raise ValueError(f"{NEVER} is {repr(value)[:40]}, not a probability from 0 to {MOST_NEVER:g}")
    return float(value)


def _untied(values: Mapping[float, float]) -> dict[float, float]:
    """Move equal neighbours slightly apart, so that all probability between their levels stays at their value.

    >>> _untied({0.1: 2.0, 0.5: 3.0, 0.9: 3.0})
    {0.1: 2.0, 0.5: 2.999..., 0.9: 3.000...}
    """
    levels = sorted(values)
    epsilon = 1e-6 * max(1.0, *(abs(value) for value in values.values()))
    groups = [list(group) for _, group in groupby(levels, key=lambda level: values[level])]
    return {
        level: values[level] + epsilon * (place - (len(group) - 1) / 2)
        for group in groups
        for place, level in enumerate(group)
    }


def write_quantiles(distribution: Numeric, *, dates: bool = False) -> dict[str, float | str]:
    """Return the quantiles of a distribution in the form in which a model states them."""
    exists = 1 - distribution.never
    stated = {key: distribution.quantile(exists * level) for key, level in LEVELS.items()}
    if not dates:
        return {**stated}
    never = {NEVER: distribution.never} if distribution.never else {}
    return {key: date_of(value) for key, value in stated.items()} | never


SUMS: Mapping[Exclusivity, str] = {
    "exactly one": "Sum to {whole}.",
    "at most one": "Sum to at most {whole}.",
    "independent": "",
}
"""The schema's description of the sum of the probabilities of several targets."""
_PERCENT = pattern(r"\s*(\d+(?:\.\d+)?)\s*%\s*")
MANY_TARGETS = 8
SAFE_KEY = pattern(r"[A-Za-z0-9_.-]{1,64}")
"""Property names that every provider accepts."""


def target_keys(question: Question) -> dict[str, str]:
    """Return target ids by key, as `safe_keys`."""
    return safe_keys([target.id for target in question.targets])


def safe_keys(ids: Sequence[str]) -> dict[str, str]:
    """Return ids by key. Keys are the ids, or target_1, target_2, … if any id is not a safe name.

    With many ids the keys are shorter, because each occurs three times in the prompt.
    """
    if all(SAFE_KEY.fullmatch(target) for target in ids):
        return {target: target for target in ids}
    name = "t" if len(ids) > MANY_TARGETS else "target_"
    return {f"{name}{place}": target for place, target in enumerate(ids, start=1)}


@frozen
class StatedProbabilities:
    """Probabilities as a model stated them: those that could be parsed, and what was wrong with the others."""

    p: Mapping[str, float]
    """Probability by target id."""
    distribution: Numeric | None = None
    problems: tuple[str, ...] = ()


@frozen
class AnswerFormat:
    """The form of an answer: one probability per target, a bare number if there is one target, or quantiles."""

    targets: Mapping[str, str]
    """Target id by the key that the model uses; see `target_keys`."""
    exclusivity: Exclusivity = "independent"
    percent: bool = False
    """Use whole percents instead of fractions, because a grammar can enforce a range only for integers."""
    thresholds: Mapping[str, NumericThreshold] | None = None
    dates: bool = False
    """Whether the quantiles are dates."""
    scale: NumericRange | None = None
    """The range of the quantity, if the question states one."""
    never: bool = False
    """Whether the chance that a date never comes is asked for by itself."""
    whole_steps: bool = False
    """Whether the quantity comes in whole steps, so that several quantiles may be equal."""

    @classmethod
    def of(cls, question: Question, *, percent: bool = False, never: bool = False) -> "AnswerFormat":
        """The answer format for a question. With `never`, dates have a separate chance of never."""
        keys = target_keys(question)
        return cls(
            targets=keys,
            exclusivity=question.exclusivity,
            percent=percent,
            thresholds=thresholds_of(question),
            dates=question.range is not None and question.range.dates,
            never=never and question.range is not None and question.range.dates and question.range.open_upper,
            scale=question.range,
            whole_steps=question.range is not None and question.range.whole,
        )

    @property
    def field(self) -> str:
        """The name of the field that holds the answer."""
        return "quantiles" if self.thresholds is not None else "percent" if self.percent else "p"

    @property
    def many(self) -> bool:
        """Whether there are so many targets that the schema must be short."""
        return self.thresholds is None and len(self.targets) > MANY_TARGETS

    @property
    def whole(self) -> int:
        """The number that means certainty on the scale of the answer."""
        return 100 if self.percent else 1

    def schema(self) -> dict[str, Any]:
        """JSON schema of the answer field."""
        if self.thresholds is not None:
            kind = {"type": "string", "description": "YYYY-MM-DD"} if self.dates else {"type": "number"}
            noun = "Date" if self.dates else "Value"
            if self.never:
                chance = {"type": "number", "minimum": 0, "maximum": MOST_NEVER}
                text = "Date at each quantile, increasing, if it happens at all. `never`: the chance that it does not."
                return closed_object({**dict.fromkeys(LEVELS, kind), NEVER: chance}, text)
            return closed_object(dict.fromkeys(LEVELS, kind), f"{noun} at each quantile, increasing.")
        if len(self.targets) == 1:
            return {**self._number(), "description": "Probability that it resolves YES."}
        # The question explains keys that are ids. The others get a short description.
        numbers = {
            key: self._number() if key == id or self.many else {**self._number(), "description": id[:80]}
            for key, id in self.targets.items()
        }
        return closed_object(numbers, "" if self.many else SUMS[self.exclusivity].format(whole=self.whole))

    def read(self, answer: Mapping[str, Any]) -> StatedProbabilities:
        """Parse the numbers in an object. Never raises."""
        if self.thresholds is not None:
            return self._read_quantiles(answer.get("quantiles", answer.get("p")))
        if answer.get("percent") is not None:
            return self._read_p(answer["percent"], as_percent)
        raw = next((answer[name] for name in ("p", "probability", "probabilities") if name in answer), None)
        if raw is None:
            return StatedProbabilities(p={}, problems=(f"{self.field} is missing",))
        return self._read_p(raw, as_probability)

    def write(self, p: Mapping[str, float], distribution: Numeric | None = None) -> Any:
        """Return the field's value for given probabilities, in the form that `read` parses."""
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
            distribution = self.cut(read_quantiles(raw, dates=self.dates, ties=self.whole_steps))
        except (ValueError, OverflowError) as problem:
            return StatedProbabilities(p={}, problems=(str(problem),))
        return StatedProbabilities(p=self.chances(distribution), distribution=distribution)

    def chances(self, distribution: Numeric) -> dict[str, float]:
        """Return the chance of every threshold."""
        return {id: threshold.chance(distribution) for id, threshold in (self.thresholds or {}).items()}

    def cut(self, distribution: Numeric) -> Numeric:
        """Return the distribution without what a closed end of the range excludes."""
        scale = self.scale
        if scale is None:
            return distribution
        low, high = None if scale.open_lower else scale.minimum, None if scale.open_upper else scale.maximum
        return distribution.within(low, high)

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
    """Parse a finite number, also as text or as a percentage, which becomes a fraction. Raises ValueError otherwise."""
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
    """Parse a number in [0, 1], also as text or as a percentage; 35 without a percent sign is rejected.

    >>> as_probability("35 %"), as_probability("0.2")
    (0.35, 0.2)
    """
    number = read_number(value)
    if not 0 <= number <= 1:
        raise ValueError(f"is {repr(value)[:40]}, not a number from 0 to 1")
    return number


def as_percent(value: Any) -> float:
    """Convert a whole number of percents to a probability; 0.35 is rejected, because it may be a fraction."""
    percent = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    number = float(percent[1]) if percent else value
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= 100 or number % 1:
        raise ValueError(f"is {repr(value)[:40]}, not a whole number from 0 to 100")
    return float(number) / 100
