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

from foretell.fakes.providers.heard import Call, Heard, Said
from foretell.fakes.providers.step_by_step import step_by_step

ASPECTS = (
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
_STEPS = re.compile(r"Name (\d+) different steps")
_RESULT = re.compile(r"^\[(\w+)\] ", re.MULTILINE)
AGAIN = "could not be used"
"""Stands in every objection to an answer."""


def tree(heard: Heard) -> Said:
    """The next answer in whichever part is asked for."""
    if any(tool.name == "conclude" for tool in heard.tools):
        return _research(heard)
    if heard.schema is None or heard.tools:
        return step_by_step(heard)
    fields: Mapping[str, Any] = heard.schema.get("properties", {})
    part = next((part for name, part in PARTS.items() if name in fields), None)
    return step_by_step(heard) if part is None else Said(text=json.dumps(part(heard, fields)))


def _sections(heard: Heard) -> dict[str, str]:
    """The headed parts of the task, the last of each name."""
    return {name: text.strip() for name, text in _SECTION.findall(heard.words)}


def _mark(heard: Heard) -> str:
    return f"#{heard.hash[:12]}"


def _clumsy(heard: Heard) -> bool:
    return heard.model.startswith("stubborn") or (heard.model.startswith("clumsy") and AGAIN not in heard.words)


def _turns(heard: Heard) -> int:
    """How often it has spoken in this conversation."""
    messages = heard.json.get("messages") or heard.json.get("contents") or ()
    return sum(message.get("role") in ("assistant", "model") for message in messages)


def chance(text: str) -> float:
    """Any probability, the same for the same words."""
    return round(0.1 + 0.8 * int(sha256(text.encode()).hexdigest()[:8], 16) / 0xFFFFFFFF, 4)


def _expand(heard: Heard, fields: Mapping[str, Any]) -> dict[str, Any]:
    told = _sections(heard)
    nodes = [(len(indent), id) for indent, id, _ in _NODE.findall(told["The tree so far"])]
    root = nodes[0][1]
    counted = _COUNT.search(heard.model)
    topic = told["What is asked"].removeprefix("Will ").rstrip("?.")
    if counted:
        found = [_expansion(root, int(counted[1]), topic, heard)] if len(nodes) == 1 else []
        return {"plan": _mark(heard), "expansions": found, "complete": True}
    first = nodes[1][1] if len(nodes) > 1 else ""
    found = [_expansion(first, 2, topic, heard)] if first else [_expansion(root, 3, topic, heard)]
    return {"plan": _mark(heard), "expansions": found, "complete": bool(first)}


def _expansion(parent: str, count: int, topic: str, heard: Heard) -> dict[str, Any]:
    claims = [_claim(parent, n, topic) for n in range(count)]
    if _clumsy(heard):
        claims[0] = "It happens next year."
    children = [{"id": f"new{n}", "claim": claim} for n, claim in enumerate(claims, start=1)]
    return {"parent": parent, "causality": f"Each part is needed ({_mark(heard)}).", "children": children}


def _claim(parent: str, place: int, topic: str) -> str:
    """A statement of its own for every place in the tree."""
    path = [int(number) for number in parent.removeprefix("P").split(".")]
    lot = "".join(chr(ord("a") + number % 26) for number in [*path, place])
    aspect = ASPECTS[(sum(path) * 3 + place) % len(ASPECTS)]
    return f"{aspect} on lot {lot} of {' '.join(topic.split()[:4])} is settled by 31 December 2026."


def _correlate(heard: Heard, fields: Mapping[str, Any]) -> dict[str, Any]:
    ids = [id for _, id, _ in _NODE.findall(_sections(heard)["Claims"])]
    pair = {"a": ids[0], "b": ids[1], "correlation": 0.8, "reason": f"shared causes ({_mark(heard)})"}
    return {"pairs": [pair]}


def _children(heard: Heard) -> list[str]:
    return [name.removeprefix("Child ") for name in _sections(heard) if name.startswith("Child ")]


def _reported(heard: Heard, **values: Any) -> dict[str, Any]:
    return {"report": f"The parts were weighed ({_mark(heard)}).", "key_factor": "The weakest part decides.", **values}


def _linear(heard: Heard, fields: Mapping[str, Any]) -> dict[str, Any]:
    children = _children(heard)
    raw = {child: 1 + chance(child) for child in children}
    scale = 3.0 if _clumsy(heard) else 0.9
    weights = {child: round(scale * one / sum(raw.values()), 4) for child, one in raw.items()}
    return _reported(heard, intercept=0.4 if _clumsy(heard) else 0.05, weights=weights)


def _logic(heard: Heard, fields: Mapping[str, Any]) -> dict[str, Any]:
    children = _children(heard)
    formula = f"({' OR '.join(children[:-1])}) AND {children[-1]} AND PA"
    if _clumsy(heard):
        formula = f"{children[0]} AND ("
    return _reported(heard, formula=formula, assumption={"text": "Nothing else gets in the way.", "p": 0.9})


def _noisy_or(heard: Heard, fields: Mapping[str, Any]) -> dict[str, Any]:
    children = _children(heard)
    if "inhibitors" not in fields:
        return _reported(heard, leak=0.05, strengths={child: round(chance(child), 3) for child in children})
    causes, obstacles = children[:-1], children if _clumsy(heard) else children[-1:]
    numbers = [{child: round(chance(child), 3) for child in some} for some in (causes, obstacles)]
    return _reported(heard, leak=0.05, strengths=numbers[0], inhibitors=numbers[1])


def _judge(heard: Heard, fields: Mapping[str, Any]) -> dict[str, Any]:
    """A judged parent, a plain leaf, or the conclusion of a notebook or of a line of thought."""
    told = _sections(heard)
    claim = (
        told.get("Claim")
        or told.get("The claim")
        or next((text for name, text in told.items() if name.startswith("The claim, ")), "")
    )
    more: dict[str, Any] = {"sources": ["/series/observations"]} if "sources" in fields else {}
    return _reported(heard, p=1.7 if _clumsy(heard) else chance(claim + told.get("What was looked into", "")), **more)


def _cells(heard: Heard, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Two rounds of cells: a plan with a computation, then a second look; a clumsy one stumbles in the first."""
    turns = _turns(heard)
    if turns == 0:
        line = "print(1 / 0)" if _clumsy(heard) else "values = [1, 2, 3, 4]\nprint('mean', sum(values) / len(values))"
        plan = {"kind": "markdown", "source": f"Count first, then judge ({_mark(heard)})."}
        return {"cells": [plan, {"kind": "python", "source": line}], "finished": False}
    if "a second look" not in heard.words:
        again = {"kind": "python", "source": f"print('a second look', 6 * 7)  # {_mark(heard)}"}
        return {"cells": [again], "finished": False}
    return {"cells": [{"kind": "markdown", "source": f"Enough ({_mark(heard)})."}], "finished": True}


def _corrected(heard: Heard, fields: Mapping[str, Any]) -> dict[str, Any]:
    bad = heard.model.startswith("stubborn")
    return {"source": f"print({'1 / 0' if bad else '7 * 6'})  # {_mark(heard)}"}


def _thoughts(heard: Heard, fields: Mapping[str, Any]) -> dict[str, Any]:
    """As many steps as are wanted, or the one that several are joined into."""
    told = _sections(heard)
    wanted = _STEPS.search(told.get("Your task", ""))
    lot = "".join(chr(ord("a") + int(digit, 16)) for digit in heard.hash[:6])
    topic = " ".join(told["The claim"].split()[:4])
    found = [
        {"claim": f"{aspect} on lot {lot} of {topic} is settled by 31 December 2026.", "why": _mark(heard)}
        for aspect in ASPECTS[: int(wanted[1]) if wanted else 1]
    ]
    if _clumsy(heard):
        found[0]["claim"] = "It happens next year."
    return {"thoughts": found, "enough": False} if "thoughts" in fields else found[0]


def _lines(heard: Heard, fields: Mapping[str, Any]) -> dict[str, Any]:
    ids = (
        [] if _clumsy(heard) else [name.removeprefix("Line ") for name in _sections(heard) if name.startswith("Line ")]
    )
    return {"lines": [{"id": id, "reason": _mark(heard), "value": chance(id)} for id in ids]}


def _kind(heard: Heard, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"reason": _mark(heard), "kind": "news"}


PARTS: dict[str, Callable[[Heard, Mapping[str, Any]], dict[str, Any]]] = {
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


def _research(heard: Heard) -> Said:
    """One search in the words of the claim, then the conclusion."""
    claim = _sections(heard).get("Claim", heard.last[:200])
    found = _RESULT.findall(heard.last)
    turns = _turns(heard)
    searching = any(tool.name == "web_search" for tool in heard.tools)
    if heard.force != "conclude" and not turns and searching:
        return Said(calls=(Call(name="web_search", arguments={"query": claim}),))
    return Said(calls=(Call(name="conclude", arguments=_conclusion(heard, claim, found)),))


def _conclusion(heard: Heard, claim: str, found: Sequence[str]) -> dict[str, Any]:
    if _clumsy(heard):
        return {"report": "", "key_factor": "", "sources": [], "p": 1.7}
    report = f"{len(found)} results were read{''.join(f' [{id}]' for id in found[:2])}; the rest is base rates."
    return {"report": report, "key_factor": "Base rates.", "sources": list(found[:2]), "p": chance(claim)}
