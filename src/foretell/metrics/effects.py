"""Two-way additive model y = μ + α(method) + γ(question) + ε: the skill of a method apart from its questions.

Questions are eliminated exactly, which leaves one small linear system in the methods, so millions of rows take a few
passes. `alternating_effects` is the same fit by the papers' iteration.
"""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from foretell.frozen import frozen
from foretell.metrics.arrays import Floats, Ints, as_vector, as_weights
from foretell.metrics.clusters import Clusters, factorise
from foretell.metrics.numerics import minimum
from foretell.metrics.probability_functions import beta_below, normal_below, normal_quantile

DENSE_CELLS = 20_000_000
"""Up to this many method × question cells the table is held dense (160 MB); above it, sparse."""


@frozen
class TwoWayEffects:
    """The fitted effects; labels are sorted, effects are in the order of the labels."""

    mu: float
    method: Floats
    """Effect of each method; they sum to zero within each component."""
    question: Floats
    """Effect of each question; they sum to zero."""
    methods: npt.NDArray[Any]
    questions: npt.NDArray[Any]
    method_component: Ints
    """Methods in different components share no question, directly or through others, and must not be compared."""
    question_component: Ints
    n_components: int
    residual_variance: float
    """RSS / (n − parameters); NaN if no degrees of freedom are left."""
    residual_df: int
    method_covariance: Floats
    """Covariance of the method effects, σ²·(pseudo-inverse of the reduced normal matrix)."""
    sweeps: int = 0
    """Number of sweeps of the iteration; 0 for the exact solution."""

    @property
    def method_se(self) -> Floats:
        """Standard errors of the method effects."""
        return np.sqrt(np.diag(self.method_covariance))

    @property
    def warning(self) -> str | None:
        """A sentence if methods fall into groups that share no question, else None."""
        if self.n_components == 1:
            return None
        return f"{self.n_components} groups of methods share no question: compare methods only within a group"


