"""The model-free stack against the paper's model-free baseline, past-only, on the real rounds.

The margins are those of benchmarks/reports/stack.md; here they are pinned from below.
"""

from functools import cache
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pytest

from foretell import backtest
from foretell.data.datasets import OutcomeKey, QuestionSet, read_question_tables
from foretell.data.series import Series, SeriesInMemory
from foretell.forecasters import Forecaster
from foretell.forecasters.base_rates import BaseRates, CrowdForecaster, Past, PastAnswer, PastOutcomes
from foretell.forecasters.stack import Stack
from foretell.metrics import brier_index
from foretell.questions import Question

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
    stack: float


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
    found = duckdb.connect().execute(sql.format(tables=data / "tables")).fetchall()
    day, source, subtype, horizon, outcome = zip(*found, strict=True)
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
    found: dict[str, Series] = {}
    for table, (key, value, name) in TABLES.items():
        sql = (
            f"select {key} k, date::varchar d, {value} v from '{data}/tables/{table}.parquet' where {value} is not null"
        )
        rows = duckdb.connect().execute(f"{sql} order by 1, 2").fetchnumpy()
        keys, days = np.asarray(rows["k"]).astype(str), np.asarray(rows["d"]).astype("U10").astype("M8[D]")
        for one in np.unique(keys):
            mine = keys == one
            id = name.format(one)
            found[id] = Series(id=id, days=days[mine], values=np.asarray(rows["v"], np.float64)[mine])
    return SeriesInMemory(series=found)


@cache
def stack(data: Path) -> Stack:
    return Stack(rates=BaseRates(past=past(data).outcomes))


def said(
    data: Path, forecaster: Forecaster, questions: list[Question], source: SeriesInMemory | None
) -> dict[OutcomeKey, float]:
    run = backtest([forecaster], questions, series=source, past=past(data))
    assert not run.failures, run.failures[:3]
    return {
        (question.id, question.due, target): p
        for question, forecast in zip(run.questions, run.forecasts, strict=True)
        for target, p in forecast.p.items()
    }


def margins(data: Path, asked: QuestionSet, questions: list[Question]) -> Margins:
    p, outcomes = said(data, stack(data), questions, series(data)), asked.outcomes()
    pairs = [
        (p[key], baseline(data).rate(q, t, q.as_of), outcomes[key])
        for q in questions
        for t in q.targets
        if (key := (q.id, q.due, t.id)) in outcomes
    ]
    ours, theirs, y = np.array(pairs, float).T
    return Margins(
        n=len(y), baseline=brier_index(np.mean((theirs - y) ** 2)), stack=brier_index(np.mean((ours - y) ** 2))
    )


def test_the_papers_tranches(shared_data: Path) -> None:
    papers = read_question_tables(shared_data / "tables", "ab_", outcomes="paper_outcome")
    found = margins(shared_data, papers, [q for q in papers.questions if q.kind == "dataset"])
    assert found.n == 591
    assert round(found.baseline, 2) == 57.65
    assert found.stack >= found.baseline + 1.5


def test_the_rounds_kept_for_confirming(shared_data: Path) -> None:
    asked = rounds(shared_data)
    later = [q for q in asked.questions if q.kind == "dataset" and q.due.date().isoformat() > LATER]
    found = margins(shared_data, asked, later[::2])
    assert found.n > 3000
    assert found.stack >= found.baseline + 1.5


def test_the_rounds_used_for_choosing(shared_data: Path) -> None:
    asked = rounds(shared_data)
    early = [q for q in asked.questions if q.kind == "dataset" and "2025-01-01" < q.due.date().isoformat() < LATER]
    found = margins(shared_data, asked, early[::6])
    assert found.stack >= found.baseline + 3.0


def test_markets_lose_nothing_to_the_price_of_the_due_date(shared_data: Path) -> None:
    priced = [
        q
        for q in rounds(shared_data).questions
        if q.kind == "market" and q.targets[0].snapshot is not None and q.targets[0].snapshot.at == q.due
    ]
    assert len(priced) > 2000
    assert said(shared_data, stack(shared_data), priced, None) == said(shared_data, CrowdForecaster(), priced, None)


def test_every_question_is_answered(shared_data: Path) -> None:
    questions = [q for q in rounds(shared_data).questions if q.due.date().isoformat() > "2025-01-01"]
    assert len(said(shared_data, stack(shared_data), questions[::7], None)) > 3000
