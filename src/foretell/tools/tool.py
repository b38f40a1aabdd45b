"""The tool interface, the names of the built-in tools, and the tools offered for each question.

A tool fetches outside material, and the leakage filter decides whether a model may see it.
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from math import isfinite
from typing import Any, Literal, Protocol, cast

from foretell.data.dates import Dating
from foretell.frozen import frozen
from foretell.models.model import ToolSpec
from foretell.plugins import names
from foretell.questions.as_of import AsOf
from foretell.questions.trace import LeakBlocked


class ToolFailed(Exception):
    """The call failed. The message for the model says what to do instead."""


@frozen
class SourceItem:
    """One piece of outside material, not yet checked."""

    title: str
    text: str
    """The full text; the model sees `snippet` first and may ask for the rest."""
    snippet: str = ""
    url: str = ""
    hops: tuple[str, ...] = ()
    """Every address it was redirected through."""
    published: datetime | None = None
    dating: Dating = "none"
    captured: datetime | None = None
    """When this version was stored. A version stored before the cutoff cannot contain later events."""
    clamped: bool = False
    """Whether it consists of dated numbers that were already clamped at the cutoff."""
    rewritten: bool = False
    """Whether stored versions of its address differ, so that its date does not apply to today's text."""


@frozen
class ToolMaterial:
    """The material a tool returns."""

    heading: str
    items: tuple[SourceItem, ...]


class Tool(Protocol):
    """An action an agent can take."""

    @property
    def spec(self) -> ToolSpec:
        """Name, purpose and arguments, as shown to the model."""
        ...

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        """Return the material found as of the cutoff, or raise `ToolFailed`."""
        ...


# Reading the arguments of a tool call. Errors are reported to the model.


def required_text(arguments: Mapping[str, Any], name: str) -> str:
    """Return a text argument; raise `ToolFailed` if it is missing."""
    text = optional_text(arguments, name)
    if text is None:
        raise ToolFailed(f"The argument {name!r} is missing: give it as a text.")
    return text


def optional_text(arguments: Mapping[str, Any], name: str) -> str | None:
    """Return a text argument, or None if it is absent or empty."""
    value = arguments.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str | int):
        raise ToolFailed(f"The argument {name!r} must be a text, not {type(value).__name__}.")
    return str(value).strip() or None


def required_texts(arguments: Mapping[str, Any], name: str) -> list[str]:
    """Return a list of texts; a single text counts as a list of one."""
    value = arguments.get(name)
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not values:
        raise ToolFailed(f"The argument {name!r} must be a list of texts with at least one entry.")
    return [str(text).strip().strip("[]") for text in cast("list[Any]", values)]


def optional_number(arguments: Mapping[str, Any], name: str) -> float | None:
    """Return a number, also given as a text, or None if it is absent."""
    value = arguments.get(name)
    if value is None or value == "":
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ToolFailed(f"The argument {name!r} must be a number, not {str(value)[:40]!r}.") from None
    if not isfinite(number):
        raise ToolFailed(f"The argument {name!r} must be a finite number.")
    return number


# Refusals of the leakage filter.

FilterLayer = Literal["address", "date", "data", "content"]


@frozen
class Refusal:
    """The layer that refused an item, and the reason, which is never shown to the model."""

    layer: FilterLayer
    reason: str

    def of(self, item: SourceItem) -> LeakBlocked:
        """Return the event to record for an item."""
        published = item.published.isoformat() if item.published is not None else ""
        return LeakBlocked(
            layer=self.layer, reason=self.reason, url=item.url, title=item.title[:200], published=published
        )


class LeakRefused(ToolFailed):
    """A tool noticed that its answer would leak. The message is for the model, the refusal for the event log."""

    def __init__(self, text: str, refusal: Refusal) -> None:
        super().__init__(text)
        self.refusal = refusal


# The names of the tools, and the prefixes of their result ids.

WEB_SEARCH = "web_search"
SUMMARIZE_RESULTS = "summarize_results"
LOOKUP_URL = "lookup_url"
FETCH_SERIES = "fetch_series"
FETCH_PRICES = "fetch_prices"
FETCH_WIKIPEDIA = "fetch_wikipedia"
SERIES_STATS = "series_stats"
CALCULATE = "calculate"
SUBMIT = "submit"

PREFIXES = {
    WEB_SEARCH: "search",
    SUMMARIZE_RESULTS: "summary",
    LOOKUP_URL: "page",
    FETCH_SERIES: "series",
    FETCH_PRICES: "prices",
    FETCH_WIKIPEDIA: "wikipedia",
    SERIES_STATS: "stats",
    CALCULATE: "calculation",
}


COMPUTING = (SERIES_STATS, CALCULATE)
"""Tools that are offered only with `GUIDED` results: the agent of BLF 2026 has none of them."""


# The tools offered for a question by source and step, and hints that only name available tools.

SEARCHING = (WEB_SEARCH, SUMMARIZE_RESULTS, LOOKUP_URL, SUBMIT)
TOOLS: dict[str, tuple[str, ...]] = {
    "fred": (FETCH_SERIES, *SEARCHING),
    "yfinance": (FETCH_SERIES, *SEARCHING),
    "dbnomics": (FETCH_SERIES, LOOKUP_URL, SUBMIT),
    "polymarket": (FETCH_PRICES, *SEARCHING),
    "manifold": (FETCH_PRICES, *SEARCHING),
    # Many of its markets are about the weather, and there is a weather series for every place.
    "kalshi": (FETCH_PRICES, FETCH_SERIES, *SEARCHING),
    "wikipedia": (FETCH_WIKIPEDIA, FETCH_SERIES, *SEARCHING),
    "infer": SEARCHING,
    "metaculus": SEARCHING,
    "acled": (FETCH_SERIES, *SEARCHING),
}
ANY_SOURCE = (FETCH_SERIES, FETCH_PRICES, FETCH_WIKIPEDIA, *SEARCHING)
"""The tools for sources without an entry in `TOOLS`, besides those of `COMPUTING`, which suit every source."""

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
    return tuple(tool for tool in (*others, *COMPUTING, *names("tools"), last) if tool in available)


DECIDING = {FETCH_WIKIPEDIA: "wikipedia"}
"""Tools whose data decides the questions of one source. For other sources they are ordinary sources."""


def tool_hint(tools: Collection[str], source: str) -> str:
    """Return a hint on which tool to use first, if it is available and the hint applies to the source."""
    # The tool specific to a source comes first.
    usual = [tool for tool in TOOLS.get(source, HINTS) if tool in HINTS]
    hints = (HINTS[tool] for tool in usual if tool in tools and DECIDING.get(tool, source) == source)
    return next(hints, "")
