"""Mixed model with a random effect per question: a check on the paired comparisons.

y = β(method) + u(question) + ε with u ~ N(0, σ_q²) and ε ~ N(0, σ²), fitted by restricted maximum likelihood.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from foretell.evaluate.arrays import Floats
from foretell.evaluate.effects import TwoWayTable, two_way_table


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """Difference of two method means, first − second, with a Wald interval and two-sided p-value."""

    diff: float
    se: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, kw_only=True)
class MixedEffects:
    """A REML fit; means and covariance are in the order of the sorted method labels."""

    methods: npt.NDArray[Any]
    mean: Floats
    """Fitted mean score β of each method on the average question."""
    covariance: Floats
    question_variance: float
    residual_variance: float
    log_likelihood: float
    """Restricted log-likelihood at its maximum, constants included."""

    @property
    def intraclass(self) -> float:
        """Share of the variance that lies between questions, σ_q² / (σ_q² + σ²)."""
        return self.question_variance / (self.question_variance + self.residual_variance)

    def contrast(self, first: object, second: object, level: float = 0.95) -> Contrast:
        """Mean of method `first` − mean of method `second`, by label."""
        from scipy.special import ndtr, ndtri

        weights = (self.methods == first).astype(np.float64) - (self.methods == second)
        if not ((self.methods == first).any() and (self.methods == second).any()):
            raise ValueError(f"first {first!r} and second {second!r} must be methods of the fit")
        diff, se = float(weights @ self.mean), float(np.sqrt(weights @ self.covariance @ weights))
        half = float(ndtri((1 + level) / 2)) * se
        p = float(2 * ndtr(-abs(diff) / se)) if se > 0 else float("nan")
        return Contrast(diff=diff, se=se, low=diff - half, high=diff + half, p=p)


def mixed_effects_check(y: npt.ArrayLike, method: npt.ArrayLike, question: npt.ArrayLike) -> MixedEffects:
    """REML fit of a fixed mean per method and a random intercept per question.

    With λ = σ_q²/σ², V⁻¹ of a question with n rows is I − λ/(1+λn)·11ᵀ, so everything reduces to sums by
    method and by question and the restricted likelihood is maximised over λ alone (Patterson & Thompson 1971;
    BLF 2026, G.2 uses it as a robustness check).

    >>> y = [0.1, 0.2, 0.5, 0.7, 0.3, 0.35]
    >>> fit = mixed_effects_check(y, ["a", "b"] * 3, ["x", "x", "z", "z", "w", "w"])
    >>> round(fit.contrast("b", "a").diff, 4), round(fit.intraclass, 2)
    (0.1167, 0.94)
    """
    from scipy.optimize import minimize_scalar

    table = two_way_table(y, method, question)
    if len(table.y) <= table.method.n:
        raise ValueError("y needs more rows than there are methods")
    offset = float(table.y.mean())
    profile = _Profile(table, table.y - offset)

    def deviance(log_ratio: float) -> float:
        return profile.deviance(float(np.exp(log_ratio)))

    best = minimize_scalar(deviance, bounds=(-20, 20), method="bounded", options={"xatol": 1e-9})
    ratio = float(np.exp(best.x))
    if profile.deviance(0.0) <= profile.deviance(ratio):
        ratio = 0.0
    beta, inverse, rss, df = profile.solve(ratio)
    variance = rss / df
    return MixedEffects(
        methods=table.method.labels,
        mean=beta + offset,
        covariance=variance * inverse,
        question_variance=ratio * variance,
        residual_variance=variance,
        log_likelihood=-0.5 * (profile.deviance(ratio) + df * (1 + float(np.log(2 * np.pi)))),
    )


class _Profile:
    """The restricted likelihood as a function of λ, from sums by method and question."""

    def __init__(self, table: TwoWayTable, y: Floats) -> None:
        ones = np.ones_like(y)
        self.table = table
        self.y = y
        self.method_size, self.method_sum = table.by_method(ones), table.by_method(y)
        self.question_size, self.question_sum = table.by_question(ones), table.by_question(y)
        self.squares = float(y @ y)

    def solve(self, ratio: float) -> tuple[Floats, Floats, float, int]:
        """Generalised least squares at λ: means, (XᵀV⁻¹X)⁻¹, residual quadratic form, degrees of freedom."""
        shrink = ratio / (1 + ratio * self.question_size)
        normal = np.diag(self.method_size) - self.table.shared(shrink)
        right = self.method_sum - self.table.by_method((shrink * self.question_sum)[self.table.question.codes])
        inverse = np.asarray(np.linalg.inv(normal), dtype=np.float64)
        beta = inverse @ right
        rss = self.squares - float(shrink @ self.question_sum**2) - float(beta @ right)
        return beta, inverse, max(rss, np.finfo(np.float64).tiny), len(self.y) - len(beta)

    def deviance(self, ratio: float) -> float:
        """−2 × restricted log-likelihood at λ, up to df·(1 + log 2π)."""
        _, inverse, rss, df = self.solve(ratio)
        determinants = float(np.sum(np.log1p(ratio * self.question_size))) - float(np.linalg.slogdet(inverse)[1])
        return df * float(np.log(rss / df)) + determinants
