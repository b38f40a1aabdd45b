"""A run on contexts, stored and read back: what was stated is scored, and its forecasts can be judged."""

import asyncio
from dataclasses import replace

import pytest
from tests.forecasters.context.doubles import CUP, SNOW, One, run_context, say, shared

from foretell.forecasters import attempt
from foretell.forecasters.base_rates import ConstantForecaster
from foretell.forecasters.prompt import PromptForecaster
from foretell.models.providers import ScriptedModel
from foretell.questions import EmitEvent, Failure, Forecast
from foretell.runs import Executor, RunCell, RunStore, cells_of
from foretell.studies import read_cases, read_statements
from foretell.studies.consistency import consistency_study, plain_structure


def test_a_run_is_read_back_as_it_was_stated(tmp_path) -> None:
    store = RunStore(tmp_path / "runs.db")
    store.begin("r1", "{}", "2026-01-10T00:00:00+00:00")
    store.keep_questions("r1", [CUP, SNOW])
    model = ScriptedModel(
        lambda request: say({"target_1": 0.9, "target_2": 0.3} if "cup" in request.messages[1].text else {"yes": 0.2})
    )

    async def answer(cell: RunCell, emit: EmitEvent) -> Forecast | Failure:
        forecaster = PromptForecaster(contexts=One(shared(cell.question)), view="sources")
        return await attempt(forecaster, cell.question, replace(run_context(model), emit=emit, trial=cell.trial))

    asyncio.run(Executor(store, concurrency=4).run(cells_of("r1", [CUP, SNOW], 2), answer))
    found = read_statements(store, "r1", name="my model")
    assert len(found) == 4
    assert {one.forecaster for one in found} == {"my model"}
    assert [one.p for one in found if one.question.id == "cup"] == [{"Red Team": 0.9, "Blue Team": 0.3}] * 2
    study = consistency_study(found, {q.id: plain_structure(q) for q in (CUP, SNOW)})
    row = study.table("Consistency by forecaster").rows[0].values
    assert row[3] == 2
    assert row[5].estimate == pytest.approx(0.2)
    every = read_cases(store, "r1", {shared().digest: shared()}.get)
    cases = [one for one in every if one.context == shared()]
    assert (len(every), len(cases)) == (4, 2), "a case without its context holds the question alone"
    assert {one.view.name for one in cases} == {"sources"}
    assert sum(cases[0].forecast.p.values()) == pytest.approx(1)
    assert "0.613" not in cases[0].sheet()
    store.close()


def test_other_forecasters_are_read_by_their_forecasts(tmp_path) -> None:
    store = RunStore(tmp_path / "runs.db")
    store.begin("r1", "{}", "2026-01-10T00:00:00+00:00")
    store.keep_questions("r1", [CUP])

    async def answer(cell: RunCell, emit: EmitEvent) -> Forecast | Failure:
        return await ConstantForecaster(p=0.4).forecast(cell.question, run_context(ScriptedModel([])))

    asyncio.run(Executor(store, concurrency=1).run(cells_of("r1", [CUP], 1), answer))
    (found,) = read_statements(store, "r1")
    assert (found.forecaster, found.p) == ("always 0.4", {"Red Team": 0.4, "Blue Team": 0.4})
    assert read_cases(store, "r1", {shared().digest: shared()}.get) == []
    store.close()
