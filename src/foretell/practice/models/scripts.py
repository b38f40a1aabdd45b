"""Scripts for practice models: a research agent, the roles in a tree, and the roles in an arena.

A script's reply depends only on the request, so a run against it can be reproduced exactly. Every reply contains the
start of the hash of the request it answers (`#0a1b…`, or in the id of a call), so that a journal can be compared with
the bill. The model's name selects its behaviour:

- `searcher-7`, `planner-4`: a number at the end is how many steps an agent takes, or how many children a claim gets.
- `searcher` never stops to read, `gatherer` makes three searches in one reply.
- `clumsy` makes mistakes and corrects them when they are pointed out; `stubborn` never does.
- `wild` only ever sends a huge broken web page; `scholar` remembers every event.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from itertools import pairwise
from typing import Any

from foretell.patterns import pattern
from foretell.practice.models.formats import ModelQuery, RequestedTool, ScriptedCall, ScriptedReply
from foretell.practice.models.server import chance, example, improvise, unit

OBJECTION = "could not be used"
"""Words that every objection to an answer contains."""
_QUESTION = pattern(r"^# Question\s+(.+?)\s*$", re.MULTILINE)
_NUMBER = pattern(r"-(\d+)$")
_PAST_CASES = pattern(r"\s*About [^\n]* of questions like this came true[^\n]*(?:\n- [^\n]*)*")
_TODAY = pattern(r"Today is (\d{4}-\d\d-\d\d)")
ScriptPart = Callable[[ModelQuery, Mapping[str, Any]], dict[str, Any]]
"""Maps a request and the fields of the requested answer to that answer."""


def _mark(query: ModelQuery) -> str:
    return f"#{query.hash[:12]}"


def replies_so_far(query: ModelQuery) -> int:
    """Return how many times the model has replied in this conversation."""
    messages = query.json.get("messages") or query.json.get("contents")
    if messages:
        return sum(message.get("role") in ("assistant", "model") for message in messages)
    # In the Responses format a turn is a sequence of items: reasoning, texts and calls.
    own = [
        item.get("role") == "assistant" or item.get("type") in ("reasoning", "function_call")
        for item in query.json.get("input") or ()
    ]
    return sum(now and not before for before, now in pairwise([False, *own]))


def _errs(query: ModelQuery) -> bool:
    """Whether this reply should contain a mistake."""
    return query.model.startswith("stubborn") or (query.model.startswith("clumsy") and OBJECTION not in query.words)


# The research agent: it searches, reads, cites results, and submits.

USUAL_STEPS = 2
BELIEF = "updated_belief"
ANSWERS = ("p", "percent", "quantiles")
NEVER = "never"
"""Key beside the quantiles of a date for the chance that it never comes."""
MEDIAN = "q50"
AGENT_ASPECTS = ("latest report", "history", "opinion", "plans", "numbers", "decision", "risks", "experts")
"""Words added to the question, different for every search."""
DROPPED = "LEAK ME"
"""Texts that contain these words are judged to be leaks."""
_AGENT_RESULT = pattern(r"^\[(\w+)\] (?:<[0-9a-f]{16}> )?(.+)$", re.MULTILINE)
SearchResults = list[tuple[str, str]]
"""Ids and titles of search results."""


def agent_question(query: ModelQuery) -> str:
    """Return the question that an agent is asked."""
    match = _QUESTION.search(query.words)
    return match[1] if match else query.last[:80]


def agent_results(text: str) -> SearchResults:
    """Return the ids and titles of the results shown in a text."""
    return _AGENT_RESULT.findall(text)


def conversation_seed(query: ModelQuery) -> Any:
    """Return what distinguishes the trials of a question; None if nothing does."""
    # The Responses format has no seed; there the cache key ends with it.
    return query.json.get("seed", query.json.get("prompt_cache_key", "").partition("-")[2] or None)


def agent_script(query: ModelQuery) -> ScriptedReply:
    """Reply with the agent's next step, the verdicts of the leakage filter or a summary, depending on the request."""
    if any(tool.name == "submit" for tool in query.tools):
        return _step(query)
    if query.tools:  # Other tools, such as those of a model check.
        return improvise(query)
    if query.schema is not None:
        fields: Mapping[str, Any] = query.schema.get("properties", {})
        if "base_rate_class" in fields:
            return _wording(query)
        if "happened_on" in fields:
            return ScriptedReply(text=json.dumps(_outcome(query, fields)))
        if "evidence" in fields and "reason" in fields:
            return _revised(query)
        return _verdicts(query) if "verdicts" in fields else improvise(query)
    facts = [f"- {title} says so. [{id}]" for id, title in agent_results(query.last)]
    return ScriptedReply(text="\n".join([*facts, f"- That is all. ({_mark(query)})"]))


