"""Evaluates rules out of sample: examples left out by question or event, or forecast from what was known before."""

from collections.abc import Callable, Iterator

import numpy as np

from foretell.forecasters.combine.rows import Examples, Strings, TrialRows
from foretell.forecasters.combine.rules import (
    Check,
    CombinationMethod,
    apply,
    left_out,
)
from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats, Ints
from foretell.metrics.clusters import factorise

GROUPINGS = ("event", "question", "cluster", "asking", "due", "resolved_on", "source", "subtype", "kind")
"""Groups to leave out together: `event` is each row alone, `asking` one question on one day with all its targets."""


def groups_by(examples: Examples, by: str) -> Ints:
    """Return the group of every example as a number from 0, in sorted order of the shared values."""
    if by not in GROUPINGS:
        raise ValueError(f"by = {by!r} is not one of {', '.join(GROUPINGS)}")
    if by == "event":
        return np.arange(len(examples))
    column = examples.known_on if by == "resolved_on" else getattr(examples.rows, by)
    return np.unique(column, return_inverse=True)[1].astype(np.int64)


def leave_one_out(method: CombinationMethod, examples: Examples, *, by: str = "question") -> Floats:
    """Return each example's probability from the rule fitted without its group: its question, event, day, ….

    `by="event"` is the protocol of BLF 2026. It leaves other dates of the same question, and the same question asked
    again, in the training set.
    """
    return left_out(method, examples, groups_by(examples, by))


def raw(rows: TrialRows) -> Floats:
    """Return the logit mean, used before there are training examples."""
    return rows.raw


@frozen
class RollingForecasts:
    """Forecasts for each day by a rule fitted on what was known by then."""

    p: Floats
    past: Ints
    """Number of training examples of the rule for each row; 0 if the fallback was used."""


def rolling(
    method: CombinationMethod, examples: Examples, *, fallback: Callable[[TrialRows], Floats] = raw
) -> RollingForecasts:
    """Forecast each due date by the rule fitted on examples asked before it whose answers were known before it.

    If there are none yet, `fallback` is used. Every fitted rule checks that it is not applied to its training data.
    """
    p, past = np.full(len(examples), np.nan), np.zeros(len(examples), np.int64)
    for due in np.unique(examples.rows.due):
        today = examples.rows.due == due
        rows = examples.rows.take(today)
        known = examples.take((examples.known_on < due) & (examples.rows.due < due))
        past[today] = len(known)
        p[today] = apply(method.fit(known), rows) if len(known) else fallback(rows)
    return RollingForecasts(p=p, past=past)


def across(method: CombinationMethod, train: Examples, test: Examples, *, check: Check = "ids") -> Floats:
    """Return the test set's probabilities from a rule fitted on the training set without the targets in both.

    A target in both rounds has one outcome, so training on it would leak. With `check="ids"` the training set may be
    the later one.
    """
    other = train.take(~np.isin(_event(train.rows), _event(test.rows)))
    return apply(method.fit(other), test.rows, check=check)


def _event(rows: TrialRows) -> Strings:
    return np.char.add(np.char.add(rows.question.astype(str), "\n"), rows.target.astype(str))


# Whether a rule's gain on later rounds exceeds noise: splits in time, and clustered standard errors.
#
# These tests run during fitting, so they must be fast and do not resample. Published intervals come from
# `foretell.metrics`.

ROUNDING = 1e-12
"""Tolerance for differences between the errors of equal forecasts."""


@frozen
class Gain:
    """A weighted mean with its standard error."""

    mean: float
    se: float
    n_clusters: float
    """Effective number of clusters: (Σ weight)² / Σ over clusters of (its weight)²."""

    def __str__(self) -> str:
        """Return the gain in thousandths of a Brier point, for display."""
        return f"{1000 * self.mean:.1f} ± {1000 * self.se:.1f} thousandths"

    def beyond(self, noise: float) -> bool:
        """Whether the mean exceeds zero by more than `noise` standard errors."""
        return self.mean > noise * self.se + ROUNDING


FOLDS = 5


def gain(difference: Floats, cluster: Strings, weight: Floats) -> Gain:
    """Return the mean m = Σwd/Σw and its clustered standard error: se² = C/(C−1) · Σ_c (Σ_c w(d − m))² / (Σw)².

    Rows whose difference is NaN do not count. With fewer than two clusters the error is unknown (infinite).

    >>> result = gain(np.array([1.0, 3.0, 2.0]), np.array(["a", "a", "b"]), np.ones(3))
    >>> round(result.mean, 3), round(result.n_clusters, 2)
    (2.0, 1.8)
    """
    counts = ~np.isnan(difference) & (weight > 0)
    if not counts.any():
        return Gain(mean=0.0, se=float("inf"), n_clusters=0.0)
    d, w, groups = difference[counts], weight[counts], factorise(cluster[counts])
    total = w.sum()
    mean = float((w * d).sum() / total)
    sums = groups.sums(np.column_stack([w * (d - mean), w]))
    if groups.n < 2:
        return Gain(mean=mean, se=float("inf"), n_clusters=1.0)
    se = float(np.sqrt(groups.n / (groups.n - 1) * np.sum(sums[:, 0] ** 2)) / total)
    return Gain(mean=mean, se=se, n_clusters=float(total**2 / np.sum(sums[:, 1] ** 2)))


def later_splits(examples: Examples) -> Iterator[tuple[Bools, Bools]]:
    """Yield masks of past and later rows: for every round but the first, what was known before it, and its rows.

    With a single round its clusters are split into five folds, each tested by a rule fitted on the others. This is
    weaker evidence, because they share their day.
    """
    due = examples.rows.due
    rounds = np.unique(due)
    for later in rounds[1:]:
        past = examples.known_on < later
        if past.any():
            yield past, due == later
    if len(rounds) == 1:
        clusters = factorise(examples.rows.cluster)
        fold = np.random.default_rng(0).permutation(clusters.n)[clusters.codes] % FOLDS
        for test_fold in range(min(FOLDS, clusters.n) if clusters.n > 1 else 0):
            yield fold != test_fold, fold == test_fold
