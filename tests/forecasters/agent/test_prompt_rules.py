"""What all prompts have in common: one rule about prices, one about memories, and no contradictions within a prompt."""

import asyncio

import pytest

from fakes.prompts import ExamplePrompt, example_prompts
from foretell.forecasters.agent.agent import without_numbers
from foretell.forecasters.agent.prompts import PRICE_RULE, memory_rule

JUDGING = ("agent", "scout", "context", "judge", "analyzer", "grounder", "synthesizer")
"""Roles that could answer from what they remember of later days."""
LATER = "remember from later does not exist yet"
ENDS = "What you remember ends some time before"


@pytest.fixture(scope="module")
def live() -> tuple[ExamplePrompt, ...]:
    return asyncio.run(example_prompts(("own", "market", "options", "number"), "live"))


@pytest.fixture(scope="module")
def past() -> tuple[ExamplePrompt, ...]:
    return asyncio.run(example_prompts(("own", "market"), "backtest"))


def test_every_price_comes_with_the_same_rule(live: tuple[ExamplePrompt, ...]):
    priced = {prompt.name for prompt in live if "0.34" in prompt.text}
    assert {prompt.name for prompt in live if PRICE_RULE in prompt.text} == priced
    assert {prompt.role for prompt in live if prompt.name in priced} == {"agent", "scout", "context"}


def test_memories_of_later_days_are_forbidden_only_in_backtests(
    live: tuple[ExamplePrompt, ...], past: tuple[ExamplePrompt, ...]
):
    assert [prompt.name for prompt in live if LATER in prompt.text and prompt.role in JUDGING] == []
    assert [prompt.name for prompt in past if LATER not in prompt.text and prompt.role in JUDGING] == []
    assert [prompt.name for prompt in live if ENDS not in prompt.text and prompt.role in JUDGING] == []


def test_who_has_no_tools_is_not_told_to_look_something_up(live: tuple[ExamplePrompt, ...]):
    for prompt in live:
        if "----- tool web_search" not in prompt.text and "`web_search`" not in prompt.text:
            assert "Check what may have changed" not in prompt.text, prompt.name
    assert memory_rule(live=True, tools=False) != memory_rule(live=True, tools=True)


def test_quantities_are_not_asked_about_like_events(live: tuple[ExamplePrompt, ...]):
    for prompt in live:
        scenarios = prompt.role == "synthesizer" and "q50" in prompt.text and prompt.form == "cases"
        if prompt.kind == "number" and (prompt.role in ("agent", "scout", "judge") or scenarios):
            assert "squared error" not in prompt.text, prompt.name
            assert "opposite outcome" not in prompt.text, prompt.name
            assert ('"structure"' in prompt.text) == (prompt.role == "scout"), prompt.name
            assert '"at_least"' not in prompt.text, "of a number the scout says only whether scenarios decide it"


def test_who_decides_is_not_asked_for_probabilities(live: tuple[ExamplePrompt, ...]):
    for prompt in live:
        if prompt.form in ("self-consistency", "weighted self-consistency"):
            system = prompt.text.partition("----- user -----")[0]
            assert "robabilit" not in system, prompt.name
            assert "Decide for every outcome" in system
        if prompt.form == "bi-directional":
            assert "Give the probability of every outcome" in prompt.text, "its first call asks for the outcomes"


def test_the_scout_is_told_what_every_field_means(live: tuple[ExamplePrompt, ...]):
    sides = {"own": "facts for YES, and for NO", "options": "name the answer in each", "number": "facts for more"}
    for prompt in live:
        if prompt.role == "scout" and prompt.kind in sides:
            assert sides[prompt.kind] in prompt.text
            assert "- `confidence`: `low` if" in prompt.text
            assert "up to 4 tools at once" in prompt.text
            schema = prompt.text.rpartition("----- tool submit -----")[2]
            assert schema.count('"reason"') == 2, "as a property and as required, and only in the belief"


@pytest.mark.parametrize("form", ["context searches", "context ranking", "context summaries"])
def test_whoever_chooses_sources_knows_the_criteria(live: tuple[ExamplePrompt, ...], form: str):
    (text,) = [prompt.text for prompt in live if (prompt.kind, prompt.form) == ("own", form)]
    assert "YES if the city announces that cars may cross again." in text


def test_a_panel_reads_reasons_without_the_answer():
    text = "\n".join(
        [
            "18 % from tree 20 % and direct 17 % (agree)",
            "North: 50 % from tree 49 % and direct 51 % (agree)",
            "Changed: direct estimate 12 % → 18 % (overlooked)",
            "Changed: P3 30 % → 20 % (as reported)",
            "Forecast: yes 0.170 (submitted).",
            "The court decides on 3 May.",
            "0.197 for: The bridge opens.",
            "yes 0.300: the court",
            "- 18 % from tree 20 % and direct 17 % (agree)",
        ]
    )
    assert without_numbers(text) == "Changed: P3 30 % → 20 % (as reported)\nThe court decides on 3 May."
