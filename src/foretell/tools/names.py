"""The names of the tools, and the prefixes of their result ids."""

from collections.abc import Collection

from foretell.plugins import names

WEB_SEARCH = "web_search"
SUMMARIZE_RESULTS = "summarize_results"
LOOKUP_URL = "lookup_url"
FETCH_SERIES = "fetch_series"
FETCH_PRICES = "fetch_prices"
FETCH_WIKIPEDIA = "fetch_wikipedia"
SUBMIT = "submit"

PREFIXES = {
    WEB_SEARCH: "search",
    SUMMARIZE_RESULTS: "summary",
    LOOKUP_URL: "page",
    FETCH_SERIES: "series",
    FETCH_PRICES: "prices",
    FETCH_WIKIPEDIA: "wikipedia",
}


# Which tools a question is offered, by source and step: a literal table, and hints that never name absent tools.

SEARCHING = (WEB_SEARCH, SUMMARIZE_RESULTS, LOOKUP_URL, SUBMIT)
TOOLS: dict[str, tuple[str, ...]] = {
    "fred": (FETCH_SERIES, *SEARCHING),
    "yfinance": (FETCH_SERIES, *SEARCHING),
    "dbnomics": (FETCH_SERIES, LOOKUP_URL, SUBMIT),
    "polymarket": (FETCH_PRICES, *SEARCHING),
    "manifold": (FETCH_PRICES, *SEARCHING),
    # Many of its markets are about the weather, of which there is a series for every place.
    "kalshi": (FETCH_PRICES, FETCH_SERIES, *SEARCHING),
    "wikipedia": (FETCH_WIKIPEDIA, FETCH_SERIES, *SEARCHING),
    "infer": SEARCHING,
    "metaculus": SEARCHING,
    "acled": (FETCH_SERIES, *SEARCHING),
}
ANY_SOURCE = (FETCH_SERIES, FETCH_PRICES, FETCH_WIKIPEDIA, *SEARCHING)
"""The tools for sources without an entry in `TOOLS`."""

FIXED: dict[str, tuple[tuple[str, ...], ...]] = {"dbnomics": ((FETCH_SERIES,), (SUBMIT,))}
"""Sources with fixed steps: only these tools at each step; the last entry applies to all later steps."""

HINTS = {
    FETCH_SERIES: f"Begin with {FETCH_SERIES}: it holds the value you compare with.",
    FETCH_PRICES: f"Begin with {FETCH_PRICES}: it shows what the market believed and how steadily.",
    FETCH_WIKIPEDIA: f"Begin with {FETCH_WIKIPEDIA}: the question is decided by an article there.",
    WEB_SEARCH: f"Begin with {WEB_SEARCH}, once you have noted how often things like this happen at all.",
}


def offered_tools(source: str, step: int, available: Collection[str], *, fixed: bool = True) -> tuple[str, ...]:
    """Return the available tools to offer at a step (counted from 1); submitting is always possible at the end."""
    if step < 1:
        raise ValueError(f"steps count from 1, got {step}")
    steps = FIXED.get(source) if fixed else None
    if steps is not None and all(set(tools) <= set(available) for tools in steps):
        return steps[min(step, len(steps)) - 1]
    *others, last = TOOLS.get(source, ANY_SOURCE)
    return tuple(tool for tool in (*others, *names("tools"), last) if tool in available)


DECIDING = {FETCH_WIKIPEDIA: "wikipedia"}
"""Tools that decide the questions of one source only; for other sources they are one place to look among others."""


def tool_hint(tools: Collection[str], source: str) -> str:
    """Return a hint on which tool to use first, if it is on offer and the hint holds for the source's questions."""
    # What a source has of its own comes first in its line.
    usual = [tool for tool in TOOLS.get(source, HINTS) if tool in HINTS]
    hints = (HINTS[tool] for tool in usual if tool in tools and DECIDING.get(tool, source) == source)
    return next(hints, "")
