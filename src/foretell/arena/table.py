"""Forecasts joined with outcomes: the only place where an answer meets a probability."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property

import numpy as np
import numpy.typing as npt

from foretell.evaluate.arrays import Floats, Ints
from foretell.questions.problems import InputError

Days = npt.NDArray[np.datetime64]


@dataclass(frozen=True, kw_only=True)
class Labels:
    """A column of text, stored as codes into its distinct names in order of first appearance."""

    codes: Ints
    names: tuple[str, ...]

    def mask(self, name: str) -> npt.NDArray[np.bool_]:
        """Rows that carry the name."""
        return self.codes == self.names.index(name) if name in self.names else np.zeros(len(self.codes), bool)

    def take(self, rows: npt.NDArray[np.bool_] | Ints) -> "Labels":
        """The same column restricted to some rows, names kept."""
        return Labels(codes=self.codes[rows], names=self.names)


@dataclass(frozen=True, kw_only=True)
class Targets:
    """Every resolved target once: what happened, what the market showed, and how to group it."""

    outcome: Floats
    weight: Floats
    question: Labels
    target: Labels
    price: Floats
    """Implied probability at forecast time; NaN where there was no market."""
    yes_ask: Floats
    no_ask: Floats
    groups: Mapping[str, Labels] = field(default_factory=dict[str, Labels])
    """Columns to group and cluster by: kind, source, horizon, cluster, resolved_on, due and the user's own."""

    def __len__(self) -> int:
        return len(self.outcome)

    @cached_property
    def priced(self) -> bool:
        """Whether any target had a market to bet against."""
        return bool(np.isfinite(self.price).any() or (np.isfinite(self.yes_ask) & np.isfinite(self.no_ask)).any())


@dataclass(frozen=True, kw_only=True)
class Table:
    """Forecasts in long form over the targets of `targets`; a pair that is absent was not forecast."""

    targets: Targets
    forecasters: tuple[str, ...]
    forecaster: Ints
    """For each forecast, its place in `forecasters`."""
    target: Ints
    """For each forecast, its place in `targets`."""
    p: Floats
    notes: tuple[str, ...] = ()
    """What was left out of the scores, and why."""

    @cached_property
    def _by_forecaster(self) -> tuple[Ints, Ints]:
        order = np.argsort(self.forecaster, kind="stable")
        return order, np.searchsorted(self.forecaster[order], np.arange(len(self.forecasters) + 1))

    def rows_of(self, forecaster: str) -> Ints:
        """Indices of a forecaster's forecasts."""
        order, starts = self._by_forecaster
        code = self.forecasters.index(forecaster)
        return order[starts[code] : starts[code + 1]]

    def p_of(self, forecaster: str) -> Floats:
        """The forecaster's probability for every target, NaN where it gave none."""
        rows = self.rows_of(forecaster)
        p = np.full(len(self.targets), np.nan)
        p[self.target[rows]] = self.p[rows]
        return p

    def filled(self, value: float) -> "Table":
        """Every forecaster answers everything: `value` stands where it had left a gap."""
        n, m = len(self.targets), len(self.forecasters)
        p = np.full((m, n), value)
        p[self.forecaster, self.target] = self.p
        note = f"{m * n - len(self.p)} missing forecasts count as {value:g}"
        return Table(
            targets=self.targets,
            forecasters=self.forecasters,
            forecaster=np.repeat(np.arange(m), n),
            target=np.tile(np.arange(n), m),
            p=p.ravel(),
            notes=(*self.notes, note),
        )

    def require(self, forecaster: str) -> None:
        """Refuse a name that is not in the table."""
        if forecaster not in self.forecasters:
            near = get_close_matches(forecaster, self.forecasters, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(self.forecasters[:12])}"
            raise InputError(f"no forecaster is called {forecaster!r}", hint=hint)

    def only(self, *forecasters: str) -> "Table":
        """The same targets with some of the forecasters, in the given order."""
        rows = [self.rows_of(name) for name in forecasters]
        chosen = np.concatenate(rows)
        return Table(
            targets=self.targets,
            forecasters=forecasters,
            forecaster=np.repeat(np.arange(len(forecasters)), [len(r) for r in rows]),
            target=self.target[chosen],
            p=self.p[chosen],
            notes=self.notes,
        )
