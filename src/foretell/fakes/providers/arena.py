"""A fake that plays all parts of an arena: searcher, forecaster on a context, judge of reasons, witness of the past.

What it says is a function of the request alone. Where prices are shown it stays near them. A `clumsy` model answers in
percentages and leaves an outcome out at first, and gets it right when it is told what was wrong; a `stubborn` one never
does; a `wild` one only ever sends a huge broken web page; a `scholar` remembers every event. Everything that is not its
part goes to the fake of trees and research.
"""

import json
import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

from foretell.fakes.providers.heard import Heard, Said
from foretell.fakes.providers.tree import tree

ASPECTS = ("latest report", "history", "schedule", "opinion", "numbers", "risks")
AGAIN = "could not be used"
"""Stands in every objection to an answer."""
WILD = "<html><body>" + "<div class='ad'>buy</div>" * 40_000 + '{"rationale": "<b>'
OPPOSITE = "does NOT come true"
_QUESTION = re.compile(r"^# Question\s+(.+?)\s*$", re.MULTILINE)
_PRICE = re.compile(r"^- `(.+?)`: implied probability ([\d.]+)", re.MULTILINE)
_LISTED = re.compile(r"^- `(.+?)`: (.+)$", re.MULTILINE)


def arena(heard: Heard) -> Said:
    """The next answer in whichever part is asked for."""
    if heard.tools or heard.schema is None:
        return tree(heard)
    if heard.model.startswith("wild"):
        return Said(text=WILD)
    fields: Mapping[str, Any] = heard.schema.get("properties", {})
    part = next((part for name, part in PARTS.items() if name in fields), None)
    return tree(heard) if part is None else Said(text=json.dumps(part(heard, fields)))


def unit(text: str) -> float:
    """Any number from 0 to 1, the same for the same words."""
    return int(sha256(text.encode()).hexdigest()[:8], 16) / 0xFFFFFFFF


def _wrong(heard: Heard) -> bool:
    return heard.model.startswith("stubborn") or (heard.model.startswith("clumsy") and AGAIN not in heard.words)


def _mark(heard: Heard) -> str:
    return f"#{heard.hash[:12]}"


def _asked(heard: Heard) -> str:
    found = _QUESTION.search(heard.words)
    return found[1].rstrip("?") if found else heard.last[:80]


def _queries(heard: Heard, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"queries": [f"{_asked(heard)} {aspect}" for aspect in ASPECTS]}


def _ranking(heard: Heard, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The newest first; undated pages last."""
    pages = json.loads(heard.last.rpartition("# Pages\n\n")[2])
    newest = sorted(pages, key=lambda page: page["date"] if page["date"] != "undated" else "", reverse=True)
    return {"ranking": [page["id"] for page in newest]}


def _summary(heard: Heard, fields: Mapping[str, Any]) -> dict[str, Any]:
    page = json.loads(heard.last.rpartition("# Page\n\n")[2])
    first = page["text"].strip().split(". ")[0].rstrip(".")[:200]
    told = f"{first}. The page is dated {page['date']}. Nothing else in it bears on the matter ({_mark(heard)})."
    return {"title": page["title"] or "A page without a title", "summary": told}


def _believed(heard: Heard, key: str) -> float:
    """Near the price where one is shown, else anything."""
    price = dict(_PRICE.findall(heard.words)).get(key)
    chance = unit(f"{heard.model}/{_asked(heard)}/{key}")
    p = 0.05 + 0.9 * chance if price is None else min(0.98, max(0.02, float(price) + 0.1 * (chance - 0.5)))
    return round(1 - p if OPPOSITE in heard.words else p, 4)


def _keys(fields: Mapping[str, Any], name: str) -> list[str]:
    return list(fields[name].get("properties", {}))


def _probabilities(heard: Heard, fields: Mapping[str, Any]) -> dict[str, Any]:
    p = {key: _believed(heard, key) for key in _keys(fields, "probabilities")}
    if _wrong(heard):
        p = {key: round(100 * value, 1) for key, value in list(p.items())[1:]} | {"somebody else": 3}
    return {"rationale": f"Prices and reports were weighed ({_mark(heard)}).", "probabilities": p}


def _votes(heard: Heard, fields: Mapping[str, Any]) -> dict[str, Any]:
    votes: dict[str, Any] = {}
    for key, part in fields["answers"]["properties"].items():
        sure = _believed(heard, key)
        word = "yes" if sure > unit(f"{heard.hash}/{key}") else "no"
        confidence = round(sure if word == "yes" else 1 - sure, 3)
        votes[key] = {"answer": word, "confidence": confidence} if "properties" in part else word
    return {"rationale": f"It was decided ({_mark(heard)}).", "answers": {} if _wrong(heard) else votes}


def _scores(heard: Heard, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Longer reasons get better marks, so that a test can tell them apart."""
    try:
        length = len(json.loads(heard.last)["rationale"])
    except (ValueError, KeyError, TypeError):
        length = 0
    base = 0 if _wrong(heard) else min(5, 1 + length // 100)
    return {name: {"reason": f"{length} characters ({_mark(heard)}).", "score": base} for name in fields}


def _recall(heard: Heard, fields: Mapping[str, Any]) -> dict[str, Any]:
    knows = heard.model.startswith("scholar") or unit(f"{heard.model}/{_asked(heard)}") > 0.5
    keys = _keys(fields, "probabilities")
    first = keys[0]
    words = {key: ("yes" if key == first else "no") if knows else "unknown" for key in keys}
    facts = ["It was in the papers.", f"{first} came first."] if knows else []
    p = {key: 0.95 if knows and key == first else 0.05 if knows else 0.5 for key in keys}
    told = {"rationale": _mark(heard), "probabilities": p}
    return {"recognised": "maybe" if _wrong(heard) else knows, "facts": facts, "recalled": words, **told}


def _structure(heard: Heard, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Ladders by their numbers: "above 5" implies "above 3"."""
    listed = _LISTED.findall(heard.last)
    strikes = [(float(n[1]), key) for key, label in listed if (n := re.search(r"[Aa]bove ([\d.]+\d)", label))]
    chain = [key for _, key in sorted(strikes, reverse=True)]
    chains = [["nobody"]] if _wrong(heard) else [chain] if len(chain) > 1 else []
    rest = [] if chains or len(listed) < 2 else [key for key, _ in listed]
    return {"reason": _mark(heard), "chains": chains, "exclusive": rest}


PARTS: dict[str, Callable[[Heard, Mapping[str, Any]], dict[str, Any]]] = {
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
