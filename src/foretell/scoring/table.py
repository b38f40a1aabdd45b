"""Forecasts joined with outcomes: the only place where forecasts and answers meet."""

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from difflib import get_close_matches
from functools import cached_property
from math import nan
from typing import Literal

import numpy as np
import numpy.typing as npt

from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats, Ints, group_sums
from foretell.metrics.decisions import decide_tasks
from foretell.metrics.difficulty import difficulty_anchor, target_difficulty
from foretell.metrics.metric import LOG_FLOOR, DecisionRows, MetricRows
from foretell.metrics.returns import FEES, Bettor
from foretell.metrics.scores import log_score
from foretell.number_text import plural
from foretell.questions.errors import InputError
from foretell.scoring.baselines import ALWAYS_HALF, BASE_RATE, BASELINES, MARKET_PRICE

"""Name of the group of all kinds together."""
Weighing = Literal["given", "question"]
"""How rows count: by the weight of their target, or every question once, however many targets were answered."""


@frozen
class Labels:
    """A column of text, stored as codes into its distinct names in order of first appearance."""

    codes: Ints
    names: tuple[str, ...]

    @cached_property
    def ranks(self) -> Ints:
        """Place of each code's name in alphabetical order, so that results do not depend on the order of rows."""
        ranks = np.empty(len(self.names), np.int64)
        ranks[sorted(range(len(self.names)), key=self.names.__getitem__)] = np.arange(len(self.names))
        return ranks

    def mask(self, name: str) -> npt.NDArray[np.bool_]:
        """Whether each row has this name."""
        return self.codes == self.names.index(name) if name in self.names else np.zeros(len(self.codes), bool)

    def take(self, rows: npt.NDArray[np.bool_] | Ints) -> "Labels":
        """Return the column restricted to some rows, with the same names."""
        return Labels(codes=self.codes[rows], names=self.names)


def options_of_tasks(task: Ints, payoff: Floats) -> Ints:
    """Number of options of each option's task, if all of them have a value and the values differ; else 0.

    A market whose options were settled without dollars is not a task.

    >>> options_of_tasks(np.array([0, 0, 1, 1]), np.array([1.2, 0.8, np.nan, 1.0])).tolist()
    [2, 2, 0, 0]
    """
    n, known = np.bincount(task), np.bincount(task, np.isfinite(payoff))
    worth = np.nan_to_num(payoff)
    low, high = np.full(len(n), np.inf), np.full(len(n), -np.inf)
    np.minimum.at(low, task, worth)
    np.maximum.at(high, task, worth)
    return np.where((n > 1) & (known == n) & (high > low), n, 0)[task]


