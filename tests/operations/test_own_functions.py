"""Functions of a program work whose types are imported only for type checkers."""

import sys
from pathlib import Path
from typing import Any

import pytest

import foretell
from foretell import Agent, AsOf
from foretell.types import AgentOptions, Settings

# From Python 3.14 on, types are evaluated when they are asked for; before, this import makes them so.
LATE = "" if sys.version_info >= (3, 14) else "from __future__ import annotations\n"
SOURCE = """
def guess(asked: types.Request) -> Reply:
    assert asked.messages[0].text
    return {"probability": 0.3, "reason": "It rains on one day in three."}

def half(question: Question, context: Context) -> Answer:
    assert context.as_of == question.as_of
    return 0.5

def rainy_days(town: Town, as_of: AsOf) -> str:
    return "12"

def findings(inputs: DataInputs, options: TableOptions) -> StudyResult:
    return None
"""


@pytest.fixture
def own() -> dict[str, Any]:
    names: dict[str, Any] = {"AsOf": AsOf}
    exec(compile(LATE + SOURCE, "own.py", "exec", dont_inherit=True), names)
    return names


def test_models_and_forecasters_need_no_types_that_can_be_found(own: dict[str, Any], tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", network=False)
    asked = foretell.ask("Will it rain?", closes="2099-07-01", model=own["guess"], settings=settings)
    assert asked.p == {"yes": 0.3}
    done = foretell.backtest(own["half"], "demo", limit=1)
    assert {p for each in done.forecasts for p in each.p.values()} == {0.5}


def test_tools_and_studies_name_the_type_that_cannot_be_found(own: dict[str, Any], tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", network=False)
    agent = Agent(own["guess"], tools=[own["rainy_days"]], options=AgentOptions(steps=2))
    with pytest.raises(foretell.InputError, match="the tool 'rainy_days' cannot be read: name 'Town' is not defined"):
        foretell.ask("Will it rain?", closes="2099-07-01", agent=agent, settings=settings)
    with pytest.raises(foretell.InputError, match=r"the study 'findings' cannot be read: name '\w+' is not"):
        foretell.study(own["findings"], settings=settings)