def _wording(query: ModelQuery) -> ScriptedReply:
    """Reply with a wording of a question: without the words that have no measure, and with a last day."""
    task = json.loads(query.last)
    text = task["question"].rstrip(" ?")
    for word in re.findall(r'"([^"]+)" is not defined', " ".join(task["missing"])):
        text = " ".join(text.replace(word, "").split())
    last = date.fromisoformat(task["stated deadline"] or f"{int(task['asked on'][:4]) + 1}-12-31")
    dated = "" if task["stated deadline"] else f", on or before {last.day} {last:%B %Y}"
    wording = {
        "text": f"{text}{dated}?",
        "deadline": last.isoformat(),
        "decides": "A public announcement by those who decide it",
        "no_means": "It was not announced by the end of that day, also if it was postponed.",
        "edge_cases": [f"A plan does not count. ({_mark(query)})"],
        "base_rate_class": "Announcements of this kind in the last ten years",
    }
    return ScriptedReply(text=json.dumps(wording))


def _revised(query: ModelQuery) -> ScriptedReply:
    """Reply with a forecast after new evidence; every piece of it is named."""
    news, _ = json.JSONDecoder().raw_decode(query.last.rpartition("# New evidence")[2].lstrip())
    evidence = [{"id": row["id"], "favours": "none", "weight": "made up"} for row in news]
    reason = f"{len(news)} new texts were weighed ({_mark(query)})."
    return ScriptedReply(
        text=json.dumps({"evidence": evidence, "reason": reason, **_answer(query, query.schema or {})})
    )


