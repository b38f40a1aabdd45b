"""A small table and boards built by hand, with numbers that can be looked for in every rendering."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from foretell.metrics import Interval
from foretell.scoring.scoreboard import Score, Scoreboard
from foretell.scoring.table import ForecastTable, Labels, Targets
from foretell.scoring.verdict import Verdict


def labels(values: list[str]) -> Labels:
    names = tuple(dict.fromkeys(values))
    return Labels(codes=np.array([names.index(v) for v in values], np.int64), names=names)


def make_interval(estimate: float, low: float | None = None, high: float | None = None) -> Interval:
    low, high = estimate - 2 if low is None else low, estimate + 2 if high is None else high
    return Interval(estimate=estimate, low=low, high=high, se=1.0, n_clusters=60, draws=2000)


def make_verdict(diff: float, low: float, high: float, **changes: object) -> Verdict:
    fields: dict[str, object] = {
        "first": "a",
        "second": "b",
        "metric": "brier_index",
        "first_score": make_interval(72.0 + diff),
        "second_score": make_interval(72.0),
        "p": 0.04,
        "se": 1.0,
        "n": 100,
        "n_clusters": 60,
        "n_effective": 60,
        "better": "high",
        "matters": 0.0,
        "level": 0.95,
    }
    return Verdict(diff=diff, low=low, high=high, **(fields | changes))


def make_table(forecasters: dict[str, np.ndarray], outcome: np.ndarray, **groups: list[str]) -> ForecastTable:
    n = len(outcome)
    p = np.concatenate(list(forecasters.values())) if forecasters else np.array([])
    who = np.repeat(np.arange(len(forecasters)), n)
    what = np.tile(np.arange(n), len(forecasters))
    answered = np.isfinite(p)
    price = groups.pop("price", None)
    return ForecastTable(
        targets=Targets(
            outcome=outcome.astype(float),
            weight=np.ones(n),
            question=labels([f"q{i // 2}" for i in range(n)]),
            target=labels([f"t{i % 2}" for i in range(n)]),
            price=np.full(n, np.nan) if price is None else np.array(price, dtype=float),
            yes_ask=np.full(n, np.nan),
            no_ask=np.full(n, np.nan),
            groups={name: labels(column) for name, column in groups.items()},
        ),
        forecasters=tuple(forecasters),
        forecaster=who[answered].astype(np.int64),
        target=what[answered].astype(np.int64),
        p=p[answered],
    )


@pytest.fixture
def table() -> ForecastTable:
    """Three forecasters of falling skill on 120 targets; the last one leaves the second half out."""
    rng = np.random.default_rng(7)
    outcome = (rng.random(120) < 0.4).astype(float)
    noise = rng.normal(0, 0.15, 120)
    good = np.clip(outcome * 0.6 + 0.2 + noise, 0.02, 0.98)
    fair = np.clip(outcome * 0.2 + 0.4 + noise, 0.02, 0.98)
    half = np.where(np.arange(120) < 60, 0.5, np.nan)
    return make_table(
        {"good": good, "fair": fair, "half": half},
        outcome,
        source=[("alpha", "beta", "gamma")[i % 3] for i in range(120)],
        horizon=[("7", "30", "90")[i % 3] for i in range(120)],
        due=[("2025-01-01", "2025-02-01")[i // 60] for i in range(120)],
        volume=[str(10 * i + 5) for i in range(120)],
        price=np.clip(outcome * 0.5 + 0.25 + noise, 0.01, 0.99),
    )


@pytest.fixture
def board() -> Scoreboard:
    """`good` leads `fair` by 2.1 BI [0.4, 3.9]; `always 0.5` is a baseline below both."""
    return make_board({"good": 72.4, "fair": 70.3, "always 0.5": 50.0}, lead=make_verdict(-2.1, -3.9, -0.4))


def make_board(
    scores: dict[str, float],
    *,
    lead: Verdict | None = None,
    reference: str | None = None,
    group: dict[str, str] | None = None,
    metric: str = "brier_index",
) -> Scoreboard:
    names = list(scores)
    reference = reference or (names[0] if names else "nobody")
    group = group or {"kind": "overall"}
    rows = tuple(
        Score(
            forecaster=name,
            group=group,
            n=120,
            questions=60,
            completion=1.0 if i == 0 else 0.5,
            metrics={
                metric: make_interval(value),
                "brier" if metric != "brier" else "log": make_interval(0.123),
                "ece": make_interval(0.045),
            },
        )
        for i, (name, value) in enumerate(scores.items())
    )
    others = [name for name in names if name != reference]
    better = "low" if metric == "brier" else "high"
    verdicts = tuple(
        replace(
            lead
            if lead is not None and i == 0
            else make_verdict(scores[name] - scores[reference], -9.0, -1.0, p=0.005),
            first=name,
            second=reference,
            group=group,
            metric=metric,
            better=better,
            first_score=make_interval(scores[name]),
            second_score=make_interval(scores[reference]),
        )
        for i, name in enumerate(others)
    )
    return Scoreboard(
        scores=rows,
        verdicts=verdicts,
        reference=reference,
        metric=metric,
        settings={"metric": metric, "draws": 2000, "level": 0.95, "seed": 0, "cluster": "question", "missing": None},
        notes=("3 forecasts of targets that have not resolved are not scored",),
    )


@pytest.fixture
def build_board() -> Callable[..., Scoreboard]:
    return make_board


@pytest.fixture
def build_table() -> Callable[..., ForecastTable]:
    return make_table


@pytest.fixture
def build_verdict() -> Callable[..., Verdict]:
    return make_verdict


@pytest.fixture
def build_interval() -> Callable[..., Interval]:
    return make_interval
