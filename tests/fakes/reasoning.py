"""A model that plays every request of the forecaster `reason` with stated numbers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foretell.practice.models.formats import ModelQuery, ScriptedCall, ScriptedReply
from foretell.practice.models.scripts import tree_script

CLAIMS = (
    "The council votes for the crossing by 31 March 2027.",
    "The ministry grants its permit by 30 June 2027.",
    "The court rejects the neighbours' complaint by 30 September 2027.",
    "The contractor finishes the northern ramp by 30 November 2027.",
    "Financing of the second lane is signed by 31 May 2027.",
    "A strike of the dock workers ends by 15 April 2027.",
)


def by_child(numbers: Sequence[float]) -> dict[str, float]:
    return {f"P{place}": number for place, number in enumerate(numbers, start=1)}


def cases(
    kind: str,
    none: float,
    only: Sequence[float],
    all: float,
    *,
    but: Sequence[float] = (),
    given: Sequence[float] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return the reply that states cases."""
    children = list(by_child(only))
    stated: dict[str, Any] = {
        "report": "The parts decide it.",
        "key_factor": "The weakest part.",
        "kind": kind,
        "k": None,
        "direction": dict.fromkeys(children, "helps"),
        "none": none,
        "all": all,
        "only": by_child(only),
        "order": children,
        "given": None if given is None else by_child(given),
        "outside": "",
    }
    return {**stated, **({"but": by_child(but)} if len(children) > 2 else {}), **more}


UNCHANGED: Mapping[str, Any] = {
    "report": "Both stand.", "changes": [], "add": None, "direct": None, "direct_reason": ""
}  # fmt: skip


@dataclass
class ReasonScript:
    """Replies with these numbers, and records what it was asked."""

    direct: Any
    """The scout's probability, or one for each option."""
    leaves: Sequence[float]
    """Probabilities of P1, P2, …"""
    kind: str = "all"
    synthesis: Sequence[Mapping[str, Any]] = ()
    """Replies of the synthesizer, in order; the last one is repeated."""
    reconciled: Mapping[str, Any] = field(default_factory=lambda: UNCHANGED)
    answered: int = 0
    """How many leaves the evidence answers, from the first one on."""
    structure: str = "all"
    parts: int = 3
    facts: Sequence[str] = ("The council discussed the crossing.",)
    """The fact that each trial finds; the last one is repeated."""
    directs: Sequence[Any] = ()
    """The scout's probability in each trial, in place of `direct`; the last one is repeated."""
    searches: bool = True
    """Whether it searches before it answers."""
    asked: list[tuple[str, ModelQuery]] = field(default_factory=list)
    """What was asked, in order: scout, plan, answered, leaf, cases, reconcile or other."""

    def of(self, what: str) -> list[str]:
        return [query.words for asked, query in self.asked if asked == what]

    def __call__(self, query: ModelQuery) -> ScriptedReply:
        what, reply = self._reply(query)
        self.asked.append((what, query))
        return reply

    def _reply(self, query: ModelQuery) -> tuple[str, ScriptedReply]:
        tools = {tool.name for tool in query.tools}
        fields = set((query.schema or {}).get("properties", {}))
        if "submit" in tools:
            return "scout", self._scout(query)
        if "conclude" in tools:
            return "leaf", self._leaf(query)
        if "parents" in fields:
            return "plan", _json(self._plan())
        if "expansions" in fields:
            return "plan", _json(self._expansions())
        if "leaves" in fields:
            assert query.schema is not None
            ids = query.schema["properties"]["leaves"]["properties"]
            leaf = {"report": "E1 says so.", "key_factor": "E1.", "evidence": ["E1"]}
            return "answered", _json({"leaves": {id: {**leaf, "p": self._p(id)} for id in ids}})
        if "direct_reason" in fields:
            return "reconcile", _json(self.reconciled)
        if fields & {"direction", "then", "weights"}:
            place = min(len(self.of("cases")), len(self.synthesis) - 1)
            return "cases", _json(self.synthesis[place])
        return "other", tree_script(query)

    def _p(self, id: str) -> float:
        return self.leaves[int(id.removeprefix("P")) - 1]

    def _scout(self, query: ModelQuery) -> ScriptedReply:
        first = "[search_" not in query.words
        trial = sum("[search_" not in words for words in self.of("scout")) - (not first)
        direct = self.directs[min(trial, len(self.directs) - 1)] if self.directs else self.direct
        belief = {
            "reason": "As found.",
            "p": direct,
            "confidence": "medium",
            "evidence_for": [{"claim": self.facts[min(trial, len(self.facts) - 1)], "source_id": "question"}],
            "evidence_against": [],
            "retract": [],
            "open_questions": ["When is the vote?"],
        }
        if first and self.searches:
            searches = [{"updated_belief": belief, "query": f"{words} crossing"} for words in ("vote", "permit")]
            return ScriptedReply(calls=tuple(ScriptedCall(name="web_search", arguments=call) for call in searches))
        final = {"reason": "As found.", "p": direct, "structure": self.structure, "parts": self.parts}
        return ScriptedReply(calls=(ScriptedCall(name="submit", arguments={"updated_belief": belief, **final}),))

    def _plan(self) -> dict[str, Any]:
        children = [
            {
                "id": f"c{place}",
                "claim": CLAIMS[place],
                "state": "answered" if place < self.answered else "open",
                "evidence": ["E1"] if place < self.answered else [],
            }
            for place in range(len(self.leaves))
        ]
        return {"parents": [{"parent": "P0", "kind": self.kind, "why": "As it is.", "children": children}]}

    def _expansions(self) -> dict[str, Any]:
        """Return the plan in the form of the forecaster `tree`."""
        children = [{"id": f"c{place}", "claim": CLAIMS[place]} for place in range(len(self.leaves))]
        expansion = {"parent": "P0", "causality": "As it is.", "children": children}
        return {"plan": "As it is.", "expansions": [expansion], "complete": True}

    def _leaf(self, query: ModelQuery) -> ScriptedReply:
        claim = next(place for place, text in enumerate(CLAIMS) if f"# Claim\n\n{text}" in query.words)
        if self.searches and query.force != "conclude" and "[search_" not in query.words:
            return ScriptedReply(calls=(ScriptedCall(name="web_search", arguments={"query": CLAIMS[claim]}),))
        conclusion = {"report": "As found.", "key_factor": "Found.", "sources": [], "p": self.leaves[claim]}
        return ScriptedReply(calls=(ScriptedCall(name="conclude", arguments=conclusion),))


def _json(reply: Mapping[str, Any]) -> ScriptedReply:
    return ScriptedReply(text=json.dumps(reply))
