"""Time-series models against each other, every forecast made from the past alone.

Reads the tables under $FORETELL_DATA (default: ../shared/data beside the repository), prints Markdown tables and
writes them into benchmarks/reports/series.md between the markers.

    python benchmarks/series_study.py            # about four minutes on one core
    python benchmarks/series_study.py --quick    # a tenth of the questions, nothing is written
"""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np

from foretell.forecasters.base_rates.rates import BaseRates, PastOutcomes
from foretell.forecasters.series.auto import NOTHING_KNOWN, choices
from foretell.forecasters.series.changes import walk
from foretell.forecasters.series.climatology import climatology
from foretell.forecasters.series.forecasters import PRICES, Hybrid, hybrid, knn, linear, safe
from foretell.forecasters.series.history import SeriesQuery
from foretell.metrics import Resampling, ResamplingDesign, brier_index, brier_index_from_sums, compare_paired
from foretell.questions.question import Question, Target

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("FORETELL_DATA") or ROOT.parent / "shared" / "data") / "tables"
PAGE = ROOT / "benchmarks" / "reports" / "series.md"
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"
HORIZONS = np.array([7, 30, 90, 180, 365, 1095])
RESAMPLING = Resampling(draws=2000, seed=1)


@dataclass(frozen=True)
class Source:
    """The location of the series of a source, and how questions about them are made."""

    name: str
    table: str
    key: str
    value: str
    every: int
    """Days between the due dates of one series."""
    history: int
    """Days of history before the first due date."""
    split: str
    """The tables are split at this day; the report describes which part was used for which choice."""
    line: tuple[int, float]
    """Window and trust of the paper's trend model."""


SOURCES = [
    Source("dbnomics", "meteofrance_daily_tmean", "wmo", "tmean", 84, 1100, "1972-01-01", (30, 0.5)),
    Source("fred", "ts_fred", "series", "value", 42, 1095, "2020-01-01", (30, 0.5)),
    Source("yfinance", "ts_yfinance_close", "ticker", "close", 42, 200, "2024-07-01", (60, 0.1)),
]


@dataclass
class Scores:
    """One row per event: the question, the outcome, and the forecast of each model."""

    series: list[str]
    due: list[np.datetime64]
    horizon: list[int]
    outcome: list[float]
    forecasts: dict[str, list[float]]


def read(source: Source) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    sql = f"select {source.key} k, date::varchar d, {source.value} v from '{DATA / source.table}.parquet'"
    fetchnumpy = duckdb.connect().execute(f"{sql} where {source.value} is not null order by 1, 2").fetchnumpy()
    keys, days = np.asarray(fetchnumpy["k"]).astype(str), np.asarray(fetchnumpy["d"]).astype(str).astype("M8[D]")
    values = np.asarray(fetchnumpy["v"], dtype=np.float64)
    return {k: (days[keys == k], values[keys == k]) for k in np.unique(keys)}


def chances(series: SeriesQuery, source: Source) -> dict[str, list[float]]:
    """Return P(higher) by model and date. The candidates of `auto` are read from its result."""
    window, alpha = source.line
    chosen = choices(series, PRICES if source.name == "yfinance" else NOTHING_KNOWN)
    forecasts = {
        "knn": knn(series).above.tolist(),
        "safe-linear": safe(linear(series, window), alpha).above.tolist(),
        "hybrid": hybrid(series, window, alpha).above.tolist(),
        "hybrid, tuned": Hybrid(window=window, alpha=alpha, tuned=True).chances(series).above.tolist(),
        "auto": [choice.above for choice in chosen],
    }
    # The walk of shares has a drift within `auto`, but not here. Dates without a new value have no candidates.
    own = source.name != "yfinance" and all("walk" in choice.chances for choice in chosen)
    forecasts["walk"] = [choice.chances["walk"] for choice in chosen] if own else walk(series).above.tolist()
    if source.name == "dbnomics":
        seasonal = all("season" in choice.chances for choice in chosen)
        forecasts["climatology"] = (
            [choice.chances["season"] for choice in chosen] if seasonal else climatology(series).above.tolist()
        )
    return forecasts


def grid(
    source: Source, thin: int
) -> Iterator[tuple[str, np.datetime64, np.ndarray, np.ndarray, np.ndarray, list[float]]]:
    """Yield every series at a fixed distance of Sundays, with all horizons that end within the series."""
    for number, (id, (days, values)) in enumerate(read(source).items()):
        first = days[0] + source.history + (number * 11) % source.every
        first += 6 - (first.astype(int) + 3) % 7
        for due in np.arange(first, days[-1] - 6, source.every * thin):
            ends = due + HORIZONS
            ok = ends <= days[-1]
            if source.name == "dbnomics":  # as ForecastBench does, ask only about days that have a value
                ok &= (days[last_before(days, due)] == due) & (days[last_before(days, ends)] == ends)
            if ok.any():
                at, now = values[last_before(days, ends[ok])], values[last_before(days, due)]
                yield id, due, ends[ok], days, values, (at > now).astype(float).tolist()


def last_before(days: np.ndarray, day: np.ndarray | np.datetime64) -> np.ndarray:
    """Return the positions of the last observations on or before the given days."""
    return np.searchsorted(days, day, side="right") - 1


def rounds(source: Source) -> Iterator[tuple[str, np.datetime64, np.ndarray, np.ndarray, np.ndarray, list[float]]]:
    """Yield the resolved ForecastBench questions about available series."""
    sql = f"""select question_id, forecast_due_date, list(resolution_date order by resolution_date),
                     list(outcome order by resolution_date)
              from '{DATA}/resolutions.parquet' where resolved and source = '{source.name}' group by all order by all"""
    series = read(source)
    for id, due, ends, outcomes in duckdb.connect().execute(sql).fetchall():
        if id in series and series[id][0][0] < np.datetime64(due):
            yield id, np.datetime64(due), np.array(ends, "M8[D]"), *series[id], outcomes


