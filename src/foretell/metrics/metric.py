"""The metrics of a leaderboard: their names, their meanings, and how each is computed from sums over rows.

A metric gives each row k weighted columns. Their sums over the rows of a population determine its number:

    metric.from_sums(metric.columns(rows).sum(axis=0)) == metric.population(rows)

A resample of clusters is then a product (draws × clusters) @ (clusters × k), with `from_sums` applied to its rows. This
holds for means, for functions of means (Brier index), and also for the Sharpe ratio, the calibration error and Murphy's
decomposition, which are not means of per-row scores.

Columns have names, and metrics that name the same column share its sums: the Brier score and the Brier index use one
column. To add a metric, write the score of a row and one line in `METRICS`:

    mean_metric("accuracy", lambda rows: right_side(rows.p, rows.outcome), label="Accuracy", meaning="…"),
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from foretell.frozen import frozen
from foretell.metrics.arrays import Floats, Ints, as_pairs, as_vector, as_weights, same_shape
from foretell.metrics.bootstrap import UNBOUNDED, Bounds, brier_index_from_sums, mean_from_sums
from foretell.metrics.calibration import bin_codes, width_edges
from foretell.metrics.decisions import TaskDecisions
from foretell.metrics.returns import RISK_NEUTRAL_BETTOR, Bettor, no_fee, payoff, sharpe_from_sums
from foretell.metrics.scores import brier, log_score, metaculus_baseline, right_side

LOG_FLOOR = 0.001
"""Lower bound on the probability of what happened in `log`, `metaculus_baseline` and `peer`, as on Metaculus: a single
−inf would hide all other scores."""
CALIBRATION_BINS = 10
SHARE: Bounds = (0.0, 1.0)
PAID: Bounds = (0.0, math.inf)
"""Bounds of what a dollar became: no more than the dollar can be lost."""
GAMMAS = (0.0, 0.5, 1.0)
"""Risk aversions of the bettors whose returns an arena shows."""


@frozen
class DecisionRows:
    """A forecaster's choices in tasks whose options have values; every option carries the scores of its task."""

    share: Floats
    """1 / number of options of the task, so that every task counts once; 0 outside tasks."""
    right: Floats
    hard: Floats
    soft: Floats
    confidence: Floats

    @classmethod
    def empty(cls, n: int) -> "DecisionRows":
        """Return rows without any task."""
        nothing = np.full(n, np.nan)
        return cls(share=np.zeros(n), right=nothing, hard=nothing, soft=nothing, confidence=nothing)

    def put(self, rows: Ints, options: Ints, decisions: TaskDecisions, task: Ints) -> "DecisionRows":
        """Return a copy with the scores of tasks filled in at the rows of their options."""
        _, code = np.unique(task, return_inverse=True)
        share = self.share.copy()
        share[rows] = 1.0 / options
        columns: dict[str, Floats] = {}
        for name in ("right", "hard", "soft", "confidence"):
            columns[name] = getattr(self, name).copy()
            columns[name][rows] = getattr(decisions, name)[code]
        return DecisionRows(share=share, **columns)


@frozen
class MetricRows:
    """The input of scoring: one row per (question, target) of one forecaster. Build it with `MetricRows.of`."""

    p: Floats
    outcome: Floats
    weight: Floats
    yes_price: Floats | None = None
    """Ask price of Yes; NaN if the market had no quote, None if there is no market at all."""
    no_price: Floats | None = None
    yes_cost: Floats | None = None
    """Ask price of Yes with the platform's fee; None if no fee is known."""
    no_cost: Floats | None = None
    priced_weight: Floats | None = None
    """Weight among the rows with a price, if it differs from `weight`."""
    difficulty: Floats | None = None
    """Difficulty of the target minus the constant that puts always-0.5 at 0.25 (see `metrics.difficulty`)."""
    peers: Floats | None = None
    """Mean log probability that the other forecasters gave to what happened; NaN if nobody else answered."""
    decision: DecisionRows | None = None
    """The forecaster's choices between options with values."""

    @classmethod
    def of(
        cls,
        p: npt.ArrayLike,
        outcome: npt.ArrayLike,
        weight: npt.ArrayLike | None = None,
        prices: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    ) -> "MetricRows":
        """Build checked rows; `prices` is (yes asks, no asks)."""
        forecasts, outcomes = as_pairs(as_vector(p, "p"), as_vector(outcome, "outcome"))
        weights = as_weights(weight, len(forecasts))
        if prices is None:
            return cls(p=forecasts, outcome=outcomes, weight=weights)
        yes, no = (np.asarray(price, dtype=np.float64) for price in prices)
        same_shape(p=forecasts, yes_price=yes, no_price=no)
        return cls(p=forecasts, outcome=outcomes, weight=weights, yes_price=yes, no_price=no)


