"""An agent put together from objects, and the awaited forms of functions."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foretell
from foretell.forecasters.tree.links import LinearLink
from foretell.forecasters.tree.proposition import Proposition, Tree
from foretell.models.providers.function import model_name
from foretell.questions.errors import InputError
from foretell.questions.tabular import Tabular
from foretell.questions.trace import TraceEvent
from foretell.runs.settings import Settings
from foretell.types import AgentOptions

QUESTION = "Will the harbour bridge be approved?"


async def careful(prompt: str) -> dict[str, Any]:
    return {"reason": "It was discussed.", "probability": 0.3}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, network=False)


def test_an_agent_is_the_same_as_its_settings(settings: Settings) -> None:
    agent = foretell.Agent(model=careful, options=AgentOptions(variant="zero-shot"), trials=2)
    by_agent = foretell.ask(QUESTION, agent=agent, closes="2099-01-01", settings=settings)
    by_name = foretell.ask(
        QUESTION, model=careful, trials=2, set={"options.variant": "zero-shot"}, closes="2099-01-01", settings=settings
    )
    assert by_agent.run == by_name.run
    assert by_agent.p == by_name.p == {"yes": pytest.approx(0.3)}
    assert len(by_agent.trials) == 2


def test_an_agent_of_another_type_is_refused(settings: Settings) -> None:
    other: Any = "openai:x"
    with pytest.raises(InputError, match=r"agent: must be a foretell\.Agent"):
        foretell.ask(QUESTION, agent=other, settings=settings)


def test_objects_of_another_type_are_refused_when_they_are_passed(settings: Settings) -> None:
    wrong: Any = {"steps": 3}
    for fields, problem in (
        ({"tools": careful}, "field tools: must be a list"),
        ({"search": "brave"}, "field search: must be a list"),
        ({"models": ["openai:x"]}, "field models: must be a mapping"),
        ({"options": wrong}, r"field options: must be foretell\.types\.AgentOptions"),
    ):
        with pytest.raises(InputError, match=problem):
            foretell.Agent(careful, **fields)
    for fields, problem in (
        ({"settings": "/home"}, r"settings: must be a foretell\.types\.Settings"),
        ({"progress": 3}, "progress: must be a function"),
    ):
        with pytest.raises(InputError, match=problem):
            foretell.ask(QUESTION, model=careful, **fields)
    assert Settings(home=str(settings.home)) == Settings(home=settings.home)  # pyright: ignore[reportArgumentType]


def test_values_of_numpy_and_pandas_are_taken(settings: Settings) -> None:
    pandas = pytest.importorskip("pandas", reason="a series")
    both: Any = {"red": np.float32(0.25), "blue": np.float64(0.75)}
    common: dict[str, Any] = {"settings": settings, "set": {"combine": "mean", "options.variant": "zero-shot"}}
    for options in (np.array(["red", "blue"]), pandas.Series(["red", "blue"])):
        answer = foretell.ask(
            "Which colour?", options=options, closes=np.datetime64("2099-01-01"), trials=np.int64(2),
            model=lambda prompt: {"p": both, "reason": "Seen."}, **common,
        )  # fmt: skip
        assert (answer.p, len(answer.trials)) == ({"red": 0.25, "blue": 0.75}, 2)


def test_an_error_of_the_progress_function_is_raised_itself(settings: Settings) -> None:
    async def awaited() -> None:
        await foretell.aask(QUESTION, model=careful, progress=lambda trial, event: 1 / 0, settings=settings)

    with pytest.raises(ZeroDivisionError):
        foretell.ask(QUESTION, model=careful, progress=lambda trial, event: 1 / 0, settings=settings)
    with pytest.raises(ZeroDivisionError):
        asyncio.run(awaited())


def test_paths_are_taken_for_names_of_files(tmp_path: Path, settings: Settings) -> None:
    with pytest.raises(InputError, match=r"no\.csv: no such file"):
        foretell.submit_forecasts(tmp_path / "no.csv", to="metaculus", settings=settings)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="field spec: is missing"):
        foretell.run(None, settings=settings)  # pyright: ignore[reportCallIssue, reportArgumentType]
    with pytest.raises(InputError, match="field spec: should be a path or a mapping"):
        foretell.run([1], settings=settings)  # pyright: ignore[reportCallIssue, reportArgumentType]


def test_what_is_given_to_ask_takes_precedence_over_the_agent(settings: Settings) -> None:
    agent = foretell.Agent(model=careful, options=AgentOptions(variant="zero-shot"), trials=2, set={"seed": 3})
    answer = foretell.ask(QUESTION, agent=agent, trials=1, closes="2099-01-01", settings=settings)
    assert len(answer.trials) == 1


def test_an_agent_replaces_the_base_of_a_grid(settings: Settings, tmp_path: Path) -> None:
    asked = {"questions": {"dataset": "demo", "limit": 2}, "forecaster": "knn"}
    file = tmp_path / "grid.yaml"
    file.write_text(json.dumps({"base": asked, "factors": {"seed": [1, 2]}}), encoding="utf-8")
    agent = foretell.Agent(careful, options=AgentOptions(variant="zero-shot"), trials=2, budget=3.0)
    done = foretell.grid(file, agent=agent, settings=settings)
    assert (done.budget, [run.trials for run in done.planned], len(done.ended)) == (3.0, [4, 4], 2)
    assert done.study is not None
    by_name = foretell.grid(
        file, settings=settings, budget=3.0,
        set={"models.agent": model_name(careful), "forecaster": "agent", "options.variant": "zero-shot", "trials": 2},
    )  # fmt: skip
    assert [run.run for run in by_name.planned] == [run.run for run in done.planned]
    with pytest.raises(InputError, match="set: has no effect on an experiment that is only shown"):
        foretell.grid(set={"trials": 2}, settings=settings)


def test_an_agent_updates_a_tree(settings: Settings, tmp_path: Path) -> None:
    claims = {
        "P0": Proposition(
            id="P0", claim="It rains.", children=("P1",), link=LinearLink(intercept=0.0, weights={"P1": 1.0})
        ),
        "P1": Proposition(id="P1", claim="It is cloudy.", p=0.9),
    }
    file = tmp_path / "rain.json"
    foretell.write_tree(file, Tree(root="P0", nodes=claims))
    agent = foretell.Agent(careful, set={"options.grounder": "agent"})
    done = foretell.update_tree(file, ["P1"], agent=agent, settings=settings)
    assert done.tree.nodes["P1"].p == pytest.approx(0.3)
    refused = foretell.Agent(careful, options=AgentOptions(steps=3))
    with pytest.raises(InputError, match="the options of an agent do not apply to a tree"):
        foretell.update_tree(file, agent=refused, settings=settings)


def test_functions_work_inside_a_running_loop_and_can_be_awaited(settings: Settings) -> None:
    events: list[tuple[int, TraceEvent]] = []

    async def both() -> None:
        waited = await foretell.aask(
            QUESTION, model=careful, closes="2099-01-01", settings=settings,
            progress=lambda trial, event: events.append((trial, event)),
        )  # fmt: skip
        blocking = foretell.ask(QUESTION, model=careful, closes="2099-01-01", settings=settings)
        assert (waited.run, waited.p) == (blocking.run, blocking.p)

    asyncio.run(both())
    assert {trial for trial, _ in events} == {0}


def test_an_awaited_function_names_a_misspelt_parameter() -> None:
    with pytest.raises(TypeError, match=r"aask\(\) got an unexpected keyword argument 'modle'; did you mean 'model'"):
        asyncio.run(foretell.aask(QUESTION, modle="none"))  # pyright: ignore[reportCallIssue]


def test_results_are_tables_with_escaped_text() -> None:
    pytest.importorskip("pandas", reason="to_pandas needs it")
    rows = [{"forecaster": "<b>me</b>", "question": "q", "p": 0.7, "outcome": 1}]
    board = foretell.score(rows)
    assert "&lt;b&gt;me" in board._repr_html_()
    assert "<b>me" not in board._repr_html_()
    assert "<b>me</b>" in set(board.to_pandas()["forecaster"])
    table = foretell.read_table(rows)
    assert str(foretell.score(table)) == str(board)


def test_without_polars_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(foretell.InputError, match="pip install polars"):
        foretell.score([{"forecaster": "me", "question": "q", "p": 0.7, "outcome": 1}]).to_polars()


def test_results_are_polars_and_pandas_frames_with_the_same_columns_and_values(settings: Settings) -> None:
    pytest.importorskip("polars", reason="to_polars needs it")
    pytest.importorskip("pandas", reason="to_pandas needs it")
    rows = [{"forecaster": name, "question": q, "p": 0.7, "outcome": 1} for q in "abc" for name in ("me", "you")]
    answer = foretell.ask(QUESTION, model=careful, closes="2099-01-01", settings=settings)
    results: list[Tabular] = [
        foretell.score(rows),
        foretell.score(rows, by="question"),
        foretell.compare(rows, None, "me", "you"),
        foretell.backtest("prior", "demo"),
        answer,
        foretell.list_runs(settings=settings),
        foretell.show(answer.run or "", settings=settings),
        foretell.list_trees(settings=settings),
    ]
    for result in results:
        polars, pandas = result.to_polars(), result.to_pandas()
        assert polars.columns == list(pandas.columns), type(result)
        assert polars.height == len(pandas) == len(result.rows()), type(result)
        for name in polars.columns:
            # A dictionary is a struct, whose fields are those of all rows.
            if str(polars[name].dtype).split("(")[0] not in ("Struct", "List"):
                values = [row.get(name) for row in result.rows()]
                assert without_nan(polars[name].to_list()) == without_nan(values), (type(result), name)


def without_nan(values: list[Any]) -> list[Any]:
    return ["nan" if value != value else value for value in values]
