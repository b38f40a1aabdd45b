"""Estimates without a model that the trials of a run are combined with."""

import asyncio
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from foretell.data.series.series import Series, SeriesInMemory
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.combine.default import DATASETS
from foretell.forecasters.forecaster import Context
from foretell.forecasters.model_free.model_free import ModelFree
from foretell.metrics.transforms import logit, sigmoid
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, SeriesRef, Snapshot, Target
from foretell.runs.combine import combined_answers, combining_of_run
from foretell.runs.estimates import estimates_without_model
from foretell.runs.spec import QuestionsSpec, RunSpec
from foretell.runs.store import RunStore

DAYS = np.arange("2020-01-01", "2026-01-01", dtype="M8[D]")
SOURCE = SeriesInMemory(series={"X": Series(id="X", days=DAYS, values=np.arange(len(DAYS)) * 1.0)})
RISING = Question(
    id="fred/X",
    source="fred",
    text="Will the amount X rise?",
    due="2025-06-01",
    kind="dataset",
    series=SeriesRef(provider="fred", id="X"),
    targets=tuple(Target(id=day, resolves_at=day) for day in ("2025-06-08", "2025-07-01")),
)
UNKNOWN = replace(RISING, id="own/1", source="own", series=None)
MARKET = Question(
    id="m",
    source="manifold",
    text="?",
    due="2025-06-01",
    targets=(Target(id="yes", snapshot=Snapshot(at="2025-06-01", last_price=0.3)),),
)
SPEC = RunSpec(questions=QuestionsSpec(dataset="x.csv"), models={"agent": "openai:a"})


def test_trials_of_a_run_are_combined_with_the_estimate_without_a_model(tmp_path: Path) -> None:
    rows = asyncio.run(estimates_without_model([RISING, UNKNOWN, MARKET], "backtest", Past(), SOURCE))
    assert [(question.id, target) for question, target, _ in rows] == [("fred/X", t.id) for t in RISING.targets]
    context = Context(as_of=RISING.as_of, series=SOURCE, past=Past())
    estimate = asyncio.run(ModelFree().forecast(RISING, context)).p
    assert {target: p for _, target, p in rows} == estimate
    trial = Forecast(question_id=RISING.id, forecaster="agent", as_of=RISING.as_of, p=dict.fromkeys(estimate, 0.2))
    with closing(RunStore(tmp_path / "runs.db")) as store:
        store.begin(SPEC.id, SPEC.to_json(), "2025-06-01T00:00:00+00:00")
        store.keep_rates(SPEC.id, rows)
        answer, other = (
            combined_answers([trial], [RISING], combining_of_run(store, SPEC, combine))[0]
            for combine in (None, "default")
        )
        assert answer.forecast == other.forecast, "auto is the default rule"
        stored = store.rates(SPEC.id)
    first = RISING.targets[0].id
    blend = DATASETS.start * logit(0.2) + (1 - DATASETS.start) * logit(estimate[first], 1e-3)
    assert answer.forecast.p[first] == pytest.approx(float(sigmoid(blend)))
    assert answer.weights[first] == {"direct": DATASETS.start, "without_model": 1 - DATASETS.start}
    assert [step.name for step in answer.steps][:2] == ["trials", "without a model"]
    again = asyncio.run(estimates_without_model([RISING], "backtest", Past(), SOURCE, stored))
    assert again == [], "what is stored is not computed again"
