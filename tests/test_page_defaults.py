"""The defaults that docs/asking.md and docs/agent.md state are those of the code."""

import re
from pathlib import Path
from typing import Any

import yaml

from foretell.forecasters import make_forecaster
from foretell.runs import QuestionsSpec, RunSpec

DOCS = Path(__file__).parents[1] / "docs"


def defaults(page: str, heading: str) -> dict[str, Any]:
    """Return names and defaults of the table whose first column has this heading."""
    table = (DOCS / page).read_text(encoding="utf-8").split(f"| {heading} | default |")[1].split("\n\n")[0]
    rows = [line.split("|") for line in table.splitlines()[2:]]
    return {name: yaml.safe_load(row[2].strip(" `")) for row in rows for name in re.findall(r"`([\w.]+)`", row[1])}


def test_defaults_of_a_run_are_those_of_the_code() -> None:
    spec: Any = RunSpec(questions=QuestionsSpec(dataset="demo"))
    stated = defaults("asking.md", "key")
    assert stated.pop("questions") == "required"
    for name, value in stated.items():
        section, _, key = name.partition(".")
        default = getattr(getattr(spec, section), key) if key else getattr(spec, section)
        assert value == (list(default) if isinstance(default, tuple) else default), name


def test_defaults_of_the_agent_are_those_of_the_code() -> None:
    assert make_forecaster("agent", defaults("agent.md", "option")).build() == make_forecaster("agent", {}).build()
