"""The same request through command line, Python, web and MCP gives the same answer and has every option."""

import asyncio
import dataclasses
import json
import re
import sys
from collections.abc import Iterator
from contextlib import closing
from inspect import Parameter, signature
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the web is one of the ways in")
pytest.importorskip("mcp", reason="MCP is one of the ways in")
from click.testing import CliRunner
from fastapi.testclient import TestClient
from tests.operations.interfaces import TOKEN, Interfaces
from tests.runs.test_fitted_on_earlier_runs import keep

import foretell
from fakes.models import BackgroundModels
from foretell.cli.commands import operation_command
from foretell.cli.main import cli
from foretell.data.corpus import Corpus, CorpusDocument
from foretell.forecasters.agent.options import AgentOptions
from foretell.mcp.permissions import ServerPermissions
from foretell.mcp.server import run_tool
from foretell.models.providers.client import HttpModel
from foretell.operations.ask import prepare_ask
from foretell.operations.requests.asking import AskRequest
from foretell.operations.requests.runs import RunRequest, ShowRequest
from foretell.operations.requests.scoring import ScoreRequest
from foretell.operations.requests.trees import TreeRequest, TreeUpdateRequest, WhatIfRequest
from foretell.operations.table import OPERATIONS, PYTHON_NAMES
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError
from foretell.request import hints, on_command_line
from foretell.runs.settings import Settings
from foretell.runs.spec import QuestionsSpec, RunSpec
from foretell.runs.store import RunStore
from foretell.runs.tree_runtime import TreeOptions
from foretell.scoring.run_answers import final_forecasts
from foretell.web.app import create_app

QUESTION = "Will the harbour bridge be approved?"
MODEL: dict[str, Any] = {"model": "openai:gpt-5-mini", "search": ["local"], "as_of": "2026-07-01"}
TREE = {
    "schema": "foretell/tree/1",
    "root": "P0",
    "nodes": {
        "P0": {
            "claim": "It is built.",
            "children": ["P1", "P2"],
            "link": {"kind": "linear", "intercept": 0.0, "weights": {"P1": 0.6, "P2": 0.4}},
        },
        "P1": {"claim": "It is paid for.", "p": 0.5},
        "P2": {"claim": "It is allowed.", "p": 0.25},
    },
}
MINUTE = re.compile(r" on \d{4}-\d\d-\d\d \d\d:\d\d UTC")


@pytest.fixture(scope="module")
def provider() -> Iterator[BackgroundModels]:
    with BackgroundModels(script="foretell.practice.models.scripts:tree_script") as server:
        yield server


