"""Every prompt as it is sent, in files that a person can read.

After a change of wording, write them anew with `FORETELL_WRITE_SNAPSHOTS=1 pytest` on this file, and read what changed.
"""

import asyncio
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from fakes.prompts import ExamplePrompt, example_prompts, example_questions
from foretell.operations import prompts_of
from foretell.runs import QuestionsSpec, RunSpec, Settings

FOLDER = Path(__file__).with_name("snapshots")
MOST_TOKENS = 2_000
"""Of a question with its tools, at 3.5 characters each (`models/budget.py`)."""
KINDS = tuple(example_questions())


@pytest.fixture(scope="module")
def prompts() -> tuple[ExamplePrompt, ...]:
    return asyncio.run(example_prompts())


def test_prompts_are_as_they_were_last_read(prompts: tuple[ExamplePrompt, ...]) -> None:
    texts: dict[str, str] = defaultdict(str)
    for one in prompts:
        texts[f"{one.kind}_{one.role}.txt"] += f"===== {one.form}, about {one.tokens:,} tokens =====\n\n{one.text}\n"
    if os.environ.get("FORETELL_WRITE_SNAPSHOTS"):
        FOLDER.mkdir(exist_ok=True)
        for name, text in texts.items():
            (FOLDER / name).write_text(text, encoding="utf-8")
    stored = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.txt")}
    assert stored == texts


@pytest.mark.parametrize("kind", KINDS)
def test_a_usual_prompt_with_its_tools_is_short(prompts: tuple[ExamplePrompt, ...], kind: str) -> None:
    assert {one.name: one.tokens for one in prompts if one.kind == kind and one.tokens > MOST_TOKENS} == {}


@pytest.mark.parametrize("kind", KINDS)
def test_the_belief_is_defined_once(prompts: tuple[ExamplePrompt, ...], kind: str) -> None:
    for one in prompts:
        if one.kind == kind and one.role == "agent":
            assert one.text.count('"open_questions":') <= 1, one.name


def test_only_what_is_true_of_a_question_is_said(prompts: tuple[ExamplePrompt, ...]) -> None:
    for one in prompts:
        if one.role not in ("agent", "context", "judge"):
            continue
        asked = one.text.partition("----- user -----")[2].partition("----- tool")[0]
        assert ("market is to close" in asked or "Trading is to end" in asked) <= (one.kind == "market"), one.name
        assert ("Begin with fetch_wikipedia" in asked) <= (one.kind == "wikipedia"), one.name
        assert ("sum to 1" in asked) <= (one.kind in ("many", "options", "separate")), one.name


@pytest.mark.parametrize("form", ["full", "nobelief", "zero-shot", "batch", "full by schema"])
def test_a_number_has_its_day_and_its_unit(prompts: tuple[ExamplePrompt, ...], form: str) -> None:
    (text,) = [one.text for one in prompts if (one.kind, one.role, one.form) == ("number", "agent", form)]
    assert "2026-09-30, in 212 days" in text
    assert "The unit is: seats." in text


def test_the_reason_comes_before_the_number(prompts: tuple[ExamplePrompt, ...]) -> None:
    for one in prompts:
        shape = one.text.rpartition("----- ")[2]
        if one.role in ("agent", "context", "judge"):
            first = min(shape.find(f'"{word}"') for word in ("reason", "rationale") if f'"{word}"' in shape)
            fields = ("p", "percent", "quantiles", "probabilities", "answers")
            assert first < min(shape.find(f'"{word}"') for word in fields if f'"{word}"' in shape), one.name


def shown(tmp_path: Path, **fields: Any) -> dict[str, str]:
    """The prompts of a spec about a question of one's own, by role."""
    spec = RunSpec(questions=QuestionsSpec(dataset="own.jsonl"), models={"agent": "openai:x"}, **fields)
    made = asyncio.run(prompts_of(spec, example_questions()["own"], Settings(home=tmp_path)))
    assert all(prompt.tokens and prompt.model == "openai:x" for prompt in made)
    return {prompt.role: prompt.text for prompt in made}


def test_the_prompts_of_a_spec_are_those_of_its_roles_and_tools(tmp_path: Path) -> None:
    live = shown(tmp_path, mode="live", search=("brave",))
    assert list(live) == ["agent", "summariser"]
    assert "----- tool web_search -----" in live["agent"]
    past = shown(tmp_path, mode="backtest", trials=3, combine="judged")
    assert list(past) == ["agent", "filter", "judge"]
    assert "web_search" not in past["agent"]
    grown = shown(tmp_path, mode="live", forecaster="tree", options={"grounder": "plain"})
    assert list(grown) == ["analyzer", "grounder", "synthesizer"]
    assert shown(tmp_path, forecaster="always") == {}
    assert not list(tmp_path.iterdir())
