"""The page docs/settings.md names every key, variable and column that a user can write, questions.md every field."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
import yaml

from foretell.arena.select import Schedule, SelectionRules
from foretell.arena.spec import ArenaSpec, CollectSpec, ContextSpec, EntrySpec, ResolveSpec
from foretell.data.clock import CLOCK_VARIABLE
from foretell.data.datasets.question_files import FIELDS
from foretell.forecasters.forecaster import make_forecaster
from foretell.forecasters.tree.proposition import Proposition, Tree, TreeOrigin
from foretell.models.names import MODEL_ROLES
from foretell.operations.requests.tournaments import SETTINGS
from foretell.operations.table import OPERATIONS
from foretell.plugins import load, names
from foretell.request import hints
from foretell.runs.grid import GRID_FIELDS
from foretell.runs.settings import KEYS, SETTINGS_TEMPLATE, read_settings_file
from foretell.runs.spec import (
    COMBINATIONS,
    DERIVED_SETTINGS,
    SAMPLING,
    BudgetSpec,
    QuestionsSpec,
    RunSpec,
    spec_from_mapping,
)
from foretell.scoring.columns import ROLES
from foretell.standing.settings import WatchSettings

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "settings.md").read_text(encoding="utf-8")
QUESTIONS = (DOCS / "questions.md").read_text(encoding="utf-8")
BUILT_IN = "foretell."
"""Start of the module of what ships with the package; other plug-ins document themselves."""


def section(title: str, page: str = PAGE) -> set[str]:
    """Return the code below a heading up to the next one, and every word in it."""
    body = re.split(r"\n##+ ", page.partition(f"# {title}\n")[2])[0]
    return {word for code in re.findall(r"`([^`]+)`", body) for word in (*re.findall(r"[\w-]+", code), code)}


def field_names(kind: type[Any], without: Iterable[str] = ()) -> set[str]:
    return {field.name for field in fields(kind) if field.init} - set(without)


def option_names(forecaster: str) -> set[str]:
    """Return the options of a forecaster as a run takes them."""
    made = load("forecasters", forecaster)
    return set(signature(made).parameters) - set(getattr(made, "not_options", ()))


RUN: Mapping[str, set[str]] = {
    "run": field_names(RunSpec, DERIVED_SETTINGS),
    "questions": field_names(QuestionsSpec, ["excluded"]),  # Counted when a run is prepared.
    "budget": field_names(BudgetSpec),
    "sampling": set(SAMPLING),
    "roles": set(MODEL_ROLES),
    "combine": set(COMBINATIONS),
}
ARENA: Mapping[str, set[str]] = {
    "arena": field_names(ArenaSpec),
    "collect": field_names(CollectSpec),
    "resolve": field_names(ResolveSpec),
    "select": field_names(SelectionRules),
    "schedule": field_names(Schedule),
    "context": field_names(ContextSpec),
    "entry": field_names(EntrySpec),
}
TREE: Mapping[str, set[str]] = {
    "tree": field_names(Tree, ["cache"]),
    "node": field_names(Proposition, ["id"]),  # The id is the key in `nodes`.
    "origin": field_names(TreeOrigin),
}


def defaults(heading: str) -> dict[str, Any]:
    """Return the defaults that the table with this heading states in parentheses after its keys."""
    table = PAGE.split(f"| {heading} | meaning |")[1].split("\n\n")[0]
    found: dict[str, Any] = {}
    for cell in (line.split("|")[1] for line in table.splitlines()[2:]):
        keys, _, stated = cell.partition(" (")
        names = re.findall(r"`([\w.]+)`", keys)
        value = yaml.safe_load(stated.strip(" )`")) if stated else None
        values = str(value).split(", ") if len(names) > 1 and isinstance(value, str) else [value] * len(names)
        found |= {
            name: yaml.safe_load(one) if isinstance(one, str) else one for name, one in zip(names, values, strict=True)
        }
    return found


def test_the_defaults_of_a_run_are_those_of_the_code() -> None:
    spec: Any = spec_from_mapping({"questions": "demo"})
    stated = {name: value for name, value in defaults("key (default)").items() if value not in (None, "required")}
    assert len(stated) >= 10
    for name, value in stated.items():
        default = getattr(spec, name)
        assert value == (list(default) if isinstance(default, tuple) else default), name


def test_the_defaults_of_the_agent_are_those_of_the_code() -> None:
    stated = {**defaults("option of `agent` (default)"), "seconds": None}  # 600, and more for a slow model.
    assert make_forecaster("agent", stated).build() == make_forecaster("agent", {}).build()


@pytest.mark.parametrize("part", RUN)
def test_the_page_has_every_key_of_a_run(part: str) -> None:
    assert RUN[part] <= section("A run")


FORECASTERS = [name for name in names("forecasters") if load("forecasters", name).__module__.startswith(BUILT_IN)]


@pytest.mark.parametrize("forecaster", FORECASTERS)
def test_the_page_has_every_option_of_a_forecaster(forecaster: str) -> None:
    assert option_names(forecaster) | {forecaster} <= section("Options of forecasters")


def test_the_page_has_every_key_of_a_grid() -> None:
    assert set(GRID_FIELDS) <= section("A grid")


def test_the_page_has_every_key_of_a_watched_question() -> None:
    assert set(WatchSettings.model_fields) <= section("A watched question")


@pytest.mark.parametrize("platform", SETTINGS)
def test_the_page_has_every_key_of_a_tournament(platform: str) -> None:
    assert set(SETTINGS[platform].model_fields) <= section("A tournament")


@pytest.mark.parametrize("part", ARENA)
def test_the_page_has_every_key_of_an_arena(part: str) -> None:
    assert ARENA[part] <= section("An arena")


def test_the_page_has_every_key_of_the_settings_file(tmp_path: Path) -> None:
    written = re.sub(r"^# (?=(\w+|\"[\w/]+\") = |\[)", "", SETTINGS_TEMPLATE, flags=re.M)
    (tmp_path / "settings.toml").write_text(written, encoding="utf-8")
    assert set(read_settings_file(tmp_path)) <= section("settings.toml")


def test_the_page_has_every_environment_variable() -> None:
    keys = {part for variables in KEYS.values() for variable in variables for part in variable.split("+")}
    requests = [*SETTINGS.values(), *(operation.request for operation in OPERATIONS.values())]
    read = {
        hints(info)["env"] for request in requests for info in request.model_fields.values() if "env" in hints(info)
    }
    assert keys | read | {"FORETELL_HOME", "FORETELL_DATABASE_URL", CLOCK_VARIABLE} <= section("Environment variables")


def test_the_page_has_every_column_of_a_table() -> None:
    assert set(ROLES) <= section("Tables")


def test_the_page_has_every_field_of_a_question_file() -> None:
    without_former = set(FIELDS) - {"exclusive"}
    assert without_former <= section("Your own questions", QUESTIONS)


@pytest.mark.parametrize("part", TREE)
def test_the_page_has_every_field_of_a_tree_file(part: str) -> None:
    assert TREE[part] <= section("Trees")
