"""How much should trials count beside a price or an estimate without a model, before a forecaster has a record?

Market questions: reads the published trials and forecasts of real systems with the price of the due date, and moves
the price towards them by the starting rule: logit price + w · 1.5 · tanh((trials − logit price) / 1.5). It prints, for
every system, what each w gains over the price alone in points of Brier index, with standard errors over questions and
over resolution days. Then it does so by span of time, so that the w that was best before can be judged on later rounds.

Data questions: blends the trials in log-odds with the base rate or with `model_free`, each from what was known before,
and prints what that gains over the trials alone; then what learning from the system's own past adds to each start.

    python benchmarks/price_study.py TABLES            # about five minutes on one core
    python benchmarks/price_study.py TABLES --markets  # market questions only
"""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from blf_study import read_trial_tables
from foretell.data.datasets.forecastbench_tables import read_question_tables
from foretell.data.files import open_duckdb
from foretell.forecasters.combine.default import DATASETS, FRESH_PRICE_DAYS, REACH, FittedTrust, fit_trust
from foretell.forecasters.combine.rows import Examples
from foretell.forecasters.model_free.model_free import ModelFree
from foretell.metrics import Floats, Resampling, ResamplingDesign, brier_index, brier_index_from_sums, compare_paired
from model_free_study import FIRST, all_series, forecasts_of, past_of

WEIGHTS = (0.0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, 1.0)
FEWEST = 50
"""Fewest resolved market questions of a system, and of the past from which w is chosen."""
PUBLISHED = """select method, source, question_id, forecast_due_date, resolution_date, avg(probability)
               from '{}' where method like 'ext:%' and not coalesce(imputed, false) group by all"""
DRAWS = 500
SPANS = (("2025-03-02", "2025-08-31"), ("2025-10-26", "2025-10-26"), ("2025-11-09", "2026-01-18"))
"""First and last round of each span of time: the second and the third have the rounds of the paper."""


def systems(folder: Path) -> dict[str, Examples]:
    """Return the resolved targets of every system that saw no later sources, with trials or published forecasts."""
    trials = read_trial_tables(folder, "")
    every = next(iter(trials.values()))
    rows = every.rows
    # Published forecasts of market questions name no date.
    dates = np.where(rows.kind == "market", "", rows.target)
    keys = zip(rows.question, rows.due.astype(str), dates, strict=True)
    places = {key: place for place, key in enumerate(keys)}
    published: dict[str, Floats] = {}
    with open_duckdb() as con:
        for method, source, id, due, day, p in con.execute(PUBLISHED.format(folder / "forecasts.parquet")).fetchall():
            column = published.setdefault(method, np.full(len(every), np.nan))
            place = places.get((f"{source}/{id}", due, day))
            if place is not None:
                column[place] = p
    tables = trials | {name: _with_trials(every, p) for name, p in published.items()}
    return {name: _answered(table) for name, table in tables.items() if "clairvoyant" not in name}


def _with_trials(examples: Examples, p: Floats) -> Examples:
    return Examples(
        rows=examples.rows.with_trials(p),
        outcome=examples.outcome,
        known_on=examples.known_on,
        weight=examples.weight,
    )


def _answered(examples: Examples) -> Examples:
    """Return the targets that the system answered."""
    # A run of the paper that failed outside its two rounds was recorded as exactly one half.
    return examples.take(~np.isnan(examples.rows.raw) & (examples.rows.raw != 0.5))


def on_markets(tables: Mapping[str, Examples]) -> dict[str, Examples]:
    """Return the market questions with a fresh price of the systems that have enough of them."""
    fresh = {}
    for name, table in tables.items():
        rows = table.rows
        young = np.nan_to_num(rows.price_age) <= FRESH_PRICE_DAYS
        fresh[name] = table.take((rows.kind == "market") & young & ~np.isnan(rows.price))
    return {name: table for name, table in fresh.items() if len(table) >= FEWEST}


def squared_errors(examples: Examples) -> Floats:
    """Return the squared error of each weight (rows) on each question (columns)."""
    answers = [FittedTrust(trust=w, reach=REACH).probabilities(examples.rows) for w in WEIGHTS]
    return (np.array(answers) - examples.outcome) ** 2


def points(error: Floats, base: Floats) -> float:
    """Return the difference of two mean squared errors in points of Brier index."""
    return float(brier_index(error.mean()) - brier_index(base.mean()))


