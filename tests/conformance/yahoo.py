"""Yahoo's chart service: recorded answers of October 2025."""

import pytest

from conformance.reading import body_of, config_on, sweep
from conformance.recordings import Check, answer
from foretell.data.http import SourceError
from foretell.data.series.yahoo import YahooSeries, read_sessions
from foretell.outgoing.client import HttpRequest
from foretell.questions.as_of import AsOf, instant
from foretell.questions.question import SeriesRef


async def _microsoft() -> None:
    seen: list[HttpRequest] = []
    source = YahooSeries(config_on({"/chart/MSFT": answer("yahoo", "chart_MSFT")}, seen))
    ref = SeriesRef(provider="yahoo", id="MSFT")
    whole = await source.fetch(ref, AsOf.day("2025-10-29"))
    assert (len(whole), str(whole.days[0]), str(whole.days[-1])) == (127, "2025-04-30", "2025-10-29")
    assert round(float(whole.values[-1]), 2) == 541.55
    # At noon of the last day, the session was not over.
    noon = await source.fetch(ref, AsOf(at=instant("2025-10-29T19:59:59Z")))
    assert (str(noon.days[-1]), round(float(noon.values[-1]), 2)) == ("2025-10-28", 542.07)
    assert seen[0].url.query["interval"] == "1d"


async def _frankfurt() -> None:
    source = YahooSeries(config_on({"/chart/GS2C.DE": answer("yahoo", "chart_GS2C.DE")}))
    series = await source.fetch(SeriesRef(provider="yahoo", id="GS2C.DE"), AsOf.day("2025-10-28"))
    # Clocks went back on 26 October; the days are those of Frankfurt.
    assert series.days.astype(str).tolist() == ["2025-10-23", "2025-10-24", "2025-10-27", "2025-10-28"]
    assert [round(float(value), 3) for value in series.values] == [19.738, 20.17, 20.4, 20.08]


def _granularity() -> None:
    chart = body_of("yahoo", "chart_MSFT").need("chart").rows("result")[0]
    chart.value["meta"]["dataGranularity"] = "3mo"
    with pytest.raises(SourceError, match="3mo"):
        read_sessions(chart)


def _any(name: str) -> None:
    body = body_of("yahoo", name)
    if body.get("chart") is None:
        # Quotes, options and other answers that the adapter never requests.
        assert body.members()
        return
    results = body.need("chart").rows("result")
    if not results:
        assert body.need("chart", "error") is not None
        return
    if results[0].need("meta").optional_text("dataGranularity") not in ("", "1d"):
        with pytest.raises(SourceError, match="not of a day"):
            read_sessions(results[0])
        return
    assert read_sessions(results[0])[1] == ()


CHECKS = [
    Check(
        service="yahoo",
        what="127 closes of a share; a session that is not over is left out",
        recordings=("chart_MSFT",),
        function=_microsoft,
    ),
    Check(
        service="yahoo",
        what="days of the exchange across the change of clocks",
        recordings=("chart_GS2C.DE",),
        function=_frankfurt,
    ),
    Check(
        service="yahoo",
        what="a chart in coarser steps than a day is refused",
        recordings=("chart_MSFT",),
        function=_granularity,
    ),
    Check(
        service="yahoo",
        what="whatever was recorded is read or refused with a reason",
        recordings=("*",),
        function=lambda: sweep("yahoo", _any),
    ),
]