RowScore = Callable[[MetricRows], Floats]
"""Computes the score of each row; NaN if a row has none."""


@frozen
class SumColumns:
    """Weighted columns that are summed together; two `SumColumns` with the same names have the same values."""

    names: tuple[str, ...]
    of: Callable[[MetricRows], Floats]
    """Rows → (n,) for one name, (n, k) for k names, already multiplied by the weight of the row."""


@frozen
class Metric:
    """A number that describes a population of rows, with the sums it is computed from and how reports show it."""

    name: str
    sums: tuple[SumColumns, ...]
    from_sums: Callable[[Floats], Floats]
    """Sums (…, k) in the order of `column_names` → numbers (…); NaN if the weights sum to 0."""
    better: Literal["low", "high"]
    label: str = ""
    meaning: str = ""
    decimals: int = 3
    unit: Literal["", "points"] = ""
    """How people are shown it: "points" for a share that is shown in percentage points."""
    per_question: RowScore | None = None
    """Score of each row if the metric is a mean of such scores (NaN if a row has none); else None."""
    needs: Literal["", "prices", "fees", "peers", "difficulty", "payoffs"] = ""
    """What the rows must provide besides forecasts and outcomes."""
    bounds: Bounds = UNBOUNDED
    matters: float = 0.0
    """Smallest difference of interest: forecasters that differ by less, with confidence, are called equally good."""
    version: str = "1"
    """Changed whenever the number for the same rows changes, so that old and new numbers are not compared."""

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns, in the order in which `from_sums` takes their sums."""
        return tuple(name for part in self.sums for name in part.names)

    def columns(self, rows: MetricRows) -> Floats:
        """Return the (n, k) array of weighted columns."""
        return np.column_stack([part.of(rows) for part in self.sums])

    def population(self, rows: MetricRows) -> float:
        """Compute the metric of all rows together; raise if none of them can be scored (no prices, for a return)."""
        columns = self.columns(rows)
        if not columns.any():
            raise ValueError(f"no row can be scored by {self.name!r}")
        return float(self.from_sums(columns.sum(axis=0)))


# Columns that several metrics share.

WEIGHT = SumColumns(names=("weight",), of=lambda rows: rows.weight)


def _score_column(name: str, score: RowScore) -> SumColumns:
    def weighted(rows: MetricRows) -> Floats:
        scores = score(rows)
        missing = np.isnan(scores)
        return np.where(missing, 0.0, rows.weight * np.where(missing, 0.0, scores))

    return SumColumns(names=(name,), of=weighted)


def _weight_of_scored(name: str, score: RowScore) -> SumColumns:
    """Weight of the rows that have a score, 0 for the others."""
    return SumColumns(names=(name,), of=lambda rows: np.where(np.isnan(score(rows)), 0.0, rows.weight))


BRIER_COLUMN = _score_column("brier", lambda rows: brier(rows.p, rows.outcome))


def _by_bin(prefix: str, values: RowScore, bins: int = CALIBRATION_BINS) -> SumColumns:
    """One column per bin of p; a row is zero in every bin except its own."""

    def columns(rows: MetricRows) -> Floats:
        out = np.zeros((len(rows.p), bins))
        out[np.arange(len(rows.p)), bin_codes(rows.p, width_edges(bins))] = rows.weight * values(rows)
        return out

    return SumColumns(names=tuple(f"{prefix}{b}" for b in range(bins)), of=columns)


# Kinds of metrics.


def mean_metric(  # noqa: PLR0913 - a line of METRICS names them all
    name: str,
    score: RowScore,
    better: Literal["low", "high"] = "high",
    *,
    label: str = "",
    meaning: str = "",
    decimals: int = 3,
    needs: Literal["", "peers", "difficulty"] = "",
    gaps: bool = True,
    bounds: Bounds = UNBOUNDED,
) -> Metric:
    """Build a metric that is the weighted mean of a per-row score; rows whose score is NaN have no weight.

    Pass `gaps=False` for a score that every row has: the metric then shares the column of weights with others.
    """
    return Metric(
        name=name,
        sums=(_score_column(name, score), _weight_of_scored(f"{name}_weight", score) if gaps else WEIGHT),
        from_sums=mean_from_sums,
        better=better,
        per_question=score,
        label=label or name,
        meaning=meaning,
        decimals=decimals,
        needs=needs,
        bounds=bounds,
    )


CONSTANT = 1e-9
"""Variance of probabilities below which forecasts are constant up to rounding."""
P_MOMENTS = SumColumns(
    names=("p", "p_square"), of=lambda rows: np.column_stack([rows.weight * rows.p, rows.weight * rows.p**2])
)


def ece_from_sums(sums: Floats) -> Floats:
    """Calibration error Σ_b |Σ_b w(o − p)| / Σw from sums (…, B + 3), the last of which are Σwp, Σwp² and Σw.

    NaN for constant forecasts: their error is the distance to the base rate, which depends only on the questions.
    """
    gaps, (p, square, weight) = np.abs(sums[..., :-3]).sum(axis=-1), np.moveaxis(sums[..., -3:], -1, 0)
    error, mean, mean_square = (mean_from_sums(np.stack([total, weight], axis=-1)) for total in (gaps, p, square))
    return np.where(mean_square - mean**2 < CONSTANT, np.nan, error)


def _murphy_metric(name: str, better: Literal["low", "high"], place: int, label: str, meaning: str) -> Metric:
    """One component of Murphy's decomposition over ten bins."""
    return Metric(
        name=name,
        sums=(
            _by_bin("bin_weight", lambda rows: np.ones_like(rows.p)),
            _by_bin("bin_p", lambda rows: rows.p),
            _by_bin("bin_yes", lambda rows: rows.outcome),
        ),
        from_sums=lambda total: murphy_from_sums(total)[place],
        better=better,
        label=label,
        meaning=meaning,
        bounds=SHARE,
    )


