"""Metaculus' counter: forecasts go in as one list, comments one by one, and both can be read back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foretell.sources.async_http import AsyncHttpClient
from foretell.sources.markets.fields import words
from foretell.sources.markets.metaculus import HOST, MetaculusClient
from foretell.sources.posting.metaculus_asked import Asked, asked_in
from foretell.sources.posting.poster import Poster, told

FORECAST = "/questions/forecast/"
COMMENT = "/comments/create/"
NEWEST = 50
"""How many of an account's comments on a post are read back."""


@dataclass(frozen=True, kw_only=True)
class Account:
    """Who the token belongs to."""

    id: str
    name: str


class MetaculusDesk:
    """Reads what is asked through the reading client, and writes through a client that never repeats by itself."""

    def __init__(
        self,
        *,
        client: MetaculusClient,
        http: AsyncHttpClient,
        token: str,
        host: str = HOST,
        per_second: float = 0.3,
        wait_seconds: float = 4.0,
    ) -> None:
        self._client = client
        self._host = host
        headers = {"Authorization": f"Token {token}"}
        self._poster = Poster(http=http, headers=headers, secret=token, wait_seconds=wait_seconds)
        http.pace(host, per_second=per_second)

    def __repr__(self) -> str:
        return f"MetaculusDesk(host={self._host!r})"

    def address(self, path: str) -> str:
        """Where a path leads."""
        return f"{self._host}{path}"

    async def account(self) -> Account:
        """Whose token this is."""
        me = await self._client.read("/users/me/")
        return Account(id=me.need("id").name(), name=words(me, "username") or me.need("id").name())

    async def asked(self, post: str) -> tuple[Asked, ...]:
        """The questions of a post, with the forecasts of this account that stand."""
        return asked_in(await self._client.post(post))

    async def forecast(self, forecasts: Sequence[Mapping[str, Any]]) -> None:
        """All of them are taken, or none: `Refused` or, where nobody knows, `Lost`."""
        await self._poster.post(self.address(FORECAST), list(forecasts))

    async def comment(self, comment: Mapping[str, Any]) -> str:
        """The number of the new comment."""
        url = self.address(COMMENT)
        return told(await self._poster.post(url, dict(comment)), url).need("id").name()

    async def comments(self, post: int, author: str, *, private: bool) -> dict[str, str]:
        """The newest comments of an account on a post, by number."""
        query = {"post": str(post), "author": author, "limit": str(NEWEST), "sort": "-created_at"}
        # Private comments are listed only when asked for.
        query |= {"is_private": "true"} if private else {}
        rows = (await self._client.read("/comments/", query.items())).need("results").items()
        return {row.need("id").name(): words(row, "text") for row in rows}