def standard_error(error: Floats, base: Floats, cluster: np.ndarray) -> float:
    """Return the standard error of the gain over resampled clusters."""
    code = np.unique(cluster, return_inverse=True)[1]
    n, rng = code.max() + 1, np.random.default_rng(0)
    weight = np.stack([np.bincount(rng.integers(n, size=n), minlength=n)[code] for _ in range(DRAWS)])
    total = weight.sum(axis=1)
    return float(np.std(brier_index(weight @ error / total) - brier_index(weight @ base / total)))


def mean_gains(tables: Mapping[str, Examples], losses: Mapping[str, Floats], first: str, last: str) -> Floats:
    """Return what each weight gains over the price on the rounds of a span, averaged over the systems that have any."""
    gains = list[list[float]]()
    for name, table in tables.items():
        now = (table.rows.due >= np.datetime64(first)) & (table.rows.due <= np.datetime64(last))
        if now.sum() >= FEWEST:
            gains.append([points(error[now], losses[name][0][now]) for error in losses[name]])
    return np.mean(gains, axis=0)


def markets(tables: Mapping[str, Examples]) -> None:
    """Print what each weight gains over the price alone."""
    losses = {name: squared_errors(table) for name, table in tables.items()}
    print(f"{'system':58} {'n':>5} {'price':>6}" + "".join(f"{w:>7g}" for w in WEIGHTS[1:]) + "   se(question) se(day)")
    at = WEIGHTS.index(0.2)
    for name, table in tables.items():
        loss, days = losses[name], np.datetime_as_string(table.known_on, "D")
        gains = "".join(f"{points(error, loss[0]):+7.2f}" for error in loss[1:])
        errors = [standard_error(loss[at], loss[0], cluster) for cluster in (table.rows.cluster, days)]
        index = float(brier_index(loss[0].mean()))
        print(f"{name:58} {len(table):5} {index:6.1f}{gains}   {errors[0]:.2f} {errors[1]:.2f}")
    summary([[points(error, loss[0]) for error in loss[1:]] for loss in losses.values()])
    print("\nmean over systems, round by round; the weight that was best before is tried on what came later")
    for first, last in SPANS:
        gains = mean_gains(tables, losses, first, last)
        best = WEIGHTS[int(gains.argmax())]
        print(f"{first} to {last}  best {best:4g}" + "".join(f"{gain:+7.2f}" for gain in gains[1:]))


def summary(gains: list[list[float]]) -> None:
    """Print the mean gain over systems, how many gain, and the least gain."""
    table = np.array(gains)
    print(f"\nmean over {len(table)} systems" + "".join(f"{gain:+7.2f}" for gain in table.mean(axis=0)))
    print("systems that gain      " + "".join(f"{count:7d}" for count in (table > 0).sum(axis=0)))
    print("least                  " + "".join(f"{gain:+7.2f}" for gain in table.min(axis=0)))


# Data questions: which anchor, at which weight.

ANCHORS = ("base rate", "model_free")
TRIALS = (0.9, 0.75, 0.6, 0.5, 0.4, 0.25, 0.0)
"""Weights of the trials beside an anchor, in log-odds."""
CHOSEN, FORMER = 0.6, 0.75
"""The weight of the trials beside `model_free`, and the one beside a base rate that it is compared with."""
STALE = "dbnomics"
"""The source whose values on file are ten days old for `model_free`: its station records end in 1991."""
PAST_ROUNDS = 4
"""Fewest rounds of a system for which learning is tried."""
RESAMPLING = Resampling(draws=1000, seed=1)


def on_data(folder: Path, tables: Mapping[str, Examples]) -> dict[str, dict[str, Examples]]:
    """Return the data questions of every system with each anchor as their prior."""
    rounds = read_question_tables(folder)
    questions = [q for q in rounds.questions if q.kind == "dataset" and q.due.date() >= FIRST]
    said = forecasts_of(ModelFree(), questions, all_series(), past_of(rounds))
    estimates = {(id, str(due.date()), target): p for (id, due, target), p in said.items()}
    by_system: dict[str, dict[str, Examples]] = {}
    for name, table in tables.items():
        keys = zip(table.rows.question, table.rows.due.astype(str), table.rows.target, strict=True)
        own = np.array([estimates.get((str(id), due, str(target)), np.nan) for id, due, target in keys])
        both = (table.rows.kind == "dataset") & ~np.isnan(own) & ~np.isnan(table.rows.prior)
        if both.sum() >= FEWEST:
            part = table.take(both)
            by_system[name] = {
                "base rate": part,
                "model_free": replace(part, rows=replace(part.rows, prior=own[both])),
            }
    return by_system