def murphy_from_sums(sums: Floats) -> tuple[Floats, Floats, Floats]:
    """Reliability, resolution and uncertainty from sums (…, 3B) of w, w·p and w·o in each of B bins."""
    weight, p, yes = np.split(sums, 3, axis=-1)
    total = weight.sum(axis=-1)
    safe = np.where(weight > 0, weight, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        base = yes.sum(axis=-1) / total
        reliability = ((p - yes) ** 2 / safe).sum(axis=-1) / total
        resolution = (weight * (yes / safe - base[..., None]) ** 2).sum(axis=-1) / total
    return reliability, resolution, base * (1 - base)


# Bets against prices.


def _asks(rows: MetricRows) -> tuple[Floats, Floats]:
    if rows.yes_price is None or rows.no_price is None:
        raise ValueError("rows carry no prices: a return needs yes_price and no_price")
    return rows.yes_price, rows.no_price


def payoffs(rows: MetricRows, bettor: Bettor = RISK_NEUTRAL_BETTOR) -> Floats:
    """Payoff of $1 on each row, NaN without a price; raises if no row has a market."""
    return payoff(rows.p, rows.outcome, *_asks(rows), bettor)


def _net_payoffs(rows: MetricRows, bettor: Bettor) -> Floats:
    if rows.yes_cost is None or rows.no_cost is None:
        raise ValueError("rows carry no fees: a net return needs yes_cost and no_cost")
    return payoff(rows.p, rows.outcome, rows.yes_cost, rows.no_cost, bettor)


def _bet_weight(rows: MetricRows) -> Floats:
    yes, no = _asks(rows)
    weight = rows.weight if rows.priced_weight is None else rows.priced_weight
    return np.where(np.isnan(yes) | np.isnan(no), 0.0, weight)


def _bet_column(name: str, value: RowScore) -> SumColumns:
    return SumColumns(names=(name,), of=lambda rows: _bet_weight(rows) * np.nan_to_num(value(rows)))


PRICED = SumColumns(names=("priced",), of=_bet_weight)


def return_metric(bettor: Bettor = RISK_NEUTRAL_BETTOR, name: str = "", *, net: bool = False) -> Metric:
    """Average payoff of $1 per row for a bettor, `net` of the platform's fees; rows without prices have no weight."""
    kind, label = ("net", "Net return") if net else ("return", "Return")
    # Bettors with the same stakes share the sums of a column.
    column = f"{kind}{bettor.gamma:g}{'' if bettor.fee is no_fee else ' after own fee'}"
    names = {0.0: " (all in)", 0.5: " (half way)", 1.0: " (log wealth)"}
    risk = f"risk aversion {bettor.gamma:g}{names.get(bettor.gamma, '')}"
    asks, fees = ("", ", after the platform's fees") if net else (" at its asks", "")

    def paid(rows: MetricRows) -> Floats:
        return _net_payoffs(rows, bettor) if net else payoffs(rows, bettor)

    return Metric(
        name=name or kind,
        sums=(_bet_column(column, paid), PRICED),
        from_sums=mean_from_sums,
        better="high",
        per_question=paid,
        label=f"{label}, risk aversion {bettor.gamma:g}" if bettor.gamma else label,
        meaning=f"worth of a dollar bet on each market{asks}, {risk}{fees}; 1 is break-even",
        needs="fees" if net else "prices",
        bounds=PAID,
    )


def sharpe_metric(bettor: Bettor = RISK_NEUTRAL_BETTOR) -> Metric:
    """Sharpe ratio of the payoffs in excess of the dollar kept (Sharpe 1994; Prophet Arena Eq. 8)."""
    return Metric(
        name="sharpe",
        sums=(
            PRICED,
            _bet_column("excess", lambda rows: payoffs(rows, bettor) - 1),
            _bet_column("excess_square", lambda rows: (payoffs(rows, bettor) - 1) ** 2),
            SumColumns(names=("priced_square",), of=lambda rows: _bet_weight(rows) ** 2),
        ),
        from_sums=sharpe_from_sums,
        better="high",
        label="Sharpe",
        meaning="mean over spread of the bettor's return above the dollar kept",
        decimals=2,
        needs="prices",
    )


YES_STAKE = _bet_column("yes", lambda rows: RISK_NEUTRAL_BETTOR.stakes(rows.p, *_asks(rows))[0])


def _paid_on_yes(rows: MetricRows) -> Floats:
    """Payoff of the risk-neutral bettor's bets on Yes."""
    bought = RISK_NEUTRAL_BETTOR.stakes(rows.p, *_asks(rows))[0] == 1
    return np.where((rows.outcome == 1) | ((rows.outcome > 0) & bought), payoffs(rows), 0.0)


WON_YES = _bet_column("won_yes", _paid_on_yes)


def _no_side(sums: Floats) -> Floats:
    """Return on the dollars bet on No, from the sums of all payoffs, those of Yes, all dollars and those on Yes."""
    paid, won_yes, priced, yes = (sums[..., place] for place in range(4))
    no = np.where(priced - yes > 1e-9 * priced, priced - yes, 0.0)  # A smaller difference is a rounding error.
    return mean_from_sums(np.stack([paid - won_yes, no], axis=-1))


# Choices between options with values: a task counts once, however many options it has.


def _decisions(rows: MetricRows) -> DecisionRows:
    if rows.decision is None:
        raise ValueError("rows carry no payoffs: a choice needs options with values")
    return rows.decision


TASK_WEIGHT = SumColumns(names=("task_weight",), of=lambda rows: rows.weight * _decisions(rows).share)


def _decision_metric(name: str, column: str, label: str, meaning: str) -> Metric:
    def weighted(rows: MetricRows) -> Floats:
        decision = _decisions(rows)
        return rows.weight * decision.share * np.nan_to_num(getattr(decision, column))

    return Metric(
        name=name,
        sums=(SumColumns(names=(name,), of=weighted), TASK_WEIGHT),
        from_sums=mean_from_sums,
        better="high",
        label=label,
        meaning=meaning,
        needs="payoffs",
        bounds=SHARE,
    )


# Scores of rows.


def log_of_what_happened(rows: MetricRows) -> Floats:
    """Log of the probability given to what happened, which is clipped at `LOG_FLOOR`."""
    return log_score(rows.p, rows.outcome, floor=LOG_FLOOR)


def peer_scores(rows: MetricRows) -> Floats:
    """Metaculus peer score 100·(ln p − mean ln of the others); 0 if nobody else answered."""
    if rows.peers is None:
        raise ValueError("rows carry no peers: a peer score needs the forecasts of others")
    return np.nan_to_num(100 * (log_of_what_happened(rows) - rows.peers))


def adjusted_brier_scores(rows: MetricRows) -> Floats:
    """Brier score minus the difficulty of the target; NaN if the difficulty is unknown."""
    if rows.difficulty is None:
        raise ValueError("rows carry no difficulty: an adjusted score needs several forecasters or prices")
    return brier(rows.p, rows.outcome) - rows.difficulty


_RETURN = return_metric()
BRIER_MATTERS, INDEX_MATTERS, SHARE_MATTERS = 0.005, 1.0, 0.01
"""Smallest differences of interest in Brier score, in points of the Brier index, and in shares."""
_ADJUSTED = replace(
    mean_metric(
        "adjusted_brier",
        adjusted_brier_scores,
        "low",
        label="Adj. Brier",
        meaning="Brier score less the difficulty of the questions answered; 0.25 is always-0.5",
        needs="difficulty",
    ),
    matters=BRIER_MATTERS,
)

_ROWS: Sequence[Metric] = (
    replace(
        mean_metric(
            "brier",
            lambda rows: brier(rows.p, rows.outcome),
            "low",
            label="Brier",
            meaning="mean squared error of the probabilities; 0.25 is always-0.5",
            gaps=False,
            bounds=SHARE,
        ),
        matters=BRIER_MATTERS,
    ),
    Metric(
        name="brier_index",
        sums=(BRIER_COLUMN, WEIGHT),
        from_sums=brier_index_from_sums,
        better="high",
        label="BI",
        meaning="Brier index 100·(1 − √Brier); 50 is always-0.5, 100 is perfect",
        decimals=1,
        bounds=(0.0, 100.0),
        matters=INDEX_MATTERS,
    ),
    mean_metric(
        "metaculus_baseline",
        lambda rows: metaculus_baseline(rows.p, rows.outcome, floor=LOG_FLOOR),
        label="Baseline",
        meaning="Metaculus baseline score; 0 is always-0.5, 100 is perfect",
        decimals=1,
        gaps=False,
        bounds=(-math.inf, 100.0),
    ),
    mean_metric(
        "log",
        log_of_what_happened,
        label="Log",
        meaning="mean log of the probability given to what happened, never less than 0.001; 0 is perfect",
        gaps=False,
        bounds=(-math.inf, 0.0),
    ),
    Metric(
        name="ece",
        sums=(_by_bin("ece", lambda rows: rows.outcome - rows.p), P_MOMENTS, WEIGHT),
        from_sums=ece_from_sums,
        better="low",
        label="ECE",
        meaning="calibration error: mean gap of forecast and frequency over ten bins; 0 is perfect; none if constant",
        unit="points",
        bounds=SHARE,
        version="2",
    ),
    _RETURN,
    sharpe_metric(),
    return_metric(net=True),
    Metric(
        name="yes_side",
        sums=(WON_YES, YES_STAKE),
        from_sums=mean_from_sums,
        better="high",
        label="Yes bets",
        meaning="what a dollar came to where the risk-neutral bettor bought Yes",
        needs="prices",
        bounds=PAID,
    ),
    Metric(
        name="no_side",
        sums=(_RETURN.sums[0], WON_YES, PRICED, YES_STAKE),
        from_sums=_no_side,
        better="high",
        label="No bets",
        meaning="what a dollar came to where the risk-neutral bettor bought No",
        needs="prices",
        bounds=PAID,
    ),
    replace(
        mean_metric(
            "accuracy",
            lambda rows: right_side(rows.p, rows.outcome),
            label="Accuracy",
            meaning="share of forecasts on the right side of 0.5; a forecast of 0.5 counts half",
            gaps=False,
            bounds=SHARE,
        ),
        matters=SHARE_MATTERS,
    ),
    _murphy_metric(
        "reliability",
        "low",
        0,
        "Reliability",
        "part of the Brier score that calibration would remove (Murphy, ten bins); 0 is calibrated",
    ),
    _murphy_metric(
        "resolution",
        "high",
        1,
        "Resolution",
        "how far the frequencies in the ten bins of forecasts lie from the base rate (Murphy); higher is better",
    ),
    _murphy_metric(
        "uncertainty",
        "low",
        2,
        "Uncertainty",
        "variance of the outcomes (Murphy), which depends only on the questions",
    ),
    mean_metric(
        "peer",
        peer_scores,
        label="Peer",
        meaning="Metaculus peer score: 100·(ln p − mean ln p of the others); above 0 beats the other forecasters",
        decimals=1,
        needs="peers",
    ),
    _ADJUSTED,
    Metric(
        name="adjusted_brier_index",
        sums=_ADJUSTED.sums,
        from_sums=brier_index_from_sums,
        better="high",
        label="Adj. BI",
        meaning="Brier index of the difficulty-adjusted Brier score; 50 is always-0.5, 100 is perfect",
        decimals=1,
        needs="difficulty",
        matters=INDEX_MATTERS,
    ),
    _decision_metric(
        "choice",
        "right",
        "Choice",
        "share of tasks whose most probable option was worth most; equally probable ones share the choice",
    ),
    _decision_metric(
        "hard", "hard", "Hard", "value of the most probable option, from 0 for a task's worst option to 1 for its best"
    ),
    _decision_metric(
        "soft", "soft", "Soft", "value of the options weighed by their probabilities, from 0 for the worst to 1"
    ),
    _decision_metric("confidence", "confidence", "Confidence", "highest probability given to any option of a task"),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in _ROWS}
"""Every leaderboard metric, by name."""
STANDARD_METRICS = ("brier", "brier_index", "metaculus_baseline", "log", "ece", "return", "sharpe")
"""The metrics that a leaderboard of files and runs shows by default; the last two only if there are prices."""
DECISION_METRICS = ("choice", "hard", "soft", "confidence")
"""The metrics that a leaderboard also shows if options have payoffs."""


FORMER_NAMES = {
    "bi": "brier_index",
    "abi": "adjusted_brier_index",
    "ms": "metaculus_baseline",
    "return0": "return",
    "return0.5": "return with gamma 0.5",
    "return1": "return with gamma 1",
    "net0": "net",
    "net0.5": "net with gamma 0.5",
    "net1": "net with gamma 1",
}
"""Name of a metric in version 0.2 → what to ask for instead."""


def metric_text(name: str) -> Metric:
    """Return the metric of that name, which may be a former one; for an unknown name, one labelled with the name."""
    return METRICS.get(FORMER_NAMES.get(name, name)) or mean_metric(name, lambda rows: rows.p, label=name, meaning=name)
