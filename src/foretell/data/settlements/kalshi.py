"""Kalshi's results. Only what is finalized counts: a determined market may still be disputed and amended."""

from collections.abc import Sequence
from datetime import datetime
from urllib.parse import quote

from foretell.data.markets.catalogue import iso, moment
from foretell.data.markets.kalshi import STATUS, KalshiClient, archived, following, kalshi_price
from foretell.data.markets.listing import OnSkipped, ignore_skipped
from foretell.data.payload import Payload
from foretell.data.settlements.settlement import (
    SettledOutcome,
    SettlementTarget,
    by_market,
    chunks,
    read_settlements,
    report_unknown,
    settlement_targets,
)
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution

BATCH = 100
MAX_PAGES = 20
RESULTS = {"yes": 1, "no": 0}
IN_PART = ("", "void", "scalar")
"""Called off, or paid a share of a dollar."""


class KalshiSettlements:
    """Results by market ticker, a hundred at a time, from the live list and then from the archive."""

    platform = "kalshi"

    def __init__(self, client: KalshiClient, *, tell: OnSkipped = ignore_skipped) -> None:
        self._client = client
        self._tell = tell

    async def settlements(self, questions: Sequence[Question]) -> list[Resolution]:
        """Final results."""
        wanted = by_market(settlement_targets(questions, self.platform))
        found: list[Resolution] = []
        for tickers in chunks(list(wanted), BATCH):
            live = _by_ticker(await self._live(tickers))
            missing = [ticker for ticker in tickers if ticker not in live]
            old = _by_ticker(await archived(self._client, {"tickers": ",".join(missing)}) if missing else [])
            for ticker in tickers:
                group = wanted[ticker]
                if ticker in live:
                    found += self._judged(group, live[ticker], f"/markets/{quote(ticker, safe='')}")
                elif ticker in old:
                    found += self._judged(group, old[ticker], f"/historical/markets/{quote(ticker, safe='')}")
                else:
                    report_unknown(group, self._tell)
        return found

    def _judged(self, group: list[SettlementTarget], row: Payload, path: str) -> list[Resolution]:
        return read_settlements(group, lambda _: _settled_outcome(row), f"{self._client.host}{path}", self._tell)

    async def _live(self, tickers: Sequence[str]) -> list[Payload]:
        query = {"tickers": ",".join(tickers), "limit": str(BATCH)}
        rows: list[Payload] = []
        for _ in range(MAX_PAGES):
            answer = await self._client.read("/markets", query)
            rows += answer.need("markets").items()
            cursor = following(answer)
            if cursor is None or len(rows) >= len(tickers):
                break
            query["cursor"] = cursor
        return rows


def _by_ticker(rows: list[Payload]) -> dict[str, Payload]:
    return {row.need("ticker").text(): row for row in rows}


def _settled_outcome(row: Payload) -> SettledOutcome | None:
    told = row.need("status")
    status = STATUS.get(told.text()) or told.wrong("a status we know")
    if status != "resolved":
        return None
    field = row.need("result")
    result, paid, at = field.text().casefold(), _paid(row), _settled_at(row)
    if result not in RESULTS:
        if result not in IN_PART:
            field.wrong("yes, no or nothing")
        return SettledOutcome(outcome=None, payoff=paid, at=at)
    outcome = RESULTS[result]
    if paid is not None and paid != outcome:
        # A share that paid less than a dollar settles nothing, whatever the result is called.
        return SettledOutcome(outcome=None, payoff=paid, at=at)
    return SettledOutcome(outcome=outcome, at=at)


def _paid(row: Payload) -> float | None:
    told = row.get("settlement_value_dollars") or row.get("settlement_value")
    return None if told is None or told.value == "" else kalshi_price(told)


def _settled_at(row: Payload) -> datetime | None:
    """When it was settled; older answers only tell when trading ended."""
    told = row.get("settlement_ts")
    if told is None or told.value == "":
        return moment(row, "close_time")
    return iso(told) if isinstance(told.value, str) else told.moment()
