"""A fake that plays all parts of a tree and of thoughts: it takes claims apart, researches, and puts them together.

What it says is a function of the request alone. A model name that ends in a number (`planner-4`) takes a claim apart
into so many children in one answer; without one it adds three children, then two below the first of them. A `clumsy`
model gets everything wrong at first and right when it is told what was wrong; a `stubborn` one never gives parameters
that fit. Every reply names the request it answers by the first letters of its hash.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from foretell.practice.models.formats import ModelQuery, OfferedTool, ScriptedCall, ScriptedReply
from foretell.practice.models.server import example, improvise

# A fake that plays all parts of a research agent: it searches, reads, cites what it found, and submits.
#
# What it says is a function of the request alone, so that a run against it can be repeated to the letter. A model name
# that ends in a number (`searcher-7`) takes so many steps before it submits, without one it takes two; a `searcher`
# never stops to read, a `gatherer` makes three searches in one reply. Every reply names the request it answers by the
# first letters of its hash (`#0a1b…`, or in the id of a call), so that a journal can be held against the bill.

USUAL_STEPS = 2
BELIEF = "updated_belief"
ANSWERS = ("p", "percent", "quantiles")
AGENT_ASPECTS = ("latest report", "history", "opinion", "plans", "numbers", "decision", "risks", "experts")
"""Words added to the question, others for every search."""
DROPPED = "DROP ME"
"""A text that holds these words is a leak to this filter."""
_AGENT_QUESTION = re.compile(r"^# Question\s+(.+?)\s*$", re.MULTILINE)
_AGENT_RESULT = re.compile(r"^\[(\w+)\] (.+)$", re.MULTILINE)
_AGENT_STEPS = re.compile(r"-(\d+)$")
FoundSources = list[tuple[str, str]]
"""Ids and titles of results."""


def agent_script(heard: ModelQuery) -> ScriptedReply:
    """The agent's next step, the filter's verdicts or a summary, whichever is asked for."""
    if heard.tools:
        return _step(heard)
    if heard.schema is not None:
        return _verdicts(heard) if "verdicts" in heard.schema.get("properties", {}) else improvise(heard)
    facts = [f"- {title} says so. [{id}]" for id, title in _AGENT_RESULT.findall(heard.last)]
    return ScriptedReply(text="\n".join([*facts, f"- That is all. ({_agent_mark(heard)})"]))


def _verdicts(heard: ModelQuery) -> ScriptedReply:
    reason = f"judged by its words ({_agent_mark(heard)})"
    rows = [
        {"id": row["id"], "verdict": "DROP" if DROPPED in row["text"] else "KEEP", "reason": reason}
        for row in json.loads(heard.last.rpartition("Texts:\n")[2])
    ]
    return ScriptedReply(text=json.dumps({"verdicts": rows}))


def _step(heard: ModelQuery) -> ScriptedReply:
    messages = heard.json.get("messages") or heard.json.get("contents") or []
    turn = sum(message.get("role") in ("assistant", "model") for message in messages)
    found = _AGENT_RESULT.findall(heard.last)
    tools = {tool.name: tool for tool in heard.tools}
    name, arguments = _action(heard, turn, found, tools)
    belief = tools[name].schema.get("properties", {}).get(BELIEF)
    if belief is not None:
        arguments = {BELIEF: _belief(heard, belief, found), **arguments}
    calls = [arguments]
    if name == "web_search" and heard.model.startswith("gatherer"):
        calls += [{**arguments, "query": f"{arguments['query']} {more}"} for more in ("abroad", "at home")]
    return ScriptedReply(calls=tuple(ScriptedCall(name=name, arguments=one) for one in calls))


def _action(
    heard: ModelQuery, turn: int, found: FoundSources, tools: Mapping[str, OfferedTool]
) -> tuple[str, dict[str, Any]]:
    asked = _AGENT_QUESTION.search(heard.words)
    question = asked[1] if asked else heard.last[:80]
    steps = _AGENT_STEPS.search(heard.model)
    last = turn >= (int(steps[1]) if steps else USUAL_STEPS)
    if heard.force == "submit" or last or "web_search" not in tools:
        return "submit", {"reason": f"Weighed {turn} steps.", **_answer(heard, tools["submit"].schema)}
    if turn % 2 and found and "summarize_results" in tools and not heard.model.startswith("searcher"):
        return "summarize_results", {"ids": [found[0][0]], "question": f"What decides it: {question}"}
    seed = heard.json.get("seed")
    told = "" if seed is None else f" view{seed}"
    return "web_search", {"query": f"{question} {AGENT_ASPECTS[turn % len(AGENT_ASPECTS)]}{told}"}


def _belief(heard: ModelQuery, schema: Mapping[str, Any], found: FoundSources) -> dict[str, Any]:
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


def _answer(heard: ModelQuery, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Any number, the same for the same request."""
    parts = schema.get("properties", {})
    number = round(0.1 + 0.8 * int(heard.hash[:8], 16) / 0xFFFFFFFF, 4)
    return {name: example(parts[name], number) for name in ANSWERS if name in parts}


