"""Every feature can be reached as tests/features.yaml says, and has a test of its own."""

import inspect
import re
import shlex
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import pytest
import yaml

import foretell
from foretell import plugins
from foretell.arena.spec import ArenaSpec
from foretell.cli import commands
from foretell.cli.main import cli
from foretell.mcp.tools import TOOLS
from foretell.models.names import MODEL_ROLES
from foretell.questions.errors import InputError
from foretell.runs import spec
from foretell.runs.settings import Settings
from foretell.tools.tool import PREFIXES
from foretell.web.app import create_app

HERE = Path(__file__).parent
FEATURES: dict[str, dict[str, Any]] = yaml.safe_load((HERE / "features.yaml").read_text(encoding="utf-8"))
PLAN = HERE.parents[1] / "shared" / "spec" / "features.md"
PLANNED_LATER = {f"N{number}" for number in range(5, 12)} - {"N8", "N10"}


class RequestRead(Exception):
    """A command line was understood; what it asks for is not done."""


def command_problem(line: str, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """Return why a command line is refused before any work begins; None if it is accepted."""
    read = commands.read_request

    def read_only(*arguments: Any) -> None:
        read(*arguments)
        raise RequestRead

    monkeypatch.setattr(commands, "read_request", read_only)
    try:
        cli.main(shlex.split(line)[1:], standalone_mode=False)
    except RequestRead:
        return None
    except (click.ClickException, InputError) as error:
        return str(error)
    return "nothing was asked for"


def settings() -> Iterator[str]:
    """Yield every setting of a run; those of a section have its name and a dot before them."""
    yield from (field.name for field in fields(spec.RunSpec))
    yield from (f"questions.{field.name}" for field in fields(spec.QuestionsSpec))
    yield from (f"budget.{field.name}" for field in fields(spec.BudgetSpec))
    yield from (f"sampling.{name}" for name in spec.SAMPLING)
    yield from (f"models.{role}" for role in MODEL_ROLES)
    for name in plugins.BUILT_IN["forecasters"]:
        yield from (f"options.{option}" for option in inspect.signature(plugins.load("forecasters", name)).parameters)


def pages() -> set[str]:
    with TemporaryDirectory() as home:
        routes = create_app(Settings(home=Path(home))).router.routes
    return {re.sub(r":path", "", getattr(route, "path", "")) for route in routes}


KNOWN = {
    "page": pages,
    "setting": lambda: set(settings()),
    "tool": lambda: set(PREFIXES),
    "mcp": lambda: {tool.name for tool in TOOLS},
    "arena": lambda: {field.name for field in fields(ArenaSpec)},
}
"""How a feature may be reached, besides commands and Python → the names that there are."""


@pytest.mark.parametrize(("id", "way"), [(id, way) for id, feature in FEATURES.items() for way in feature["reach"]])
def test_a_feature_is_reached_as_stated(id: str, way: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path))
    kind, _, name = way.partition(" ")
    if kind == "foretell":
        assert command_problem(way, monkeypatch) is None
    elif kind.startswith("foretell."):
        assert hasattr(foretell, kind.removeprefix("foretell."))
    else:
        assert name in KNOWN[kind]()


@pytest.mark.parametrize("id", FEATURES)
def test_a_feature_has_a_test(id: str) -> None:
    assert (HERE / FEATURES[id]["proof"]).is_file()


def test_no_planned_feature_is_missing() -> None:
    if not PLAN.is_file():
        pytest.skip(f"needs {PLAN}")
    planned = re.findall(r"^\| ([A-Z]\d+)\b", PLAN.read_text(encoding="utf-8"), re.M)
    assert set(planned) - PLANNED_LATER == set(FEATURES)
