"""Snapshots of all prompts.

After a change of a prompt, update them with `FORETELL_WRITE_SNAPSHOTS=1 pytest` on this file, and review the diff.
"""

import asyncio
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from fakes.prompts import ExamplePrompt, example_prompts, example_questions
from foretell.models.journal import Journal
from foretell.runs.prompts import prompts_of
from foretell.runs.settings import Settings
from foretell.runs.spec import QuestionsSpec, RunSpec

FOLDER = Path(__file__).with_name("snapshots")
MOST_TOKENS = 2_000
"""Of a question with its tools, at 3.5 characters each (`models/budget.py`)."""
MOST_TOKENS_OF_SCOUT = 2_300
"""The scout has two tools more, and its prompt holds what is known before research."""
KINDS = tuple(example_questions())


@pytest.fixture(scope="module")
def prompts() -> tuple[ExamplePrompt, ...]:
    return asyncio.run(example_prompts())


def test_prompts_match_their_snapshots(prompts: tuple[ExamplePrompt, ...]) -> None:
    texts: dict[str, str] = defaultdict(str)
    for prompt in prompts:
        texts[f"{prompt.kind}_{prompt.role}.txt"] += (
            f"===== {prompt.form}, about {prompt.tokens:,} tokens =====\n\n{prompt.text}\n"
        )
    if os.environ.get("FORETELL_WRITE_SNAPSHOTS"):
        FOLDER.mkdir(exist_ok=True)
        for name, text in texts.items():
            (FOLDER / name).write_text(text, encoding="utf-8")
    stored = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.txt")}
    assert stored == texts


@pytest.mark.parametrize("kind", KINDS)
def test_prompts_with_tools_are_within_the_token_limit(prompts: tuple[ExamplePrompt, ...], kind: str) -> None:
    limits = {"scout": MOST_TOKENS_OF_SCOUT}
    assert {
        prompt.name: prompt.tokens
        for prompt in prompts
        if prompt.kind == kind and prompt.tokens > limits.get(prompt.role, MOST_TOKENS)
    } == {}


@pytest.mark.parametrize("kind", KINDS)
def test_belief_schema_occurs_once_per_prompt(prompts: tuple[ExamplePrompt, ...], kind: str) -> None:
    for prompt in prompts:
        if prompt.kind == kind and prompt.role in ("agent", "scout"):
            assert prompt.text.count('"open_questions":') <= 1, prompt.name


def test_prompts_include_only_statements_that_apply_to_the_question(prompts: tuple[ExamplePrompt, ...]) -> None:
    for prompt in prompts:
        if prompt.role not in ("agent", "context", "judge", "scout"):
            continue
        user_text = prompt.text.partition("----- user -----")[2].partition("----- tool")[0]
        assert ("market is to close" in user_text or "Trading is to end" in user_text) <= (prompt.kind == "market"), (
            prompt.name
        )
        assert ("Begin with fetch_wikipedia" in user_text) <= (prompt.kind == "wikipedia"), prompt.name
        assert ("sum to 1" in user_text) <= (prompt.kind in ("many", "options", "separate")), prompt.name


@pytest.mark.parametrize("form", ["full", "no-belief", "zero-shot", "batch", "full by schema"])
def test_numeric_prompts_state_the_day_and_the_unit(prompts: tuple[ExamplePrompt, ...], form: str) -> None:
    (text,) = [
        prompt.text for prompt in prompts if (prompt.kind, prompt.role, prompt.form) == ("number", "agent", form)
    ]
    assert "2026-09-30, in 212 days" in text
    assert "The unit is: seats." in text


def test_reason_comes_before_the_number_in_schemas(prompts: tuple[ExamplePrompt, ...]) -> None:
    for prompt in prompts:
        shape = prompt.text.rpartition("----- ")[2]
        if prompt.role in ("agent", "context", "judge", "scout"):
            first = min(shape.find(f'"{word}"') for word in ("reason", "rationale") if f'"{word}"' in shape)
            fields = ("p", "percent", "quantiles", "probabilities", "answers")
            assert first < min(shape.find(f'"{word}"') for word in fields if f'"{word}"' in shape), prompt.name


def shown(tmp_path: Path, **fields: Any) -> dict[str, str]:
    """Return the prompts of a spec about an own question, by role."""
    spec = RunSpec(questions=QuestionsSpec(dataset="own.jsonl"), models={"agent": "openai:x"}, **fields)
    prompts = asyncio.run(prompts_of(spec, example_questions()["own"], Settings(home=tmp_path)))
    assert all(prompt.tokens and prompt.model == "openai:x" for prompt in prompts)
    return {prompt.role: prompt.text for prompt in prompts}


def test_every_journal_of_prompts_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Journal] = []

    class WatchedJournal(Journal):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            opened.append(self)

        def close(self) -> None:
            super().close()
            opened.remove(self)

    monkeypatch.setattr("foretell.runs.prompts.Journal", WatchedJournal)
    assert shown(tmp_path, mode="live")
    assert opened == []


def test_prompts_of_a_spec_cover_its_roles_and_tools(tmp_path: Path) -> None:
    live = shown(tmp_path, mode="live", search=("brave",))
    assert list(live) == ["agent", "summariser"]
    assert "----- tool web_search -----" in live["agent"]
    past = shown(tmp_path, mode="backtest", trials=3, combine="judged")
    assert list(past) == ["agent", "filter", "judge"]
    assert "web_search" not in past["agent"]
    grown = shown(tmp_path, mode="live", forecaster="tree", options={"grounder": "plain", "correlations": True})
    assert list(grown) == ["analyzer", "judge, correlated claims", "grounder", "synthesizer"]
    chosen = shown(tmp_path, mode="live", forecaster="tree", options={"grounder": "auto"})
    assert list(chosen)[1:-1] == [
        *("judge, choice of grounder", "grounder, plain", "grounder, search", "grounder, agent", "grounder, deep"),
        *("judge, probability of a report", "grounder, notebook"),
    ]
    thought = shown(tmp_path, mode="live", forecaster="thoughts", options={"kind": "graph"})
    assert list(thought) == [
        *("analyzer, next thoughts", "analyzer, rating of lines", "analyzer, merged thought", "grounder, conclusion"),
        "grounder",
    ]
    gathered = shown(tmp_path, mode="live", forecaster="prompt", search=("brave",))
    assert list(gathered) == [
        *("agent", "summariser, searches", "summariser, ranking", "summariser, summaries", "summariser")
    ]
    reasoned = shown(tmp_path, mode="live", forecaster="reason")
    assert list(reasoned) == [
        *("agent, scout", "analyzer, plan", "grounder, answered leaves", "grounder, open leaf"),
        *("synthesizer, cases", "synthesizer, reconciliation"),
    ]
    assert list(shown(tmp_path, mode="live", forecaster="reason", options={"take_apart": "never"})) == ["agent, scout"]
    assert shown(tmp_path, forecaster="always") == {}
    assert not list(tmp_path.iterdir())