def _agent_mark(heard: ModelQuery) -> str:
    return f"#{heard.hash[:12]}"


TREE_ASPECTS = (
    "Financing",
    "Legal permission",
    "Public approval",
    "Technical groundwork",
    "Staff recruitment",
    "Neighbourhood opposition",
    "Material supply",
    "Political leadership",
)
_SECTION = re.compile(r"^# (.+?)\n\n(.*?)(?=\n# |\Z)", re.MULTILINE | re.DOTALL)
_NODE = re.compile(r"^( *)(P[\d.]+): (.+)$", re.MULTILINE)
_COUNT = re.compile(r"-(\d+)$")
_TREE_STEPS = re.compile(r"Name (\d+) different steps")
_TREE_RESULT = re.compile(r"^\[(\w+)\] ", re.MULTILINE)
TREE_AGAIN = "could not be used"
"""Stands in every objection to an answer."""


def tree_script(heard: ModelQuery) -> ScriptedReply:
    """The next answer in whichever part is asked for."""
    if any(tool.name == "conclude" for tool in heard.tools):
        return _research(heard)
    if heard.schema is None or heard.tools:
        return agent_script(heard)
    fields: Mapping[str, Any] = heard.schema.get("properties", {})
    part = next((part for name, part in TREE_PARTS.items() if name in fields), None)
    return agent_script(heard) if part is None else ScriptedReply(text=json.dumps(part(heard, fields)))


def _sections(heard: ModelQuery) -> dict[str, str]:
    """The headed parts of the task, the last of each name."""
    return {name: text.strip() for name, text in _SECTION.findall(heard.words)}


def _tree_mark(heard: ModelQuery) -> str:
    return f"#{heard.hash[:12]}"


def _clumsy(heard: ModelQuery) -> bool:
    return heard.model.startswith("stubborn") or (heard.model.startswith("clumsy") and TREE_AGAIN not in heard.words)


def _turns(heard: ModelQuery) -> int:
    """How often it has spoken in this conversation."""
    messages = heard.json.get("messages") or heard.json.get("contents") or ()
    return sum(message.get("role") in ("assistant", "model") for message in messages)


def chance(text: str) -> float:
    """Any probability, the same for the same words."""
    return round(0.1 + 0.8 * int(sha256(text.encode()).hexdigest()[:8], 16) / 0xFFFFFFFF, 4)


