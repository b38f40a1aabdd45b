"""A stand-in for Yahoo's chart service: it restates past closes for every split, like the real one."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from foretell.fakes.server import FakeServer, Request, Response, json_response

NEVER = -1.0e9
"""Stands where dividend-adjusted closes stand, which nobody should read."""


@dataclass(frozen=True, kw_only=True)
class FakeSplit:
    """`numerator` new shares for `denominator` old ones, from a session's opening on."""

    at: datetime
    numerator: float
    denominator: float


@dataclass(frozen=True, kw_only=True)
class FakeShare:
    """A share's sessions with the prices that were really paid."""

    sessions: tuple[tuple[datetime, float | None], ...]
    """Opening, and the close as traded; None where the service lost it."""
    splits: tuple[FakeSplit, ...] = ()
    zone: str = "America/New_York"
    hours: timedelta | None = timedelta(hours=6.5)
    quote: tuple[datetime, float] | None = None
    """The last trade."""


class FakeYahoo:
    """Answers `/v8/finance/chart/<ticker>` with everything it has, whatever the period asked for."""

    def __init__(self, shares: Mapping[str, FakeShare]) -> None:
        self.shares = shares

    def server(self) -> FakeServer:
        """A server that answers so."""
        server = FakeServer()
        server.route("GET", "*", self._respond)
        return server

    def _respond(self, request: Request) -> Response:
        status, body = self.answer(request.path, request.query)
        return json_response(body, status)

    def answer(self, path: str, query: Mapping[str, str]) -> tuple[int, Any]:
        """Status and body."""
        share = self.shares.get(path.rpartition("/")[2])
        if "/v8/finance/chart/" not in path or share is None:
            error = {"code": "Not Found", "description": "No data found, symbol may be delisted"}
            return 404, {"chart": {"result": None, "error": error}}
        events = {"splits": _splits(share)} if "split" in query.get("events", "") and share.splits else None
        result = {
            "meta": _meta(share),
            "timestamp": [int(opened.timestamp()) for opened, _ in share.sessions],
            **({"events": events} if events else {}),
            "indicators": {
                "quote": [{"close": [_restated(share, *session) for session in share.sessions]}],
                "adjclose": [{"adjclose": [NEVER for _ in share.sessions]}],
            },
        }
        return 200, {"chart": {"result": [result], "error": None}}


def _restated(share: FakeShare, opened: datetime, close: float | None) -> float | None:
    if close is None:
        return None
    for split in share.splits:
        if opened < split.at:
            close *= split.denominator / split.numerator
    return close


def _splits(share: FakeShare) -> dict[str, Any]:
    return {
        str(int(split.at.timestamp())): {
            "date": int(split.at.timestamp()),
            "numerator": split.numerator,
            "denominator": split.denominator,
            "splitRatio": f"{split.numerator:g}:{split.denominator:g}",
        }
        for split in share.splits
    }


def _meta(share: FakeShare) -> dict[str, Any]:
    last = share.sessions[-1][0] if share.sessions else None
    meta: dict[str, Any] = {"currency": "USD", "exchangeTimezoneName": share.zone, "gmtoffset": -18000}
    if share.quote is not None:
        at, price = share.quote
        meta |= {"regularMarketTime": int(at.timestamp()), "regularMarketPrice": price}
    if share.hours is not None and last is not None:
        end = int((last + share.hours).timestamp())
        meta["currentTradingPeriod"] = {"regular": {"start": int(last.timestamp()), "end": end}}
    return meta