def _outcome(query: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Say that the texts do not tell how a question turned out."""
    why = f"Practice models know nothing: confirm the outcome yourself ({_mark(query)})."
    told = {"status": "cannot tell", "true": [], "value": None, "because": "event", "happened_on": "", "quotes": []}
    return {"why": why, **told}


def _verdicts(query: ModelQuery) -> ScriptedReply:
    """Reply with the verdicts of the leakage filter, of an auditor with its own labels and quotes, or on news."""
    reason = f"judged by its words ({_mark(query)})"
    if '"bears"' in json.dumps(query.schema):
        news, _ = json.JSONDecoder().raw_decode(query.last.rpartition("# Texts")[2].lstrip())
        return ScriptedReply(
            text=json.dumps({"verdicts": [{"id": row["id"], "bears": True, "why": reason} for row in news]})
        )
    audits = '"clean"' in json.dumps(query.schema)
    good, leak = ("clean", "leak") if audits else ("KEEP", "DROP")
    texts, _ = json.JSONDecoder().raw_decode(query.words.rpartition("Texts:\n")[2])
    rows = [
        {"id": row["id"], "verdict": leak if DROPPED in str(row) else good, "reason": reason}
        | ({"quote": ""} if audits else {})
        for row in texts
    ]
    return ScriptedReply(text=json.dumps({"verdicts": rows}))


def _step(query: ModelQuery, parts: int = 0) -> ScriptedReply:
    turn = replies_so_far(query)
    results = agent_results(query.last)
    tools = {tool.name: tool for tool in query.tools}
    name, arguments = _action(query, turn, results, tools, parts)
    # Every tool takes the belief; the tool `submit` has its schema.
    belief = tools["submit"].schema.get("properties", {}).get(BELIEF) if "submit" in tools else None
    if belief is not None:
        arguments = {BELIEF: _belief(query, belief, results), **arguments}
    calls = [arguments]
    if name == "web_search" and query.model.startswith("gatherer"):
        calls += [{**arguments, "query": f"{arguments['query']} {more}"} for more in ("abroad", "at home")]
    return ScriptedReply(calls=tuple(ScriptedCall(name=name, arguments=call) for call in calls))


def _action(
    query: ModelQuery, turn: int, results: SearchResults, tools: Mapping[str, RequestedTool], parts: int
) -> tuple[str, dict[str, Any]]:
    question = agent_question(query)
    steps = _NUMBER.search(query.model)
    last = turn >= (int(steps[1]) if steps else USUAL_STEPS)
    forced = next((name for name in tools if name == query.force), "")
    if forced not in ("", "submit", "web_search", "summarize_results"):
        arguments = example(tools[forced].schema, chance(question))
        return forced, {name: value for name, value in arguments.items() if name != BELIEF}
    if forced == "submit" or (last and not forced) or "web_search" not in tools:
        answer = {"reason": f"Weighed {turn} steps.", **_answer(query, tools["submit"].schema)}
        return "submit", {**answer, **_question_structure(tools["submit"].schema, parts)}
    reads = turn % 2 and results and "summarize_results" in tools and not query.model.startswith("searcher")
    if forced == "summarize_results" or (reads and not forced):
        return "summarize_results", {"ids": [id for id, _ in results[:1]], "question": f"What decides it: {question}"}
    seed = conversation_seed(query)
    variant = "" if seed is None else f" view{seed}"
    return "web_search", {"query": f"{question} {AGENT_ASPECTS[turn % len(AGENT_ASPECTS)]}{variant}"}


def _question_structure(schema: Mapping[str, Any], parts: int) -> dict[str, Any]:
    """Return how the question is built, if the scout is asked: of this many parts that are all needed, or a number."""
    asked = schema.get("properties", {}).get("structure")
    if asked is None:
        return {}
    wanted = "all" if parts else "single"
    return {"structure": wanted if wanted in asked["enum"] else asked["enum"][0], "parts": parts}


def _belief(query: ModelQuery, schema: Mapping[str, Any], results: SearchResults) -> dict[str, Any]:
    claims = [{"claim": f"It is reported: {title}", "source_id": id} for id, title in results[:2]]
    return {
        "reason": f"{len(results)} results were weighed.",
        "evidence_for": claims[:1],
        "evidence_against": claims[1:],
        "retract": [],
        "open_questions": ["What comes next?"],
        "confidence": "medium",
        **_answer(query, schema),
    }


def _answer(query: ModelQuery, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return numbers that are the same on every day: one per option, and quantiles that increase."""
    parts = schema.get("properties", {})
    question = agent_question(query)
    asked = f"{query.model}/{question}/{conversation_seed(query)}/{replies_so_far(query)}"
    number = _near(chance(question), asked)
    answer = {name: example(parts[name], number) for name in ANSWERS if name in parts}
    if isinstance(answer.get("p"), dict):
        answer["p"] = {name: chance(f"{asked}/{name}") for name in answer["p"]}
    if isinstance(answer.get("quantiles"), dict):
        answer["quantiles"] = _quantiles(query, parts["quantiles"]["properties"], number)
    return answer


def _near(p: float, text: str) -> float:
    """Return a probability that depends on the text and differs from `p` by at most 0.05."""
    return round(min(0.95, max(0.05, p + 0.1 * (unit(text) - 0.5))), 4)


def _quantiles(query: ModelQuery, fields: Mapping[str, Any], number: float) -> dict[str, Any]:
    """Return quantiles that increase, of a number or of a date."""
    names = [name for name in fields if name != NEVER]
    values = [round(place + 10 * number, 4) for place in range(len(names))]
    kinds = {part.get("type") for part in fields.values()}
    quantiles = dict(zip(names, map(_days_on(query), values) if "string" in kinds else values, strict=True))
    return {**quantiles, NEVER: 0.05} if NEVER in fields else quantiles


def _days_on(query: ModelQuery) -> Callable[[float], str]:
    """Return a function that gives the date a number of days after the day stated in the request."""
    match = _TODAY.search(query.words)
    today = date.fromisoformat(match[1]) if match else date(2027, 1, 1)
    return lambda days: (today + timedelta(days=round(days))).isoformat()


# Roles in trees and thoughts: claims are broken down, researched and combined.

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
_SECTION = pattern(r"^# (.+?)\n\n(.*?)(?=\n# |\Z)", re.MULTILINE | re.DOTALL)
_NODE = pattern(r"^( *)(P[\d.]+): (.+)$", re.MULTILINE)
_TREE_STEPS = pattern(r"Name (\d+) different steps")
_TREE_RESULT = pattern(r"^\[(\w+)\] ", re.MULTILINE)


def tree_script(query: ModelQuery) -> ScriptedReply:
    """Reply for the role in a tree that the request addresses; other requests go to `agent_script`."""
    if any(tool.name == "conclude" for tool in query.tools):
        return _research(query)
    if any(tool.name == "submit" for tool in query.tools):
        return _step(query, parts=3)
    if query.schema is None or query.tools:
        return agent_script(query)
    fields: Mapping[str, Any] = query.schema.get("properties", {})
    part = next((part for name, part in TREE_PARTS.items() if name in fields), None)
    return agent_script(query) if part is None else ScriptedReply(text=json.dumps(part(query, fields)))


def _sections(query: ModelQuery) -> dict[str, str]:
    """Return the sections of the task by heading, the last one of each name."""
    return {name: text.strip() for name, text in _SECTION.findall(query.words)}


def _expand(query: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    sections = _sections(query)
    nodes = [(len(indent), id) for indent, id, _ in _NODE.findall(sections["The tree so far"])]
    root = nodes[0][1]
    counted = _NUMBER.search(query.model)
    topic = sections["What is asked"].removeprefix("Will ").rstrip("?.")
    if counted:
        expansions = [_expansion(root, int(counted[1]), topic, query)] if len(nodes) == 1 else []
        return {"plan": _mark(query), "expansions": expansions, "complete": True}
    first = nodes[1][1] if len(nodes) > 1 else ""
    expansions = [_expansion(first, 2, topic, query)] if first else [_expansion(root, 3, topic, query)]
    return {"plan": _mark(query), "expansions": expansions, "complete": bool(first)}


def _expansion(parent: str, count: int, topic: str, query: ModelQuery) -> dict[str, Any]:
    claims = [_claim(parent, n, topic) for n in range(count)]
    if _errs(query):
        claims[0] = "It happens next year."
    children = [{"id": f"new{n}", "claim": claim} for n, claim in enumerate(claims, start=1)]
    return {"parent": parent, "causality": f"Each part is needed ({_mark(query)}).", "children": children}


def _claim(parent: str, place: int, topic: str) -> str:
    """Make up a distinct statement for every position in the tree."""
    path = [int(number) for number in parent.removeprefix("P").split(".")]
    aspect = TREE_ASPECTS[(sum(path) * 3 + place) % len(TREE_ASPECTS)]
    part = "" if parent == "P0" else f", part {parent.removeprefix('P')}.{place + 1},"
    return f"{aspect} for {_shortened(topic)}{part} is settled by 31 December 2026."


def _shortened(topic: str) -> str:
    """Return the first words of what is asked, in quotation marks."""
    words = topic.rstrip("?.").split()
    return f"“{' '.join(words[:7])}{' …' if len(words) > 7 else ''}”"


# Requests of the forecaster `reason`.

_EVIDENCE = pattern(r"^- (E\d+) ", re.MULTILINE)
PLANNED, MOST_CHILDREN = 4, 6
"""Number of children in a plan, and the most that one may have."""


def _plan(query: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Plan four children; with evidence, every second one is answered. Questions with options get scenarios."""
    sections = _sections(query)
    counted = _NUMBER.search(query.model)
    topic = sections["What is asked"].removeprefix("Will ").rstrip("?.")
    evidence = _EVIDENCE.findall(sections.get("Evidence found so far", ""))
    count = min(max(int(counted[1]), 2), MOST_CHILDREN) if counted else PLANNED
    claims = [_claim("P0", n, topic) for n in range(count)]
    if _errs(query):
        claims[0] = "It happens next year."
    children = [
        {
            "id": f"new{n}",
            "claim": claim,
            "state": "answered" if evidence and n % 2 else "open",
            "evidence": evidence[:1] if evidence and n % 2 else [],
        }
        for n, claim in enumerate(claims)
    ]
    scenarios = "Possible answers" in sections or "scenarios" in sections.get("How it seems to be built", "")
    kind = "split" if scenarios else "all"
    return {"parents": [{"parent": "P0", "kind": kind, "why": _mark(query), "children": children}]}


def _answered_leaves(query: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    sections = _sections(query)
    evidence = _EVIDENCE.findall(sections.get("Evidence found so far", ""))[:1]
    leaves = {
        id: _reported(query, evidence=evidence, p=1.7 if _errs(query) else _part_chance(query, f"Claim {id}"))
        for id in fields["leaves"]["properties"]
    }
    return {"leaves": leaves}


def _part_chance(query: ModelQuery, name: str) -> float:
    """Return the probability of a claim, so that all parts of a question together come near its direct estimate."""
    sections = _sections(query)
    claim = _PAST_CASES.sub("", sections.get(name, query.last[:200]))  # They change from day to day.
    whole = sections.get("What is asked") or sections.get("What it is a part of")
    return chance(claim) if whole is None else _near(chance(whole) ** (1 / PLANNED), claim)


def _cases(query: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    """State that every child is needed; a clumsy model gives a case outside the order."""
    children = _children(query)
    cases: dict[str, Any] = {
        "kind": "all",
        "k": None,
        "direction": dict.fromkeys(children, "helps"),
        "none": 0.9 if _errs(query) else 0.0,
        "all": 0.95,
        "only": dict.fromkeys(children, 0.0),
        "order": children,
        "given": None,
        "outside": "",
    }
    if "but" in fields:
        cases["but"] = dict.fromkeys(children, 0.05)
    return _reported(query, **cases)


def _scenarios(query: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    """State the chance of the claim, or of every option, or the quantiles of a number, in each scenario."""

    def row(name: str, part: Mapping[str, Any]) -> Any:
        options = list(part.get("properties", {}))
        if not options:
            return chance(name)
        if MEDIAN in options:
            return _quantiles(query, part["properties"], chance(name))
        raw = [chance(f"{name}/{option}") for option in options]
        return {option: value / sum(raw) for option, value in zip(options, raw, strict=True)}

    then = {child: row(child, part) for child, part in fields["then"]["properties"].items()}
    return _reported(query, then=then, otherwise=row("otherwise", fields["otherwise"]))


def _reconciled(query: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Change nothing."""
    report = f"Both estimates are kept ({_mark(query)})."
    return {"report": report, "changes": [], "add": None, "direct": None, "direct_reason": ""}


def _correlate(query: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    ids = [id for _, id, _ in _NODE.findall(_sections(query)["Claims"])]
    pair = {"a": ids[0], "b": ids[1], "correlation": 0.8, "reason": f"shared causes ({_mark(query)})"}
    return {"pairs": [pair]}


def _children(query: ModelQuery) -> list[str]:
    return [name.removeprefix("Child ") for name in _sections(query) if name.startswith("Child ")]


def _reported(query: ModelQuery, **values: Any) -> dict[str, Any]:
    return {
        "report": f"The parts were weighed ({_mark(query)}).",
        "key_factor": "The weakest part decides.",
        **values,
    }


def _signed_weights(query: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    children = _children(query)
    weights = dict.fromkeys(children, round(0.9 / len(children), 4))
    return _reported(query, intercept=0.5 if _errs(query) else 0.05, weights=weights)


def _logic(query: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    children = _children(query)
    formula = f"({' OR '.join(children[:-1])}) AND {children[-1]} AND PA"
    if _errs(query):
        formula = f"{children[0]} AND ("
    return _reported(query, formula=formula, assumption={"text": "Nothing else gets in the way.", "p": 0.9})


def _noisy_or(query: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    children = _children(query)
    if "inhibitors" not in fields:
        return _reported(query, leak=0.05, strengths={child: round(chance(child), 3) for child in children})
    causes, obstacles = children[:-1], children if _errs(query) else children[-1:]
    numbers = [{child: round(chance(child), 3) for child in group} for group in (causes, obstacles)]
    return _reported(query, leak=0.05, strengths=numbers[0], inhibitors=numbers[1])


def _judge(query: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Answer for a judged parent, a plain leaf, or the conclusion of a notebook or a line of thought."""
    sections = _sections(query)
    claim = (
        sections.get("Claim")
        or sections.get("The claim")
        or next((text for name, text in sections.items() if name.startswith("The claim, ")), "")
    )
    more: dict[str, Any] = {"sources": ["/series/observations"]} if "sources" in fields else {}
    return _reported(query, p=1.7 if _errs(query) else chance(claim + sections.get("What was looked into", "")), **more)


def _cells(query: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return two rounds of cells: a plan with a computation, then a second look; a clumsy model fails in the first."""
    turns = replies_so_far(query)
    if turns == 0:
        line = "print(1 / 0)" if _errs(query) else "values = [1, 2, 3, 4]\nprint('mean', sum(values) / len(values))"
        plan = {"kind": "markdown", "source": f"Count first, then judge ({_mark(query)})."}
        return {"cells": [plan, {"kind": "python", "source": line}], "finished": False}
    if "a second look" not in query.words:
        again = {"kind": "python", "source": f"print('a second look', 6 * 7)  # {_mark(query)}"}
        return {"cells": [again], "finished": False}
    return {"cells": [{"kind": "markdown", "source": f"Enough ({_mark(query)})."}], "finished": True}


def _corrected(query: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    bad = query.model.startswith("stubborn")
    return {"source": f"print({'1 / 0' if bad else '7 * 6'})  # {_mark(query)}"}


def _thoughts(query: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return as many steps as requested, or the one that several are merged into."""
    sections = _sections(query)
    wanted = _TREE_STEPS.search(sections.get("Your task", ""))
    topic, part = _shortened(sections["The claim"]), query.hash[:6]
    thoughts = [
        {"claim": f"{aspect} for {topic}, part {part}, is settled by 31 December 2026.", "why": _mark(query)}
        for aspect in TREE_ASPECTS[: int(wanted[1]) if wanted else 1]
    ]
    if _errs(query):
        thoughts[0]["claim"] = "It happens next year."
    return {"thoughts": thoughts, "enough": False} if "thoughts" in fields else thoughts[0]


def _lines(query: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    ids = [] if _errs(query) else [name.removeprefix("Line ") for name in _sections(query) if name.startswith("Line ")]
    return {"lines": [{"id": id, "reason": _mark(query), "value": chance(id)} for id in ids]}


def _route(query: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Choose who examines a claim: notebook for numbers, deep research for complicated claims, otherwise search."""
    claim, available = _sections(query).get("Claim", ""), fields["examine_by"]["enum"]
    wanted = "deep" if "because" in claim else "notebook" if any(sign in claim for sign in "%$€") else "search"
    return {"examine_by": wanted if wanted in available else available[0], "reason": f"its words ({_mark(query)})"}


def _kind(query: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"reason": _mark(query), "kind": "news"}


TREE_PARTS: dict[str, ScriptPart] = {
    "happened_on": _outcome,
    "expansions": _expand,
    "parents": _plan,
    "leaves": _answered_leaves,
    "then": _scenarios,
    "direction": _cases,
    "direct_reason": _reconciled,
    "thoughts": _thoughts,
    "why": _thoughts,
    "lines": _lines,
    "pairs": _correlate,
    "intercept": _signed_weights,
    "formula": _logic,
    "strengths": _noisy_or,
    "cells": _cells,
    "source": _corrected,
    "kind": _kind,
    "examine_by": _route,
    "key_factor": _judge,
}
"""Field that only one role's answer has → that role's script, most specific first."""


def _research(query: ModelQuery) -> ScriptedReply:
    """Search once for the words of the claim, then conclude."""
    claim = _sections(query).get("Claim", query.last[:200])
    matches = _TREE_RESULT.findall(query.last)
    turns = replies_so_far(query)
    searching = any(tool.name == "web_search" for tool in query.tools)
    if query.force == "web_search" or (query.force != "conclude" and not turns and searching):
        return ScriptedReply(calls=(ScriptedCall(name="web_search", arguments={"query": claim}),))
    return ScriptedReply(calls=(ScriptedCall(name="conclude", arguments=_conclusion(query, matches)),))


def _conclusion(query: ModelQuery, results: Sequence[str]) -> dict[str, Any]:
    if _errs(query):
        return {"report": "", "key_factor": "", "sources": [], "p": 1.7}
    report = f"{len(results)} results were read{''.join(f' [{id}]' for id in results[:2])}; the rest is base rates."
    p = _part_chance(query, "Claim")
    return {"report": report, "key_factor": "Base rates.", "sources": list(results[:2]), "p": p}


# Roles in an arena: search, forecast from a context, score rationales, recall past events. Forecasts stay near the
# prices if these are shown.

ARENA_ASPECTS = ("latest report", "history", "schedule", "opinion", "numbers", "risks")
WILD = "<html><body>" + "<div class='ad'>buy</div>" * 40_000 + '{"rationale": "<b>'
OPPOSITE = "does NOT come true"
_PRICE = pattern(r"^- `(.+?)`: implied probability ([\d.]+)", re.MULTILINE)
_SOURCE = pattern(r"^\[\d+\] .+$", re.MULTILINE)
_LISTED = pattern(r"^- `(.+?)`: (.+)$", re.MULTILINE)


def arena_script(query: ModelQuery) -> ScriptedReply:
    """Reply for the role in an arena that the request addresses; other requests go to `tree_script`."""
    if query.tools or query.schema is None:
        return tree_script(query)
    if query.model.startswith("wild"):
        return ScriptedReply(text=WILD)
    fields: Mapping[str, Any] = query.schema.get("properties", {})
    part = next((part for name, part in ARENA_PARTS.items() if name in fields), None)
    return tree_script(query) if part is None else ScriptedReply(text=json.dumps(part(query, fields)))


def _question(query: ModelQuery) -> str:
    match = _QUESTION.search(query.words)
    return match[1].rstrip("?") if match else query.last[:80]


def _queries(query: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"queries": [f"{_question(query)} {aspect}" for aspect in ARENA_ASPECTS]}


def _ranking(query: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Rank the newest pages first and undated pages last."""
    pages = json.loads(query.last.rpartition("# Pages\n\n")[2])
    newest = sorted(pages, key=lambda page: page["date"] if page["date"] != "undated" else "", reverse=True)
    return {"ranking": [page["id"] for page in newest]}


def _summary(query: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    page = json.loads(query.last.rpartition("# Page\n\n")[2])
    first = page["text"].strip().split(". ")[0].rstrip(".")[:200]
    summary = f"{first}. The page is dated {page['date']}. Nothing else in it bears on the matter ({_mark(query)})."
    return {"title": page["title"] or "A page without a title", "summary": summary}


def _believed(query: ModelQuery, key: str) -> float:
    """Return a probability near the price if one is shown, otherwise a pseudo-random one; sources change it."""
    price = dict(_PRICE.findall(query.words)).get(key)
    chance = unit(f"{query.model}/{_question(query)}/{key}")
    if sources := _SOURCE.findall(query.words):
        chance = (chance + unit(f"{sources}/{key}")) / 2
    p = 0.05 + 0.9 * chance if price is None else min(0.98, max(0.02, float(price) + 0.1 * (chance - 0.5)))
    return round(1 - p if OPPOSITE in query.words else p, 4)


def _keys(fields: Mapping[str, Any], name: str) -> list[str]:
    return list(fields[name].get("properties", {}))


def _probabilities(query: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    p = {key: _believed(query, key) for key in _keys(fields, "probabilities")}
    if _errs(query):
        p = {key: round(100 * value, 1) for key, value in list(p.items())[1:]} | {"somebody else": 3}
    return {"rationale": f"Prices and reports were weighed ({_mark(query)}).", "probabilities": p}


def _votes(query: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    votes: dict[str, Any] = {}
    for key, part in fields["answers"]["properties"].items():
        sure = _believed(query, key)
        word = "yes" if sure > unit(f"{query.hash}/{key}") else "no"
        confidence = round(sure if word == "yes" else 1 - sure, 3)
        votes[key] = {"answer": word, "confidence": confidence} if "properties" in part else word
    return {"rationale": f"It was decided ({_mark(query)}).", "answers": {} if _errs(query) else votes}


def _scores(query: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Score longer rationales higher, so that a test can tell them apart."""
    try:
        length = len(json.loads(query.last)["rationale"])
    except (ValueError, KeyError, TypeError):
        length = 0
    base = 0 if _errs(query) else min(5, 1 + length // 100)
    return {name: {"reason": f"{length} characters ({_mark(query)}).", "score": base} for name in fields}


def _recall(query: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    knows = query.model.startswith("scholar") or unit(f"{query.model}/{_question(query)}") > 0.5
    keys = _keys(fields, "probabilities")
    first = keys[0]
    words = {key: ("yes" if key == first else "no") if knows else "unknown" for key in keys}
    facts = ["It was in the papers.", f"{first} came first."] if knows else []
    p = {key: 0.95 if knows and key == first else 0.05 if knows else 0.5 for key in keys}
    recognised = "maybe" if _errs(query) else knows
    recalled = {"facts": facts, "recalled": words, "rationale": _mark(query), "probabilities": p}
    return {"recognised": recognised, **recalled}


def _structure(query: ModelQuery, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Order ladders by their numbers: "above 5" implies "above 3"."""
    listed = _LISTED.findall(query.last)
    strikes = [(float(n[1]), key) for key, label in listed if (n := re.search(r"[Aa]bove ([\d.]+\d)", label))]
    chain = [key for _, key in sorted(strikes, reverse=True)]
    chains = [["nobody"]] if _errs(query) else [chain] if len(chain) > 1 else []
    rest = [] if chains or len(listed) < 2 else [key for key, _ in listed]
    return {"reason": _mark(query), "chains": chains, "exclusive": rest}


ARENA_PARTS: dict[str, ScriptPart] = {
    "queries": _queries,
    "ranking": _ranking,
    "summary": _summary,
    "recognised": _recall,
    "probabilities": _probabilities,
    "answers": _votes,
    "alignment": _scores,
    "chains": _structure,
}
"""Field that only one role's answer has → that role's script, most specific first."""
