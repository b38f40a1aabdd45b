"""What a trial waits for, in words: a reply of a model, or the result of a tool."""

import json
from collections.abc import Mapping
from typing import Any, cast

from foretell.number_text import plural
from foretell.tools.tool import (
    CALCULATE,
    FETCH_PRICES,
    FETCH_SERIES,
    FETCH_WIKIPEDIA,
    LOOKUP_URL,
    SERIES_STATS,
    SUMMARIZE_RESULTS,
    WEB_SEARCH,
)

FIRST_ESTIMATE = "asking {} for its first estimate"
ASKING: Mapping[str, str] = {
    "agent": "asking {} for its estimate and the next step",
    "filter": "checking with {} that no source is too recent",
    "summariser": "summarising sources with {}",
    "auditor": "checking sources with {}",
    "analyzer": "asking {} to break a claim down",
    "grounder": "asking {} to research a claim",
    "synthesizer": "asking {} to put claims together",
    "judge": "asking {} to judge the trials",
}
"""Role of a model → what is asked of it."""
USING: Mapping[str, str] = {
    WEB_SEARCH: "searching for “{}”",
    SUMMARIZE_RESULTS: "summarising {}",
    LOOKUP_URL: "opening {}",
    FETCH_SERIES: "fetching the series {}",
    FETCH_PRICES: "fetching market prices of {}",
    FETCH_WIKIPEDIA: "opening {} in Wikipedia",
    SERIES_STATS: "counting past changes of {}",
    CALCULATE: "computing {}",
}
"""Tool → what is done with it."""
MOST_AT_ONCE = 4
"""Maximum number of requests and calls of one trial that are listed."""


def pending_in_words(stored: str, *, stated: bool) -> list[dict[str, Any]]:
    """Return what a trial waits for, from its stored form: a text, the time since when, and the number of retries.

    `stated` tells whether the trial has stated an estimate.

    >>> work = {"kind": "model", "name": "agent", "about": "openai:gpt-5", "since": 0.0, "tokens": 40, "retries": 1}
    >>> pending_in_words(json.dumps([{**work, "problem": "busy"}]), stated=False)[0]["text"]
    'asking openai:gpt-5 for its first estimate, 40 tokens so far, attempt 2 after: busy'
    """
    found = cast("list[dict[str, Any]]", json.loads(stored or "[]"))
    return [
        {"text": _text(work, stated), "kind": work["kind"], "since": work["since"], "retries": work["retries"]}
        for work in found[:MOST_AT_ONCE]
    ]


def _text(work: Mapping[str, Any], stated: bool) -> str:
    name, about = str(work["name"]), str(work["about"])
    if work["kind"] == "tool":
        usual = f"using {name.replace('_', ' ')}"
        return USING.get(name, usual).format(about) if about else usual
    form = FIRST_ESTIMATE if name == "agent" and not stated else ASKING.get(name, "asking {}")
    parts = [form.format(about)]
    if work["tokens"]:
        parts.append(f"{plural(int(work['tokens']), 'token')} so far")
    if work["retries"]:
        parts.append(f"attempt {int(work['retries']) + 1} after: {work['problem']}")
    return ", ".join(parts)
