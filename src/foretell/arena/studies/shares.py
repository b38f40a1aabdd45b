"""Means and shares with their intervals, as cells of a table."""

from collections.abc import Sequence

from foretell.evaluate.bootstrap import Resampling, bootstrap_score
from foretell.evaluate.intervals import Interval
from foretell.evaluate.reliability import wilson_interval

DRAWS = Resampling(draws=2000)


def share(hits: int, of: int) -> Interval | None:
    """hits/of with the Wilson (1927) interval, which does not shrink to nothing at 0 and 1; None of nothing.

    >>> found = share(0, 20)
    >>> found.estimate, round(found.high, 3)
    (0.0, 0.161)
    """
    if not of:
        return None
    part = hits / of
    low, high = (float(end) for end in wilson_interval(part, of))
    se = (part * (1 - part) / of) ** 0.5
    return Interval(estimate=part, low=low, high=high, se=se, n_clusters=of, draws=0)


def mean(values: Sequence[float], cluster: Sequence[str], resampling: Resampling = DRAWS) -> Interval | None:
    """The mean with an interval from resampling clusters; None of nothing."""
    return bootstrap_score(list(values), list(cluster), resampling=resampling) if values else None
