"""How the general level of answers drifts: a slow random walk that is pulled back to its long-run mean.

The kind of question that gets asked changes from month to month, and with it the share that comes true. The level of
day t is a Gaussian process with covariance v·exp(−|t − t'| / m) (Ornstein & Uhlenbeck 1930): near days share it, days
far from all data fall back to the mean.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foretell.evaluate.arrays import Floats, Ints

STEP = 14
"""Days that share one level."""
MEMORY = 100.0
"""Days after which 1/e of a deviation is left."""


@dataclass(frozen=True, kw_only=True)
class Basis:
    """Levels of a grid of days as independent unit normals: levels = root @ normals · √v."""

    grid: Ints
    """Ascending, in days since 1970."""
    root: Floats

    def weights(self, normals: Floats) -> Floats:
        """What turns covariances with the grid into a level: K⁻¹·levels, for v = 1."""
        return np.asarray(np.linalg.solve(self.root.T, normals), np.float64)


def on_grid(days: npt.NDArray[np.datetime64]) -> Ints:
    """The middle of the stretch of days that each day falls into."""
    return days.astype("M8[D]").astype(np.int64) // STEP * STEP + STEP // 2


def basis(days: Ints) -> Basis:
    """The basis for levels on the given days of the grid."""
    grid = np.unique(days)
    # A trace on the diagonal keeps the root of near-equal days stable.
    root = np.linalg.cholesky(likeness(grid, grid) + 1e-9 * np.eye(len(grid)))
    return Basis(grid=grid, root=np.asarray(root, np.float64))


def likeness(days: Ints, grid: Ints) -> Floats:
    """exp(−|t − t'| / MEMORY) of every day with every grid day.

    >>> likeness(np.array([0, 100]), np.array([0])).round(3).tolist()
    [[1.0], [0.368]]
    """
    return np.exp(-np.abs(days[:, None] - grid[None, :]) / MEMORY)
