"""The example that `foretell demo` creates: made-up questions, news about them, and a scripted model's research."""

import json
import math
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic import TypeAdapter

from foretell.frozen import frozen
from foretell.practice.models.formats import ModelQuery, ScriptedCall, ScriptedReply
from foretell.practice.models.scripts import (
    BELIEF,
    agent_question,
    agent_results,
    arena_script,
    conversation_seed,
    replies_so_far,
)
from foretell.practice.models.server import ReplyRefused, unit
from foretell.practice.web import SampleWebPage

RESEARCHER, HASTY = "example-researcher", "example-hasty"
"""Models of the example: one that follows the whole story, and one that stops after the first search."""
HASTY_STEPS = 2
SPREAD = 0.35
"""Largest difference of a trial's answer from the story's, in log odds."""


@frozen
class ExampleStory:
    """Questions as plain fields, their outcomes, the pages about them, and the research steps by question."""

    questions: tuple[dict[str, Any], ...]
    outcomes: dict[str, int]
    pages: tuple[SampleWebPage, ...]
    research: dict[str, tuple[dict[str, Any], ...]]


@cache
def example_story() -> ExampleStory:
    """Return the content of `example.json`."""
    body = files("foretell.practice").joinpath("example.json").read_text(encoding="utf-8")
    return TypeAdapter(ExampleStory).validate_python(json.loads(body))


def example_tree() -> str:
    """Return the text of a tree file to experiment with."""
    return files("foretell.practice").joinpath("example_tree.json").read_text(encoding="utf-8")


def example_script(query: ModelQuery) -> ScriptedReply:
    """Reply with the next step of the story if one of its questions is asked; otherwise use `arena_script`."""
    story, text = example_story(), agent_question(query)
    question = next((question for question in story.questions if question["text"] == text), None)
    steps = story.research[question["id"]] if question is not None else None
    if steps is None or not any(tool.name == "submit" for tool in query.tools):
        return arena_script(query)
    steps = steps[:HASTY_STEPS] if query.model.startswith(HASTY) else steps
    turn = min(replies_so_far(query), len(steps) - 1)
    step, seed = steps[turn], conversation_seed(query)
    odds = math.log(step["p"] / (1 - step["p"]))
    shift = SPREAD * (2 * unit(f"{text}/{seed}") - 1) * min(1.0, 0.4 + 0.3 * turn)
    p = round(1 / (1 + math.exp(-odds - shift)), 3)
    shown = agent_results(query.words)
    cited = {
        side: [
            {"claim": evidence["claim"], "source_id": id}
            for evidence in step.get(side, ())
            if (id := next((id for id, line in shown if line.startswith(evidence["title"])), ""))
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
    name = "submit" if last else "web_search"
    arguments = {"reason": step["reason"], "p": p} if last else {"query": step["query"]}
    return ScriptedReply(calls=(ScriptedCall(name=name, arguments={BELIEF: belief, **arguments}),))


def script_with_refusal(query: ModelQuery) -> ScriptedReply:
    """Reply like `example_script`, but refuse one question so that the example contains a failure to retry.

    It is used while the example is being created.
    """
    if query.model.startswith(HASTY) and agent_question(query) == example_story().questions[2]["text"]:
        raise ReplyRefused("The example's model was out of service for this question. Retry it.")
    return example_script(query)
