"""A fake that plays all parts of a research agent: it searches, reads, cites what it found, and submits.

What it says is a function of the request alone, so that a run against it can be repeated to the letter. A model name
that ends in a number (`searcher-7`) takes so many steps before it submits, without one it takes two; a `searcher`
never stops to read, a `gatherer` makes three searches in one reply. Every reply names the request it answers by the
first letters of its hash (`#0a1b…`, or in the id of a call), so that a journal can be held against the bill.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from foretell.fakes.providers.heard import Call, Heard, Said, Tool
from foretell.fakes.providers.improvise import example, improvise

USUAL_STEPS = 2
BELIEF = "updated_belief"
ANSWERS = ("p", "percent", "quantiles")
ASPECTS = ("latest report", "history", "opinion", "plans", "numbers", "decision", "risks", "experts")
"""Words added to the question, others for every search."""
DROPPED = "DROP ME"
"""A text that holds these words is a leak to this filter."""
_QUESTION = re.compile(r"^# Question\s+(.+?)\s*$", re.MULTILINE)
_RESULT = re.compile(r"^\[(\w+)\] (.+)$", re.MULTILINE)
_STEPS = re.compile(r"-(\d+)$")
Found = list[tuple[str, str]]
"""Ids and titles of results."""


def step_by_step(heard: Heard) -> Said:
    """The agent's next step, the filter's verdicts or a summary, whichever is asked for."""
    if heard.tools:
        return _step(heard)
    if heard.schema is not None:
        return _verdicts(heard) if "verdicts" in heard.schema.get("properties", {}) else improvise(heard)
    facts = [f"- {title} says so. [{id}]" for id, title in _RESULT.findall(heard.last)]
    return Said(text="\n".join([*facts, f"- That is all. ({_mark(heard)})"]))


def _verdicts(heard: Heard) -> Said:
    reason = f"judged by its words ({_mark(heard)})"
    rows = [
        {"id": row["id"], "verdict": "DROP" if DROPPED in row["text"] else "KEEP", "reason": reason}
        for row in json.loads(heard.last.rpartition("Texts:\n")[2])
    ]
    return Said(text=json.dumps({"verdicts": rows}))


def _step(heard: Heard) -> Said:
    messages = heard.json.get("messages") or heard.json.get("contents") or []
    turn = sum(message.get("role") in ("assistant", "model") for message in messages)
    found = _RESULT.findall(heard.last)
    tools = {tool.name: tool for tool in heard.tools}
    name, arguments = _action(heard, turn, found, tools)
    belief = tools[name].schema.get("properties", {}).get(BELIEF)
    if belief is not None:
        arguments = {BELIEF: _belief(heard, belief, found), **arguments}
    calls = [arguments]
    if name == "web_search" and heard.model.startswith("gatherer"):
        calls += [{**arguments, "query": f"{arguments['query']} {more}"} for more in ("abroad", "at home")]
    return Said(calls=tuple(Call(name=name, arguments=one) for one in calls))


def _action(heard: Heard, turn: int, found: Found, tools: Mapping[str, Tool]) -> tuple[str, dict[str, Any]]:
    asked = _QUESTION.search(heard.words)
    question = asked[1] if asked else heard.last[:80]
    steps = _STEPS.search(heard.model)
    last = turn >= (int(steps[1]) if steps else USUAL_STEPS)
    if heard.force == "submit" or last or "web_search" not in tools:
        return "submit", {"reason": f"Weighed {turn} steps.", **_answer(heard, tools["submit"].schema)}
    if turn % 2 and found and "summarize_results" in tools and not heard.model.startswith("searcher"):
        return "summarize_results", {"ids": [found[0][0]], "question": f"What decides it: {question}"}
    seed = heard.json.get("seed")
    told = "" if seed is None else f" view{seed}"
    return "web_search", {"query": f"{question} {ASPECTS[turn % len(ASPECTS)]}{told}"}


def _belief(heard: Heard, schema: Mapping[str, Any], found: Found) -> dict[str, Any]:
    claims = [{"claim": f"It is reported: {title}", "source_id": id} for id, title in found[:2]]
    return {
        "reason": f"{len(found)} results were weighed.",
        "evidence_for": claims[:1],
        "evidence_against": claims[1:],
        "retract": [],
        "open_questions": ["What comes next?"],
        "confidence": "medium",
        **_answer(heard, schema),
    }


def _answer(heard: Heard, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Any number, the same for the same request."""
    parts = schema.get("properties", {})
    number = round(0.1 + 0.8 * int(heard.hash[:8], 16) / 0xFFFFFFFF, 4)
    return {name: example(parts[name], number) for name in ANSWERS if name in parts}


def _mark(heard: Heard) -> str:
    return f"#{heard.hash[:12]}"