@frozen
class Targets:
    """Every resolved target once: its outcome, its market prices, and the columns to group it by."""

    outcome: Floats
    weight: Floats
    question: Labels
    target: Labels
    price: Floats
    """Implied probability at forecast time; NaN if there was no market."""
    yes_ask: Floats
    no_ask: Floats
    payoff: Floats | None = None
    """Return of a dollar on each option, NaN if unknown; None if there is no choice between options."""
    horizon: Floats | None = None
    """Days from asking to resolution, NaN if unknown; None if the outcomes have no such column."""
    groups: Mapping[str, Labels] = field(default_factory=dict[str, Labels])
    """Columns to group and cluster by: kind, source, horizon, cluster, resolved_on, due and the user's own."""
    round: Ints | None = None
    """The round (time of asking) of its question that a target belongs to, if the column `due` does not give it."""

    def __len__(self) -> int:
        return len(self.outcome)

    @cached_property
    def priced(self) -> bool:
        """Whether any target had a market to bet against."""
        return bool(np.isfinite(self.price).any() or (np.isfinite(self.yes_ask) & np.isfinite(self.no_ask)).any())

    @cached_property
    def options(self) -> Ints:
        """Number of options of each target's task (an asking); 0 if it is not an option of a task."""
        if self.payoff is None:
            return np.zeros(len(self), np.int64)
        return options_of_tasks(np.unique(self.askings, return_inverse=True)[1], self.payoff)

    @cached_property
    def askings(self) -> Ints:
        """One code per question and round; a market asked again gets another code."""
        due = self.groups.get("due")
        round, n = (self.round, int(self.round.max(initial=0)) + 1) if self.round is not None else (None, 1)
        if round is None and due is not None:
            round, n = due.codes, len(due.names)
        return self.question.codes if round is None else self.question.codes * n + round

    @cached_property
    def asks(self) -> tuple[Floats, Floats]:
        """Cost of Yes and No: both asks if the market had them, else the price and its complement to a dollar."""
        quoted = np.isfinite(self.yes_ask) & np.isfinite(self.no_ask)
        return np.where(quoted, self.yes_ask, self.price), np.where(quoted, self.no_ask, 1 - self.price)

    @cached_property
    def costs(self) -> tuple[Floats, Floats]:
        """Cost of Yes and No including the platform's fee (column platform, else source)."""
        yes, no = (side.copy() for side in self.asks)
        platform = self.groups.get("platform") or self.groups.get("source")
        if platform is not None:
            for name in set(platform.names) & set(FEES):
                bettor, mine = Bettor(fee=FEES[name]), platform.mask(name)
                yes[mine], no[mine] = bettor.cost(yes[mine]), bettor.cost(no[mine])
        return yes, no


@frozen
class ForecastCost:
    """What one forecast cost; NaN where it is unknown."""

    dollars: float = nan
    seconds: float = nan


