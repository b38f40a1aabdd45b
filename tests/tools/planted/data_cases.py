"""Cases about numbers: points after the cutoff, revised series, and market fields with today's state."""

from collections.abc import Iterator
from typing import Any

from tests.tools.doubles import Numbers, Plugin, Prices, at, question
from tests.tools.planted.case import Case, Must

from foretell.data.markets.market import PricePoint
from foretell.questions.question import SeriesRef, Target
from foretell.tools.series import FetchPrices, FetchSeries
from foretell.tools.tool import SourceItem

KNOWN = {"2025-10-24": 4.01, "2025-10-25": 4.02, "2025-10-26": 4.03}
LATE = {
    "the next day": {"2025-10-27": 7.77},
    "a month": {f"2025-11-{day:02d}": 7.77 for day in range(1, 29)},
    "a year": {"2026-10-26": 7.77},
    "the resolution day": {"2025-11-02": 7.77},
}
LATER_FIELDS = (
    "Status: closed",
    "status = finalized",
    "Market status: resolved",
    "Closed: true",
    "isResolved: true",
    "Resolution: YES",
    "resolution_time: 2025-12-10T19:00Z",
    "Result: yes",
    "Outcome: No",
    "Winner: United",
    "Volume: 9,214,331",
    "volume24Hours = 99312",
    "Liquidity: 0",
    "Open interest: 0",
    "Close time: 2025-12-10T19:00Z",
    "End date: 2025-12-31",
    "settlement_value: 1",
    "Last price: 0.999",
    "Expiration value: 31.4",
    "Updated at: 2026-01-02",
    "| Volume | = 3112",
)
QUESTION = question(
    id="fred/DGS10",
    source="fred",
    kind="dataset",
    text="Will the yield have risen?",
    targets=(Target(id="2025-11-02", resolves_at="2025-11-02"),),
    series=SeriesRef(provider="fred", id="DGS10"),
)
MARKET = question(id="polymarket/0x" + "a" * 64, source="polymarket", text="Will the bill pass?")


def case(kind: str, name: str, must: Must, tool: Any, needle: str, **fields: Any) -> Case:
    return Case(kind=kind, name=name, must=must, by="data", tool=tool, needle=needle, **fields)


def late_points() -> Iterator[Case]:
    kind = "points after the cutoff"
    for name, late in LATE.items():
        tool = FetchSeries(question=QUESTION, source=Numbers(rows={**KNOWN, **late}))
        yield case(kind, f"series past it by {name}", "drop", tool, "7.77", about=QUESTION)
        yield case(kind, f"known part before {name}", "keep", tool, "4.03", about=QUESTION)
        text = "\n".join(f"{day}, {value}" for day, value in {**KNOWN, **late}.items())
        plugin = Plugin(items=(SourceItem(title="x", text=text, clamped=True),))
        yield case(kind, f"plug-in that did not clamp, {name}", "drop", plugin, "7.77", about=QUESTION)
    for hour in ("2025-10-27T00:00:01Z", "2025-10-27T08:00:00Z", "2025-12-31T00:00:00Z"):
        points = [PricePoint(at=at("2025-10-26T20:00:00Z"), p=0.41), PricePoint(at=at(hour), p=0.977)]
        tool = FetchPrices(question=MARKET, sources={"polymarket": Prices(points=points)})
        yield case(kind, f"price at {hour}", "drop", tool, "0.977", about=MARKET)
        yield case(kind, f"price before {hour}", "keep", tool, "0.410", about=MARKET)
        rows = "\n".join(f"{point.at:%Y-%m-%d %H:%M:%S} | {point.p}" for point in points)
        plugin = Plugin(items=(SourceItem(title="x", text=rows, clamped=True),))
        yield case(kind, f"plug-in with a price at {hour}", "drop", plugin, "0.977", about=MARKET)


def corrected() -> Iterator[Case]:
    kind = "revised series"
    for provider in ("fred", "dbnomics", "bls", "eurostat", "oecd", "ons"):
        series = SeriesRef(provider=provider, id="GDP")
        about = question(id=f"{provider}/GDP", source=provider, text="Up?", series=series)
        today = FetchSeries(question=about, source=Numbers(rows=KNOWN, revised=True))
        yield case(kind, f"{provider}, today's figures", "drop", today, "4.03", about=about)
        vintage = FetchSeries(question=about, source=Numbers(rows=KNOWN))
        yield case(kind, f"{provider}, vintage of the day", "keep", vintage, "4.03", about=about)
    allowed = FetchSeries(question=QUESTION, source=Numbers(rows=KNOWN, revised=True), allow_revised=True)
    yield case(kind, "today's figures, allowed on purpose", "keep", allowed, "4.03", about=QUESTION)


def later_fields() -> Iterator[Case]:
    kind = "market status, volume, close time"
    rows = "2025-10-25T12:00Z, 0.40\n2025-10-26T12:00Z, 0.41"
    for line in LATER_FIELDS:
        plugin = Plugin(items=(SourceItem(title="x", text=f"{line}\n{rows}", clamped=True),))
        yield case(kind, line, "drop", plugin, line, about=MARKET)
        heading = Plugin(items=(SourceItem(title="x", text=rows, clamped=True),), heading=line)
        yield case(kind, f"{line} (in the heading)", "drop", heading, line, about=MARKET)
    plain = Plugin(items=(SourceItem(title="x", text=f"moment, price\n{rows}", clamped=True),))
    yield case(kind, "moments and prices only", "keep", plain, "0.41", about=MARKET)


def data_cases() -> Iterator[Case]:
    for make in (late_points, corrected, later_fields):
        yield from make()
