"""What Metaculus asks right now, with everything a forecast must fit: type, options, range, and what stands already."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from foretell.data.http import AsyncHttpClient
from foretell.data.markets.metaculus import CONTINUOUS, HOST, OF_POST, MetaculusClient, numeric_range, questions_of
from foretell.data.payload import Payload
from foretell.questions.question import NumericRange
from foretell.submit.sending import Poster

OPEN_STATUS = "open"


@dataclass(frozen=True, kw_only=True)
class CurrentForecast:
    """The forecast of this account that counts at the moment."""

    values: tuple[float | None, ...]
    """No and yes; or one per option; or the cumulative probabilities."""
    since: datetime | None = None
    """When it was made."""
    until: datetime | None = None
    """When it was or will be withdrawn."""


@dataclass(frozen=True, kw_only=True)
class OpenMetaculusQuestion:
    """One question of a post. Forecasts go by the question's number, comments by the post's."""

    id: int
    post: int
    title: str
    kind: str
    status: str
    opens_at: datetime | None
    closes_at: datetime | None
    options: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    """Options in the order of a standing forecast: also those that were taken away."""
    scale: NumericRange | None = None
    standing: CurrentForecast | None = None
    grouped: bool = False
    """Whether its post holds several questions."""

    @property
    def name(self) -> str:
        """Our name of it."""
        return f"metaculus/{self.post}" + (f"#{self.id}" if self.grouped else "")

    def closed(self, now: datetime) -> str:
        """Why no forecast is taken at that moment; empty if one is."""
        if self.opens_at is None or self.opens_at > now:
            return "it is not open yet"
        if self.status != OPEN_STATUS:
            return f"its status is {self.status}"
        return "it is closed" if self.closes_at is not None and self.closes_at <= now else ""


def questions_in_post(post: Payload) -> tuple[OpenMetaculusQuestion, ...]:
    """The questions of a post as sent: one, or those of a group, or none where it cannot be forecast."""
    number, grouped = int(post.need("id").number()), post.get("question") is None or post.has(OF_POST)
    return tuple(_open_question(row, number, grouped=grouped) for row in questions_of(post))


def _open_question(row: Payload, post: int, *, grouped: bool) -> OpenMetaculusQuestion:
    kind, options = row.need("type").text(), row.texts("options")
    closes = (row.optional_time(name) for name in ("scheduled_close_time", "actual_close_time"))
    return OpenMetaculusQuestion(
        id=int(row.need("id").number()),
        post=post,
        title=row.words("title"),
        kind=kind,
        status=row.need("status").text(),
        opens_at=row.optional_time("open_time"),
        closes_at=min((at for at in closes if at is not None), default=None),
        options=options,
        counted=row.texts("all_options_ever") or options,
        scale=numeric_range(row) if kind in CONTINUOUS else None,
        standing=_current_forecast(row),
        grouped=grouped,
    )


def _current_forecast(row: Payload) -> CurrentForecast | None:
    latest = row.get("my_forecasts", "latest")
    values = None if latest is None else latest.get("forecast_values")
    if latest is None or values is None:
        return None
    begins, ends = latest.get("start_time"), latest.get("end_time")
    return CurrentForecast(
        values=tuple(None if item.value is None else item.probability() for item in values.items()),
        since=None if begins is None else begins.moment(),
        until=None if ends is None else ends.moment(),
    )


# Metaculus' counter: forecasts go in as one list, comments one by one, and both can be read back.

FORECAST = "/questions/forecast/"
COMMENT = "/comments/create/"
NEWEST = 50
"""How many of an account's comments on a post are read back."""


@dataclass(frozen=True, kw_only=True)
class MetaculusAccount:
    """Who the token belongs to."""

    id: str
    name: str


class MetaculusWriter:
    """Reads what is asked through the reading client, and writes through a client that never repeats by itself."""

    def __init__(
        self,
        *,
        client: MetaculusClient,
        http: AsyncHttpClient,
        token: str,
        host: str = HOST,
        per_second: float | None = None,
        wait_seconds: float = 4.0,
    ) -> None:
        self._client = client
        self._host = host
        headers = {"Authorization": f"Token {token}"}
        self._poster = Poster(http=http, headers=headers, secret=token, wait_seconds=wait_seconds)
        if per_second is not None:
            http.pace(host, per_second=per_second)

    def __repr__(self) -> str:
        return f"MetaculusWriter(host={self._host!r})"

    def address(self, path: str) -> str:
        """Where a path leads."""
        return f"{self._host}{path}"

    async def account(self) -> MetaculusAccount:
        """Whose token this is."""
        me = await self._client.read("/users/me/")
        return MetaculusAccount(id=me.need("id").name(), name=me.words("username") or me.need("id").name())

    async def asked(self, post: str) -> tuple[OpenMetaculusQuestion, ...]:
        """The questions of a post, with the forecasts of this account that stand."""
        return questions_in_post(await self._client.whole_post(post))

    async def forecast(self, forecasts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """All of them are taken, or none: `SubmissionRefused` or, where nobody knows, `SubmissionUnconfirmed`."""
        await self._poster.post(self.address(FORECAST), list(forecasts))
        return {}

    async def comment(self, comment: Mapping[str, Any]) -> dict[str, Any]:
        """The number of the new comment."""
        reply = await self._poster.post_for_reply(self.address(COMMENT), dict(comment))
        return {"comment": reply.need("id").name()}

    async def comments(self, post: int, author: str, *, private: bool) -> dict[str, str]:
        """The newest comments of an account on a post, by number."""
        query = {"post": str(post), "author": author, "limit": str(NEWEST), "sort": "-created_at"}
        # Private comments are listed only when asked for.
        query |= {"is_private": "true"} if private else {}
        rows = (await self._client.read("/comments/", query)).need("results").items()
        return {row.need("id").name(): row.words("text") for row in rows}