@frozen(eq=False)
class ForecastTable:
    """Forecasts in long form over the targets of `targets`; a pair that is absent was not forecast."""

    targets: Targets
    forecasters: tuple[str, ...]
    forecaster: Ints
    """Index into `forecasters` for each forecast."""
    target: Ints
    """Index into `targets` for each forecast."""
    p: Floats
    notes: tuple[str, ...] = ()
    """What was left out of the scores, and why."""
    weighing: Weighing = "given"
    costs: Mapping[str, ForecastCost] = field(default_factory=dict[str, ForecastCost])
    """Forecaster → the mean cost of its answer to a question, where it is known."""

    def __repr__(self) -> str:
        counts = f"{plural(len(self.p), 'forecast')} by {plural(len(self.forecasters), 'forecaster')}"
        return f"<ForecastTable: {counts}, {plural(len(self.targets.outcome), 'target')}>"

    @cached_property
    def _by_forecaster(self) -> tuple[Ints, Ints]:
        order = np.argsort(self.forecaster, kind="stable")
        return order, np.searchsorted(self.forecaster[order], np.arange(len(self.forecasters) + 1))

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {name: code for code, name in enumerate(self.forecasters)}

    def rows_of(self, forecaster: str) -> Ints:
        """Return the indices of a forecaster's forecasts."""
        order, starts = self._by_forecaster
        code = self._codes[forecaster]
        return order[starts[code] : starts[code + 1]]

    def answered(self, forecaster: str) -> Ints:
        """Return the sorted indices of the targets that a forecaster answered."""
        return np.sort(self.target[self.rows_of(forecaster)]).astype(np.int64)

    def p_of(self, forecaster: str) -> Floats:
        """Return the forecaster's probability for every target, NaN if it gave none."""
        rows = self.rows_of(forecaster)
        p = np.full(len(self.targets), np.nan)
        p[self.target[rows]] = self.p[rows]
        return p

    def filled(self, value: float) -> "ForecastTable":
        """Return a table in which every forecaster answers every target, with `value` in place of missing forecasts."""
        n, m = len(self.targets), len(self.forecasters)
        p = np.full((m, n), value)
        p[self.forecaster, self.target] = self.p
        missing = m * n - len(self.p)
        note = f"{missing:,} missing forecast{'s count' if missing != 1 else ' counts'} as {value:g}"
        return replace(
            self,
            forecaster=np.repeat(np.arange(m), n),
            target=np.tile(np.arange(n), m),
            p=p.ravel(),
            notes=(*self.notes, note),
        )

    def require(self, forecaster: str) -> None:
        """Raise if the name is not in the table."""
        if forecaster not in self.forecasters:
            near = get_close_matches(forecaster, self.forecasters, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(self.forecasters[:12])}"
            raise InputError(f"no forecaster is called {forecaster!r}", hint=hint)

    def only(self, *forecasters: str) -> "ForecastTable":
        """Return the table with only these forecasters, in the given order."""
        rows = [self.rows_of(name) for name in forecasters]
        chosen = np.concatenate(rows)
        return replace(
            self,
            forecasters=forecasters,
            forecaster=np.repeat(np.arange(len(forecasters)), [len(r) for r in rows]),
            target=self.target[chosen],
            p=self.p[chosen],
        )

    def weights(self, targets: Ints) -> Floats:
        """Weight of each of the targets that a forecaster answered.

        By question, the weight of a target is 1 / (targets answered at its asking × askings answered of its question),
        so that every question that was answered at all counts once.
        """
        if self.weighing == "given":
            return self.targets.weight[targets]
        asking, first, inverse = np.unique(self.targets.askings[targets], return_index=True, return_inverse=True)
        answered = np.bincount(inverse, minlength=len(asking))[inverse]
        question = self.targets.question.codes[targets]
        askings = np.bincount(question[first], minlength=int(question.max(initial=0)) + 1)[question]
        return 1.0 / (answered * askings)

    @cached_property
    def _log_sums(self) -> tuple[Floats, Ints]:
        """Per target: sum over forecasters of the log probability given to what happened, and their number."""
        own = ~np.isin(self.forecaster, [i for i, name in enumerate(self.forecasters) if name in BASELINES])
        n = len(self.targets)
        logs = _log_given(self.p[own], self.targets.outcome[self.target[own]])
        return group_sums(self.target[own], logs, n), np.bincount(self.target[own], minlength=n).astype(np.int64)

    def peers(self, targets: Ints, p: Floats, forecaster: str) -> Floats:
        """Mean log score of the other forecasters (no baselines) on each target; NaN if nobody else answered."""
        total, n = (part[targets] for part in self._log_sums)
        if forecaster not in BASELINES:
            total, n = total - _log_given(p, self.targets.outcome[targets]), n - 1
        return np.divide(total, n, out=np.full(len(targets), np.nan), where=n > 0)

    def decisions(self, targets: Ints, p: Floats) -> DecisionRows:
        """The choices that the probabilities imply in every task of which all options are answered."""
        known, empty = self.targets, DecisionRows.empty(len(targets))
        task, n = known.askings[targets], known.options[targets]
        answered = np.bincount(task, minlength=int(known.askings.max(initial=0)) + 1)[task]
        rows = np.flatnonzero((n > 0) & (answered == n))
        if known.payoff is None or not len(rows):
            return empty
        return empty.put(rows, n[rows], decide_tasks(p[rows], known.payoff[targets[rows]], task[rows]), task[rows])

    @cached_property
    def difficulty(self) -> Floats:
        """Difficulty of each target: the error of its price, or else its effect on the forecasters; NaN if unknown."""
        targets = self.targets
        own = ~np.isin(self.forecaster, [i for i, name in enumerate(self.forecasters) if name in BASELINES])
        return target_difficulty(
            self.p[own],
            self.forecaster[own],
            self.target[own],
            price=targets.price,
            outcome=targets.outcome,
            dataset=self._kind.mask("dataset"),
        )

    @cached_property
    def anchored_difficulty(self) -> Floats:
        """Difficulty of each target minus the constant that puts always-0.5 at 0.25.

        There is one constant for each kind of question, as on ForecastBench.
        """
        gamma, weight = self.difficulty.copy(), self.targets.weight
        for name in self._kind.names:
            mine = self._kind.mask(name) & np.isfinite(gamma)
            if mine.any() and weight[mine].any():
                gamma[mine] -= difficulty_anchor(gamma[mine], weight[mine])
        return gamma

    @property
    def _kind(self) -> Labels:
        n = len(self.targets)
        return self.targets.groups.get("kind") or Labels(codes=np.zeros(n, np.int64), names=("",))


