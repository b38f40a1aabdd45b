"""Synthetic trials whose effects are known."""

import csv
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np

from foretell import plugins
from foretell.forecasters.combine.rows import Examples, TrialRows
from foretell.metrics.transforms import logit, sigmoid
from foretell.studies.inputs import TableOptions, load_study

OPTIONS = {name: load_study(name).options for name in plugins.names("studies")}
SIMULATED = [name for name, options in OPTIONS.items() if "worlds" in options.model_fields]
"""Studies that use a simulated world if no tables are given."""
OF_TABLES = [name for name, options in OPTIONS.items() if issubclass(options, TableOptions)]


def made(
    *,
    rounds: int = 3,
    size: int = 40,
    trials: int = 3,
    noise: float = 0.8,
    slope: float = 1.0,
    shift: float = 0.0,
    seed: int = 0,
    method_seed: int = 1,
) -> Examples:
    """Return examples: half market, half dataset (two dates each), with trials around slope·truth + shift in log-odds.

    The questions depend on `seed` alone, so that several forecasters can be made for the same ones.
    """
    rng, own = np.random.default_rng(seed), np.random.default_rng(method_seed)
    question, target, due, known, kind, source, horizon = ([] for _ in range(7))
    for r in range(rounds):
        day = date(2025, 1, 5) + timedelta(days=42 * r)
        for i in range(size):
            market = i % 2 == 0
            for days in (20,) if market else (7, 30):
                # The first market is asked in every round: one question, one cluster.
                question.append("again" if i == 0 else f"q{r}-{i}")
                target.append("yes" if market else str(day + timedelta(days=days)))
                due.append(day)
                known.append(day + timedelta(days=days + i % 5))
                kind.append("market" if market else "dataset")
                source.append(("poly", "fred")[not market] if i % 4 < 2 else ("mani", "acled")[not market])
                horizon.append(days)
    n = len(question)
    truth = rng.normal(-0.3, 1.3, n)
    outcome = (rng.random(n) < sigmoid(truth)).astype(float)
    market = np.array(kind) == "market"
    price = np.where(market, sigmoid(truth + rng.normal(0, 0.5, n)), np.nan)
    p = sigmoid(slope * truth + shift + own.normal(0, noise, (trials, n)))
    rows = TrialRows(
        trials=p,
        question=np.array(question),
        due=np.array(due, "M8[D]"),
        target=np.array(target),
        source=np.array(source),
        subtype=np.where(market, "", "all"),
        kind=np.array(kind),
        horizon=np.array(horizon, float),
        price=price,
        prior=np.where(market, np.nan, 0.45),
        cluster=np.array(question),
    )
    return Examples(rows=rows, outcome=outcome, known_on=np.array(known, "M8[D]"), weight=np.ones(n))


def grown(examples: Examples, factor: float) -> Examples:
    """Return the same examples with every trial's log-odds multiplied."""
    return replace(examples, rows=examples.rows.with_trials(sigmoid(factor * logit(examples.rows.trials))))


HEAD = "question,target,due,outcome,resolved_on,kind,source,subtype,horizon,price,prior"


def write_long(tables: dict[str, Examples], folder: Path) -> tuple[Path, Path]:
    """Write the examples as the two long tables that commands read; NaN trials have no row."""
    f, o = folder / "forecasts.csv", folder / "outcomes.csv"
    some = next(iter(tables.values()))
    rows = some.rows
    known = [some.outcome.astype(int), some.known_on, rows.kind, rows.source, rows.subtype, rows.horizon.astype(int)]
    optional = [["" if np.isnan(value) else repr(value) for value in c.tolist()] for c in (rows.price, rows.prior)]
    with o.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEAD.split(","))
        writer.writerows(zip(rows.question, rows.target, rows.due, *known, *optional, strict=True))
    with f.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["forecaster", "question", "target", "due", "trial", "p"])
        for name, examples in tables.items():
            for t, i in zip(*np.nonzero(np.isfinite(examples.rows.trials)), strict=True):
                p = repr(float(examples.rows.trials[t, i]))
                writer.writerow([name, rows.question[i], rows.target[i], rows.due[i], t, p])
    return f, o
