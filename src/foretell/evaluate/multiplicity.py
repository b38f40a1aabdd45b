"""Many comparisons at once: p-values adjusted so that chance findings stay rare."""

import numpy as np
import numpy.typing as npt

from foretell.evaluate.arrays import Floats, reject


def holm(p: npt.ArrayLike) -> Floats:
    """Holm's step-down adjustment (1979), which bounds the chance of any false finding.

    With m p-values in ascending order, adjusted p_(i) = max over j ≤ i of min(1, (m − j + 1)·p_(j)). NaN
    (a comparison that was not made) stays NaN and does not count in m.

    >>> holm([0.01, 0.04, 0.03, float("nan")])
    array([0.03, 0.06, 0.06,  nan])
    """
    values, made, order = _ordered(p)
    m = len(order)
    stepped = np.maximum.accumulate(values[made][order] * (m - np.arange(m)))
    return _placed(values, made, order, stepped)


def benjamini_hochberg(p: npt.ArrayLike) -> Floats:
    """Benjamini–Hochberg adjustment (1995), which bounds the expected share of false findings.

    With m p-values in ascending order, adjusted p_(i) = min over j ≥ i of min(1, m·p_(j)/j). NaN stays NaN and
    does not count in m.

    >>> benjamini_hochberg([0.01, 0.04, 0.03, float("nan")])
    array([0.03, 0.04, 0.04,  nan])
    """
    values, made, order = _ordered(p)
    m = len(order)
    scaled = values[made][order] * m / np.arange(1, m + 1)
    return _placed(values, made, order, np.minimum.accumulate(scaled[::-1])[::-1])


def _ordered(p: npt.ArrayLike) -> tuple[Floats, npt.NDArray[np.bool_], npt.NDArray[np.intp]]:
    values = np.asarray(p, dtype=np.float64)
    made = ~np.isnan(values)
    reject(made & ~((values >= 0) & (values <= 1)), values, "p", "lies outside [0, 1]")
    return values, made, np.argsort(values[made], kind="stable")


def _placed(values: Floats, made: npt.NDArray[np.bool_], order: npt.NDArray[np.intp], adjusted: Floats) -> Floats:
    """Adjusted values back in the places, and the shape, of the p-values they belong to."""
    found = np.empty(len(order))
    found[order] = np.minimum(adjusted, 1.0)
    out = np.full(values.shape, np.nan)
    out[made] = found
    return out