@frozen
class TwoWayTable:
    """Rows of a method × question table, ready to fit."""

    y: Floats
    weight: Floats
    method: Clusters
    question: Clusters

    def by_method(self, values: Floats) -> Floats:
        """Weighted sums of row values per method."""
        sums = np.bincount(self.method.codes, weights=self.weight * values, minlength=self.method.n)
        return np.asarray(sums, dtype=np.float64)

    def by_question(self, values: Floats) -> Floats:
        """Weighted sums of row values per question."""
        sums = np.bincount(self.question.codes, weights=self.weight * values, minlength=self.question.n)
        return np.asarray(sums, dtype=np.float64)

    def shared(self, scale: Floats) -> Floats:
        """Methods × methods matrix W·diag(scale)·Wᵀ, where W is the weight of each cell and scale ≥ 0 per question."""
        shape = (self.method.n, self.question.n)
        if shape[0] * shape[1] <= DENSE_CELLS:
            index = self.method.codes * shape[1] + self.question.codes
            sums = np.bincount(index, weights=self.weight, minlength=shape[0] * shape[1])
            dense = np.asarray(sums, dtype=np.float64).reshape(shape)
            # One array on both sides lets BLAS use the symmetric product, at half the work.
            dense *= np.sqrt(scale)
            return dense @ dense.T
        # Every pair of rows of a question, a part of the rows at a time.
        order = np.argsort(self.question.codes, kind="stable")
        question, method = self.question.codes[order], self.method.codes[order]
        value = self.weight[order] * np.sqrt(scale)[question]
        size = np.bincount(question, minlength=shape[1])
        start, sums = np.cumsum(size) - size, np.zeros(shape[0] ** 2)
        parts = min(len(order), int((size**2).sum()) // max(DENSE_CELLS, 1) + 1)
        for rows in np.array_split(np.arange(len(order)), parts):
            count = size[question[rows]]
            first = np.repeat(rows, count)
            second = np.arange(len(first)) + np.repeat(start[question[rows]] - (np.cumsum(count) - count), count)
            sums += np.bincount(method[first] * shape[0] + method[second], value[first] * value[second], len(sums))
        return sums.reshape(shape[0], shape[0])


def two_way_table(
    y: npt.ArrayLike, method: npt.ArrayLike, question: npt.ArrayLike, weight: npt.ArrayLike | None = None
) -> TwoWayTable:
    """Check and factorise the rows of a two-way model, dropping rows of weight zero."""
    values = as_vector(y, "y")
    w = as_weights(weight, len(values))
    labels = {"method": np.asarray(method), "question": np.asarray(question)}
    for name, array in labels.items():
        if array.shape != values.shape:
            raise ValueError(f"{name} has shape {array.shape}, expected {values.shape}")
    if not w.all():
        values, labels = values[w > 0], {name: array[w > 0] for name, array in labels.items()}
        w = w[w > 0]
    return TwoWayTable(
        y=values,
        weight=w,
        method=factorise(labels["method"], "method"),
        question=factorise(labels["question"], "question"),
    )


def two_way_effects(
    y: npt.ArrayLike, method: npt.ArrayLike, question: npt.ArrayLike, weight: npt.ArrayLike | None = None
) -> TwoWayEffects:
    """Least-squares effects of methods and questions by exact elimination of the questions.

    With W the weights by method and question, row sums r, column sums c and weighted sums of y, s and t, the methods
    solve (diag r − W diag(1/c) Wᵀ) α = s − W(t/c); then γ + μ = (t − Wᵀα)/c. The matrix is the Laplacian of the graph
    of methods that share questions: singular once per connected component, so α sums to zero within each. The level of
    a component cannot be distinguished from how easy its questions are, and is attributed to the questions (Abowd,
    Creecy & Kramarz 2002).
    """
    table = two_way_table(y, method, question, weight)
    offset = float(np.average(table.y, weights=table.weight))
    centred = table.y - offset
    ones = np.ones_like(centred)
    question_weight = table.by_question(ones)
    question_mean = table.by_question(centred) / question_weight
    shared = table.shared(1 / question_weight)
    laplacian = np.diag(table.by_method(ones)) - shared
    component = _components(shared)
    right = table.by_method(centred - question_mean[table.question.codes])
    inverse = _pseudo_inverse(laplacian, component)
    alpha = inverse @ right
    level = question_mean - table.by_question(alpha[table.method.codes]) / question_weight
    return _identified(table, alpha, level + offset, component, inverse=inverse)


def alternating_effects(
    y: npt.ArrayLike,
    method: npt.ArrayLike,
    question: npt.ArrayLike,
    *,
    tolerance: float = 1e-10,
    max_sweeps: int = 10_000,
) -> TwoWayEffects:
    """The same effects by alternating least squares with recentring (BLF 2026, Eq. 15 and 16).

    A sweep sets each γ to the mean of y − μ − α over its rows, then each α to the mean of y − μ − γ, then moves the
    means of α and γ into μ. It stops when no effect moves by more than `tolerance`. This is slow if methods share few
    questions; use `two_way_effects` unless you want the paper's iteration itself.
    """
    table = two_way_table(y, method, question)
    mu, alpha, gamma = 0.0, np.zeros(table.method.n), np.zeros(table.question.n)
    per_method, per_question = table.method.sizes, table.question.sizes
    sweeps, moved = 0, np.inf
    while moved > tolerance:
        sweeps += 1
        if sweeps > max_sweeps:
            raise ValueError(f"no convergence in {max_sweeps} sweeps: use two_way_effects, which is exact")
        before = alpha
        gamma = table.by_question(table.y - mu - alpha[table.method.codes]) / per_question
        alpha = table.by_method(table.y - mu - gamma[table.question.codes]) / per_method
        shift = float(alpha.mean()), float(gamma.mean())
        alpha, gamma, mu = alpha - shift[0], gamma - shift[1], mu + sum(shift)
        moved = float(np.max(np.abs(alpha - before)))
    shared = table.shared(1 / per_question)
    component = _components(shared)
    return _identified(table, alpha, mu + gamma, component, sweeps=sweeps)


def _components(shared: Floats) -> Ints:
    """Component of each method in the graph that joins methods with a question in common."""
    component, before = np.arange(len(shared)), np.array([-1])
    while not np.array_equal(component, before):
        before = component
        joined = np.where(shared > 0, component, len(shared)).min(axis=1, initial=len(shared))
        component = np.minimum(component, joined)
    return np.unique(component, return_inverse=True)[1].astype(np.int64)


def _pseudo_inverse(laplacian: Floats, component: Ints) -> Floats:
    """Moore–Penrose inverse of a Laplacian whose null space is spanned by the component indicators."""
    size = np.bincount(component)
    null = (component[:, None] == component[None, :]) / size[component]
    inverse = np.linalg.inv(laplacian + null) - null
    return (inverse + inverse.T) / 2


def _identified(
    table: TwoWayTable,
    alpha: Floats,
    level: Floats,
    component: Ints,
    *,
    inverse: Floats | None = None,
    sweeps: int = 0,
) -> TwoWayEffects:
    """Centre the effects, compute the residual variance and attach the labels."""
    question_component = np.zeros(table.question.n, dtype=np.int64)
    question_component[table.question.codes] = component[table.method.codes]
    centre = np.bincount(component, weights=alpha) / np.bincount(component)
    alpha, level = alpha - centre[component], level + centre[question_component]
    mu = float(level.mean())
    residual = table.y - alpha[table.method.codes] - level[table.question.codes]
    count = len(centre)
    df = len(table.y) - len(alpha) - len(level) + count
    variance = float(np.sum(table.weight * residual**2)) / df if df > 0 else float("nan")
    covariance = np.full((len(alpha), len(alpha)), np.nan) if inverse is None else variance * inverse
    return TwoWayEffects(
        mu=mu,
        method=alpha,
        question=level - mu,
        methods=table.method.labels,
        questions=table.question.labels,
        method_component=component,
        question_component=question_component,
        n_components=count,
        residual_variance=variance,
        residual_df=df,
        method_covariance=covariance,
        sweeps=sweeps,
    )


# How much of the spread of scores is due to the method, to the question, and to neither.

SumsOfSquares = Literal["marginal", "method_first", "question_first", "adjusted"]


@frozen
class AnovaRow:
    """One line of an analysis-of-variance table; F and p are NaN for residual and total."""

    source: str
    ss: float
    df: int
    share: float
    """Sum of squares over the total sum of squares."""
    f: float = float("nan")
    p: float = float("nan")


def two_way_anova(
    y: npt.ArrayLike,
    method: npt.ArrayLike,
    question: npt.ArrayLike,
    *,
    kind: SumsOfSquares = "marginal",
) -> list[AnovaRow]:
    """Analysis of variance of y by method and question: rows method, question, residual, total.

    "marginal" is the paper's table: SS = Σ n_g (mean_g − mean)² for each factor by itself, and the residual is the rest
    of the total (BLF 2026, G.1). On a balanced table all kinds agree. On an unbalanced one the marginal sums overlap,
    so use "method_first" or "question_first" (sequential: what the second factor adds to the first) or "adjusted" (each
    given the other). F = (SS/df) / (residual SS/df).
    """
    table = two_way_table(y, method, question)
    fit = two_way_effects(table.y, table.method.codes, table.question.codes)
    total = float(np.sum((table.y - table.y.mean()) ** 2))
    within = fit.residual_variance * fit.residual_df if fit.residual_df else 0.0
    ss_method, ss_question = _marginal(table)
    df_method, df_question = table.method.n - 1, table.question.n - 1
    slack = fit.n_components - 1
    given_method, given_question = total - within - ss_method, total - within - ss_question
    if kind == "marginal":
        within, slack = total - ss_method - ss_question, 0
    if kind in ("method_first", "adjusted"):
        ss_question, df_question = given_method, df_question - slack
    if kind in ("question_first", "adjusted"):
        ss_method, df_method = given_question, df_method - slack
    df_within = fit.residual_df if kind != "marginal" else len(table.y) - 1 - df_method - df_question
    mean_square = within / df_within if df_within > 0 else float("nan")
    return [
        _factor("method", ss_method, df_method, total=total, mean_square=mean_square, df_within=df_within),
        _factor("question", ss_question, df_question, total=total, mean_square=mean_square, df_within=df_within),
        AnovaRow(source="residual", ss=within, df=df_within, share=within / total),
        AnovaRow(source="total", ss=total, df=len(table.y) - 1, share=1.0),
    ]


def _marginal(table: TwoWayTable) -> tuple[float, float]:
    centred = table.y - table.y.mean()

    def between(sums: Floats, sizes: Floats) -> float:
        return float(np.sum(sums**2 / sizes))

    ones = np.ones_like(centred)
    return (
        between(table.by_method(centred), table.by_method(ones)),
        between(table.by_question(centred), table.by_question(ones)),
    )


def _factor(source: str, ss: float, df: int, *, total: float, mean_square: float, df_within: int) -> AnovaRow:
    if df < 1 or not mean_square > 0:
        return AnovaRow(source=source, ss=ss, df=df, share=ss / total)
    f = ss / df / mean_square
    return AnovaRow(
        source=source,
        ss=ss,
        df=df,
        share=ss / total,
        f=f,
        p=beta_below(df_within / 2, df / 2, df_within / (df_within + df * f)),
    )


# Mixed model with a random effect per question: a check on the paired comparisons.
#
# y = β(method) + u(question) + ε with u ~ N(0, σ_q²) and ε ~ N(0, σ²), fitted by restricted maximum likelihood.


@frozen
class MethodContrast:
    """Difference of two method means, first − second, with a Wald interval and two-sided p-value."""

    diff: float
    se: float
    low: float
    high: float
    p: float


@frozen
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

    def contrast(self, first: object, second: object, level: float = 0.95) -> MethodContrast:
        """Return the mean of method `first` − mean of method `second`, by label."""
        weights = (self.methods == first).astype(np.float64) - (self.methods == second)
        if not ((self.methods == first).any() and (self.methods == second).any()):
            raise ValueError(f"first {first!r} and second {second!r} must be methods of the fit")
        diff, se = float(weights @ self.mean), float(np.sqrt(weights @ self.covariance @ weights))
        half = normal_quantile((1 + level) / 2) * se
        p = 2 * normal_below(-abs(diff) / se) if se > 0 else float("nan")
        return MethodContrast(diff=diff, se=se, low=diff - half, high=diff + half, p=p)


def mixed_effects_check(y: npt.ArrayLike, method: npt.ArrayLike, question: npt.ArrayLike) -> MixedEffects:
    """REML fit of a fixed mean per method and a random intercept per question.

    With λ = σ_q²/σ², V⁻¹ of a question with n rows is I − λ/(1+λn)·11ᵀ, so everything reduces to sums by
    method and by question and the restricted likelihood is maximised over λ alone (Patterson & Thompson 1971;
    BLF 2026, G.2 uses it as a robustness check).
    """
    table = two_way_table(y, method, question)
    if len(table.y) <= table.method.n:
        raise ValueError("y needs more rows than there are methods")
    offset = float(table.y.mean())
    profile = _ProfileLikelihood(table, table.y - offset)

    def deviance(log_ratio: float) -> float:
        return profile.deviance(float(np.exp(log_ratio)))

    ratio = float(np.exp(minimum(deviance, -20.0, 20.0)))
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


class _ProfileLikelihood:
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
