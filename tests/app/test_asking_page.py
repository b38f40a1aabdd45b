"""docs/asking.md names every field of a spec and every option of the agent, as they are."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from foretell.forecasters import make_forecaster
from foretell.questions import InputError
from foretell.runs import BudgetSpec, QuestionsSpec, RunSpec, read_spec

PAGE = (Path(__file__).parents[2] / "docs" / "asking.md").read_text(encoding="utf-8")


def rows(heading: str) -> dict[str, str]:
    """Names and defaults of the table whose first column is called so."""
    table = PAGE.split(f"| {heading} | default |")[1].split("\n\n")[0]
    cells = [line.split("|") for line in table.splitlines()[2:]]
    return {name: cell[2].strip() for cell in cells for name in re.findall(r"`([\w.]+)`", cell[1])}


def test_every_field_of_a_spec_is_there():
    # Efforts are chosen when a run is made, and refused in a file.
    names = {field.name for field in dataclasses.fields(RunSpec)} - {"budget", "efforts"}
    names |= {f"questions.{field.name}" for field in dataclasses.fields(QuestionsSpec)}
    names |= {f"budget.{field.name}" for field in dataclasses.fields(BudgetSpec)}
    assert set(rows("field")) == names


def test_every_option_of_the_agent_is_there_and_its_default_is_accepted():
    documented = {name: yaml.safe_load(default.strip("`")) for name, default in rows("option").items()}
    assert make_forecaster("agent", documented).build() == make_forecaster("agent", {}).build()
    with pytest.raises(InputError) as refused:
        make_forecaster("agent", {"no such": 1})
    known = re.search(r"known: (.+)\)", str(refused.value))
    assert known is not None
    assert set(known[1].split(", ")) == set(documented)


def test_plain_defaults_are_those_of_the_code():
    spec: Any = RunSpec(questions=QuestionsSpec(dataset="demo"))
    told = rows("field")
    for name in ("forecaster", "trials", "combine", "mode", "strict", "clairvoyant", "seed"):
        assert yaml.safe_load(told[name].strip("`")) == getattr(spec, name), name


def test_the_spec_on_the_page_can_be_read(tmp_path: Path):
    for n, text in enumerate(re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.S)):
        path = tmp_path / f"{n}.yaml"
        path.write_text(text, encoding="utf-8")
        assert read_spec(path).trials == 3
