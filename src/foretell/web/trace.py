"""One trial step by step: what it looked for, what it saw, what was kept from it, and what it believed after each."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

from foretell.questions import trace as kinds
from foretell.questions.trace import TraceEvent
from foretell.report.trace import describe_event
from foretell.tools.fence import unmarked
from foretell.tools.names import WEB_SEARCH
from foretell.web.run_rows import SpendingView

SOURCE_HEAD = re.compile(r"^\[([\w.-]{1,80})\] (.{0,1000})$", re.MULTILINE)
"""The first line of a result as a model sees it, and of a source at the end of a rationale."""
URL_PATTERN = re.compile(r"^(.*?)\s*(https?://\S+)$")
ADDRESS_AND_DATE = re.compile(r"^(.{0,600}?) \((https?://[^\s,()]{1,300})(?:, ([^()]{1,40}))?\)$")
"""How a result's first line ends: where it is from, and its date."""


def trace_view(events: Sequence[tuple[int, TraceEvent]], rationale: str = "") -> dict[str, Any]:
    """The trace that the events of one cell tell; the rationale adds the addresses of what was cited."""
    happened = [event for _, event in events]
    beliefs = [event for event in happened if isinstance(event, kinds.BeliefRevised)]
    used = [event for event in happened if isinstance(event, kinds.ToolUsed)]
    sources = _sources([(number, event) for number, event in events if isinstance(event, kinds.ToolUsed)], rationale)
    last: Mapping[str, Any] = beliefs[-1].belief if beliefs else {}
    return {
        "happenings": [_event_view(number, event) for number, event in events],
        # The belief after every step that changed it; evidence is that of the last.
        "path": [
            {
                "step": b.step,
                "p": b.p,
                "reason": b.reason,
                "confidence": str(b.belief.get("confidence", "")),
                # What was cited here for the first time.
                "cited": new,
            }
            for b, new in zip(beliefs, _first_cited(beliefs, sources), strict=True)
        ],
        "evidence_for": _evidence(last.get("evidence_for"), sources),
        "evidence_against": _evidence(last.get("evidence_against"), sources),
        "open_questions": [str(one) for one in last.get("open_questions") or ()],
        "searches": [str(event.arguments.get("query", "")) for event in used if event.tool == WEB_SEARCH],
        "tools": Counter(event.tool for event in used),
        "withheld": Counter(event.layer for event in happened if isinstance(event, kinds.LeakBlocked)),
        "spending": SpendingView().plus(happened),
        "how": next((event.how for event in reversed(happened) if isinstance(event, kinds.ForecastMade)), ""),
    }


def _first_cited(
    beliefs: Sequence[kinds.BeliefRevised], sources: Mapping[str, dict[str, Any]]
) -> list[list[dict[str, Any]]]:
    """For each belief, the evidence that none before it had."""
    seen: set[tuple[str, str]] = set()
    found: list[list[dict[str, Any]]] = []
    for one in beliefs:
        both = [
            *_evidence(one.belief.get("evidence_for"), sources),
            *_evidence(one.belief.get("evidence_against"), sources),
        ]
        new = [item for item in both if item["source"] and (item["source"]["id"], item["claim"]) not in seen]
        seen |= {(item["source"]["id"], item["claim"]) for item in new}
        found.append(new)
    return found


MOST_MOVES = 8


def what_moved(traces: Sequence[Mapping[str, Any]], target: str) -> list[dict[str, Any]]:
    """Evidence by how far belief in a target moved when it was first cited, on average over the trials that cite it.

    Pieces that were cited at once share the move of that step. What moved it less than half a point is left out.
    """
    moves: dict[str, list[float]] = {}
    shown: dict[str, dict[str, Any]] = {}
    for trace in traces:
        before: float | None = None
        own: dict[str, float] = {}
        for point in trace["path"]:
            p = point["p"].get(target)
            if p is not None and before is not None:
                for item in point["cited"]:
                    key = item["source"]["url"] or item["source"]["title"]
                    own[key] = own.get(key, 0.0) + (p - before) / len(point["cited"])
                    shown.setdefault(key, item)
            before = before if p is None else p
        for key, move in own.items():
            moves.setdefault(key, []).append(move)
    means = {key: sum(found) / len(found) for key, found in moves.items()}
    ranked = sorted((key for key in means if abs(means[key]) >= 0.005), key=lambda key: -abs(means[key]))
    return [{**shown[key], "move": means[key], "trials": len(moves[key])} for key in ranked[:MOST_MOVES]]


