"""Scores of single trials, and how much of their variance is due to question, method, both together and chance."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from foretell.evaluate.anova import two_way_anova
from foretell.evaluate.arrays import Floats, Ints
from foretell.forecasters.combine.rows import Examples, Strings


@dataclass(frozen=True, kw_only=True)
class Scored:
    """One row per trial that answered: its score from 0 to 1, its method and its question, as codes."""

    y: Floats
    method: Ints
    question: Ints
    methods: tuple[str, ...]
    cluster: Strings
    """By the code of a question, what is resampled with it: the same question asked again."""

    def __len__(self) -> int:
        return len(self.y)

    def cells(self) -> Floats:
        """Mean score of every method (row) on every question (column); NaN where no trial answered."""
        shape = (len(self.methods), len(self.cluster))
        cell, size = self.method * shape[1] + self.question, shape[0] * shape[1]
        total, n = np.bincount(cell, self.y, size), np.bincount(cell, minlength=size)
        return np.divide(total, n, out=np.full(size, np.nan), where=n > 0).reshape(shape)


def scored(tables: Mapping[str, Examples], *, first_only: bool) -> Scored:
    """Every trial that answered, 1 − |p − o|, over all targets or over the first date of every asking."""
    some = next(iter(tables.values()))
    kept = _firsts(some) if first_only else np.arange(len(some))
    parts = [_answers(examples, kept) for examples in tables.values()]
    return Scored(
        y=np.concatenate([score for score, _ in parts]),
        method=np.repeat(np.arange(len(parts)), [len(score) for score, _ in parts]),
        question=np.concatenate([at for _, at in parts]),
        methods=tuple(tables),
        cluster=some.rows.cluster[kept],
    )


def _answers(examples: Examples, kept: Ints) -> tuple[Floats, Ints]:
    score = 1 - np.abs(examples.rows.trials[:, kept] - examples.outcome[kept])
    trial, at = np.nonzero(np.isfinite(score))
    return score[trial, at], at.astype(np.int64)


def _firsts(examples: Examples) -> Ints:
    """The target of every asking that resolved first."""
    order = np.lexsort((examples.known_on, examples.rows.asking))
    return order[np.unique(examples.rows.asking[order], return_index=True)[1]].astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class Components:
    """Variance components of one trial's score."""

    question: float
    method: float
    both: float
    """Question × method: some methods do better on some questions, trial after trial."""
    trial: float
    """What differs between trials of one method on one question."""

    @property
    def total(self) -> float:
        """Variance of one trial of a random method on a random question."""
        return self.question + self.method + self.both + self.trial

    def share(self, name: str) -> float:
        """A component's share of the total."""
        return getattr(self, name) / self.total if self.total else float("nan")


def components(found: Scored) -> Components:
    """Moment estimates from mean squares (Searle, Casella & McCulloch 1992, ch. 4); what comes out negative is zero.

    With K trials in each of M × Q cells: σ²(trial) = MS(within cells), σ²(both) = (MS(interaction) − MS(within)) / K,
    σ²(method) = (MS(method) − MS(interaction)) / QK, and the same for questions. On a table with gaps K, QK and MK are
    the mean numbers of trials and the sums of squares are adjusted for each other.
    """
    rows = {row.source: row for row in two_way_anova(found.y, found.method, found.question, kind="adjusted")}
    cells = found.cells()
    filled = int(np.isfinite(cells).sum())
    within = float(np.sum((found.y - cells[found.method, found.question]) ** 2))
    spare = len(found) - filled
    trial = within / spare if spare > 0 else 0.0
    together = max(0.0, rows["residual"].ss - within) / max(1, rows["residual"].df - spare)

    def beyond(source: str, groups: int) -> float:
        return max(0.0, rows[source].ss / max(1, rows[source].df) - together) * groups / len(found)

    return Components(
        question=beyond("question", cells.shape[1]),
        method=beyond("method", cells.shape[0]),
        both=max(0.0, together - trial) * filled / len(found),
        trial=trial,
    )
