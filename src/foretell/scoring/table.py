"""Forecasts joined with outcomes: the only place where an answer meets a probability."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property

import numpy as np
import numpy.typing as npt

from foretell.metrics.arrays import Floats, Ints
from foretell.questions.errors import InputError

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
class ForecastTable:
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

    def filled(self, value: float) -> "ForecastTable":
        """Every forecaster answers everything: `value` stands where it had left a gap."""
        n, m = len(self.targets), len(self.forecasters)
        p = np.full((m, n), value)
        p[self.forecaster, self.target] = self.p
        note = f"{m * n - len(self.p)} missing forecasts count as {value:g}"
        return ForecastTable(
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

    def only(self, *forecasters: str) -> "ForecastTable":
        """The same targets with some of the forecasters, in the given order."""
        rows = [self.rows_of(name) for name in forecasters]
        chosen = np.concatenate(rows)
        return ForecastTable(
            targets=self.targets,
            forecasters=forecasters,
            forecaster=np.repeat(np.arange(len(forecasters)), [len(r) for r in rows]),
            target=self.target[chosen],
            p=self.p[chosen],
            notes=self.notes,
        )


# Rows that stand beside every forecaster, so that a score can be read: 0.5, the base rate and the crowd.

ALWAYS_HALF = "always 0.5"
BASE_RATE = "base rate"
CROWD = "crowd price"
ANCHORS = (CROWD, BASE_RATE, ALWAYS_HALF)


def with_anchors(table: ForecastTable) -> ForecastTable:
    """The table with its anchors added; a forecaster that already has an anchor's name is left alone."""
    half = np.full(len(table.targets), 0.5)
    columns = {ALWAYS_HALF: half, BASE_RATE: base_rate(table.targets), CROWD: table.targets.price}
    new = {name: p for name, p in columns.items() if name not in table.forecasters and np.isfinite(p).any()}
    forecaster, target, p = [table.forecaster], [table.target], [table.p]
    for code, column in enumerate(new.values(), len(table.forecasters)):
        answered = np.flatnonzero(np.isfinite(column))
        forecaster.append(np.full(len(answered), code, np.int64))
        target.append(answered)
        p.append(column[answered])
    return ForecastTable(
        targets=table.targets,
        forecasters=table.forecasters + tuple(new),
        forecaster=np.concatenate(forecaster),
        target=np.concatenate(target),
        p=np.concatenate(p),
        notes=table.notes,
    )


def base_rate(targets: Targets) -> Floats:
    """The frequency of yes among other targets of the same source, out of sample.

    With due and resolution dates: only what had resolved before the target's due date. Without them: all targets
    outside the target's own cluster. Either way smoothed by two pseudo-observations at one half.
    """
    groups = targets.groups
    by = groups.get("source") or groups.get("kind") or Labels(codes=np.zeros(len(targets), np.int64), names=("",))
    if "due" in groups and "resolved_on" in groups:
        return _past_rate(targets, by.codes)
    return _rate_elsewhere(targets, by.codes)


def _past_rate(targets: Targets, source: Ints) -> Floats:
    due, known = _days(targets.groups["due"]), _days(targets.groups["resolved_on"])
    out = np.full(len(targets), 0.5)
    for code in np.unique(source):
        rows = np.flatnonzero(source == code)
        order = rows[np.argsort(known[rows], kind="stable")]
        yes = np.concatenate([[0.0], np.cumsum(targets.outcome[order])])
        before = np.searchsorted(known[order], due[rows], side="left")
        out[rows] = (yes[before] + 1) / (before + 2)
    return out


def _days(labels: Labels) -> np.ndarray:
    """Calendar days; an unknown day sorts last, so that it is never taken for the past."""
    unknown = np.datetime64("9999-12-31")
    return np.array([np.datetime64(name[:10], "D") if name else unknown for name in labels.names])[labels.codes]


def _rate_elsewhere(targets: Targets, source: Ints) -> Floats:
    cluster = targets.groups.get("cluster", targets.question).codes
    pair = source * (int(cluster.max()) + 1) + cluster
    _, own = np.unique(pair, return_inverse=True)
    yes, n = np.bincount(source, targets.outcome)[source], np.bincount(source)[source]
    own_yes, own_n = np.bincount(own, targets.outcome)[own], np.bincount(own)[own]
    return (yes - own_yes + 1) / (n - own_n + 2)
