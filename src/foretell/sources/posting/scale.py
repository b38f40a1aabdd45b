"""The range of a numeric question, as its platform cuts it into cells."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
OUTCOMES = 200


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A range in equal steps, or in steps that grow away from a zero point; each end open or closed.

    >>> Scale(minimum=0, maximum=10, outcomes=5).edges()
    array([ 0.,  2.,  4.,  6.,  8., 10.])
    >>> Scale(minimum=1, maximum=100, zero_point=0, outcomes=2).edges().round(6)
    array([  1.,  10., 100.])
    """

    minimum: float
    maximum: float
    zero_point: float | None = None
    """Where a logarithmic range would reach zero; None for an ordinary one."""
    open_lower: bool = False
    """Whether the quantity may lie below the minimum."""
    open_upper: bool = False
    outcomes: int = OUTCOMES
    """Cells within the range: a forecast has one number more than that."""

    def __post_init__(self) -> None:
        if not self.minimum < self.maximum or self.outcomes < 1:
            raise ValueError(f"a range from {self.minimum} to {self.maximum} in {self.outcomes} cells is none")
        if self.zero_point is not None and self.minimum <= self.zero_point <= self.maximum:
            raise ValueError(f"the zero point {self.zero_point} lies within the range")

    def edges(self) -> Floats:
        """The values at which a forecast states its cumulative probability, lowest first."""
        share = np.linspace(0.0, 1.0, self.outcomes + 1)
        if self.zero_point is not None:
            ratio = (self.maximum - self.zero_point) / (self.minimum - self.zero_point)
            share = np.expm1(share * np.log(ratio)) / (ratio - 1)
        edges = self.minimum + (self.maximum - self.minimum) * share
        edges[-1] = self.maximum
        return edges
