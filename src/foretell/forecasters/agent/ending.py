"""How a trial ends: always in a value, never in an exception."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from foretell.forecasters.agent.belief import Belief
from foretell.questions.distribution import Numeric


class Stop(StrEnum):
    """Why the loop stopped, in the words that `ForecastMade.how` keeps."""

    SUBMITTED = "submitted"
    PLAIN = "stated when asked for the numbers alone"
    SALVAGED = "read from the model's text"
    STEPS = "standing belief at the step limit"
    TIME = "standing belief at the time limit"
    BUDGET = "standing belief at the budget"
    UNUSABLE = "standing belief after unusable replies"
    MODEL = "standing belief after the model failed"
    BYPASS = "series model, no language model asked"


@dataclass(frozen=True, kw_only=True)
class Ending:
    """The last word of a trial, before it is clamped."""

    stop: Stop
    belief: Belief
    p: Mapping[str, float] | None
    """None where nobody ever stated a probability: such a trial failed."""
    distribution: Numeric | None = None
    reason: str = ""
    detail: str = ""
    """What went wrong, where something did."""
    steps: int = 0


def standing(stop: Stop, belief: Belief, *, detail: str = "", steps: int = 0) -> Ending:
    """The belief as it stands is the answer, unless nobody formed it.

    When the model itself failed, a price or a base rate it never looked at is not its forecast either.
    """
    formed = belief.formed if stop is not Stop.MODEL else belief.origin in ("model", "overwritten")
    return Ending(
        stop=stop,
        belief=belief,
        p=belief.p if formed else None,
        distribution=belief.distribution,
        reason=belief.reason,
        detail=detail,
        steps=steps,
    )
