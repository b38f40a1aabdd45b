"""How forecasts would have to be bent to fit what happened: a line on the log-odds scale."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foretell.evaluate.arrays import Floats, as_pairs


@dataclass(frozen=True, kw_only=True)
class CalibrationLine:
    """Line on the log-odds scale; (intercept 0, slope 1) is perfect, slope below 1 is overconfidence."""

    intercept: float
    slope: float
    intercept_se: float
    slope_se: float
    identified: bool
    """False when the data leave the line open: one forecast value only, or outcomes it separates."""


def calibration_line(p: npt.ArrayLike, outcome: npt.ArrayLike, *, clip: float = 1e-4) -> CalibrationLine:
    """Logistic recalibration logit P(o=1) = intercept + slope·logit(p), by Newton's method (Cox 1958).

    Forecasts are clipped to [clip, 1 − clip]. A penalty of 1e-6 pulls toward (0, 1): it moves no digit that
    matters in ordinary data, and keeps every number finite where maximum likelihood has none (all outcomes
    equal, perfect separation, a single forecast value); `identified` is then False.

    >>> line = calibration_line([0.9, 0.9, 0.9, 0.9, 0.1, 0.1, 0.1, 0.1], [1, 1, 1, 0, 0, 0, 0, 1])
    >>> round(line.intercept, 3), round(line.slope, 3)
    (0.0, 0.5)
    """
    if not 0 < clip < 0.5:
        raise ValueError(f"clip must be within (0, 0.5), it is {clip}")
    p, outcome = as_pairs(np.ravel(p), np.ravel(outcome))
    p = np.clip(p, clip, 1 - clip)
    x = np.log(p) - np.log1p(-p)
    coefficients, covariance = _penalised_logistic(np.column_stack([np.ones_like(x), x]), outcome)
    se = np.sqrt(np.diag(covariance))
    return CalibrationLine(
        intercept=float(coefficients[0]),
        slope=float(coefficients[1]),
        intercept_se=float(se[0]),
        slope_se=float(se[1]),
        identified=not (np.ptp(x) == 0 or _separated(x, outcome)),
    )


def _separated(x: Floats, outcome: Floats) -> bool:
    """Whether some cut on x splits the outcomes (ties on the cut allowed), or one outcome is absent."""
    no, yes = x[outcome == 0], x[outcome == 1]
    return not len(no) or not len(yes) or no.max() <= yes.min() or yes.max() <= no.min()


def _penalised_logistic(design: Floats, outcome: Floats, penalty: float = 1e-6) -> tuple[Floats, Floats]:
    from scipy.special import expit

    target = np.array([0.0, 1.0])

    def loss(at: Floats) -> float:
        linear = design @ at
        return float(np.logaddexp(0, linear).sum() - outcome @ linear + penalty / 2 * ((at - target) ** 2).sum())

    beta = target.copy()
    hessian = np.eye(2)
    for _ in range(200):
        fitted = expit(design @ beta)
        gradient = design.T @ (fitted - outcome) + penalty * (beta - target)
        hessian = design.T @ (design * (fitted * (1 - fitted))[:, None]) + penalty * np.eye(2)
        step = np.linalg.solve(hessian, gradient)
        while loss(beta - step) > loss(beta) + 1e-12 * abs(loss(beta)):
            step = step / 2
        beta = beta - step
        if np.abs(step).max() < 1e-10 * (1 + np.abs(beta).max()):
            break
    return beta, np.asarray(np.linalg.inv(hessian), dtype=np.float64)
