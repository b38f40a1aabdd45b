"""Calibration: reliability bins, calibration error, calibration line and Murphy's decomposition."""

import numpy as np
import numpy.typing as npt

from foretell.frozen import frozen
from foretell.metrics.arrays import Floats, Ints, as_pairs, as_weights, group_sums
from foretell.metrics.probability_functions import normal_quantile
from foretell.metrics.transforms import sigmoid

# The line on the log-odds scale that would calibrate forecasts.


LEAST_SPREAD = 0.1
"""Standard deviation of log-odds below which forecasts count as one value, so that the line is not determined."""


@frozen
class CalibrationLine:
    """A line on the log-odds scale; (intercept 0, slope 1) is perfect, and a slope below 1 means overconfidence.

    All numbers are NaN if the data do not determine the line: forecasts hardly vary, or separate the outcomes.
    """

    intercept: float
    slope: float
    intercept_se: float
    slope_se: float

    @property
    def identified(self) -> bool:
        """Whether the data determine the line."""
        return not np.isnan(self.slope)


def calibration_line(p: npt.ArrayLike, outcome: npt.ArrayLike, *, clip: float = 1e-4) -> CalibrationLine:
    """Logistic recalibration logit P(o=1) = intercept + slope·logit(p), by Newton's method (Cox 1958).

    Forecasts are clipped to [clip, 1 − clip]. A penalty of 1e-6 pulls toward (0, 1). It is negligible in ordinary
    data, and keeps the steps finite if forecasts nearly separate the outcomes. The line does not exist if all outcomes
    are equal, forecasts separate them, or forecasts hardly vary (`LEAST_SPREAD`).
    """
    if not 0 < clip < 0.5:
        raise ValueError(f"clip must be within (0, 0.5), it is {clip}")
    p, outcome = as_pairs(np.ravel(p), np.ravel(outcome))
    p = np.clip(p, clip, 1 - clip)
    x = np.log(p) - np.log1p(-p)
    if np.std(x) < LEAST_SPREAD or _separated(x, outcome):
        return CalibrationLine(intercept=np.nan, slope=np.nan, intercept_se=np.nan, slope_se=np.nan)
    coefficients, covariance = _penalised_logistic(np.column_stack([np.ones_like(x), x]), outcome)
    se = np.sqrt(np.diag(covariance))
    return CalibrationLine(
        intercept=float(coefficients[0]),
        slope=float(coefficients[1]),
        intercept_se=float(se[0]),
        slope_se=float(se[1]),
    )


def _separated(x: Floats, outcome: Floats) -> bool:
    """Whether some cut on x splits the outcomes (ties on the cut allowed), or one outcome is absent."""
    no, yes = x[outcome < 1], x[outcome > 0]
    return not len(no) or not len(yes) or no.max() <= yes.min() or yes.max() <= no.min()


def _penalised_logistic(design: Floats, outcome: Floats, penalty: float = 1e-6) -> tuple[Floats, Floats]:
    target = np.array([0.0, 1.0])

    def loss(at: Floats) -> float:
        linear = design @ at
        return float(np.logaddexp(0, linear).sum() - outcome @ linear + penalty / 2 * ((at - target) ** 2).sum())

    beta = target.copy()
    hessian = np.eye(2)
    for _ in range(200):
        fitted = sigmoid(design @ beta)
        gradient = design.T @ (fitted - outcome) + penalty * (beta - target)
        hessian = design.T @ (design * (fitted * (1 - fitted))[:, None]) + penalty * np.eye(2)
        step = np.asarray(np.linalg.solve(hessian, gradient), np.float64)
        while loss(beta - step) > loss(beta) + 1e-12 * abs(loss(beta)):
            step = step / 2
        beta = beta - step
        if np.abs(step).max() < 1e-10 * (1 + np.abs(beta).max()):
            break
    return beta, np.asarray(np.linalg.inv(hessian), dtype=np.float64)


@frozen
class ReliabilityBins:
    """One entry per bin with at least one forecast, in ascending order; all entries are finite."""

    low: Floats
    high: Floats
    mean_p: Floats
    frequency: Floats
    """Weighted share of outcomes that were 1."""
    weight: Floats
    """Sum of weights; divide by its total for the share of forecasts in a bin."""
    count: Ints
    frequency_low: Floats
    """Wilson interval of the frequency, on Kish's effective count when weights differ."""
    frequency_high: Floats

    @property
    def ece(self) -> float:
        """Calibration error over these bins, Σ w_b |ō_b − p̄_b| / Σ w_b."""
        return float(np.average(np.abs(self.frequency - self.mean_p), weights=self.weight))


