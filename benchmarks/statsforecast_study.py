"""`auto` beside the models of statsforecast on the same series, their intervals turned into chances.

The library is no dependency of foretell: `pip install statsforecast` into an environment that has foretell. Reads the
tables under $FORETELL_DATA (default: ../shared/data beside the repository) and prints Markdown tables.

    python benchmarks/statsforecast_study.py [THIN]    # every THIN-th question, default 3; about half an hour

Every model of the library is fitted on the last observations before the due date and predicts as many observations as
are expected until each resolution date. The chance of a rise is that of a normal distribution with the mean and the
90 % interval that it predicts.
"""

import sys
import warnings
from collections.abc import Iterator
from itertools import islice

import numpy as np
from scipy.special import ndtr
from statsforecast.models import MSTL, AutoARIMA, AutoETS, AutoTheta

from foretell.forecasters.series.auto import NOTHING_KNOWN, choices
from foretell.forecasters.series.forecasters import PRICES
from foretell.forecasters.series.history import SeriesQuery
from series_study import SOURCES, Scores, Source, grid, rounds, tables

LONGEST, SEASONS = 300, 4
"""Observations on which a model is fitted, and seasons for MSTL, which needs whole ones."""
TO_90 = 1.6449
FARTHEST = 365
"""Days ahead up to which the library is asked."""
SPLIT = np.datetime64("1978-01-01")


def library(gap: float) -> dict[str, tuple[object, int]]:
    """Return the models for a series with this many days between observations, and how many each is fitted on.

    ARIMA and exponential smoothing cannot be fitted with a season of 365 days in reasonable time, so daily series have
    none there.
    """
    season = max(1, round(365.25 / gap))
    short = season if season <= 12 else 1
    return {
        "AutoARIMA": (AutoARIMA(season_length=short, approximation=True), LONGEST),
        "AutoETS": (AutoETS(season_length=short), LONGEST),
        "AutoTheta": (AutoTheta(season_length=short), LONGEST),
        "MSTL": (MSTL(season_length=season, trend_forecaster=AutoETS(model="ZZN")), max(LONGEST, SEASONS * season)),
    }


def of_library(query: SeriesQuery, source: Source) -> dict[str, list[float]]:
    """Return P(higher) by model and date."""
    days, values = query.days[: query.known], query.values[: query.known]
    gap = float(np.diff(days[-60:]).astype(np.int64).mean()) if len(days) > 1 else 1.0
    # A price moves in proportion to its level.
    level = np.log(values) if source.name == "yfinance" and values.min() > 0 else values
    until = (query.resolution - query.due).astype(np.int64)
    steps = np.maximum(np.round(until / gap).astype(int), 1)
    chances: dict[str, list[float]] = {}
    for name, (model, longest) in library(gap).items():
        scaled = level[-longest:]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                said = model.forecast(y=scaled.astype(np.float64), h=int(steps.max()), level=[90])  # type: ignore[attr-defined]
            mean, high = np.asarray(said["mean"])[steps - 1], np.asarray(said["hi-90"])[steps - 1]
            spread = np.maximum((high - mean) / TO_90, 1e-9 * (1 + np.abs(mean)))
            p = ndtr((mean - scaled[-1]) / spread)
        except Exception:  # The library fails on constant and on very short series.
            p = np.full(len(until), 0.5)
        chances[name] = np.where(np.isfinite(p), p, 0.5).tolist()
    return chances


def score(questions: Iterator, source: Source) -> Scores:
    """Return `auto` and the library on the same questions."""
    scores = Scores([], [], [], [], {})
    for id, due, all_ends, days, values, all_outcomes in questions:
        near = (all_ends - due).astype(int) <= FARTHEST
        ends, outcomes = all_ends[near], [o for o, ok in zip(all_outcomes, near, strict=True) if ok]
        if not len(ends):
            continue
        query = SeriesQuery(days, values, due, ends)
        scores.series += [id] * len(ends)
        scores.due += [due] * len(ends)
        scores.horizon += (ends - due).astype(int).tolist()
        scores.outcome += outcomes
        chosen = choices(query, PRICES if source.name == "yfinance" else NOTHING_KNOWN)
        for name, p in {"auto": [choice.above for choice in chosen], **of_library(query, source)}.items():
            scores.forecasts.setdefault(name, []).extend(p)
    scores.forecasts["always 0.5"] = [0.5] * len(scores.outcome)
    return scores


def main() -> None:
    thin = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    for source in reversed(SOURCES):
        if source.name == "dbnomics":
            later = (row for row in grid(source, 4 * thin) if row[1] >= SPLIT)
            scores, title = score(later, source), f"{source.name}, records from {SPLIT} on"
        else:
            every = islice(rounds(source), 0, None, thin if source.name == "fred" else 2 * thin)
            scores, title = score(every, source), f"{source.name}, ForecastBench rounds"
        print("\n".join(tables(title, scores, np.ones(len(scores.outcome), bool))), flush=True)


if __name__ == "__main__":
    main()
