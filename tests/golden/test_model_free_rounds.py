"""`model_free` against the model-free baseline of the paper on the published rounds, from past data only.

The tests set lower bounds on the margins of benchmarks/reports/model_free.md.
"""

from functools import cache
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pytest

from foretell import backtest
from foretell.data.datasets.forecastbench_tables import read_question_tables
from foretell.data.datasets.question_set import OutcomeKey, QuestionSet
from foretell.data.series.series import Series, SeriesInMemory
from foretell.forecasters.base_rates.baselines import MarketPriceForecaster
from foretell.forecasters.base_rates.past import Past, PastAnswer
from foretell.forecasters.base_rates.rates import BaseRates, PastOutcomes
from foretell.forecasters.forecaster import Forecaster
from foretell.forecasters.model_free.model_free import ModelFree
from foretell.metrics import brier_index
from foretell.questions.question import Question

pytestmark = pytest.mark.shared_data

LATER = "2025-10-01"
TABLES = {
    "ts_fred": ("series", "value", "{}"),
    "ts_yfinance_close": ("ticker", "close", "{}"),
    "meteofrance_daily_tmean": ("wmo", "tmean", "meteofrance/TEMPERATURE/celsius.{}.D"),
}


class Margins(NamedTuple):
    """Brier indices on the same events."""

    n: int
    baseline: float
    model_free: float


@cache
def rounds(data: Path) -> QuestionSet:
    return read_question_tables(data / "tables")


@cache
def past(data: Path) -> Past:
    return Past.of(
        rounds(data).questions,
        [
            PastAnswer(
                question_id=r.question_id,
                due=r.due,
                target_id=r.target_id,
                outcome=r.outcome,
                known_on=r.resolved_at.date(),
            )
            for r in rounds(data).resolutions
            if r.outcome is not None and r.due is not None and r.resolved_at is not None
        ],
    )


@cache
def baseline(data: Path) -> BaseRates:
    sql = """select r.resolution_date, r.source, coalesce(q.subtype, ''), r.horizon_days, r.outcome
             from '{tables}/resolutions.parquet' r
             left join '{tables}/questions.parquet' q using (source, question_id, forecast_due_date)
             where r.resolved and r.source in ('acled', 'dbnomics', 'fred', 'wikipedia', 'yfinance')"""
    rows = duckdb.connect().execute(sql.format(tables=data / "tables")).fetchall()
    day, source, subtype, horizon, outcome = zip(*rows, strict=True)
    outcomes = PastOutcomes(
        known_on=np.array(day, "M8[D]"),
        source=np.array(source),
        subtype=np.array(subtype),
        horizon_days=np.array(horizon, np.int64),
        outcome=np.array(outcome, np.float64),
    )
    return BaseRates(past=outcomes, strength=1e-9, correlation=0.0, by_horizon=False)


@cache
def series(data: Path) -> SeriesInMemory:
    series_by_id: dict[str, Series] = {}
    for table, (key, value, name) in TABLES.items():
        sql = (
            f"select {key} k, date::varchar d, {value} v from '{data}/tables/{table}.parquet' where {value} is not null"
        )
        rows = duckdb.connect().execute(f"{sql} order by 1, 2").fetchnumpy()
        keys, days = np.asarray(rows["k"]).astype(str), np.asarray(rows["d"]).astype("U10").astype("M8[D]")
        for key_value in np.unique(keys):
            mine = keys == key_value
            id = name.format(key_value)
            series_by_id[id] = Series(id=id, days=days[mine], values=np.asarray(rows["v"], np.float64)[mine])
    return SeriesInMemory(series=series_by_id)


@cache
def model_free(data: Path) -> ModelFree:
    return ModelFree(rates=BaseRates(past=past(data).outcomes))


def probabilities(
    data: Path, forecaster: Forecaster, questions: list[Question], source: SeriesInMemory | None
) -> dict[OutcomeKey, float]:
    run = backtest([forecaster], questions, series=source, past=past(data))
    assert not run.failures, run.failures[:3]
    return {
        (question.id, question.due, target): p
        for question, forecast in zip(run.questions, run.forecasts, strict=True)
        for target, p in forecast.p.items()
    }


def margins(data: Path, question_set: QuestionSet, questions: list[Question]) -> Margins:
    p, outcomes = probabilities(data, model_free(data), questions, series(data)), question_set.outcomes()
    pairs = [
        (p[key], baseline(data).rate(q, t, q.as_of), outcomes[key])
        for q in questions
        for t in q.targets
        if (key := (q.id, q.due, t.id)) in outcomes
    ]
    ours, theirs, y = np.array(pairs, float).T
    return Margins(
        n=len(y), baseline=brier_index(np.mean((theirs - y) ** 2)), model_free=brier_index(np.mean((ours - y) ** 2))
    )


def test_model_free_beats_the_baseline_on_the_samples_of_the_paper(shared_data: Path) -> None:
    paper_sets = read_question_tables(shared_data / "tables", "ab_", outcomes="paper_outcome")
    result = margins(shared_data, paper_sets, [q for q in paper_sets.questions if q.kind == "dataset"])
    assert result.n == 591
    assert round(result.baseline, 2) == 57.65
    assert result.model_free >= result.baseline + 1.5


def test_model_free_beats_the_baseline_on_the_held_out_rounds(shared_data: Path) -> None:
    question_set = rounds(shared_data)
    later = [q for q in question_set.questions if q.kind == "dataset" and q.due.date().isoformat() > LATER]
    result = margins(shared_data, question_set, later[::2])
    assert result.n > 3000
    assert result.model_free >= result.baseline + 1.5


def test_model_free_beats_the_baseline_on_the_rounds_used_for_development(shared_data: Path) -> None:
    question_set = rounds(shared_data)
    early = [
        q for q in question_set.questions if q.kind == "dataset" and "2025-01-01" < q.due.date().isoformat() < LATER
    ]
    result = margins(shared_data, question_set, early[::6])
    assert result.model_free >= result.baseline + 3.0


def test_market_questions_get_the_price_of_the_due_date(shared_data: Path) -> None:
    priced = [
        q
        for q in rounds(shared_data).questions
        if q.kind == "market" and q.targets[0].snapshot is not None and q.targets[0].snapshot.at == q.due
    ]
    assert len(priced) > 2000
    assert probabilities(shared_data, model_free(shared_data), priced, None) == probabilities(
        shared_data, MarketPriceForecaster(), priced, None
    )


def test_every_question_is_answered(shared_data: Path) -> None:
    questions = [q for q in rounds(shared_data).questions if q.due.date().isoformat() > "2025-01-01"]
    assert len(probabilities(shared_data, model_free(shared_data), questions[::7], None)) > 3000