def _log_given(p: Floats, outcome: Floats) -> Floats:
    return log_score(p, outcome, floor=LOG_FLOOR)


def metric_rows(
    table: ForecastTable, targets: Ints, p: Floats, forecaster: str, needs: Collection[str] = ()
) -> MetricRows:
    """Rows of one forecaster on the targets it answered, with the extra columns that some metrics need."""
    known = table.targets
    rows = MetricRows(p=p, outcome=known.outcome[targets], weight=table.weights(targets))
    if "peers" in needs:
        rows = replace(rows, peers=table.peers(targets, p, forecaster))
    if "difficulty" in needs:
        rows = replace(rows, difficulty=table.anchored_difficulty[targets])
    if "payoffs" in needs:
        rows = replace(rows, decision=table.decisions(targets, p))
    if not known.priced:
        return rows
    yes, no = (side[targets] for side in known.asks)
    rows = replace(
        rows, yes_price=yes, no_price=no, priced_weight=_priced_weight(table, targets, np.isfinite(yes + no))
    )
    if "fees" in needs:
        yes, no = (side[targets] for side in known.costs)
        rows = replace(rows, yes_cost=yes, no_cost=no)
    return rows


def _priced_weight(table: ForecastTable, targets: Ints, priced: Bools) -> Floats | None:
    if table.weighing == "given":
        return None
    out = np.zeros(len(targets))
    out[priced] = table.weights(targets[priced])
    return out


# Columns to group by that are computed if the outcomes do not have them.

LEAD_TIMES = {"up to a week": 7.0, "up to a month": 31.0, "up to three months": 92.0, "up to a year": 366.0}
"""Upper ends of the groups of lead times in days from asking to resolution, inclusive."""
LEVELS = ("easy", "medium", "hard")


def with_computed_columns(table: ForecastTable, by: Collection[str]) -> ForecastTable:
    """Add the columns lead_time and difficulty if they are grouped by and the table has none of its own.

    Raises:
        InputError: If the outcomes do not have the time from asking to resolution.
    """
    computed = {"lead_time": _lead_times, "difficulty": _difficulties}
    groups = {name: label(table) for name, label in computed.items() if name in by and name not in table.targets.groups}
    return (
        replace(table, targets=replace(table.targets, groups={**table.targets.groups, **groups})) if groups else table
    )


def _lead_times(table: ForecastTable) -> Labels:
    """The time from asking to resolution: the horizon where it is known, else the days from due to resolved_on."""
    targets = table.targets
    days = np.full(len(targets), np.nan) if targets.horizon is None else targets.horizon
    dates = [targets.groups.get(name) for name in ("due", "resolved_on")]
    if dates[0] is not None and dates[1] is not None:
        due, known = (
            np.array([name[:10] or "NaT" for name in date.names], "M8[D]")[date.codes]
            for date in dates
            if date is not None
        )
        waited = (known - due).astype(np.float64)
        days = np.where(np.isfinite(days), days, np.where(np.isnat(known - due), np.nan, waited))
    if not np.isfinite(days).any():
        hint = "add a column horizon, in days, or due and resolved_on"
        raise InputError("the outcomes do not have the time from asking to resolution", column="lead_time", hint=hint)
    codes = np.where(np.isfinite(days), np.searchsorted(list(LEAD_TIMES.values()), days), len(LEAD_TIMES) + 1)
    return Labels(codes=codes.astype(np.int64), names=(*LEAD_TIMES, "longer", "unknown"))


