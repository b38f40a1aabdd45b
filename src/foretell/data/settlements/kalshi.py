"""Kalshi's results. Only finalized markets count: a determined market may still be disputed and amended."""

from collections.abc import Callable, Sequence
from datetime import datetime
from urllib.parse import quote

from foretell.data.markets.kalshi import STATUS, KalshiClient, archived, following, kalshi_price
from foretell.data.payload import Payload
from foretell.data.settlements.settlement import MarketSettlements, SettledMarket, SettledOutcome, SettlementTarget

MAX_PAGES = 20
RESULTS = {"yes": 1, "no": 0}
IN_PART = ("scalar", "void", "")
"""Results of a market that paid part of a dollar or was voided; empty without a payment means not known yet."""


class KalshiSettlements(MarketSettlements[KalshiClient]):
    """Results by market ticker, a hundred at a time, from the live list and then from the archive."""

    platform = "kalshi"
    batch = 100

    async def markets(self, ids: Sequence[str]) -> dict[str, SettledMarket | str]:
        """Return markets from the list, and those missing there from the archive."""
        markets = self.by_id(await self._live(ids), "ticker", self._place("/markets"))
        missing = [ticker for ticker in ids if ticker not in markets]
        old = await archived(self._client, {"tickers": ",".join(missing)}) if missing else []
        return self.by_id(old, "ticker", self._place("/historical/markets")) | markets

    async def _live(self, tickers: Sequence[str]) -> list[Payload]:
        query = {"tickers": ",".join(tickers), "limit": str(self.batch)}
        rows: list[Payload] = []
        for _ in range(MAX_PAGES):
            answer = await self._client.read("/markets", query)
            rows += answer.need("markets").items()
            cursor = following(answer)
            if cursor is None or len(rows) >= len(tickers):
                break
            query["cursor"] = cursor
        return rows

    def _place(self, path: str) -> Callable[[str], str]:
        return lambda ticker: f"{self._client.host}{path}/{quote(ticker, safe='')}"

    def outcome(self, row: Payload, target: SettlementTarget) -> SettledOutcome | None:
        """Return yes, no, or what a share paid."""
        status = row.need("status")
        if (STATUS.get(status.text()) or status.wrong("a known status")) != "resolved":
            return None
        result, at = row.need("result"), _settled_at(row)
        value = row.get("settlement_value_dollars") or row.get("settlement_value")
        paid = None if value is None or value.value == "" else kalshi_price(value)
        outcome = RESULTS.get(result.text().casefold())
        if outcome is None and result.text().casefold() not in IN_PART:
            result.wrong("yes, no or nothing")
        if not result.text() and paid is None:
            return None
        if outcome is None or paid not in (None, outcome):
            # A share that paid less than a dollar settles nothing, whatever the result says.
            return SettledOutcome(outcome=None, payoff=paid, at=at)
        return SettledOutcome(outcome=outcome, at=at)


def _settled_at(row: Payload) -> datetime | None:
    """Return when it was settled; older responses only state when trading ended."""
    settled = row.get("settlement_ts")
    if settled is None or settled.value == "":
        return row.optional_time("close_time")
    return settled.time() if isinstance(settled.value, str) else settled.unix_time()
