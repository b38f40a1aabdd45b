"""The error bar of an answer from repeated trials of its leaves, and where more trials would help most.

Each leaf's probability is the mean of its trials, and their spread shows how uncertain that mean is. The spread is
partly pooled over all leaves, because a few trials of one leaf give a poor estimate. Errors in the same trial may
be correlated: this is measured over all pairs of leaves, and judged correlations between claims are added to it. The
variance of the answer is Σᵢⱼ ∂ᵢ·∂ⱼ·covᵢⱼ (Analytica 2026, 4.2), and the error bar is that of Student's t with the
degrees of freedom of the variance estimate (Satterthwaite 1946).
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from math import fsum, sqrt
from typing import TYPE_CHECKING

from foretell.forecasters.tree.arithmetic.circuit import slopes
from foretell.forecasters.tree.arithmetic.evaluation import circuit_and_values
from foretell.forecasters.tree.proposition import Tree, leaves
from foretell.frozen import frozen
from foretell.metrics.probability_functions import student_quantile
from foretell.number_text import percent

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

PRIOR_TRIALS = 4.0
"""Weight, in trials, of the pooled spread when estimating the spread of one leaf."""
LEVEL = 0.9
"""Coverage of the error bar, as a fraction."""


@frozen
class ErrorBar:
    """Uncertainty of the answer, as estimated from repeated trials."""

    p: float
    sd: float
    """Standard deviation of the answer's error."""
    low: float
    high: float
    level: float
    freedom: float
    """Degrees of freedom of the estimated standard deviation."""
    correlation: float
    """Measured correlation between the errors of two leaves in the same trial."""
    contributions: Mapping[str, float] = field(default_factory=dict[str, float])
    """Each leaf's contribution to the variance: slope² × variance."""
    once: tuple[str, ...] = ()
    """Leaves with only one trial, for which the spread of the others is used."""

    def __str__(self) -> str:
        """Describe the error bar in words."""
        share = percent(self.level)
        spread = f"{share} of such bars contain the probability that perfect research on the leaves would give"
        others = f"; for {_some(self.once)}, examined once, the spread of the others is used" if self.once else ""
        return f"between {percent(self.low, 1)} and {percent(self.high, 1)} ({spread}{others})"


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")


MOST_BARS = 60
"""Maximum number of claims with an error bar of their own; in larger trees only the root has one."""


def error_bars(tree: Tree) -> dict[str, ErrorBar]:
    """Compute the error bar of every claim that has others below it and one; empty for a large tree."""
    claims = [id for id, node in tree.nodes.items() if node.children and node.pinned is None]
    if len(claims) > MOST_BARS:
        claims = [tree.root]
    return {id: bar for id in claims if (bar := error_bar(tree, claim=id)) is not None}


def error_bar(
    tree: Tree, *, claim: str | None = None, level: float = LEVEL, systematic_error: float = 0.0
) -> ErrorBar | None:
    """Compute the error bar of a claim, or of the root; None if no leaf has several trials, or all trials agree.

    `systematic_error` is the standard deviation of errors that a grounder repeats in every trial. Trials cannot reveal
    it; it can only be estimated from resolved claims.
    """
    circuit, values = circuit_and_values(tree)
    place = circuit.claims[claim or tree.root]
    slope = slopes(circuit.ops, values, place)
    trials = {id: ps for id, ps in leaf_trials(tree).items() if id in circuit.input_places}
    if all(len(ps) < 2 for ps in trials.values()):
        return None
    own = {id: slope[circuit.input_places[id]] for id in trials}
    spread = leaf_spread(own, trials, systematic_error=systematic_error)
    judged = 0.0
    sd_of = dict(zip(trials, spread.sd.tolist(), strict=True))
    for node in tree.nodes.values():
        for pair, correlation in node.together.items():
            a, _, b = pair.partition(" ")
            parts = [_error_of(tree, circuit.claims.get(id), id, sd_of) for id in (a, b)]
            if None not in parts and all(id in circuit.pinnable for id in (a, b)):
                over = [slope[circuit.claims[id]] * (part or 0.0) for id, part in zip((a, b), parts, strict=True)]
                judged += 2 * (correlation - spread.correlation) * over[0] * over[1]
    variance = max(spread.variance + judged, 0.0)
    if variance <= 1e-18:
        return None  # Identical trials do not show how large the error is.
    p = values[place]
    low, high = bar_ends(p, sqrt(variance), spread.freedom, level)
    return ErrorBar(
        p=p,
        sd=sqrt(variance),
        low=low,
        high=high,
        level=level,
        freedom=spread.freedom,
        correlation=spread.correlation,
        contributions={id: (own[id] * sd_of[id]) ** 2 for id in trials},
        once=tuple(id for id, ps in trials.items() if len(ps) < 2),
    )