def _event_view(number: int, event: TraceEvent) -> dict[str, Any]:
    """One event; which fields are filled depends on its kind. Live streams use the same number."""
    view = dict.fromkeys(("title", "text", "url", "published"), "")
    view |= {"id": number, "step": None, "arguments": {}, "sources": (), "p": {}, "failed": False}
    view |= {"dollars": None, "replayed": False}
    match event:
        case kinds.ModelCalled():
            text = f"{event.model}: {event.input_tokens:,} tokens read, {event.output_tokens:,} written"
            view |= {"kind": "model", "title": event.role, "text": text}
            view |= {"dollars": event.dollars, "replayed": event.replayed}
        case kinds.ToolUsed():
            given = {name: str(value) for name, value in event.arguments.items() if name != "updated_belief"}
            view |= {"kind": "tool", "step": event.step, "title": event.tool, "text": event.result}
            view |= {"arguments": given, "sources": event.sources, "failed": event.failed}
        case kinds.LeakBlocked():
            view |= {"kind": "withheld", "title": event.title or event.layer, "text": f"{event.layer}: {event.reason}"}
            view |= {"url": event.url, "published": event.published}
        case kinds.BeliefRevised():
            view |= {"kind": "belief", "step": event.step, "text": event.reason, "p": event.p}
        case kinds.ForecastMade():
            view |= {"kind": "answer", "text": event.how, "p": event.p}
        case kinds.Failed():
            view |= {"kind": "failed", "text": event.error, "failed": True}
        case _:
            view |= {"kind": "tree", "text": describe_event(event)}
    return view


def _evidence(written: Any, sources: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Claims with their sources; None where the model named none, or one that does not exist."""
    items = cast("Sequence[Any]", written) if isinstance(written, list | tuple) else ()
    claims = [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]
    found: list[dict[str, Any]] = []
    for claim in claims:
        id = str(claim.get("source_id", ""))
        source = sources.get(id) or (source_view(id, id) if id else None)
        found.append({"claim": str(claim.get("claim", "")), "source": source})
    return found


def _sources(used: Sequence[tuple[int, kinds.ToolUsed]], rationale: str) -> dict[str, dict[str, Any]]:
    """By id: the title as the model saw it, its date and address where they are told, and the event that shows it."""
    found: dict[str, dict[str, Any]] = {"question": source_view("question", "the question itself")}
    for number, event in used:
        heads = {id: title for id, title in SOURCE_HEAD.findall(unmarked(event.result))[:200]}
        url = str(event.arguments.get("url", "")) if len(event.sources) == 1 else ""
        for id in event.sources:
            head = heads.get(id, id)
            parts = ADDRESS_AND_DATE.match(head)
            title, address, date = (parts[1], parts[2], parts[3] or "") if parts else (head, url, "")
            found[id] = source_view(id, title, address or url, date, number)
    for id, line in SOURCE_HEAD.findall(rationale[-100_000:]):
        if id in found and (cited := URL_PATTERN.match(line)):
            title = found[id]["title"] if found[id]["date"] else cited[1] or found[id]["title"]
            found[id] |= {"title": title, "url": cited[2]}
    return found


def source_view(id: str, title: str, url: str = "", date: str = "", seen: int | None = None) -> dict[str, Any]:
    """A source as pages show it; `seen` is the event in which the model saw it."""
    return {"id": id, "title": title, "url": url, "date": date, "seen": seen}
