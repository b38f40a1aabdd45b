"""The rule that learns nothing: the logit mean of the trials. What every other rule has to beat."""

from dataclasses import dataclass, field

from foretell.evaluate.arrays import Floats
from foretell.forecasters.combine.fitted import Training
from foretell.forecasters.combine.rows import Examples, Rows


@dataclass(frozen=True, kw_only=True)
class FittedRaw:
    """Says the logit mean, whatever it was shown; it learnt nothing, so it refuses nothing."""

    training: Training = field(default_factory=Training)

    def probabilities(self, rows: Rows) -> Floats:
        """The logit mean of each row's trials."""
        return rows.raw


@dataclass(frozen=True, kw_only=True)
class Raw:
    """The logit mean as a method.

    >>> Raw().name
    'raw'
    """

    @property
    def name(self) -> str:
        """As shown in tables."""
        return "raw"

    def fit(self, examples: Examples) -> FittedRaw:
        """The same rule for any examples."""
        return FittedRaw()