def against(error: Floats, base: Floats, table: Examples) -> str:
    """Return the gain in points with a 95 % interval over questions and resolution days."""
    design = ResamplingDesign(cluster=table.rows.question, crossed=np.datetime_as_string(table.known_on, "D"))
    gain = compare_paired(error, base, design, statistic=brier_index_from_sums, resampling=RESAMPLING)
    return f"{gain.diff:+.2f} [{gain.low:+.2f}, {gain.high:+.2f}]"


def by_learning(start: float, table: Examples) -> Floats:
    """Return squared errors of the default rule, which begins at a weight and learns from the system's own past."""
    trust, p = replace(DATASETS, start=start), np.full(len(table), np.nan)
    for day in np.unique(table.rows.due):
        past, now = table.known_before(day), table.rows.due == day
        rule = fit_trust(trust, past)[0] if len(past) else trust.unfitted()
        p[now] = rule.probabilities(table.rows.take(now))
    return (p - table.outcome) ** 2


def data_questions(tables: Mapping[str, Mapping[str, Examples]]) -> None:
    """Print what each anchor and weight gains over the trials alone."""
    head = "".join(f" {anchor[0]}{w:>5g}" for anchor in ANCHORS for w in TRIALS)
    verdicts = f"model_free {CHOSEN:g} over base rate {FORMER:g}, over trials"
    print(f"\n{'system':58} {'n':>5} {'trials':>6}{head}   {verdicts}")
    gains: dict[str, list[list[float]]] = {}
    for name, by_anchor in tables.items():
        table = by_anchor["base rate"]
        alone = (table.rows.raw - table.outcome) ** 2
        errors = [
            (FittedTrust(trust=w).probabilities(by_anchor[anchor].rows) - table.outcome) ** 2
            for anchor in ANCHORS
            for w in TRIALS
        ]
        chosen, former = errors[len(TRIALS) + TRIALS.index(CHOSEN)], errors[TRIALS.index(FORMER)]
        shown = "".join(f"{points(error, alone):+7.2f}" for error in errors)
        verdict = f"{against(chosen, former, table)}, {against(chosen, alone, table)}"
        print(f"{name:58} {len(table):5} {float(brier_index(alone.mean())):6.1f}{shown}   {verdict}")
        parts = {f"{first} to {last}": (first, last) for first, last in (("2025-03-02", "2026-01-18"), *SPANS)}
        for span, (first, last) in parts.items():
            now = (table.rows.due >= np.datetime64(first)) & (table.rows.due <= np.datetime64(last))
            for title, rows in ((span, now), (f"{span}, without temperatures", now & (table.rows.source != STALE))):
                if rows.sum() >= FEWEST:
                    gains.setdefault(title, []).append([points(error[rows], alone[rows]) for error in errors])
    for title, several in gains.items():
        print(f"\n{title}: {', '.join(ANCHORS)} at {', '.join(f'{w:g}' for w in TRIALS)}")
        summary(several)
    print("\nlearning from the own past, over the trials alone: base rate from 0.75, model_free from 0.75, 0.6")
    for name, by_anchor in tables.items():
        table = by_anchor["base rate"]
        if len(np.unique(table.rows.due)) < PAST_ROUNDS:
            continue
        alone = (table.rows.raw - table.outcome) ** 2
        starts = (("base rate", FORMER), ("model_free", FORMER), ("model_free", CHOSEN))
        learnt = [by_learning(start, by_anchor[anchor]) for anchor, start in starts]
        fixed = (FittedTrust(trust=CHOSEN).probabilities(by_anchor["model_free"].rows) - table.outcome) ** 2
        shown = ", ".join(against(error, alone, table) for error in learnt)
        print(
            f"{name:58} {len(table):5} {shown}; learnt over model_free {CHOSEN:g} {against(learnt[-1], fixed, table)}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", type=Path)
    parser.add_argument("--markets", action="store_true")
    arguments = parser.parse_args()
    tables = systems(arguments.tables)
    markets(on_markets(tables))
    if not arguments.markets:
        data_questions(on_data(arguments.tables, tables))


if __name__ == "__main__":
    main()
