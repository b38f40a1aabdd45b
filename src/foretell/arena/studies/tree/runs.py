"""What repeated runs of one method come to, target by target, and how their distances to the outcome are spread."""

from dataclasses import dataclass

import numpy as np

from foretell.arena.report.scales import Scale
from foretell.arena.report.svg import Figure, empty, figure, rect, text, x_axis, y_axis
from foretell.arena.report.wording import number
from foretell.evaluate.arrays import Floats
from foretell.forecasters.combine.rows import Examples


@dataclass(frozen=True, kw_only=True)
class Stable:
    """Per target, in per cent: what repeated runs of one method come to."""

    accuracy: Floats
    soft: Floats
    brier: Floats
    confidence: Floats
    variance: Floats
    """Of the hard score between runs; NaN with fewer than two."""
    spread: Floats
    """Variance of the probability between runs."""
    undecided: Floats
    """Share of runs that said exactly one half."""

    @classmethod
    def of(cls, examples: Examples) -> "Stable":
        """Over the runs that answered."""
        p, outcome = examples.rows.trials, examples.outcome
        happened = np.where(outcome == 1, p, 1 - p)
        hard = np.where(np.isnan(p), np.nan, happened > 0.5)
        return cls(
            accuracy=100 * mean_of_runs(hard),
            soft=100 * mean_of_runs(happened),
            brier=100 * mean_of_runs((p - outcome) ** 2),
            confidence=100 * mean_of_runs(np.maximum(p, 1 - p)),
            variance=100 * variance_of_runs(hard),
            spread=100 * variance_of_runs(p),
            undecided=100 * mean_of_runs(np.where(np.isnan(p), np.nan, p == 0.5)),
        )


def mean_of_runs(values: Floats) -> Floats:
    """Mean over runs (rows), those that failed left out; NaN where none answered."""
    n = (~np.isnan(values)).sum(axis=0)
    return np.where(n > 0, np.nansum(values, axis=0) / np.maximum(n, 1), np.nan)


def variance_of_runs(values: Floats) -> Floats:
    """Variance between runs (rows), n − 1; NaN with fewer than two."""
    n = (~np.isnan(values)).sum(axis=0)
    squares = np.nansum((values - mean_of_runs(values)) ** 2, axis=0)
    return np.where(n > 1, squares / np.maximum(n - 1, 1), np.nan)


def runs_histogram(examples: Examples, name: str, *, bins: int = 20) -> Figure:
    """Distance of single runs to what happened: 0 is certain and right, 1 is certain and wrong."""
    off = np.abs(examples.rows.trials - examples.outcome)
    off = off[np.isfinite(off)]
    if not len(off):
        return empty("No run answered")
    count, edges = np.histogram(off, bins=bins, range=(0, 1))
    share = 100 * count / len(off)
    left, top, bottom, right = 44.0, 44.0, 210.0, 368.0
    x = Scale(low=0, high=1, start=left, stop=right)
    y = Scale(low=0, high=float(share.max()) * 1.08, start=bottom, stop=top)
    bars = [
        rect(
            x(edges[i]) + 1,
            y(value),
            (right - left) / bins - 2,
            bottom - y(value),
            "f-a bar" if edges[i] < 0.5 else "f-b bar",
            tip=f"{edges[i]:.2f}–{edges[i + 1]:.2f}: {count[i]} runs ({value:.1f} %)",
        )
        for i, value in enumerate(share.tolist())
        if value
    ]
    told = f"mean {number(float(off.mean()), 3)}, standard deviation {number(float(off.std()), 3)}"
    return figure(
        380,
        250,
        f"Distance of {len(off)} runs of {name} to what happened",
        text(4, 16, name, "h"),
        text(4, 32, told, "s k"),
        y_axis(y, left, right, count=4),
        x_axis(x, bottom, top, "distance of a run to what happened (share in %)"),
        *bars,
    )
