"""Grids: what a file expands to, what is refused, and what a plan says."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient

import foretell
from foretell.operations import GridRequest, InitRequest, init, run_grid
from foretell.questions import InputError
from foretell.runs import (
    Settings,
    check_options,
    event_loop,
    factors_of_specs,
    grid_from_mapping,
    read_grid,
    run_sync,
    spec_from_mapping,
)
from foretell.web import create_app

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "grids").glob("*.yaml"))
BASE = {"questions": "demo", "forecaster": "tree", "models": {"agent": "openai:gpt-5-mini"}}


def grid(**fields: Any) -> Any:
    return grid_from_mapping({"base": BASE, **fields}, Path("g.yaml"))


def test_every_level_is_tried_with_every_other_and_any_field_can_vary():
    found = grid(
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
    assert len(found) == 2 * 2 * 2 * 2 - 4 + 1
    first = found[0]
    assert first.factors == {
        "rule": "linear",
        "model": "openai:gpt-5-mini",
        "trials": "1",
        "temperature": "0.1",
        "questions.limit": "5",
        "depth": "flat",
    }
    spec = found[1].spec
    assert (spec.options, spec.search, spec.questions.limit) == ({"rule": "linear", "rounds": 2}, ("brave",), 5)
    assert (spec.sampling, spec.models["agent"]) == ({"temperature": 0.1}, "openai:gpt-5-mini")
    assert (found[-1].name, found[-1].spec.forecaster) == ("alone", "prior")
    assert len({run.spec.id for run in found}) == len(found)


@pytest.mark.parametrize(
    ("fields", "told"),
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
def test_what_is_refused(fields: dict[str, Any], told: str):
    with pytest.raises(InputError) as caught:
        grid(**fields).runs()
    assert told in str(caught.value)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_papers_ablations_are_grids_whose_options_all_exist(path: Path):
    runs = read_grid(path).runs()
    assert len(runs) >= 3
    for run in runs:
        check_options(run.spec)


def test_factors_of_runs_are_the_fields_in_which_they_differ():
    specs = {
        name: spec_from_mapping({**BASE, "options": options})
        for name, options in (("a", {}), ("b", {"rule": "logic"}), ("c", {"rule": "linear", "leaves": 5}))
    }
    assert factors_of_specs(specs) == {
        "a": {"rule": "linear", "leaves": "10"},
        "b": {"rule": "logic", "leaves": "10"},
        "c": {"rule": "linear", "leaves": "5"},
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


def test_a_first_grid_is_commented_planned_and_carried_out_without_a_model(tmp_path: Path):
    file = tmp_path / "grid.yaml"
    init(InitRequest.read({"kind": "grid", "path": file}))
    assert {factor.name for factor in read_grid(file).factors} == {"forecaster"}
    with pytest.raises(InputError, match="is there already"):
        init(InitRequest.read({"kind": "grid", "path": file}))
    # With the lines that name a model, on a machine without any key: the price can be seen, and nothing is asked.
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
    assert (plan.expected, [one.done for one in plan.planned]) == (0.0, [0, 0])
    done = run_sync(run_grid(GridRequest.read({"grid": file}), settings), event_loop.run)
    assert [one.done for one in done.planned] == [30, 30]
    assert done.study is not None
    change = done.study.table("One factor at a time")
    assert [row.name for row in change.rows] == ["forecaster: auto → knn"]
    kept = foretell.grid(settings=settings)
    assert isinstance(kept, foretell.GridList)
    assert foretell.grid("baselines", settings=settings).to_dict() == kept.to_dict()
    assert [(cell.state, cell.done, cell.factors) for cell in kept.grids[0].cells] == [
        ("done", 30, {"forecaster": "auto"}),
        ("done", 30, {"forecaster": "knn"}),
    ]
    with TestClient(create_app(settings, token="t" * 20), base_url="http://127.0.0.1") as client:
        page = client.get("/grids/baselines").text
        assert client.get("/api/grids").json() == json.loads(kept.to_json())
        assert client.get("/grids/nobody").status_code == 404
    for cell in kept.grids[0].cells:
        assert cell.brier_index is not None
        assert f"{cell.brier_index['estimate']:.1f}" in page
        assert f"/runs/{cell.run}" in page
    assert "Best so far: forecaster=auto" in page
    with pytest.raises(InputError, match="no grid"):
        foretell.grid("nobody", settings=settings)
    file.write_text(
        yaml.safe_dump({"base": {**BASE, "questions": {"dataset": "demo", "limit": 2}}, "factors": {"seed": [0]}})
    )
    keyed = Settings(home=tmp_path / "home", keys={"OPENAI_API_KEY": "x"})
    with pytest.raises(InputError, match="this may cost money"):
        run_sync(run_grid(GridRequest.read({"grid": file}), keyed), event_loop.run)
