"""The weight of a tree beside the direct estimate, learnt from outcomes by the kind of the tree's root.

Tree and direct estimate are combined in log-odds, w·tree + (1 − w)·direct. Before there is a record, w is the weight
that the forecaster started with. Outcomes change it for all trees, and then for each kind of root, each shrunk towards
the level above: the fitted weight is the most probable one under a normal prior.
"""

from collections.abc import Iterable, Sequence
from datetime import date

import numpy as np

from foretell.frozen import frozen
from foretell.metrics.arrays import Floats
from foretell.questions.forecast import LARGEST_GAP

SPREAD = 0.2
"""Standard deviation of the weight of all trees around its starting value."""
KIND_SPREAD = 0.1
"""Standard deviation of the weight of one kind around that of all trees."""
GRID: Floats = np.linspace(0.0, 1.0, 101)
OPEN = 0.5
"""Outcome between yes and no."""


@frozen
class TreeExample:
    """A tree whose question is decided: both estimates in log-odds, and the outcome."""

    kind: str
    """Kind of the root."""
    tree: float
    direct: float
    outcome: float
    known_on: date


@frozen(kw_only=False)
class TreeRecord:
    """What became of earlier trees."""

    examples: Sequence[TreeExample]

    def weight(self, kind: str, start: float, day: date) -> float:
        """Return the weight for a tree whose root is of this kind, from outcomes that were known before the day."""
        known = [example for example in self.examples if example.known_on < day]
        overall = fitted_weight(known, start, SPREAD)
        return fitted_weight([example for example in known if example.kind == kind], overall, KIND_SPREAD)

    def when_apart(self, day: date) -> str:
        """Say which of tree and direct estimate was nearer to the outcome where they stayed apart before the day.

        >>> example = TreeExample(kind="all", tree=-2.0, direct=2.0, outcome=0.0, known_on=date(2026, 1, 1))
        >>> TreeRecord([example]).when_apart(date(2026, 1, 2))
        'In 1 earlier case they stayed apart. The direct estimate was nearer to the outcome in 0, the tree in 1.'
        """
        apart = [each for each in self.examples if each.known_on < day and abs(each.tree - each.direct) > LARGEST_GAP]
        direct = sum((each.direct > each.tree) == (each.outcome > OPEN) for each in apart)
        cases = f"{len(apart)} earlier case{'s' * (len(apart) > 1)}"
        nearer = f"The direct estimate was nearer to the outcome in {direct}, the tree in {len(apart) - direct}."
        return f"In {cases} they stayed apart. {nearer}" if apart else ""


def fitted_weight(examples: Iterable[TreeExample], start: float, spread: float) -> float:
    """Return the most probable weight under a normal prior around `start`.

    >>> right = TreeExample(kind="all", tree=-2.0, direct=2.0, outcome=0.0, known_on=date(2026, 1, 1))
    >>> fitted_weight([], 0.25, 0.2), 0.5 < fitted_weight([right] * 20, 0.25, 0.2)
    (0.25, True)
    """
    rows = list(examples)
    if not rows:
        return start
    tree, direct, outcome = (np.array([getattr(row, name) for row in rows]) for name in ("tree", "direct", "outcome"))
    z = direct + GRID[:, None] * (tree - direct)
    # log σ(z) for what came true, and log σ(−z) for what did not.
    likelihood = -(outcome * np.logaddexp(0.0, -z) + (1 - outcome) * np.logaddexp(0.0, z)).sum(axis=1)
    return float(GRID[np.argmax(likelihood - ((GRID - start) / spread) ** 2 / 2)])