def _error_of(tree: Tree, place: int | None, id: str, sd: Mapping[str, float]) -> float | None:
    """Standard deviation of a claim's error: a leaf's own, or for a parent that from the leaves below it."""
    if id in sd:
        return sd[id]
    if place is None:
        return None
    circuit, values = circuit_and_values(tree)
    slope = slopes(circuit.ops, values, place)
    known = [(slope[circuit.input_places[leaf]] * error) ** 2 for leaf, error in sd.items()]
    return sqrt(sum(known))


@frozen
class LeafSpread:
    """Errors of the leaves, estimated from repeated trials."""

    sd: "Floats"
    """Standard deviation of each leaf's mean, in the order of the leaves."""
    variance: float
    """Variance of the answer."""
    freedom: float
    correlation: float


def leaf_spread(
    slope: Mapping[str, float], trials: Mapping[str, Sequence[float]], *, systematic_error: float = 0.0
) -> LeafSpread:
    """Estimate the errors of the leaves, and from these and the slopes the variance of the answer."""
    import numpy as np

    count = np.array([len(trial) for trial in trials.values()], dtype=float)
    means, deviations, variances = _within_leaves(trials)
    single, freedom = np.array(variances), np.maximum(count - 1, 0.0)
    rho = _together(deviations, np.sqrt(single))
    passing = np.sqrt(single / count)
    own = np.array([slope[id] for id in trials])
    parts = own * passing
    squares = float(parts @ parts)
    alone, shared = (1 - rho) * squares, rho * float(parts.sum() ** 2)
    shift = own * _edge_shift(np.array(means), np.sqrt(single))
    steady = float(((own * systematic_error) ** 2).sum()) + float(shift.sum()) ** 2 + float(shift @ shift)
    # The shared part has only as many degrees of freedom as a leaf has, because all leaves share its trials.
    fewest = float(max(freedom.max(), 1.0))
    known = alone**2 / max(float(freedom.sum()), 1.0) + shared**2 / fewest
    total = alone + shared
    return LeafSpread(
        sd=np.sqrt(single / count + systematic_error**2),
        variance=total + steady,
        freedom=(total + steady) ** 2 / known if known > 0 else 1e6,
        correlation=rho,
    )


def _within_leaves(
    trials: Mapping[str, Sequence[float]],
) -> tuple[list[float], list[list[float]], list[float]]:
    """Mean, deviations and pooled variance of one trial, by leaf."""
    # A leaf has only a few trials, and plain sums are then faster than an array per leaf.
    means = [fsum(ps) / len(ps) for ps in trials.values()]
    deviations = [[p - mean for p in ps] for ps, mean in zip(trials.values(), means, strict=True)]
    sums = [fsum(off * off for off in deviation) for deviation in deviations]
    common = fsum(sums) / sum(max(len(deviation) - 1, 0) for deviation in deviations)
    return (
        means,
        deviations,
        [
            (own + PRIOR_TRIALS * common) / (max(len(deviation) - 1, 0) + PRIOR_TRIALS)
            for own, deviation in zip(sums, deviations, strict=True)
        ],
    )


