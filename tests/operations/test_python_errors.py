"""Wrong arguments of Python functions raise `InputError`, whose text names parameters and no flags."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

import foretell
from foretell import Agent, InputError, Question, Target
from foretell.request import COMMAND
from foretell.types import AgentOptions

# Types are checked in test_types.py; here are the values that only a program without types can pass.
f: Any = foretell
ROWS = [
    {"forecaster": name, "question": question, "p": p, "outcome": 1}
    for name, p in (("a", 0.8), ("b", 0.3))
    for question in ("x", "y")
]
SNOW = Question(id="snow", source="own", text="Will it snow?", due="2026-01-10", targets=[Target(id="yes")])
RUN = {"questions": {"dataset": "demo", "limit": 2}, "forecaster": "prior"}


def guess(prompt: str) -> dict[str, float]:
    return {"probability": 0.4}


def nothing(inputs: object) -> None:
    """Find nothing."""


WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: f.score(None), "forecasts: cannot read NoneType as a table"),
    (lambda: f.score([]), "forecasts: the table has no rows"),
    (lambda: f.score([{"forecaster": "a", "question": "x", "p": 0.4}]), '`columns={"outcome": COLUMN}`, or give a'),
    (lambda: f.score([{"forecaster": "a", "question": "x", "p": 0.4}]), "`outcomes=FILE`"),
    (
        lambda: f.score(ROWS, columns=["p"]),
        "field columns: is ['p']; expected a dictionary from text to text or a list",
    ),
    (lambda: f.score(ROWS, columns={"p": "prob"}), "field columns: there is no column 'prob'"),
    (lambda: f.score(ROWS, metrics="brierr"), "field metrics: unknown metric 'brierr'"),
    (lambda: f.score(ROWS, missing="half"), "field missing: is 'half'; expected a number or None"),
    (
        lambda: f.score(ROWS, resampling={"draws": 10}),
        "field resampling: is {'draws': 10}; expected a Resampling, such as foretell",
    ),
    (lambda: f.score(ROWS, bettor=3), "field bettor: is 3; expected a Bettor, such as foretell.metrics.B"),
    (lambda: f.score(f.backtest("prior", [SNOW])), "every question failed, so there is no forecast (no outcome"),
    (lambda: f.score(ROWS, by=3), "field by: is 3; expected text or a list, each entry text"),
    (lambda: f.score(ROWS, metrics=None), "field metrics: is None; expected text or a list, each entry text"),
    (lambda: f.score(ROWS, baselines="no"), "field baselines: is 'no'; expected True or False"),
    (lambda: f.compare(ROWS, None, 1, 2), "field first: is 1; expected text"),
    (lambda: f.read_tree(3), "field path: is 3; expected text or a Path"),
    (lambda: f.open_benchmark(3), "field name: is 3; expected text"),
    (lambda: f.Agent(3), "field model: 3 is not a model (write"),
    (lambda: f.Agent(guess, trials="two"), "field trials: is 'two'; expected a whole number or None"),
    (lambda: f.compare(f.read_table(ROWS), ROWS, "a", "b"), "give them to read_table"),
    (
        lambda: f.read_table(ROWS, trials="median"),
        "field trials: is 'median'; expected 'mean', 'logit-mean' or",
    ),
    (lambda: f.score([{"question": "x", "outcome": 1, "a": 0.1, "b": 20}]), '`columns={"p": "a"}`'),
    (lambda: f.read_table([{"who": "a", "z": 1}]), '`columns={"p": COLUMN}`'),
    (lambda: f.backtest("prior", 3), "3 is not a Question"),
    (lambda: f.backtest("prior", [SNOW], progress=3), "field progress: must be a function"),
    (lambda: f.ask("Who will win?"), 'name what may happen with `options`, or give the range of a number: `range="LOW'),
    (lambda: f.ask("How many?", range=(0, 10)), 'add `model="openai:NAME"`, anthropic:NAME'),
    (lambda: f.ask("How many?", range=5), "field range: is not a range"),
    (lambda: f.ask("Will it rain?", as_of="2099-01-01"), "in the future: `as_of` must be a past day"),
    (lambda: f.ask("Will it rain?", trials=3), "field trials: has no effect without `model` or `config` or `set`"),
    (lambda: f.ask("Will it rain?", search=["brave"], model=guess), 'set BRAVE_API_KEY, or use `search=["local"]`'),
    (lambda: f.ask("Will it rain?", model=guess, set={"models.agent": "openai:x"}), "is the same as `model`"),
    (lambda: f.ask("Will it rain?", config="bad.yaml", model=guess), "bad.yaml, row 2: is not YAML"),
    (lambda: f.ask("Will it rain?", watch=True, plan=True), "field plan: has no effect with `watch`"),
    (lambda: Agent(guess, options=AgentOptions(steps=0)), "AgentOptions, field steps: is 0; expected at least 1"),
    (lambda: f.run(RUN, prompts=True), "field prompts: has no effect without `plan`"),
    (lambda: f.grid(3), "field grid: must be a path"),
    (lambda: f.grow_tree("It.", model=guess, set={"trials": 3}), '`trials` sets how often .* `set={"trials": 1}`'),
    (
        lambda: f.grow_tree("It rains.", model=guess, set={"options.deep_model": "openai:a"}),
        'without `grounder="deep"` or auto',
    ),
    (lambda: f.delete_runs([]), "field runs: is empty"),
    (lambda: f.record(confirm="yes"), "field confirm: has no effect without `id`"),
    (lambda: f.enter_tournament("forecastbench", trials=3), "add `model`, or leave this out"),
    (lambda: f.submit_forecasts("nothing.json", to="metaculus"), "nothing.json: no such file"),
    (
        lambda: f.submit_forecasts("a", to="forecastbench", comment="public"),
        'without `to="metaculus"` or `to="prophet-arena"`',
    ),
    (lambda: f.audit(), "give `run`, or `filter=[MODEL]` without `run`"),
    (lambda: f.study(3), "field name: must be the name of a study or a function"),
    (lambda: f.study(nothing), "returned NoneType, not a StudyResult"),
    (
        lambda: f.study("trials"),
        "give `sources`, a file of forecasts, `forecasts=FILE` with `outcomes=FILE`, or `grid=",
    ),
    (lambda: f.study("trials", forecasts=ROWS, sources=["a.csv"]), "is given in addition to `forecasts`"),
    (lambda: f.study("ablation", forecasts=ROWS), "give `grid=FILE`, several runs"),
    (lambda: f.study("consistency"), "give `runs` or `arena=ARENA`"),
    (lambda: f.study("reasoning", runs=["a"]), "give `model=MODEL`, or `sheet=FILE`"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "settings.toml").write_text("network = false\n", encoding="utf-8")
    (tmp_path / "bad.yaml").write_text("questions: [\n", encoding="utf-8")
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))
    for name in ("FORETELL_MODEL", "FORETELL_SEARCH", "FORETELL_DATABASE_URL", "BRAVE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def test_wrong_arguments_are_refused_in_words_of_python() -> None:
    wrong = dict[str, str]()
    for call, expected in WRONG:
        try:
            said = f"returned {call()!r}"
        except InputError as error:
            said = str(error)
        if not re.search(expected.replace("(", r"\(").replace("{", r"\{").replace("[", r"\["), said) or _flags(said):
            wrong[expected] = said
    assert wrong == {}


def _flags(text: str) -> list[str]:
    """Return the flags outside whole commands."""
    return cast("list[str]", re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", COMMAND.sub("", text)))


def test_notes_of_results_name_parameters() -> None:
    plan = foretell.ask("Will it rain in Oslo on 1 July 2099?", closes="2099-07-01", price=0.3, model=guess, plan=True)
    assert '`set={"combine": "logit-mean"}` leaves the price out' in " ".join(plan.notes)
    assert not any(map(_flags, plan.notes))
    asked = foretell.ask("Will the red or the blue team win?", price=0.3)
    assert "(name the outcomes with `options`)" in " ".join(asked.notes)


def test_a_table_that_was_read_once_is_scored_as_if_it_were_read_then() -> None:
    named = [{"who": row["forecaster"], "question": row["question"], "p": row["p"], "outcome": 1} for row in ROWS]
    table = foretell.read_table(named, columns={"forecaster": "who"}, weights="question")
    assert foretell.score(table) == foretell.score(named, columns={"forecaster": "who"}, weights="question")
    done = foretell.backtest(lambda question: 0.5, "demo", limit=3)
    assert foretell.score(foretell.read_table(done)).scores == foretell.score(done).scores