def _expand(heard: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    told = _sections(heard)
    nodes = [(len(indent), id) for indent, id, _ in _NODE.findall(told["The tree so far"])]
    root = nodes[0][1]
    counted = _COUNT.search(heard.model)
    topic = told["What is asked"].removeprefix("Will ").rstrip("?.")
    if counted:
        found = [_expansion(root, int(counted[1]), topic, heard)] if len(nodes) == 1 else []
        return {"plan": _tree_mark(heard), "expansions": found, "complete": True}
    first = nodes[1][1] if len(nodes) > 1 else ""
    found = [_expansion(first, 2, topic, heard)] if first else [_expansion(root, 3, topic, heard)]
    return {"plan": _tree_mark(heard), "expansions": found, "complete": bool(first)}


def _expansion(parent: str, count: int, topic: str, heard: ModelQuery) -> dict[str, Any]:
    claims = [_claim(parent, n, topic) for n in range(count)]
    if _clumsy(heard):
        claims[0] = "It happens next year."
    children = [{"id": f"new{n}", "claim": claim} for n, claim in enumerate(claims, start=1)]
    return {"parent": parent, "causality": f"Each part is needed ({_tree_mark(heard)}).", "children": children}


def _claim(parent: str, place: int, topic: str) -> str:
    """A statement of its own for every place in the tree."""
    path = [int(number) for number in parent.removeprefix("P").split(".")]
    lot = "".join(chr(ord("a") + number % 26) for number in [*path, place])
    aspect = TREE_ASPECTS[(sum(path) * 3 + place) % len(TREE_ASPECTS)]
    return f"{aspect} on lot {lot} of {' '.join(topic.split()[:4])} is settled by 31 December 2026."


def _correlate(heard: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    ids = [id for _, id, _ in _NODE.findall(_sections(heard)["Claims"])]
    pair = {"a": ids[0], "b": ids[1], "correlation": 0.8, "reason": f"shared causes ({_tree_mark(heard)})"}
    return {"pairs": [pair]}


def _children(heard: ModelQuery) -> list[str]:
    return [name.removeprefix("Child ") for name in _sections(heard) if name.startswith("Child ")]


def _reported(heard: ModelQuery, **values: Any) -> dict[str, Any]:
    return {
        "report": f"The parts were weighed ({_tree_mark(heard)}).",
        "key_factor": "The weakest part decides.",
        **values,
    }


def _linear(heard: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    children = _children(heard)
    raw = {child: 1 + chance(child) for child in children}
    scale = 3.0 if _clumsy(heard) else 0.9
    weights = {child: round(scale * one / sum(raw.values()), 4) for child, one in raw.items()}
    return _reported(heard, intercept=0.4 if _clumsy(heard) else 0.05, weights=weights)


def _logic(heard: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    children = _children(heard)
    formula = f"({' OR '.join(children[:-1])}) AND {children[-1]} AND PA"
    if _clumsy(heard):
        formula = f"{children[0]} AND ("
    return _reported(heard, formula=formula, assumption={"text": "Nothing else gets in the way.", "p": 0.9})


def _noisy_or(heard: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    children = _children(heard)
    if "inhibitors" not in fields:
        return _reported(heard, leak=0.05, strengths={child: round(chance(child), 3) for child in children})
    causes, obstacles = children[:-1], children if _clumsy(heard) else children[-1:]
    numbers = [{child: round(chance(child), 3) for child in some} for some in (causes, obstacles)]
    return _reported(heard, leak=0.05, strengths=numbers[0], inhibitors=numbers[1])


def _judge(heard: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    """A judged parent, a plain leaf, or the conclusion of a notebook or of a line of thought."""
    told = _sections(heard)
    claim = (
        told.get("Claim")
        or told.get("The claim")
        or next((text for name, text in told.items() if name.startswith("The claim, ")), "")
    )
    more: dict[str, Any] = {"sources": ["/series/observations"]} if "sources" in fields else {}
    return _reported(heard, p=1.7 if _clumsy(heard) else chance(claim + told.get("What was looked into", "")), **more)


def _cells(heard: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Two rounds of cells: a plan with a computation, then a second look; a clumsy one stumbles in the first."""
    turns = _turns(heard)
    if turns == 0:
        line = "print(1 / 0)" if _clumsy(heard) else "values = [1, 2, 3, 4]\nprint('mean', sum(values) / len(values))"
        plan = {"kind": "markdown", "source": f"Count first, then judge ({_tree_mark(heard)})."}
        return {"cells": [plan, {"kind": "python", "source": line}], "finished": False}
    if "a second look" not in heard.words:
        again = {"kind": "python", "source": f"print('a second look', 6 * 7)  # {_tree_mark(heard)}"}
        return {"cells": [again], "finished": False}
    return {"cells": [{"kind": "markdown", "source": f"Enough ({_tree_mark(heard)})."}], "finished": True}


def _corrected(heard: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    bad = heard.model.startswith("stubborn")
    return {"source": f"print({'1 / 0' if bad else '7 * 6'})  # {_tree_mark(heard)}"}


def _thoughts(heard: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    """As many steps as are wanted, or the one that several are joined into."""
    told = _sections(heard)
    wanted = _TREE_STEPS.search(told.get("Your task", ""))
    lot = "".join(chr(ord("a") + int(digit, 16)) for digit in heard.hash[:6])
    topic = " ".join(told["The claim"].split()[:4])
    found = [
        {"claim": f"{aspect} on lot {lot} of {topic} is settled by 31 December 2026.", "why": _tree_mark(heard)}
        for aspect in TREE_ASPECTS[: int(wanted[1]) if wanted else 1]
    ]
    if _clumsy(heard):
        found[0]["claim"] = "It happens next year."
    return {"thoughts": found, "enough": False} if "thoughts" in fields else found[0]


def _lines(heard: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    ids = (
        [] if _clumsy(heard) else [name.removeprefix("Line ") for name in _sections(heard) if name.startswith("Line ")]
    )
    return {"lines": [{"id": id, "reason": _tree_mark(heard), "value": chance(id)} for id in ids]}


def _kind(heard: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"reason": _tree_mark(heard), "kind": "news"}


TREE_PARTS: dict[str, Callable[[ModelQuery, Mapping[str, Any]], dict[str, Any]]] = {
    "expansions": _expand,
    "thoughts": _thoughts,
    "why": _thoughts,
    "lines": _lines,
    "pairs": _correlate,
    "weights": _linear,
    "formula": _logic,
    "strengths": _noisy_or,
    "cells": _cells,
    "source": _corrected,
    "kind": _kind,
    "key_factor": _judge,
}
"""By a field that only the answer in that part has; the most telling first."""


def _research(heard: ModelQuery) -> ScriptedReply:
    """One search in the words of the claim, then the conclusion."""
    claim = _sections(heard).get("Claim", heard.last[:200])
    found = _TREE_RESULT.findall(heard.last)
    turns = _turns(heard)
    searching = any(tool.name == "web_search" for tool in heard.tools)
    if heard.force != "conclude" and not turns and searching:
        return ScriptedReply(calls=(ScriptedCall(name="web_search", arguments={"query": claim}),))
    return ScriptedReply(calls=(ScriptedCall(name="conclude", arguments=_conclusion(heard, claim, found)),))


def _conclusion(heard: ModelQuery, claim: str, found: Sequence[str]) -> dict[str, Any]:
    if _clumsy(heard):
        return {"report": "", "key_factor": "", "sources": [], "p": 1.7}
    report = f"{len(found)} results were read{''.join(f' [{id}]' for id in found[:2])}; the rest is base rates."
    return {"report": report, "key_factor": "Base rates.", "sources": list(found[:2]), "p": chance(claim)}


# A fake that plays all parts of an arena: searcher, forecaster on a context, judge of reasons, witness of the past.
#
# What it says is a function of the request alone. Where prices are shown it stays near them. A `clumsy` model answers
# in percentages and leaves an outcome out at first, and gets it right when it is told what was wrong; a `stubborn` one
# never does; a `wild` one only ever sends a huge broken web page; a `scholar` remembers every event. Everything that is
# not its part goes to the fake of trees and research.

ARENA_ASPECTS = ("latest report", "history", "schedule", "opinion", "numbers", "risks")
ARENA_AGAIN = "could not be used"
"""Stands in every objection to an answer."""
WILD = "<html><body>" + "<div class='ad'>buy</div>" * 40_000 + '{"rationale": "<b>'
OPPOSITE = "does NOT come true"
_ARENA_QUESTION = re.compile(r"^# Question\s+(.+?)\s*$", re.MULTILINE)
_PRICE = re.compile(r"^- `(.+?)`: implied probability ([\d.]+)", re.MULTILINE)
_LISTED = re.compile(r"^- `(.+?)`: (.+)$", re.MULTILINE)


def arena_script(heard: ModelQuery) -> ScriptedReply:
    """The next answer in whichever part is asked for."""
    if heard.tools or heard.schema is None:
        return tree_script(heard)
    if heard.model.startswith("wild"):
        return ScriptedReply(text=WILD)
    fields: Mapping[str, Any] = heard.schema.get("properties", {})
    part = next((part for name, part in ARENA_PARTS.items() if name in fields), None)
    return tree_script(heard) if part is None else ScriptedReply(text=json.dumps(part(heard, fields)))


def unit(text: str) -> float:
    """Any number from 0 to 1, the same for the same words."""
    return int(sha256(text.encode()).hexdigest()[:8], 16) / 0xFFFFFFFF


def _wrong(heard: ModelQuery) -> bool:
    return heard.model.startswith("stubborn") or (heard.model.startswith("clumsy") and ARENA_AGAIN not in heard.words)


def _arena_mark(heard: ModelQuery) -> str:
    return f"#{heard.hash[:12]}"


def _asked(heard: ModelQuery) -> str:
    found = _ARENA_QUESTION.search(heard.words)
    return found[1].rstrip("?") if found else heard.last[:80]


def _queries(heard: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"queries": [f"{_asked(heard)} {aspect}" for aspect in ARENA_ASPECTS]}


def _ranking(heard: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The newest first; undated pages last."""
    pages = json.loads(heard.last.rpartition("# Pages\n\n")[2])
    newest = sorted(pages, key=lambda page: page["date"] if page["date"] != "undated" else "", reverse=True)
    return {"ranking": [page["id"] for page in newest]}


def _summary(heard: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    page = json.loads(heard.last.rpartition("# Page\n\n")[2])
    first = page["text"].strip().split(". ")[0].rstrip(".")[:200]
    told = f"{first}. The page is dated {page['date']}. Nothing else in it bears on the matter ({_arena_mark(heard)})."
    return {"title": page["title"] or "A page without a title", "summary": told}


def _believed(heard: ModelQuery, key: str) -> float:
    """Near the price where one is shown, else anything."""
    price = dict(_PRICE.findall(heard.words)).get(key)
    chance = unit(f"{heard.model}/{_asked(heard)}/{key}")
    p = 0.05 + 0.9 * chance if price is None else min(0.98, max(0.02, float(price) + 0.1 * (chance - 0.5)))
    return round(1 - p if OPPOSITE in heard.words else p, 4)


def _keys(fields: Mapping[str, Any], name: str) -> list[str]:
    return list(fields[name].get("properties", {}))


def _probabilities(heard: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    p = {key: _believed(heard, key) for key in _keys(fields, "probabilities")}
    if _wrong(heard):
        p = {key: round(100 * value, 1) for key, value in list(p.items())[1:]} | {"somebody else": 3}
    return {"rationale": f"Prices and reports were weighed ({_arena_mark(heard)}).", "probabilities": p}


def _votes(heard: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    votes: dict[str, Any] = {}
    for key, part in fields["answers"]["properties"].items():
        sure = _believed(heard, key)
        word = "yes" if sure > unit(f"{heard.hash}/{key}") else "no"
        confidence = round(sure if word == "yes" else 1 - sure, 3)
        votes[key] = {"answer": word, "confidence": confidence} if "properties" in part else word
    return {"rationale": f"It was decided ({_arena_mark(heard)}).", "answers": {} if _wrong(heard) else votes}


def _scores(heard: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Longer reasons get better marks, so that a test can tell them apart."""
    try:
        length = len(json.loads(heard.last)["rationale"])
    except (ValueError, KeyError, TypeError):
        length = 0
    base = 0 if _wrong(heard) else min(5, 1 + length // 100)
    return {name: {"reason": f"{length} characters ({_arena_mark(heard)}).", "score": base} for name in fields}


def _recall(heard: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    knows = heard.model.startswith("scholar") or unit(f"{heard.model}/{_asked(heard)}") > 0.5
    keys = _keys(fields, "probabilities")
    first = keys[0]
    words = {key: ("yes" if key == first else "no") if knows else "unknown" for key in keys}
    facts = ["It was in the papers.", f"{first} came first."] if knows else []
    p = {key: 0.95 if knows and key == first else 0.05 if knows else 0.5 for key in keys}
    told = {"rationale": _arena_mark(heard), "probabilities": p}
    return {"recognised": "maybe" if _wrong(heard) else knows, "facts": facts, "recalled": words, **told}


def _structure(heard: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Ladders by their numbers: "above 5" implies "above 3"."""
    listed = _LISTED.findall(heard.last)
    strikes = [(float(n[1]), key) for key, label in listed if (n := re.search(r"[Aa]bove ([\d.]+\d)", label))]
    chain = [key for _, key in sorted(strikes, reverse=True)]
    chains = [["nobody"]] if _wrong(heard) else [chain] if len(chain) > 1 else []
    rest = [] if chains or len(listed) < 2 else [key for key, _ in listed]
    return {"reason": _arena_mark(heard), "chains": chains, "exclusive": rest}


ARENA_PARTS: dict[str, Callable[[ModelQuery, Mapping[str, Any]], dict[str, Any]]] = {
    "queries": _queries,
    "ranking": _ranking,
    "summary": _summary,
    "recognised": _recall,
    "probabilities": _probabilities,
    "answers": _votes,
    "alignment": _scores,
    "chains": _structure,
}
"""By a field that only the answer in that part has; the most telling first."""
