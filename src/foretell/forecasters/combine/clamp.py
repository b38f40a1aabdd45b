"""Bounds on probabilities, of every trial or of the combined answer."""

from collections.abc import Mapping, Sequence
from typing import Literal

from foretell.frozen import frozen
from foretell.questions.question import Exclusivity, even_chance, scaled


@frozen
class Clamp:
    """Bounds on a probability. They limit the loss from one confident mistake."""

    low: float = 0.05
    high: float = 0.95
    once: bool = False
    """Whether the bounds hold for the combined answer alone, and not for every trial."""

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high <= 1:
            raise ValueError(f"a clamp needs 0 <= low < high <= 1, not [{self.low}, {self.high}]")

    @classmethod
    def read(cls, value: "Clamp | Sequence[float] | str") -> "Clamp":
        """Make a clamp from two numbers, `paper` or `once`; return a clamp unchanged."""
        if isinstance(value, Clamp):
            return value
        if isinstance(value, str) and value in CLAMPS:
            return CLAMPS[value]
        if not isinstance(value, list | tuple) or len(value) != 2:
            raise ValueError(f"clamp is {value!r}, write paper, once or two numbers such as [0.01, 0.99]")
        return cls(low=float(value[0]), high=float(value[1]))

    def apply(self, p: Mapping[str, float], exclusivity: Exclusivity = "independent") -> dict[str, float]:
        """Clamp the probabilities of a trial; they stay as they are if the bounds are for the answer."""
        return scaled(p, exclusivity) if self.once else self.bounded(p, exclusivity)

    def bounded(self, p: Mapping[str, float], exclusivity: Exclusivity = "independent") -> dict[str, float]:
        """Clamp each probability to the bounds.

        Of m options that exclude each other, most must be small. For these the lower bound is 2·low/m (equal to `low`
        for two), where "none of them" counts as an option if it is possible, and the probabilities are then scaled to a
        valid sum again.
        """
        low = self.low
        if exclusivity != "independent":
            low = 2 * self.low * even_chance(exclusivity, len(p))
        return scaled({target: min(self.high, max(low, value)) for target, value in p.items()}, exclusivity)


CLAMPS = {"paper": Clamp(), "once": Clamp(low=0.02, high=0.98, once=True)}
"""Clamps by name: that of BLF 2026, on every trial, and a wider one on the combined answer alone."""
ClampName = Literal["paper", "once"]
ANSWER_CLAMPS: Mapping[str, ClampName] = {"reason": "once"}
"""The clamp of forecasters whose combined answers are bounded unless their options say otherwise."""
