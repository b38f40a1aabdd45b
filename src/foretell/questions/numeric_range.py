"""What a question about a number or a date asks for: a range, its ends, and how finely it is cut."""

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from math import expm1, isfinite, log

DEFAULT_CELLS = 200
FIRST_SECOND, LAST_SECOND = -6.2e10, 2.5e11
"""The years 5 and 9892: beyond them no date can be written."""
Edges = tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class NumericRange:
    """A range in equal steps, or in steps that grow away from a zero point; each end open or closed.

    >>> NumericRange(minimum=0, maximum=10, outcomes=5).edges()
    (0.0, 2.0, 4.0, 6.0, 8.0, 10.0)
    >>> [round(edge, 6) for edge in NumericRange(minimum=1, maximum=100, zero_point=0, outcomes=2).edges()]
    [1.0, 10.0, 100.0]
    """

    minimum: float
    maximum: float
    zero_point: float | None = None
    """Where a logarithmic range would reach zero; None for an ordinary one."""
    open_lower: bool = False
    """Whether the quantity may lie below the minimum."""
    open_upper: bool = False
    outcomes: int = DEFAULT_CELLS
    """Cells within the range: a forecast has one number more than that."""
    unit: str = ""
    dates: bool = False
    """Whether the values are moments, counted in Unix seconds."""
    whole: bool = False
    """Whether the quantity can only be one of so many values, each in the middle of a cell."""

    def __post_init__(self) -> None:
        if not self.minimum < self.maximum or not isfinite(self.maximum - self.minimum) or self.outcomes < 1:
            raise ValueError(f"a range from {self.minimum} to {self.maximum} in {self.outcomes} cells is none")
        if self.zero_point is not None and self.minimum <= self.zero_point <= self.maximum:
            raise ValueError(f"the zero point {self.zero_point} lies within the range")
        if self.dates and not FIRST_SECOND <= self.minimum < self.maximum <= LAST_SECOND:
            raise ValueError(f"a range from {self.minimum} to {self.maximum} seconds leaves the calendar")

    def edges(self) -> Edges:
        """The values at which a forecast states its cumulative probability, lowest first."""
        shares = [cell / self.outcomes for cell in range(self.outcomes)]
        if self.zero_point is not None:
            ratio = (self.maximum - self.zero_point) / (self.minimum - self.zero_point)
            shares = [expm1(share * log(ratio)) / (ratio - 1) for share in shares]
        return *(self.minimum + (self.maximum - self.minimum) * share for share in shares), float(self.maximum)

    @property
    def values(self) -> Edges:
        """The values that a quantity in whole steps can have; none for any other.

        >>> NumericRange(minimum=-0.5, maximum=2.5, outcomes=3, whole=True).values
        (0.0, 1.0, 2.0)
        """
        edges = self.edges()
        return tuple((low + high) / 2 for low, high in pairwise(edges)) if self.whole else ()

    def write(self, value: float) -> str:
        """A value for people: a number with its unit, or a day.

        >>> NumericRange(minimum=0, maximum=90, unit="seats").write(12.5)
        '12.5 seats'
        >>> NumericRange(minimum=0, maximum=2e9, dates=True).write(86400)
        '1970-01-02'
        """
        if self.dates:
            return datetime.fromtimestamp(value, UTC).date().isoformat()
        return f"{value:.10g} {self.unit}".rstrip()

    def __str__(self) -> str:
        """The range in words.

        >>> str(NumericRange(minimum=0, maximum=90, open_upper=True, unit="seats"))
        'The range asked about is 0 to 90 seats; it may end up above, but not below.'
        """
        ends = {
            (True, True): "it may end up above or below",
            (True, False): "it may end up below, but not above",
            (False, True): "it may end up above, but not below",
            (False, False): "it cannot end up outside",
        }
        values = self.values or (self.minimum, self.maximum)
        low = self.write(values[0]).removesuffix(f" {self.unit}") if self.unit else self.write(values[0])
        steps = f", in {len(values)} steps" if self.whole else ""
        outside = ends[self.open_lower, self.open_upper]
        if self.dates:
            outside = outside.replace("above", "later").replace("below", "earlier")
        return f"The range asked about is {low} to {self.write(values[-1])}{steps}; {outside}."
