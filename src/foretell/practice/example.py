"""The example that `foretell demo` leaves: made-up questions, their news, and how a scripted model researches them."""

import json
import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic import TypeAdapter

from foretell.practice.models.formats import ModelQuery, ScriptedCall, ScriptedReply
from foretell.practice.models.improvise import unit
from foretell.practice.models.scripts import (
    BELIEF,
    agent_question,
    agent_results,
    arena_script,
    conversation_seed,
    replies_so_far,
)
from foretell.practice.models.server import ReplyRefused
from foretell.practice.web import SampleWebPage

RESEARCHER, HASTY = "example-researcher", "example-hasty"
"""Models of the example: one that follows the story, and one that stops after the first search."""
HASTY_STEPS = 2
SPREAD = 0.35
"""How far trials differ, in log odds."""


@dataclass(frozen=True, kw_only=True)
class ExampleStory:
    """Questions in plain fields, how they came out, the pages about them, and the steps of research by question."""

    questions: tuple[dict[str, Any], ...]
    outcomes: dict[str, int]
    pages: tuple[SampleWebPage, ...]
    research: dict[str, tuple[dict[str, Any], ...]]


@cache
def example_story() -> ExampleStory:
    """What `example.json` holds."""
    body = files("foretell.practice").joinpath("example.json").read_text(encoding="utf-8")
    return TypeAdapter(ExampleStory).validate_python(json.loads(body))


def example_tree() -> str:
    """A tree of claims to play with, as the text of its file."""
    return files("foretell.practice").joinpath("example_tree.json").read_text(encoding="utf-8")


def example_script(query: ModelQuery) -> ScriptedReply:
    """The next step of the story where its question is asked; whatever else is asked goes to the usual script."""
    story, asked = example_story(), agent_question(query)
    steps = next((story.research[one["id"]] for one in story.questions if one["text"] == asked), None)
    if steps is None or not any(tool.name == "submit" for tool in query.tools):
        return arena_script(query)
    steps = steps[:HASTY_STEPS] if query.model.startswith(HASTY) else steps
    turn = min(replies_so_far(query), len(steps) - 1)
    step, seed = steps[turn], conversation_seed(query)
    odds = math.log(step["p"] / (1 - step["p"]))
    shift = SPREAD * (2 * unit(f"{asked}/{seed}") - 1) * min(1.0, 0.4 + 0.3 * turn)
    p = round(1 / (1 + math.exp(-odds - shift)), 3)
    shown = agent_results(query.words)
    cited = {
        side: [
            {"claim": one["claim"], "source_id": id}
            for one in step.get(side, ())
            if (id := next((id for id, line in shown if line.startswith(one["title"])), ""))
        ]
        for side in ("for", "against")
    }
    belief = {
        "reason": step["reason"],
        "p": p,
        "confidence": "medium" if turn else "low",
        "evidence_for": cited["for"],
        "evidence_against": cited["against"],
        "retract": [],
        "open_questions": step.get("open", []),
    }
    last = turn == len(steps) - 1 or query.force == "submit"
    name, given = ("submit", {"reason": step["reason"], "p": p}) if last else ("web_search", {"query": step["query"]})
    return ScriptedReply(calls=(ScriptedCall(name=name, arguments={BELIEF: belief, **given}),))


def script_with_refusal(query: ModelQuery) -> ScriptedReply:
    """The same while the example is made: one question is refused, so that there is a failure to retry."""
    if query.model.startswith(HASTY) and agent_question(query) == example_story().questions[2]["text"]:
        raise ReplyRefused("The example's model was out of service for this question. Retry it.")
    return example_script(query)
