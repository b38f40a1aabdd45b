"""Means and shares with their intervals, for the cells of a table."""

from collections.abc import Sequence
from dataclasses import replace
from math import isnan

from foretell.metrics.bootstrap import Interval, Resampling, bootstrap_score
from foretell.metrics.calibration import wilson_interval

DEFAULT_DRAWS = Resampling(draws=2000)


def share_interval(hits: int, of: int) -> Interval | None:
    """hits/of with the Wilson (1927) interval, which keeps a width at 0 and 1; None if `of` is 0.

    >>> found = share_interval(0, 20)
    >>> found.estimate, round(found.high, 3)
    (0.0, 0.161)
    """
    if not of:
        return None
    part = hits / of
    low, high = (float(end) for end in wilson_interval(part, of))
    se = (part * (1 - part) / of) ** 0.5
    return Interval(estimate=part, low=low, high=high, se=se, n_clusters=of, draws=0)


def mean_interval(
    values: Sequence[float], cluster: Sequence[str], resampling: Resampling = DEFAULT_DRAWS
) -> Interval | None:
    """The mean with an interval from resampling clusters; None if there are no values."""
    return bootstrap_score(list(values), list(cluster), resampling=resampling) if values else None


def rate_interval(
    values: Sequence[float], cluster: Sequence[str], resampling: Resampling = DEFAULT_DRAWS
) -> Interval | None:
    """The mean of zeros and ones, clusters resampled; if all are equal, Wilson's interval over clusters.

    Resampling identical values gives an interval of zero width, which would be overconfident.

    >>> found = rate_interval([1.0] * 20, [str(n // 2) for n in range(20)])
    >>> found.estimate, round(found.low, 3), found.n_clusters
    (1.0, 0.722, 10)
    """
    if len(set(values)) == 1 and values[0] in (0.0, 1.0):
        units = len(set(cluster))
        return share_interval(units if values[0] else 0, units)
    found = mean_interval(values, cluster, resampling)
    # Of a rate without an interval, as in a single cluster, it is still known that it is one.
    return replace(found, low=0.0, high=1.0) if found is not None and isnan(found.low) else found