def score(questions: Iterator, source: Source) -> Scores:
    scores = Scores([], [], [], [], {})
    for id, due, ends, days, values, outcomes in questions:
        scores.series += [id] * len(ends)
        scores.due += [due] * len(ends)
        scores.horizon += (ends - due).astype(int).tolist()
        scores.outcome += outcomes
        for name, p in chances(SeriesQuery(days, values, due, ends), source).items():
            scores.forecasts.setdefault(name, []).extend(p)
    scores.forecasts["always 0.5"] = [0.5] * len(scores.outcome)
    return scores


def own_prior(scores: Scores) -> list[float]:
    """Return the pooled frequency of rises at the horizon among events of the grid that ended before the due date."""
    due, horizon = np.array(scores.due), np.array(scores.horizon)
    outcome, end = np.array(scores.outcome), np.array(scores.due) + np.array(scores.horizon)
    rate = np.empty(len(due))
    for h in np.unique(horizon):
        rows = np.flatnonzero(horizon == h)
        order = rows[np.argsort(end[rows], kind="stable")]
        total = np.concatenate([[0.0], np.cumsum(outcome[order])])
        resolved = np.searchsorted(end[order], due[rows], side="left")
        rate[rows] = (total[resolved] + 5) / (resolved + 10)
    return rate.tolist()


def published_prior(scores: Scores, source: Source) -> list[float]:
    """Return the frequency of yes among all ForecastBench outcomes of the source known before the due date."""
    sql = f"select resolution_date, horizon_days, outcome from '{DATA}/resolutions.parquet'"
    rows = duckdb.connect().execute(f"{sql} where resolved and source = '{source.name}'").fetchall()
    day, horizon, outcome = zip(*rows, strict=True)
    blank = np.full(len(rows), "")
    past = PastOutcomes(
        known_on=np.array(day, "M8[D]"),
        source=np.full(len(rows), source.name),
        subtype=blank,
        horizon_days=np.array(horizon),
        outcome=np.array(outcome, dtype=np.float64),
    )
    rates, forecasts = BaseRates(past=past, correlation=0.0, by_horizon=False), []
    for due, h in zip(scores.due, scores.horizon, strict=True):
        target = Target(id="t", resolves_at=str(due + h))
        question = Question(id="q", source=source.name, text="?", due=str(due), targets=(target,))
        rate = rates.rate(question, target, question.as_of)
        forecasts.append(0.5 if rate is None else rate)
    return forecasts


def tables(title: str, scores: Scores, rows: np.ndarray) -> list[str]:
    """Return the Brier index by model and horizon, and the lead of auto over each other model, with 95 % intervals."""
    horizon, outcome = np.array(scores.horizon), np.array(scores.outcome)
    series, due = np.array(scores.series), np.array(scores.due).astype(str)
    losses = {name: (np.array(p) - outcome) ** 2 for name, p in scores.forecasts.items()}
    used = [h for h in HORIZONS if (rows & (horizon == h)).sum() >= 100]
    lines = [f"### {title}", "", "| model | " + " | ".join(f"{h} d" for h in used) + " | all | auto ahead by |"]
    lines += ["|---|" + "---|" * (len(used) + 2)]
    for name in sorted(losses, key=lambda n: losses[n][rows].mean()):
        row = [f"{brier_index(float(losses[name][rows & (horizon == h)].mean())):.1f}" for h in used]
        whole = f"{brier_index(float(losses[name][rows].mean())):.2f}"
        lines.append(f"| {name} | " + " | ".join(row) + f" | {whole} | {lead(losses, name, rows, series, due)} |")
    n = [str(int((rows & (horizon == h)).sum())) for h in used]
    lines.append("| events | " + " | ".join(n) + f" | {int(rows.sum())} | |")
    rates = [f"{outcome[rows & (horizon == h)].mean():.2f}" for h in used]
    lines.append("| rises | " + " | ".join(rates) + f" | {outcome[rows].mean():.2f} | |")
    return [*lines, ""]


def lead(losses: dict[str, np.ndarray], name: str, rows: np.ndarray, series: np.ndarray, due: np.ndarray) -> str:
    if name == "auto":
        return ""
    design = ResamplingDesign(cluster=series[rows], crossed=due[rows])
    comparison = compare_paired(
        losses["auto"][rows], losses[name][rows], design, statistic=brier_index_from_sums, resampling=RESAMPLING
    )
    return f"{comparison.diff:+.2f} [{comparison.low:+.2f}, {comparison.high:+.2f}]"


def main() -> None:
    thin = 10 if "--quick" in sys.argv else 1
    lines: list[str] = []
    for source in SOURCES:
        scores = score(grid(source, thin), source)
        scores.forecasts["past frequency"] = own_prior(scores)
        due = np.array(scores.due)
        chosen = due < np.datetime64(source.split)
        lines += tables(f"{source.name}, grid before {source.split}", scores, chosen)
        lines += tables(f"{source.name}, grid from {source.split} on", scores, ~chosen)
        print("\n".join(lines[-40:]), flush=True)
        if source.name != "dbnomics":
            measured = score(rounds(source), source)
            measured.forecasts["past frequency"] = published_prior(measured, source)
            lines += tables(f"{source.name}, ForecastBench rounds", measured, np.ones(len(measured.outcome), bool))
            print("\n".join(lines[-14:]), flush=True)
    if thin == 1:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