def _difficulties(table: ForecastTable) -> Labels:
    """How hard a target was for everyone, each level a third of the targets."""
    gamma = table.difficulty
    low, high = np.nanquantile(gamma, [1 / 3, 2 / 3])
    codes = np.where(np.isnan(gamma), 3, (gamma > low).astype(int) + (gamma > high)).astype(np.int64)
    return Labels(codes=codes, names=(*LEVELS, "unanswered"))


# Baselines that are scored with the forecasters: 0.5, the base rate and the market price.


def with_baselines(table: ForecastTable) -> ForecastTable:
    """Add the baselines to the table; a forecaster that already has a baseline's name is left unchanged."""
    half = np.full(len(table.targets), 0.5)
    columns = {ALWAYS_HALF: half, BASE_RATE: base_rate(table.targets), MARKET_PRICE: table.targets.price}
    new = {name: p for name, p in columns.items() if name not in table.forecasters and np.isfinite(p).any()}
    forecaster, target, p = [table.forecaster], [table.target], [table.p]
    for code, column in enumerate(new.values(), len(table.forecasters)):
        answered = np.flatnonzero(np.isfinite(column))
        forecaster.append(np.full(len(answered), code, np.int64))
        target.append(answered)
        p.append(column[answered])
    notes = (FLAT_RATE,) if BASE_RATE in new and _is_flat(table.targets, new[BASE_RATE]) else ()
    return replace(
        table,
        notes=(*table.notes, *notes),
        forecasters=table.forecasters + tuple(new),
        forecaster=np.concatenate(forecaster),
        target=np.concatenate(target),
        p=np.concatenate(p),
    )


FLAT_RATE = "As many outcomes are yes as no, so the base rate errs alike on all targets: its interval has no width."


def _is_flat(targets: Targets, rate: Floats) -> bool:
    """Whether every target has the same error, although the rates differ."""
    errors = np.abs(rate - targets.outcome)
    return bool(np.ptp(rate) > 0 and np.ptp(errors) < 1e-12)


def base_rate(targets: Targets) -> Floats:
    """The frequency of yes among other targets of the same source, out of sample.

    With due and resolution dates: only what had resolved before the target's due date; nothing, if that is missing.
    Without the columns: all targets outside the target's own cluster. Both are smoothed by two pseudo-observations at
    one half.
    """
    groups = targets.groups
    by = groups.get("source") or groups.get("kind") or Labels(codes=np.zeros(len(targets), np.int64), names=("",))
    if "due" in groups and "resolved_on" in groups:
        return _past_rate(targets, by.codes)
    return _rate_elsewhere(targets, by.codes)


def _past_rate(targets: Targets, source: Ints) -> Floats:
    # Nothing counts as known before a target that was asked on an unknown day.
    due, known = _days(targets.groups["due"], "0001-01-01"), _days(targets.groups["resolved_on"], "9999-12-31")
    out = np.full(len(targets), 0.5)
    for code in np.unique(source):
        rows = np.flatnonzero(source == code)
        order = rows[np.argsort(known[rows], kind="stable")]
        yes = np.concatenate([[0.0], np.cumsum(targets.outcome[order])])
        before = np.searchsorted(known[order], due[rows], side="left")
        out[rows] = (yes[before] + 1) / (before + 2)
    return out


def _days(labels: Labels, unknown: str) -> np.ndarray:
    """Parse calendar days, with `unknown` in place of those that are missing."""
    return np.array([name[:10] or unknown for name in labels.names], "M8[D]")[labels.codes]


def _rate_elsewhere(targets: Targets, source: Ints) -> Floats:
    cluster = targets.groups.get("cluster", targets.question).codes
    pair = source * (int(cluster.max()) + 1) + cluster
    _, own = np.unique(pair, return_inverse=True)
    yes, n = np.bincount(source, targets.outcome)[source], np.bincount(source)[source]
    own_yes, own_n = np.bincount(own, targets.outcome)[own], np.bincount(own)[own]
    return (yes - own_yes + 1) / (n - own_n + 2)
