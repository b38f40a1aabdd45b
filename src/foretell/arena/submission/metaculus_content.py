"""From a forecast to what Metaculus takes for a question of each type."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from foretell.arena.submission.cdf import cdf_problems, continuous_cdf, outside
from foretell.arena.submission.limits import SUM, Limits, spread
from foretell.questions.distribution import Numeric
from foretell.questions.forecast import Forecast
from foretell.sources.posting.metaculus_asked import Asked

TAKEN = Limits(low=0.001, high=0.999)
MUCH = 0.05
"""Of a distribution beyond a closed end: worth a word."""
MOST = 0.5
"""Beyond a closed end: the forecaster meant something else, perhaps another unit."""


@dataclass(kw_only=True)
class Made:
    """A body under construction, with what was found on the way."""

    body: dict[str, Any] = field(default_factory=dict[str, Any])
    problems: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])

    def complain(self, problem: str, *, clip: bool) -> None:
        """Something that clipping mends: a note where it is allowed, a problem where it is not."""
        if problem:
            (self.notes if clip else self.problems).append(problem)


def content(asked: Asked, forecast: Forecast, p: Mapping[str, float], *, clip: bool) -> Made:
    """The forecast of one question; `p` are the probabilities that belong to it."""
    make = MAKERS.get(asked.kind)
    if make is None:
        return Made(problems=[f"a question of type {asked.kind} cannot be forecast here"])
    made = make(asked, forecast, p, clip)
    made.body = {"question": asked.id, **made.body} if not made.problems else {}
    return made


def _binary(asked: Asked, forecast: Forecast, p: Mapping[str, float], clip: bool) -> Made:
    made = Made()
    if len(p) != 1 and "yes" not in p:
        return Made(problems=[f"a yes-or-no question needs one probability, not {len(p)}"])
    told = p["yes"] if "yes" in p else next(iter(p.values()))
    made.complain(TAKEN.complaint(told), clip=clip)
    made.body = {"probability_yes": TAKEN.clipped(told)}
    return made


def _choice(asked: Asked, forecast: Forecast, p: Mapping[str, float], clip: bool) -> Made:
    made = Made()
    gone, missing = [o for o in p if o not in asked.options], [o for o in asked.options if o not in p]
    made.problems += [f"{option!r} is not an option" for option in gone]
    made.problems += [f"the option {option!r} has no probability" for option in missing]
    if made.problems:
        return made
    total = sum(p.values())
    if abs(total - 1) > SUM:
        made.complain(f"the options sum to {total:.6g}, clipped they would be scaled to 1", clip=clip)
    for option in asked.options:
        made.complain(TAKEN.complaint(p[option], option), clip=clip)
    made.body = {"probability_yes_per_category": spread({o: p[o] for o in asked.options}, TAKEN)}
    return made


def _continuous(asked: Asked, forecast: Forecast, p: Mapping[str, float], clip: bool) -> Made:
    made, told, scale = Made(), forecast.distribution, asked.scale
    if not isinstance(told, Numeric) or scale is None:
        return Made(problems=["a question about a number needs a distribution, not a probability"])
    lost = outside(told, scale)
    range_ = f"{scale.minimum:g} to {scale.maximum:g}"
    if lost > MOST:
        return Made(problems=[f"{lost:.0%} of the distribution lies outside the closed range {range_}: another unit?"])
    if lost > MUCH:
        made.notes.append(f"{lost:.0%} of the distribution lies outside the closed range {range_} and was dropped")
    cdf = continuous_cdf(told, scale)
    made.problems += cdf_problems(cdf, scale)
    made.body = {"continuous_cdf": cdf}
    return made


MAKERS: Mapping[str, Callable[[Asked, Forecast, Mapping[str, float], bool], Made]] = {
    "binary": _binary,
    "multiple_choice": _choice,
    "numeric": _continuous,
    "discrete": _continuous,
    "date": _continuous,
}