@pytest.fixture
def interfaces(tmp_path: Path, provider: BackgroundModels, monkeypatch: pytest.MonkeyPatch) -> Interfaces:
    for name in ("FORETELL_MODEL", "FORETELL_SEARCH", "FORETELL_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "home").mkdir()
    with closing(Corpus(tmp_path / "home" / "corpus.db")) as corpus:
        text = "The council discussed the harbour bridge and expects a vote in autumn."
        published = instant("2026-06-01")
        corpus.add([CorpusDocument(url="https://news.example/old", title="Council", text=text, published=published)])
    environment = {"OPENAI_API_KEY": "sk-canary", "FORETELL_OPENAI_URL": f"{provider.url}/v1"}
    environment["FORETELL_NETWORK"] = "off"
    return Interfaces(folder=tmp_path, environment=environment)


def same(answers: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the answer, which all interfaces must share, but for the minute of a report."""
    first = answers["cli"]
    for name, answer in answers.items():
        assert _without_minute(answer) == _without_minute(first), name
    return first


def _without_minute(answer: dict[str, Any]) -> dict[str, Any]:
    return {key: MINUTE.sub("", value) if isinstance(value, str) else value for key, value in answer.items()}


def test_an_answer_with_its_own_rule_is_the_same_in_every_interface(interfaces: Interfaces) -> None:
    fields = {"question": QUESTION, "closes": "2031-01-01", "trials": 3, **MODEL}
    chosen = {"combine": "median", "options.steps": 6, "options.clamp": [0.1, 0.9], "options.market_price": False}
    answer = same(interfaces.all(AskRequest, **fields, set=chosen))
    trials = sorted(trial["p"]["yes"] for trial in answer["trials"])
    assert answer["p"]["yes"] == pytest.approx(trials[1])
    assert answer["usage"]["calls"] > 3
    shows = interfaces.all(ShowRequest, run=answer["run"][:8], question=answer["question_id"])
    for show in shows.values():
        # Times differ, and the page has the full id of the run.
        show["report"] = re.sub(r"began: .*|(?<=Made by foretell ).*", "", show["report"])
        for step in chain.from_iterable(show["steps"].values()):
            assert step.pop("at")
            step.pop("seconds")
    shown = same(shows)
    assert shown["total"] == 3
    assert shown["steps"]["trial 0"]
    # The page shows the same number as every other interface.
    with TestClient(create_app(interfaces.settings("web"), token=TOKEN), base_url="http://127.0.0.1") as client:
        view = client.get(f"/api/runs/{answer['run']}/questions/{answer['question_id']}").json()
    assert view["combination"]["p"] == answer["p"]


def test_several_outcomes_without_a_model_are_the_same_in_every_interface(interfaces: Interfaces) -> None:
    fields = {"question": "Who wins?", "options": ["red", "green", "blue"], "model": "none"}
    answers = interfaces.all(AskRequest, **fields)
    for answer in answers.values():
        for name in ("as_of", "due"):
            answer.pop(name)  # The current time, which differs.
    assert sum(same(answers)["p"].values()) == pytest.approx(1)


def test_outcomes_of_which_none_may_come_true(interfaces: Interfaces) -> None:
    fields = {"question": "Who wins?", "options": ["red", "green"], "exclusivity": "at most one", "model": "none"}
    answers = interfaces.all(AskRequest, **fields)
    for answer in answers.values():
        for name in ("as_of", "due"):
            answer.pop(name)
    result = same(answers)
    assert result["exclusivity"] == "at most one"
    assert sum(result["p"].values()) + result["none"] == pytest.approx(1)
    assert result["none"] > 0
    separate = foretell.ask("Who wins?", options=["red", "green"], exclusivity="independent", model="none")
    assert (separate.none, separate.question.exclusivity) == (None, "independent")


UNUSED = [
    (["ask", "Who?", "--search", "brave"], "--search: has no effect without --model or --config or --set"),
    (["ask", "Rain?", "--set", "options.steps=4"], "--model: no model is named"),
    (
        ["ask", "Rain?", "--set", "questions.leaky_questions=keep"],
        "questions.leaky_questions: has no effect without --as-of",
    ),
    (
        ["ask", "Rain?", "--model", "openai:a", "--set", "questions.limit=4"],
        "questions.limit: does not apply to a typed question",
    ),
    (["ask", "Rain?", "--model", "openai:a", "--set", "models.agent=openai:b"], "models.agent is the same as --model"),
    (["ask", "Rain?", "--exclusivity", "independent"], "--exclusivity: has no effect without --option"),
    (["ask", "Who?", "--option", "a", "--option", "b", "--price", "0.2"], "--price: is for a question with the answer"),
    (["run", "run.yaml", "--prompts"], "--prompts: has no effect without --plan"),
    (["run", "run.yaml", "--again"], "--again: needs a stored run"),
    (["run", "run.yaml", "--only-failed"], "--only-failed: needs a stored run"),
    (["run", "autumn", "--again", "--only-failed"], "--only-failed: cannot be used together with --again"),
    (["run", "autumn", "--set", "trials=2", "--only-failed"], "--only-failed: changed settings are for all that"),
    (["backtest", "demo", "--set", "trials=2"], "--set trials: does not select questions"),
    (["backtest", "demo", "--limit", "2", "--set", "questions.limit=2"], "questions.limit is the same as --limit"),
    (["grid", "--plan"], "--plan: has no effect on an experiment that is only shown"),
    (
        ["submit", "r", "--to", "metaculus", "--set", "tournament.agent=a"],
        "is a setting of prophet-arena, not of metac",
    ),
    (
        ["submit", "r", "--to", "forecastbench", "--comment"],
        "--comment: has no effect without --to metaculus or --to pro",
    ),
    (["tournament", "run", "forecastbench", "--trials", "3"], "--trials: has no effect without a model"),
    (["tournament", "run", "forecastbench", "--set", "combine=mean"], "combine: has no effect without a model"),
    (
        ["tournament", "run", "forecastbench", "--set", "tournament.stop_before=3"],
        "tournament.stop_before: has no effect without a model",
    ),
    (
        ["tournament", "run", "forecastbench", "--set", "tournament.overwrite=true"],
        "tournament.overwrite: has no effect without tournament.bucket",
    ),
    (["tournament", "run", "forecastbench", "--limit", "3"], "--limit: has no effect on ForecastBench"),
    (["tournament", "run", "prophet-arena:live", "--sandbox"], "--sandbox: Prophet Arena has no testing area"),
    (["calibrate", "fit", "-f", "f", "--method", "skill", "--set", "steps=3"], "--set: skill has no setting 'steps'"),
    (["data", "pull", "prophet-arena", "--no-prices"], "--prices: has no effect without SOURCE forecastbench"),
    (
        ["tree", "grow", "It.", "--model", "openai:a", "--set", "options.deep_model=openai:b"],
        "options.deep_model: has no effect without --grounder deep",
    ),
    (["compare", "a", "b", "--detect", "1", "--sd", "0.1"], "--sd: sets the spread, so forecasts have no effect"),
    (["compare", "a", "b", "--sd", "0.1"], "--sd: has no effect without --detect"),
    (["tree", "grow", "It.", "--model", "openai:a", "--set", "trials=3"], "trials: only one tree is grown"),
    (["tree", "update", "t.json", "--no-research", "--trials", "3"], "--trials: has no effect with --no-research"),
    (["tree", "update", "t.json", "P1", "--expand", "P2"], "CLAIM: has no effect with --expand"),
    (["tree", "edit", "t.json", "--restore", "1", "--set", "P1=0.2"], "--set: cannot be combined with --restore"),
    (["tree", "log", "t.json", "u.json", "--diff", "1.."], "--diff: compares versions of one tree"),
    (["score", "-f", "numbers.csv", "-o", "o.csv", "--by", "source"], "--by: has no effect on forecasts of a number"),
    (
        ["tournament", "run", "metaculus:m", "--set", "questions.dataset=demo"],
        "--set questions.dataset: the questions come from the tournament",
    ),
    (
        ["tournament", "run", "metaculus:m", "--set", "mode=backtest"],
        "--set mode: the questions come from the tournament",
    ),
    (
        ["tournament", "run", "metaculus:m", "--config", "unfiltered.yaml"],
        "unfiltered.yaml, field leakage_filter: a run without the leakage filter cannot enter a tournament",
    ),
]


@pytest.mark.parametrize(("words", "problem"), UNUSED, ids=[problem for _, problem in UNUSED])
def test_no_option_is_silently_ignored(
    words: list[str], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "numbers.csv").write_text("forecaster,question,level,value\nA,q,0.5,3\n")
    (tmp_path / "o.csv").write_text("question,value\nq,3\n")
    (tmp_path / "questions.yaml").write_text("questions: demo\n")
    (tmp_path / "mode.yaml").write_text("mode: backtest\n")
    (tmp_path / "run.yaml").write_text("questions: demo\n")
    (tmp_path / "unfiltered.yaml").write_text("questions: demo\nleakage_filter: false\n")
    environment = {"FORETELL_HOME": str(tmp_path), "METACULUS_TOKEN": "canary"}
    unset = dict.fromkeys(("FORETELL_SEARCH", "FORETELL_MODEL"), "")
    done = CliRunner().invoke(cli, words, env={**environment, **unset})
    assert isinstance(done.exception, InputError)
    assert problem in str(done.exception)


def test_an_option_without_effect_is_named_in_every_interface(interfaces: Interfaces) -> None:
    fields = {"question": QUESTION, "search": ["local"], "model": "none"}
    with pytest.raises(InputError, match="field search: has no effect without `model`"):
        interfaces.by_python(AskRequest, fields)
    with TestClient(create_app(interfaces.settings("web"), token=TOKEN), base_url="http://127.0.0.1") as client:
        answer = client.post("/api/ask", json=fields, headers={"authorization": f"Bearer {TOKEN}"})
    assert answer.status_code in (400, 422)
    assert "has no effect without" in answer.text
    text, worked = asyncio.run(run_tool(ServerPermissions(settings=interfaces.settings("mcp")), "ask", fields))
    assert not worked
    assert "search: has no effect without `model`" in text["problem"]


def test_python_errors_name_parameters() -> None:
    rows = [{"forecaster": name, "question": "q", "target": "yes", "p": 0.3} for name in ("A", "B")]
    other = [{"question": "other", "target": "yes", "outcome": 1}]
    known = [*other, {"question": "q", "target": "yes", "outcome": 0}]
    options = {"metric": "bi"}
    for call in (
        lambda: foretell.score(rows, known, **options),
        lambda: foretell.compare(rows, known, "A", "B", **options),
    ):
        with pytest.raises(InputError, match="field metric: the metric bi is now brier_index"):
            call()


def test_a_tree_is_the_same_in_every_interface(interfaces: Interfaces, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {"claim": "The harbour bridge is approved.", "leaves": 4, "rule": "average", "grounder": "plain", **MODEL}
    p = same(interfaces.all(TreeRequest, **fields))["p"]
    assert 0 < p < 1
    # It is found by its name, also on the page.
    settings = interfaces.settings("web")
    (listed,) = foretell.list_trees(settings=settings).trees
    assert (listed.claim, listed.p, listed.problem) == (fields["claim"], p, "")
    with TestClient(create_app(settings, token=TOKEN), base_url="http://127.0.0.1") as client:
        assert [entry["name"] for entry in client.get("/api/trees").json()["trees"]] == [listed.name]
    monkeypatch.setenv("FORETELL_HOME", str(settings.home))
    assert foretell.what_if(listed.name, set={"P0": 1.0}).p == 1


def test_what_if_is_the_same_in_every_interface(interfaces: Interfaces) -> None:
    file = interfaces.folder / "tree.json"
    file.write_text(json.dumps(TREE), encoding="utf-8")
    answer = same(interfaces.all(WhatIfRequest, tree=file, set={"P2": 1.0}, sd={"P1": 0.1}, tornado=True))
    assert answer["scenarios"][0]["p"] == pytest.approx(0.7)
    assert answer["spread"]["sd"] == pytest.approx(0.06)
    assert foretell.what_if(TREE, set={"P2": 1.0}).p == pytest.approx(0.7)


def test_scores_are_the_same_in_every_interface(interfaces: Interfaces) -> None:
    forecasts, outcomes = interfaces.folder / "f.csv", interfaces.folder / "o.csv"
    forecasts.write_text("forecaster,question,target,p\nA,q1,yes,0.2\nA,q2,yes,0.9\nB,q1,yes,0.4\nB,q2,yes,0.7\n")
    outcomes.write_text("question,target,outcome,source\nq1,yes,0,x\nq2,yes,1,y\n")
    fields = {
        "forecasts": forecasts,
        "outcomes": outcomes,
        "by": ["source"],
        "metric": "brier",
        "bootstrap": "draws=200",
    }
    result = same({"cli": interfaces.by_command(ScoreRequest, fields), "mcp": interfaces.by_tool(ScoreRequest, fields)})
    assert result["scores"][0]["forecaster"] == "A"


def test_a_run_is_the_same_in_every_interface(interfaces: Interfaces) -> None:
    questions = interfaces.folder / "questions.jsonl"
    row = {"id": "own/0", "text": QUESTION, "due": "2026-07-01", "closes": "2026-12-31"}
    questions.write_text(json.dumps({**row, "by": row.pop("closes")}) + "\n", encoding="utf-8")
    spec = {"questions": str(questions), "models": {"agent": "openai:gpt-5-mini"}, "search": ["local"], "trials": 2}
    file = interfaces.folder / "run.json"
    file.write_text(json.dumps(spec), encoding="utf-8")
    done = {
        "cli": interfaces.by_command(RunRequest, {"spec": file}),
        "python": interfaces.by_python(RunRequest, {"spec": spec}),
        "mcp": interfaces.by_tool(RunRequest, {"spec": spec}),
    }
    interfaces.by_web(RunRequest, {"spec": spec})
    for answer in done.values():
        answer.pop("server_spending", None)
    result = same(done)
    assert (result["done"], result["failed"], result["trials"]) == (2, 0, 2)
    assert same(interfaces.all(ShowRequest, run=result["run"]))["total"] == 2


def test_a_track_record_counts_the_same_in_every_interface(interfaces: Interfaces) -> None:
    spec = RunSpec(questions=QuestionsSpec(dataset="past.csv"), models={"agent": "openai:a"})
    for name in ("cli", "python", "web", "mcp"):
        with closing(RunStore(interfaces.settings(name).store)) as store:
            keep(store, spec, 1, right=True, each=10)
    last = f"{spec.id}-119"
    shown = same(interfaces.all(ShowRequest, run=spec.id, limit=2))
    assert "default rule" in shown["rule"]
    assert "The trials count" in same(interfaces.all(ShowRequest, run=spec.id, question=last))["report"]
    settings = interfaces.settings("web")
    with closing(RunStore(settings.store)) as store:
        row = store.run(spec.id)
        assert row is not None
        answers = list(store.answers(spec.id))
        final = {
            final_forecast.question_id: final_forecast.p
            for final_forecast in final_forecasts(store, row, answers, store.questions(spec.id))
        }
    (trial,) = (answer for answer in answers if answer.question_id == last)
    assert isinstance(trial, foretell.Forecast)
    assert final[last] != trial.p
    with TestClient(create_app(settings, token=TOKEN), base_url="http://127.0.0.1") as client:
        client.get(f"/login?token={TOKEN}")
        view = client.get(f"/api/runs/{spec.id}/questions/{last}").json()
        page = client.get(f"/runs/{spec.id}").text
    assert view["combination"]["p"] == final[last]
    assert "The trials count" in view["combination"]["stages"][-1]["text"]
    assert shown["rule"] in page
    assert "Combined answers" in page
    board = interfaces.by_command(ScoreRequest, {"sources": [spec.id]})
    assert {"agent", "agent, combined"} <= {entry["forecaster"] for entry in board["scores"]}


def test_environment_variables_set_defaults_in_every_interface(
    interfaces: Interfaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORETELL_MODEL", "openai:gpt-5-mini")
    monkeypatch.setenv("FORETELL_SEARCH", "local")
    fields = {"question": QUESTION, "as_of": "2026-07-01", "set": {"options.variant": "zero-shot"}}
    assert AskRequest.read(fields).search == ("local",)
    assert AskRequest.read({**fields, "search": ["none"]}).search == ()
    assert AskRequest.read({"question": QUESTION, "model": "none"}).model is None
    assert same(interfaces.all(AskRequest, **fields))["run"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"options": ["a", "a"]}, "named twice"),
        ({"closes": "soon"}, "ISO date"),
        ({"model": "anthropic:x"}, "ANTHROPIC_API_KEY"),
        ({"model": "openai:x", "search": ["altavista"]}, "search engine"),
        ({"model": "openai:x", "set": {"combine": "guess"}}, "no way to combine"),
        ({"model": "openai:x", "set": {"models.boss": "openai:x"}}, "no role 'boss'"),
        ({"model": "openai:x", "set": {"options.take_part": "never"}}, "did you mean take_apart"),
        ({"model": "openai:x", "set": {"sampling.temprature": 1}}, "did you mean temperature"),
        ({"model": "openai:x", "set": {"models.filtr": "openai:x"}}, "did you mean filter"),
        ({"model": "openai:x", "set": {"budget.quest": 1}}, "did you mean question"),
        ({"model": "compat:unheard@http://203.0.113.1/v1", "budget": 1.0}, "needs a known price"),
        ({"trials": 0}, "must be at least 1, not 0"),
        ({"price": 40.0}, "must be a probability such as 62% or 0.62, not 40"),
        ({"price": "about 40%"}, "must be a probability such as 62% or 0.62, not about 40%"),
        ({"question": " "}, "is empty"),
        ({"options": ["a"]}, "name at least two outcomes"),
        ({"as_of": "2999-01-01"}, "is in the future"),
    ],
)
def test_invalid_requests_are_refused_before_anything_is_stored(
    interfaces: Interfaces, wrong: dict[str, Any], message: str
) -> None:
    fields = {"question": QUESTION, **wrong}
    for way in (interfaces.by_command, interfaces.by_python):
        with pytest.raises(InputError, match=message):
            way(AskRequest, fields)
    with pytest.raises(AssertionError, match=message):
        interfaces.by_web(AskRequest, fields)
    assert foretell.list_runs(settings=interfaces.settings("cli")).total == 0
    assert foretell.list_runs(settings=interfaces.settings("web")).total == 0


@pytest.mark.parametrize("name", PYTHON_NAMES)
def test_every_field_is_an_option_and_a_parameter(name: str) -> None:
    operation = OPERATIONS[PYTHON_NAMES[name]]
    fields = set(operation.request.model_fields)
    offered = {parameter.name for parameter in operation_command(PYTHON_NAMES[name]).params}
    for_programs = {name for name, info in operation.request.model_fields.items() if not on_command_line(info)}
    assert offered - {"as_json", "out_files"} == fields - for_programs
    parameters = signature(getattr(foretell, name)).parameters
    assert set(parameters) - {"settings", "agent", "progress"} == fields
    for field, info in operation.request.model_fields.items():
        parameter, default = parameters[field], info.get_default(call_default_factory=True)
        assert (parameter.kind is Parameter.POSITIONAL_OR_KEYWORD) == bool(hints(info).get("argument")), field
        assert (parameter.default is Parameter.empty) == info.is_required(), field
        assert info.is_required() or parameter.default in (default, None), field


def test_every_operation_is_a_command_with_a_text() -> None:
    for words, operation in OPERATIONS.items():
        assert callable(operation.function), words
        assert operation_command(words).help, words
        assert all(info.description for info in operation.request.model_fields.values()), words


@pytest.mark.parametrize(
    ("page", "kind", "elsewhere"),
    [
        ("/ask", AskRequest, {"config", "plan", "watch", "once"}),  # sharpen is a button
        ("/trees", TreeRequest, {"config", "plan"}),
        ("/runs", RunRequest, {"where", "again", "pilot", "plan", "prompts", "only_failed"}),
    ],
)
def test_every_field_is_in_the_form(page: str, kind: Any, elsewhere: set[str], tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    Corpus(settings.corpus).close()
    with TestClient(create_app(settings, token=TOKEN), base_url="http://127.0.0.1") as client:
        client.get(f"/login?token={TOKEN}")
        text = client.get(page).text
    for name in set(kind.model_fields) - elsewhere:
        assert f'name="{name}"' in text, name


def test_every_option_of_the_agent_can_be_set(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, keys={"OPENAI_API_KEY": "k"})
    for field in dataclasses.fields(AgentOptions):
        value = list(field.default) if isinstance(field.default, tuple) else field.default
        chosen = {f"options.{field.name}": value}
        request = AskRequest.read({"question": QUESTION, "model": "openai:gpt-5-mini", "set": chosen})
        assert field.name in prepare_ask(request, settings).spec.options or value is None


@pytest.mark.parametrize("kind", [TreeRequest, TreeUpdateRequest])
def test_fields_for_tree_options_name_an_existing_option(kind: Any) -> None:
    options = {field.name for field in dataclasses.fields(TreeOptions)}
    keys = [key.removeprefix("options.") for key in kind.SETTING_KEYS.values() if key.startswith("options.")]
    assert keys
    assert set(keys) <= options


def test_results_have_text_html_and_data_frame(interfaces: Interfaces) -> None:
    result = foretell.ask(QUESTION, price="25%", model="none", settings=interfaces.settings("python"))
    assert "25 %" in str(result)
    assert "25 %" in result._repr_html_()
    assert "0.25" not in str(result)
    assert "<table>" in result._repr_html_()
    pandas = pytest.importorskip("pandas", reason="to_pandas needs it")
    assert list(result.to_pandas()["p"]) == [0.25]
    assert isinstance(result.to_pandas(), pandas.DataFrame)


def test_a_python_function_can_be_the_model(interfaces: Interfaces) -> None:
    prompts: list[str] = []

    def careful(prompt: str) -> dict[str, Any]:
        prompts.append(prompt)
        return {"reason": "It was discussed.", "probability": 0.3}

    fields: dict[str, Any] = {"as_of": "2026-07-01", "set": {"options.variant": "zero-shot", "combine": "mean"}}
    result = foretell.ask(QUESTION, model=careful, settings=interfaces.settings("python"), **fields)
    assert result.p["yes"] == pytest.approx(0.3)
    assert QUESTION in prompts[0]


def test_a_question_reaches_the_model_in_few_frames(interfaces: Interfaces, monkeypatch: pytest.MonkeyPatch) -> None:
    frames: list[list[str]] = []

    async def complete(_client: HttpModel, _request: Any) -> Any:
        frame, names = sys._getframe().f_back, list[str]()
        while frame is not None:
            if str(Path(foretell.__file__).parent) in frame.f_code.co_filename:
                names.append(f"{Path(frame.f_code.co_filename).name} {frame.f_code.co_name}")
            frame = frame.f_back
        frames.append(names)
        raise RuntimeError("far enough")

    monkeypatch.setattr(HttpModel, "complete", complete)
    with pytest.raises(InputError, match="far enough"):
        interfaces.by_command(AskRequest, {"question": QUESTION, **MODEL})
    assert len(frames[0]) <= 15, frames[0]
