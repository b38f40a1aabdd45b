"""Prophet Arena's counter: one forecast an event, which replaces the agent's earlier one."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from foretell.sources.async_http import AsyncHttpClient
from foretell.sources.http import SourceError
from foretell.sources.markets.fields import moment, words
from foretell.sources.markets.prophet_arena import HOST, OVER, ArenaClient
from foretell.sources.payload import Payload
from foretell.sources.posting.poster import Poster, told

FORECASTS = "/forecasts"


@dataclass(frozen=True, kw_only=True)
class ArenaEvent:
    """What may be forecast of an event."""

    slug: str
    title: str
    outcomes: tuple[str, ...]
    status: str
    closes_at: datetime | None

    def closed(self, now: datetime) -> str:
        """Why no forecast is taken at that moment; empty if one is."""
        if self.status.casefold() in (*OVER, "closed"):
            return f"its status is {self.status}"
        return "it is closed" if self.closes_at is not None and self.closes_at <= now else ""


class ArenaDesk:
    """Reads events through the reading client, and writes through a client that never repeats by itself."""

    def __init__(
        self,
        *,
        client: ArenaClient,
        http: AsyncHttpClient,
        key: str,
        host: str = HOST,
        per_second: float = 5.0,
        wait_seconds: float = 2.0,
    ) -> None:
        self._client = client
        self._host = host
        headers = {"Authorization": f"Bearer {key}"}
        self._poster = Poster(http=http, headers=headers, secret=key, wait_seconds=wait_seconds)
        http.pace(host, per_second=per_second)

    def __repr__(self) -> str:
        return f"ArenaDesk(host={self._host!r})"

    def address(self, path: str) -> str:
        """Where a path leads."""
        return f"{self._host}{path}"

    async def event(self, slug: str) -> ArenaEvent:
        """One event as it stands."""
        row = await self._client.event(slug)
        return ArenaEvent(
            slug=row.need("slug").text(),
            title=words(row, "title"),
            outcomes=tuple(one.need("name").text() for one in row.need("outcomes").items()),
            status=words(row, "status"),
            closes_at=moment(row, "close_at"),
        )

    async def forecast(self, forecast: Mapping[str, Any]) -> dict[str, Any]:
        """What the arena says in return: when it came, whether it replaced another, and its sealed receipt."""
        url = self.address(FORECASTS)
        answer = told(await self._poster.post(url, dict(forecast)), url)
        row = answer.get("data") or answer
        names = ("received_at", "replaces_previous", "receipt")
        return {name: found.value for name in names if (found := row.get(name)) is not None}

    async def stands(self, slug: str, agent: str) -> Mapping[str, float] | None:
        """The agent's newest forecast of an event; None where the arena shows none."""
        try:
            answer = await self._client.read(f"/events/{quote(slug, safe='')}/forecasts", {"agent": agent})
        except SourceError as error:
            if error.status == 404:
                return None
            raise
        rows = [row for row in answer.need("data").items() if words(row, "agent") == agent]
        return _probabilities(max(rows, key=lambda row: words(row, "received_at"))) if rows else None


def _probabilities(row: Payload) -> dict[str, float]:
    told = row.need("probabilities")
    if not isinstance(told.value, dict):
        told.wrong("an object")
    return {str(name): told.need(str(name)).probability() for name in told.value}
