"""Two-way additive model y = μ + α(method) + γ(question) + ε: how good a method is apart from what it was asked.

Questions are eliminated exactly, which leaves one small system in the methods; nothing iterates, so millions
of rows cost a few passes. `alternating_effects` is the same fit by the papers' iteration.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from foretell.evaluate.arrays import Floats, Ints, as_vector, as_weights
from foretell.evaluate.clusters import Clusters, factorise

DENSE_CELLS = 20_000_000
"""Up to this many method × question cells the table is held dense (160 MB); above it, sparse."""


@dataclass(frozen=True, kw_only=True)
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
    """Methods in different components share no question, directly or through others: do not compare them."""
    question_component: Ints
    n_components: int
    residual_variance: float
    """RSS / (n − parameters); NaN when nothing is left over."""
    residual_df: int
    method_covariance: Floats
    """Covariance of the method effects, σ²·(pseudo-inverse of the reduced normal matrix)."""
    sweeps: int = 0
    """Sweeps of the iteration; 0 for the exact solution."""

    @property
    def method_se(self) -> Floats:
        """Standard errors of the method effects."""
        return np.sqrt(np.diag(self.method_covariance))

    @property
    def warning(self) -> str | None:
        """A sentence when methods fall apart into groups that share no question."""
        if self.n_components == 1:
            return None
        return f"{self.n_components} groups of methods share no question: compare methods only within a group"


@dataclass(frozen=True, kw_only=True)
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
        """Methods × methods matrix W·diag(scale)·Wᵀ, W the weight of each cell, scale ≥ 0 per question."""
        shape = (self.method.n, self.question.n)
        if shape[0] * shape[1] <= DENSE_CELLS:
            cell = self.method.codes * shape[1] + self.question.codes
            sums = np.bincount(cell, weights=self.weight, minlength=shape[0] * shape[1])
            dense = np.asarray(sums, dtype=np.float64).reshape(shape)
            # One array on both sides lets BLAS use the symmetric product, at half the work.
            dense *= np.sqrt(scale)
            return dense @ dense.T
        from scipy.sparse import csr_matrix

        table = csr_matrix((self.weight, (self.method.codes, self.question.codes)), shape=shape)
        return np.asarray((table.multiply(scale[None, :]).tocsr() @ table.T).toarray(), dtype=np.float64)


def two_way_table(
    y: npt.ArrayLike, method: npt.ArrayLike, question: npt.ArrayLike, weight: npt.ArrayLike | None = None
) -> TwoWayTable:
    """Check and factorise the rows of a two-way model; rows of weight zero are dropped."""
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

    With W the weights by method and question, row sums r, column sums c and weighted sums of y, s and t,
    the methods solve (diag r − W diag(1/c) Wᵀ) α = s − W(t/c); then γ + μ = (t − Wᵀα)/c. The matrix is the
    Laplacian of the graph of methods that share questions: singular once per connected component, so α sums to
    zero within each. The level of a component cannot be told from the ease of its questions and is booked
    on the questions (Abowd, Creecy & Kramarz 2002).

    >>> fit = two_way_effects([1, 2, 4, 5], ["a", "b", "a", "b"], ["x", "x", "z", "z"])
    >>> fit.mu, fit.method.round(9).tolist(), fit.question.round(9).tolist()
    (3.0, [-0.5, 0.5], [-1.5, 1.5])
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

    A sweep sets each γ to the mean of y − μ − α over its rows, then each α to the mean of y − μ − γ, then moves
    the means of α and γ into μ. It stops when no effect moves by more than `tolerance`. Slow when methods share
    few questions; use `two_way_effects` unless the paper's iteration itself is wanted.

    >>> fit = alternating_effects([1, 2, 4, 5], ["a", "b", "a", "b"], ["x", "x", "z", "z"])
    >>> fit.mu, fit.method.round(9).tolist(), fit.sweeps
    (3.0, [-0.5, 0.5], 2)
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
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    _, component = connected_components(csr_matrix(shared > 0), directed=False)
    return np.asarray(component, dtype=np.int64)


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
    """Centre the effects, find the residual variance and label everything."""
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