def reliability_bins(
    p: npt.ArrayLike,
    outcome: npt.ArrayLike,
    weight: npt.ArrayLike | None = None,
    *,
    bins: int = 10,
    level: float = 0.95,
) -> ReliabilityBins:
    """Mean forecast against observed frequency, bin by bin (Murphy & Winkler 1977).

    Bins are (low, high] of equal width, the first one includes 0 (Guo et al. 2017). Interval: Wilson (1927).
    """
    f, o, w = _checked_rows(p, outcome, weight)
    edges = width_edges(bins)
    code = bin_codes(f, edges)
    used = np.flatnonzero(group_sums(code, w, len(edges) - 1))
    mass, sum_f, sum_o, square = (group_sums(code, c, len(edges) - 1)[used] for c in (w, w * f, w * o, w**2))
    frequency = sum_o / mass
    low, high = wilson_interval(frequency, mass**2 / square, level)
    return ReliabilityBins(
        low=edges[used],
        high=edges[used + 1],
        mean_p=sum_f / mass,
        frequency=frequency,
        weight=mass,
        count=np.bincount(code[w > 0], minlength=len(edges) - 1)[used].astype(np.int64),
        frequency_low=low,
        frequency_high=high,
    )


def ece(
    p: npt.ArrayLike,
    outcome: npt.ArrayLike,
    weight: npt.ArrayLike | None = None,
    *,
    bins: int = 10,
) -> float:
    """Expected calibration error Σ_b w_b |ō_b − p̄_b| / Σ_b w_b over bins, in [0, 1], lower is better.

    Equation (3) of Prophet Arena, appendix C.2 (B = 10), and Guo et al. (2017). Binning hides errors that cancel inside
    a bin, and in a finite sample even a perfect forecaster has a positive error, so compare it between forecasters on
    the same questions.
    """
    return reliability_bins(p, outcome, weight, bins=bins).ece


@frozen
class MurphyDecomposition:
    """Components of a mean Brier score; `brier` adds them up again."""

    reliability: float
    """Σ w (p̄_k − ō_k)²: 0 if calibrated, lower is better."""
    resolution: float
    """Σ w (ō_k − ō)²: how far the groups' frequencies differ from the base rate, higher is better."""
    uncertainty: float
    """ō(1 − ō): a property of the questions, the same for every forecaster."""
    within_variance: float = 0.0
    """Spread of forecasts inside the groups; 0 if groups are the distinct forecasts."""
    within_covariance: float = 0.0
    """Twice the covariance of forecast and outcome inside the groups."""

    @property
    def within(self) -> float:
        """The part that grouping hides: within_variance − within_covariance."""
        return self.within_variance - self.within_covariance

    @property
    def brier(self) -> float:
        """The sum reliability − resolution + uncertainty + within, which is the mean Brier score itself."""
        return self.reliability - self.resolution + self.uncertainty + self.within


def murphy_decomposition(
    p: npt.ArrayLike,
    outcome: npt.ArrayLike,
    weight: npt.ArrayLike | None = None,
    *,
    bins: int | None = None,
) -> MurphyDecomposition:
    """Brier = reliability − resolution + uncertainty (Murphy 1973), an identity, not an estimate.

    Groups are the distinct values of p. With `bins` they are equal-width bins, and the two within-bin terms
    of Stephenson, Coelho & Jolliffe (2008) keep the identity true. Many distinct values make reliability
    and resolution both large (groups of one); use bins to read them.
    """
    f, o, w = _checked_rows(p, outcome, weight)
    w = w / w.sum()
    code = np.unique(f, return_inverse=True)[1] if bins is None else bin_codes(f, width_edges(bins))
    mass, sum_f, sum_o = (group_sums(code, c, int(code.max()) + 1) for c in (w, w * f, w * o))
    safe = np.where(mass > 0, mass, 1.0)
    mean_f, frequency = sum_f / safe, sum_o / safe
    base = min(float(w @ o), 1.0)
    spread = f - mean_f[code]
    return MurphyDecomposition(
        reliability=float(mass @ (mean_f - frequency) ** 2),
        resolution=float(mass @ (frequency - base) ** 2),
        uncertainty=base * (1 - base),
        within_variance=float(w @ spread**2),
        within_covariance=float(2 * w @ (spread * (o - frequency[code]))),
    )


def wilson_interval(share: npt.ArrayLike, n: npt.ArrayLike, level: float = 0.95) -> tuple[Floats, Floats]:
    """Wilson (1927) score interval of a share observed in n trials; stays inside [0, 1]."""
    if not 0 < level < 1:
        raise ValueError(f"level must be within (0, 1), it is {level}")
    share, n = np.asarray(share, dtype=np.float64), np.asarray(n, dtype=np.float64)
    z2 = normal_quantile((1 + level) / 2) ** 2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n**2))) / (1 + z2 / n)
    return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)


def bin_codes(p: Floats, edges: Floats) -> npt.NDArray[np.intp]:
    """Bin index of each p for bins (edge_b, edge_b+1], with the first bin closed at its lower end."""
    return np.searchsorted(edges[1:-1], p, side="left")


def width_edges(bins: int) -> Floats:
    """Edges of equal-width bins, as i/bins rather than multiples of a step, so that 0.3 is exactly an edge."""
    if bins < 1:
        raise ValueError(f"bins must be at least 1, it is {bins}")
    return np.arange(bins + 1) / bins


def _checked_rows(
    p: npt.ArrayLike, outcome: npt.ArrayLike, weight: npt.ArrayLike | None
) -> tuple[Floats, Floats, Floats]:
    forecasts, outcomes = as_pairs(np.ravel(p), np.ravel(outcome))
    return forecasts, outcomes, as_weights(weight, len(forecasts))
