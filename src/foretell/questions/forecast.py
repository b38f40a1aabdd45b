"""What a forecaster said, what it cost, and what is left when it broke."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite

from foretell.questions.clock import AsOf
from foretell.questions.distribution import Categorical, Numeric


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What one forecast cost."""

    dollars: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    calls: int = 0

    @classmethod
    def side_by_side(cls, usages: Iterable["Usage"]) -> "Usage":
        """What things that ran at the same time cost together: sums, but of the seconds the longest.

        >>> Usage.side_by_side([Usage(dollars=0.5, seconds=3.0, calls=1), Usage(dollars=0.25, seconds=2.0, calls=2)])
        Usage(dollars=0.75, input_tokens=0, output_tokens=0, seconds=3.0, calls=3)
        """
        all_of = list(usages)
        return cls(
            dollars=sum(one.dollars for one in all_of),
            input_tokens=sum(one.input_tokens for one in all_of),
            output_tokens=sum(one.output_tokens for one in all_of),
            seconds=max((one.seconds for one in all_of), default=0.0),
            calls=sum(one.calls for one in all_of),
        )


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """One probability per target of a question, seen as of a cutoff."""

    question_id: str
    forecaster: str
    as_of: AsOf
    p: Mapping[str, float]
    trial: int = 0
    rationale: str = ""
    trace: str = ""
    """Where the steps behind the number are kept."""
    usage: Usage = field(default_factory=Usage)
    distribution: Categorical | Numeric | None = None
    """The whole distribution, for multiple-choice and numeric questions."""
    stated: Mapping[str, float] | None = None
    """What was said before exclusive outcomes were made to sum to one; None: the same as `p`."""

    def __post_init__(self) -> None:
        for name in ("p", "stated"):
            said: Mapping[str, float] | None = getattr(self, name)
            if said is not None:
                object.__setattr__(self, name, {target: float(p) for target, p in said.items()})
                _check(said)
        if self.stated is not None and self.stated.keys() != self.p.keys():
            raise ValueError("what was stated is about other targets than the forecast")


def _check(said: Mapping[str, float]) -> None:
    for target, p in said.items():
        if not (isfinite(p) and 0 <= p <= 1):
            raise ValueError(f"probability of target {target!r} is {p}, not a number in [0, 1]")


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A run that broke. It is counted in the completion rate and never scored as if it were a forecast."""

    question_id: str
    forecaster: str
    as_of: AsOf
    error: str
    trial: int = 0
