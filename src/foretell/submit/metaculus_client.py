"""What Metaculus asks right now, with everything a forecast must fit: type, options, range, and what stands already."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from foretell.data.http import AsyncHttpClient
from foretell.data.markets.listing import require_live
from foretell.data.markets.metaculus import HOST, MetaculusClient, questions_of
from foretell.data.payload import Payload
from foretell.questions.as_of import AsOf
from foretell.questions.question import Question, Target
from foretell.submit.metaculus_cdf import DEFAULT_CELLS, NumericRange
from foretell.submit.sending import Poster

CONTINUOUS_KINDS = ("numeric", "discrete", "date")
OPEN_STATUS = "open"


@dataclass(frozen=True, kw_only=True)
class CurrentForecast:
    """The forecast of this account that counts at the moment."""

    values: tuple[float | None, ...]
    """No and yes; or one per option; or the cumulative probabilities."""
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

    def closed(self, now: datetime) -> str:
        """Why no forecast is taken at that moment; empty if one is."""
        if self.opens_at is None or self.opens_at > now:
            return "it is not open yet"
        if self.status != OPEN_STATUS:
            return f"its status is {self.status}"
        return "it is closed" if self.closes_at is not None and self.closes_at <= now else ""


def questions_in_post(post: Payload) -> tuple[OpenMetaculusQuestion, ...]:
    """The questions of a post as sent: one, or those of a group, or none where it cannot be forecast."""
    number, grouped = int(post.need("id").number()), post.get("question") is None
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
        scale=_scale(row) if kind in CONTINUOUS_KINDS else None,
        standing=_current_forecast(row),
        grouped=grouped,
    )


def _scale(row: Payload) -> NumericRange:
    scaling, count = row.need("scaling"), row.get("inbound_outcome_count")
    zero = scaling.get("zero_point")
    try:
        return NumericRange(
            minimum=scaling.need("range_min").number(),
            maximum=scaling.need("range_max").number(),
            zero_point=None if zero is None else zero.number(),
            open_lower=row.is_set("open_lower_bound"),
            open_upper=row.is_set("open_upper_bound"),
            outcomes=DEFAULT_CELLS if count is None else int(count.number()),
        )
    except ValueError:
        pass
    scaling.wrong("a range")


def _current_forecast(row: Payload) -> CurrentForecast | None:
    latest = row.get("my_forecasts", "latest")
    values = None if latest is None else latest.get("forecast_values")
    if latest is None or values is None:
        return None
    ends = latest.get("end_time")
    return CurrentForecast(
        values=tuple(None if item.value is None else item.probability() for item in values.items()),
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
        per_second: float = 0.3,
        wait_seconds: float = 4.0,
    ) -> None:
        self._client = client
        self._host = host
        headers = {"Authorization": f"Token {token}"}
        self._poster = Poster(http=http, headers=headers, secret=token, wait_seconds=wait_seconds)
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


# Open Metaculus questions about a number, asked so that a forecaster states a whole distribution.

NUMERIC_KINDS = ("numeric", "discrete")
PAGE = 100
THRESHOLD_SHARES = (0.25, 0.5, 0.75)
"""Where in the range the thresholds stand that the question has as targets."""


async def open_numeric_questions(
    client: MetaculusClient, as_of: AsOf, *, tournaments: Sequence[str] = (), limit: int = 100
) -> list[Question]:
    """The newest open ones. Dates are left out: nobody states them in seconds."""
    require_live(as_of)
    found: list[Question] = []
    more, passed = True, 0
    while more and len(found) < limit:
        query = [("statuses", "open"), ("limit", str(PAGE)), ("offset", str(passed)), ("order_by", "-published_at")]
        query += [("forecast_type", kind) for kind in NUMERIC_KINDS]
        query += [("include_descriptions", "true"), *(("tournaments", name) for name in tournaments)]
        answer = await client.read("/posts/", query)
        for row in answer.need("results").items():
            found += _questions(row, as_of)
        more, passed = answer.present("next") is not None, passed + PAGE
    return found[:limit]


def _questions(row: Payload, as_of: AsOf) -> list[Question]:
    asked = [one for one in questions_in_post(row) if one.kind in NUMERIC_KINDS and not one.closed(as_of.at)]
    rules = row.get("question") or row.get("group_of_questions")
    return [
        _question(row, rules, one, one.scale, as_of) for one in asked if rules is not None and one.scale is not None
    ]


def _question(row: Payload, rules: Payload, asked: OpenMetaculusQuestion, scale: NumericRange, as_of: AsOf) -> Question:
    title = row.words("title")
    part = f"#{asked.id}" if asked.grouped else ""
    unit = rules.words("unit")
    edges = scale.edges()
    levels = dict.fromkeys(f">{edges[round(share * scale.outcomes)]:.10g}" for share in THRESHOLD_SHARES)
    return Question(
        id=f"metaculus/{asked.post}{part}",
        source="metaculus",
        text=f"{title} ({asked.title})" if asked.grouped and asked.title else title,
        due=as_of.at,
        targets=tuple(Target(id=level, label=f"{level} {unit}".strip()) for level in levels),
        subtype="numeric",
        criteria="\n\n".join(filter(None, [rules.words("resolution_criteria"), rules.words("fine_print")])),
        background="\n\n".join(filter(None, [rules.words("description"), _range(scale, unit)])),
        opens_at=asked.opens_at,
        closes_at=asked.closes_at,
        url=f"https://www.metaculus.com/questions/{asked.post}/",
    )


def _range(scale: NumericRange, unit: str) -> str:
    """The range in words.

    >>> _range(NumericRange(minimum=0, maximum=90, open_upper=True), "seats")
    'The range asked about is 0 to 90 seats; it may end up above, but not below.'
    """
    ends = {
        (True, True): "it may end up above or below",
        (True, False): "it may end up below, but not above",
        (False, True): "it may end up above, but not below",
        (False, False): "it cannot end up outside",
    }
    told = f"The range asked about is {scale.minimum:.10g} to {scale.maximum:.10g} {unit}".rstrip()
    return f"{told}; {ends[scale.open_lower, scale.open_upper]}."