def _edge_shift(mean: "Floats", sd: "Floats") -> "Floats":
    """Bias of the mean of numbers clamped to [0, 1]: near an end they can only err to one side.

    Assumes a normal error that is clamped at the ends.
    """
    import numpy as np

    from foretell.metrics.transforms import normal_cdf

    def over(distance: "Floats") -> "Floats":
        return np.exp(-(distance**2) / 2) / np.sqrt(2 * np.pi) - distance * normal_cdf(-distance)

    spread = np.maximum(sd, 1e-9)
    return spread * (over(mean / spread) - over((1 - mean) / spread))


def _together(deviations: Sequence[Sequence[float]], sd: "Floats") -> float:
    """Correlation between leaves' errors in the same trial, estimated over all pairs; at least 0."""
    import numpy as np

    by_leaf = zip(deviations, sd.tolist(), strict=True)
    rows = [(deviation, spread) for deviation, spread in by_leaf if len(deviation) > 1 and spread > 0]
    length = min((len(row) for row, _ in rows), default=0)
    if len(rows) < 2 or length < 3:
        return 0.0
    table = np.array([row[:length] for row, _ in rows]) / np.array([[spread] for _, spread in rows])
    squares = float((table**2).sum())
    pairs = float((table.sum(axis=0) ** 2).sum()) - squares
    rho = min(max(pairs / ((len(rows) - 1) * squares), 0.0), 1.0) if squares > 0 else 0.0
    # A ratio of sums over few trials underestimates the correlation (Olkin and Pratt 1958).
    return min(rho + rho * (1 - rho) / (length - 1), 1.0)


def bar_ends(p: float, sd: float, freedom: float, level: float) -> tuple[float, float]:
    """Return the lower and upper end of an error bar, clamped to [0, 1]."""
    reach = student_quantile(0.5 + level / 2, freedom) * sd
    return max(0.0, p - reach), min(1.0, p + reach)


def next_trials(slope: Mapping[str, float], trials: Mapping[str, Sequence[float]], count: int) -> dict[str, int]:
    """Distribute `count` more trials: each goes to the leaf where it reduces the answer's variance most.

    One more trial reduces the variance of a mean of n trials by σ²/n − σ²/(n + 1), and the answer's variance by slope²
    times that. If no leaf has several trials yet, all leaves count as equally uncertain.

    >>> next_trials({"P1": 0.6, "P2": 0.2}, {"P1": (0.4, 0.5), "P2": (0.4, 0.5)}, 4)
    {'P1': 4, 'P2': 0}
    """
    known = any(len(ps) > 1 for ps in trials.values())
    single = _within_leaves(trials)[2] if known else [1.0] * len(trials)
    weight = {id: slope[id] ** 2 * variance for id, variance in zip(trials, single, strict=True)}
    added = dict.fromkeys(trials, 0)
    for _ in range(count):
        left = {id: weight[id] / ((len(ps) + added[id]) * (len(ps) + added[id] + 1)) for id, ps in trials.items()}
        added[max(left, key=lambda id: left[id])] += 1
    return added


def root_slopes(tree: Tree) -> dict[str, float]:
    """Slope of the answer with respect to each leaf that has a probability."""
    circuit, values = circuit_and_values(tree)
    slope = slopes(circuit.ops, values, circuit.claims[tree.root])
    places = circuit.input_places
    return {id: slope[places[id]] if id in places else 0.0 for id in leaves(tree) if tree.nodes[id].p is not None}


def leaf_trials(tree: Tree) -> dict[str, tuple[float, ...]]:
    """Trials of each leaf; a leaf without recorded trials has one, its probability."""
    trials: dict[str, tuple[float, ...]] = {}
    for id in leaves(tree):
        node = tree.nodes[id]
        if node.p is not None:
            trials[id] = (node.grounding.trials if node.grounding is not None else ()) or (node.p,)
    return trials
