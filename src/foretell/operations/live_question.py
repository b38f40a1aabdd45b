"""The live view of a question in progress: current beliefs of its trials, and what each is reading."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from foretell.forecasters.agent.settings import AgentSettings
from foretell.forecasters.combine.aggregate import Aggregate, Rule
from foretell.models.waiting import USUAL_SECONDS
from foretell.questions.trace import BeliefRevised, ForecastMade, ToolUsed, TraceEvent
from foretell.tools.fence import unmarked
from foretell.tools.names import FETCH_PRICES, FETCH_SERIES, FETCH_WIKIPEDIA, LOOKUP_URL, SUMMARIZE_RESULTS, WEB_SEARCH

LONGEST_EXCERPT = 700
"""Maximum length of an excerpt."""
TOOL_WORDS: Mapping[str, str] = {
    WEB_SEARCH: "reading search results",
    SUMMARIZE_RESULTS: "reading a summary",
    LOOKUP_URL: "reading a page",
    FETCH_SERIES: "reading a data series",
    FETCH_PRICES: "reading market prices",
    FETCH_WIKIPEDIA: "reading Wikipedia",
}
_LIMITS = AgentSettings()
_SOURCE = re.compile(r"^\[[\w.-]{1,80}\] (.{0,1000})$", re.MULTILINE)
"""The first line of a source as a model sees it."""


def live_view(
    trials: Sequence[Mapping[str, Any]], events: Mapping[int, Sequence[tuple[int, TraceEvent]]], rule: Rule
) -> dict[str, Any]:
    """Current beliefs and reading of the trials of an unfinished question."""
    standing = [one for trial in trials if not trial["panel"] and (one := _standing(trial)) is not None]
    said = [one["p"] for one in standing]
    alike = bool(said) and all(one.keys() == said[0].keys() for one in said)
    return {
        "p": Aggregate(rule=rule).apply(said) if alike else None,
        "trials": standing,
        "reading": [
            {"trial": trial["number"], **found}
            for trial in trials
            if trial["state"] == "under way" and (found := _being_read(events.get(trial["number"], ()))) is not None
        ],
    }


def _standing(trial: Mapping[str, Any]) -> dict[str, Any] | None:
    """The answer of a trial, or its last belief; None if it has neither."""
    path = trial["trace"]["path"]
    p = trial["p"] or (path[-1]["p"] if path else None)
    return None if not p else {"number": trial["number"], "p": dict(p), "answered": trial["p"] is not None}


def _being_read(events: Sequence[tuple[int, TraceEvent]]) -> dict[str, Any] | None:
    """The latest tool result, if nothing happened since: the model is reading it."""
    for number, event in reversed(events):
        if isinstance(event, ToolUsed):
            text = unmarked(event.result).strip()
            # What our own words around it say is for the model: a reader sees the first source.
            source = _SOURCE.search(text)
            return {
                "event": number,
                "step": event.step,
                "tool": event.tool,
                "doing": TOOL_WORDS.get(event.tool, f"reading what {event.tool} returned"),
                "asked": next((str(value) for name, value in event.arguments.items() if name in ("query", "url")), ""),
                "title": source[1] if source else "",
                "text": (text[source.end() :] if source else text).strip()[:LONGEST_EXCERPT],
                "length": len(text),
                "failed": event.failed,
            }
        if isinstance(event, BeliefRevised | ForecastMade):
            return None
    return None


def limits_of(spec: Mapping[str, Any]) -> dict[str, float]:
    """Maximum steps and seconds of a trial."""
    options: Mapping[str, Any] = spec.get("options") or {}
    return {
        "steps": int(options.get("steps", _LIMITS.steps)),
        "seconds": float(options.get("seconds") or USUAL_SECONDS),
    }
