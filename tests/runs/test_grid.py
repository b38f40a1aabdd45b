"""Grids: expansion of files, rejected files and plans."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient

import foretell
from foretell.operations.grid import run_grid
from foretell.operations.init_files import init
from foretell.operations.requests.runs import GridRequest
from foretell.operations.requests.setup import InitRequest
from foretell.questions.as_of import AsOf
from foretell.questions.codec import from_json, to_json
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.runs import event_loop
from foretell.runs.event_loop import run_sync
from foretell.runs.grid import factors_of_specs, grid_from_mapping, read_grid
from foretell.runs.runner import check_options
from foretell.runs.settings import Settings
from foretell.runs.spec import read_changes, spec_from_json, spec_from_mapping
from foretell.web.app import create_app

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "grids").glob("*.yaml"))
BASE = {"questions": "demo", "forecaster": "tree", "models": {"agent": "openai:gpt-5-mini"}}


def grid(**fields: Any) -> Any:
    return grid_from_mapping({"base": BASE, **fields}, Path("g.yaml"))


def test_grid_crosses_all_levels_and_any_field_can_vary():
    runs = grid(
        factors={
            "rule": ["linear", "logic"],
            "model": ["openai:gpt-5-mini", "openai:gpt-5.4"],
            "trials": [1, 3],
            "temperature": [0.1],
            "questions.limit": [5],
            "depth": {"flat": {"rounds": 1}, "deep": {"rounds": 2, "search": ["brave"]}},
        },
        without=[{"rule": "logic", "depth": "deep"}],
        also=[{"name": "alone", "forecaster": "prior", "models": {}}],
    ).runs()
    assert len(runs) == 2 * 2 * 2 * 2 - 4 + 1
    first = runs[0]
    assert first.factors == {
        "rule": "linear",
        "model": "openai:gpt-5-mini",
        "trials": "1",
        "temperature": "0.1",
        "questions.limit": "5",
        "depth": "flat",
    }
    spec = runs[1].spec
    assert (spec.options, spec.search, spec.questions.limit) == ({"rule": "linear", "rounds": 2}, ("brave",), 5)
    assert (spec.sampling, spec.models["agent"]) == ({"temperature": 0.1}, "openai:gpt-5-mini")
    assert (runs[-1].name, runs[-1].spec.forecaster) == ("alone", "prior")
    assert len({run.spec.id for run in runs}) == len(runs)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"factor": {}}, "field factor: is not a field of a grid"),
        ({"factors": {"rule": []}}, "field factors.rule: has no level"),
        ({"factors": {"rule": "linear"}}, "field factors.rule: expected a list"),
        ({"factors": {"rule": ["linear", "linear"]}}, "has the level 'linear' twice"),
        ({"factors": {"trials": [0]}}, "trials=0"),
        ({"factors": {"seed": [0, 1]}, "also": [{"seed": 1}]}, "are the same run"),
        ({"factors": {"seed": [0]}, "without": [{"seed": 7}]}, "seed has no level '7'"),
        ({"factors": {"seed": list(range(40)), "trials": list(range(1, 40))}}, "the grid has 1,560 runs"),
        ({"factors": {"seed": [0]}, "budget": -1}, "field budget: -1 is not an amount of dollars"),
        ({}, "the grid has no run"),
    ],
)
def test_invalid_input_is_rejected_with_its_reason(fields: dict[str, Any], message: str):
    with pytest.raises(InputError) as caught:
        grid(**fields).runs()
    assert message in str(caught.value)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_papers_ablations_are_grids_whose_options_all_exist(path: Path):
    runs = read_grid(path).runs()
    assert len(runs) >= 3
    for run in runs:
        check_options(run.spec)


def test_factors_of_runs_are_the_fields_in_which_they_differ():
    specs = {
        name: spec_from_mapping({**BASE, "options": options})
        for name, options in (("a", {}), ("b", {"rule": "logic"}), ("c", {"rule": "analytica-linear", "leaves": 5}))
    }
    assert factors_of_specs(specs) == {
        "a": {"rule": "analytica-linear", "leaves": "10"},
        "b": {"rule": "logic", "leaves": "10"},
        "c": {"rule": "analytica-linear", "leaves": "5"},
    }


def test_a_spec_of_an_earlier_version_keeps_its_meaning_and_its_id():
    new = spec_from_mapping({**BASE, "combine": "median"})
    assert (old := spec_from_mapping({**BASE, "aggregate": "median"})) == new
    assert old.id == new.id
    assert json.loads(new.to_json())["aggregate"] == "median"
    with pytest.raises(InputError, match="write only combine"):
        spec_from_mapping({**BASE, "aggregate": "median", "combine": "mean"})
    specs = {"a": spec_from_mapping({**BASE, "options": {"at_once": 3}}), "b": spec_from_mapping(BASE)}
    check_options(specs["a"])
    assert factors_of_specs(specs) == {"a": {"concurrency": "3"}, "b": {"concurrency": "20"}}
    assert {run.spec.combine for run in grid(factors={"aggregate": ["mean", "median"]}).runs()} == {"mean", "median"}


def test_specs_of_earlier_versions_are_read_and_keep_their_id():
    questions = {"dataset": "demo", "late_text": "cut", "quarantined": 2}
    old = spec_from_mapping({"questions": questions, "forecaster": "stack", "clairvoyant": True})
    assert (old.forecaster, old.leakage_filter) == ("model_free", False)
    assert (old.questions.leaky_questions, old.questions.excluded) == ("redact", 2)
    stored = json.loads(old.to_json())
    assert (stored["forecaster"], stored["clairvoyant"]) == ("stack", True)
    assert (stored["questions"]["late_text"], stored["questions"]["quarantined"]) == ("cut", 2)
    assert spec_from_json(stored) == old
    assert read_changes({"clairvoyant": "true", "questions.late_text": "quarantine"}) == {
        "leakage_filter": False,
        "questions.leaky_questions": "exclude",
    }
    with pytest.raises(InputError, match="clairvoyant: is not true or false"):
        spec_from_mapping({"questions": "demo", "clairvoyant": 3})


def test_forecasts_of_earlier_versions_are_read():
    forecast = Forecast(
        question_id="q", forecaster="agent", as_of=AsOf.day("2026-01-01"), p={"yes": 0.2}, ending="fallback"
    )
    assert from_json(to_json(forecast).replace("fallback", "degraded"), Forecast) == forecast


def test_first_grid_runs_without_a_model(tmp_path: Path):
    file = tmp_path / "grid.yaml"
    init(InitRequest.read({"kind": "grid", "path": file}))
    assert {factor.name for factor in read_grid(file).factors} == {"forecaster"}
    with pytest.raises(InputError, match="already exists"):
        init(InitRequest.read({"kind": "grid", "path": file}))
    # With a model, on a machine without any key: the price is shown and nothing is sent.
    bare = Settings(home=tmp_path / "bare")
    models = {"forecaster": "tree", "models": {"agent": "openrouter:openai/gpt-5-mini"}, "search": ["gdelt"]}
    base = {"questions": {"dataset": "demo", "limit": 10}, **models}
    priced = {"base": base, "factors": {"rule": ["linear", "logic"], "leaves": [5, 10], "seed": [0, 1]}, "budget": 5.0}
    file.write_text(yaml.safe_dump(priced))
    first = run_sync(run_grid(GridRequest.read({"grid": file, "plan": True}), bare), event_loop.run)
    assert (len(first.planned), first.budget) == (8, 5.0)
    assert first.expected > 0
    with pytest.raises(InputError, match="needs a key"):
        run_sync(run_grid(GridRequest.read({"grid": file}), bare), event_loop.run)
    body = {"base": {"questions": {"dataset": "demo", "limit": 30}}, "factors": {"forecaster": ["auto", "knn"]}}
    file.write_text(yaml.safe_dump({**body, "factors": {"forcaster": ["auto"]}}))
    with pytest.raises(InputError, match="has no option 'forcaster'"):
        run_sync(run_grid(GridRequest.read({"grid": file, "plan": True}), bare), event_loop.run)
    file.write_text(yaml.safe_dump({**body, "name": "baselines"}))
    settings = Settings(home=tmp_path / "home")
    plan = run_sync(run_grid(GridRequest.read({"grid": file, "plan": True}), settings), event_loop.run)
    assert (plan.expected, [row.done for row in plan.planned]) == (0.0, [0, 0])
    done = run_sync(run_grid(GridRequest.read({"grid": file}), settings), event_loop.run)
    assert [row.done for row in done.planned] == [30, 30]
    assert done.study is not None
    change = done.study.table("One factor at a time")
    assert [row.name for row in change.rows] == ["forecaster: auto → knn"]
    saved = foretell.grid(settings=settings)
    named = foretell.grid("baselines", settings=settings)
    assert (named.to_dict(), named.rows(), str(named)) == (saved.to_dict(), saved.rows(), str(saved))
    assert named.stored == saved.grids[0] == done.stored
    assert [(grid_run.state, grid_run.done, grid_run.factors) for grid_run in saved.grids[0].runs] == [
        ("done", 30, {"forecaster": "auto"}),
        ("done", 30, {"forecaster": "knn"}),
    ]
    with TestClient(create_app(settings, token="t" * 20), base_url="http://127.0.0.1") as client:
        assert '<a href="/runs?grid=baselines">baselines</a>' in client.get("/runs").text
        page = client.get("/runs?grid=baselines").text
        assert client.get("/runs?grid=nobody").status_code == 404
    for grid_run in saved.grids[0].runs:
        assert grid_run.brier_index is not None
        assert f"{grid_run.brier_index['estimate']:.1f}" in page
        assert f"/runs/{grid_run.run}" in page
    assert "Best so far: forecaster=auto" in page
    with pytest.raises(InputError, match="no grid"):
        foretell.grid("nobody", settings=settings)
    file.write_text(
        yaml.safe_dump({"base": {**BASE, "questions": {"dataset": "demo", "limit": 2}}, "factors": {"seed": [0]}})
    )
    keyed = Settings(home=tmp_path / "home", keys={"OPENAI_API_KEY": "x"})
    with pytest.raises(InputError, match="this may cost money"):
        run_sync(run_grid(GridRequest.read({"grid": file}), keyed), event_loop.run)
