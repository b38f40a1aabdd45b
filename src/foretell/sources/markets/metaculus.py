"""Metaculus community predictions. Every call needs a token, and many questions need a better one than yours.

A post's number stands in its address; the questions inside have numbers of their own. Their data may not be passed on,
and may be used with models only as far as the site's terms and your access tier allow.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from urllib.parse import quote, urlencode

from foretell.questions.clock import AsOf
from foretell.sources.async_http import AsyncHttpClient
from foretell.sources.http import SourceError
from foretell.sources.market import MarketRef, PricePoint, PricesUnavailable
from foretell.sources.markets.fields import iso
from foretell.sources.markets.history import daily, window_start
from foretell.sources.markets.reference import split_part
from foretell.sources.payload import Payload, read

HOST = "https://www.metaculus.com/api"
NO_TOKEN = "metaculus answers nobody without a token, and none was given"
REFUSED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """What the community said from a moment on: one probability per option, a single one for yes."""

    since: datetime
    centers: tuple[float | None, ...]
    """None for an option that was not there yet, or no more."""


@dataclass(frozen=True, kw_only=True)
class Forecasted:
    """A question of a post with the history of its community prediction."""

    id: str
    kind: str
    options: tuple[str, ...]
    all_options: tuple[str, ...]
    """Also those that were taken away."""
    revealed_at: datetime | None
    """Until then the community prediction was hidden from everybody."""
    history: tuple[Crowd, ...]


class MetaculusClient:
    """The reading end, typed. The token is never shown."""

    def __init__(
        self,
        *,
        http: AsyncHttpClient,
        token: str,
        host: str = HOST,
        per_second: float = 0.3,
        retry_seconds: float = 4.0,
    ) -> None:
        self._http = http
        self._token = token
        self._host = host
        self._retry_seconds = retry_seconds
        http.keep_secret(token)
        http.pace(host, per_second=per_second)

    def __repr__(self) -> str:
        return f"MetaculusClient(host={self._host!r}, token={'given' if self._token else 'missing'})"

    async def questions(self, post: str) -> list[Forecasted]:
        """The questions of a post: one, or those of its group."""
        if not self._token:
            raise PricesUnavailable(NO_TOKEN)
        answer = await self.post(post)
        single, group = answer.get("question"), answer.get("group_of_questions")
        if single is not None:
            return [_forecasted(single)]
        return [_forecasted(item) for item in group.need("questions").items()] if group is not None else []

    async def post(self, post: str) -> Payload:
        """A whole post with its community predictions, as sent."""
        return await self.read(f"/posts/{quote(post, safe='')}/", [("with_cp", "true")])

    async def read(self, path: str, params: Iterable[tuple[str, str]] = ()) -> Payload:
        """What stands at a path, as sent; names may be repeated.

        A refusal is tried once more: the site's outer layer refuses good tokens now and then.
        """
        query = urlencode(list(params))
        url = f"{self._host}{path}" + (f"?{query}" if query else "")
        if not self._token:
            raise SourceError(NO_TOKEN, url=url)
        headers = {"Authorization": f"Token {self._token}"}
        try:
            return await read(self._http, url, headers=headers)
        except SourceError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
        await asyncio.sleep(self._retry_seconds)
        return await read(self._http, url, headers=headers)


class MetaculusPrices:
    """Community predictions by post id; `<post>#<question id>` within a group, `<post>#<option>` of a choice."""

    platform = "metaculus"

    def __init__(self, client: MetaculusClient) -> None:
        self._client = client

    async def prices(self, ref: MarketRef, as_of: AsOf, days: int = 60) -> list[PricePoint]:
        """The last community prediction of each day, as the public could see it at the cutoff."""
        window_start(as_of, days)
        post, part = split_part(ref)
        question, option = _chosen(ref, await self._questions(post), part)
        if not question.history:
            raise PricesUnavailable(f"metaculus does not show this account the community prediction of post {post}")
        if question.revealed_at is not None and not as_of.admits(question.revealed_at):
            raise PricesUnavailable(f"the community prediction of metaculus post {post} was still hidden at {as_of}")
        said = [(crowd.since, _yes(ref, question, crowd, option)) for crowd in question.history]
        return daily(ref, [PricePoint(at=at, p=p) for at, p in said if p is not None], as_of, days)

    async def _questions(self, post: str) -> list[Forecasted]:
        try:
            return await self._client.questions(post)
        except SourceError as error:
            if error.status in REFUSED:
                raise PricesUnavailable(
                    f"metaculus refuses this account post {post} (status {error.status}): wrong token or access tier"
                ) from None
            if error.status == HTTPStatus.NOT_FOUND:
                raise PricesUnavailable(
                    f"metaculus has no post {post}; the number in a question's address is the post's"
                ) from None
            raise


def _chosen(ref: MarketRef, questions: list[Forecasted], part: str | None) -> tuple[Forecasted, str | None]:
    """The question meant, and the option where it is a choice."""
    by_id = {question.id: question for question in questions}
    if part in by_id:
        return by_id[part], None
    if len(questions) == 1:
        return questions[0], part
    raise PricesUnavailable(
        f"metaculus {ref.id} names none of the post's questions: {', '.join(by_id) or 'it has none'}"
    )


def _yes(ref: MarketRef, question: Forecasted, crowd: Crowd, option: str | None) -> float | None:
    if question.kind == "binary" and option is None:
        # Old answers give no and yes, new ones only yes.
        return crowd.centers[-1]
    if question.kind == "multiple_choice" and option is not None:
        for labels in (question.all_options, question.options):
            if len(labels) == len(crowd.centers) and option in labels:
                return crowd.centers[labels.index(option)]
    raise PricesUnavailable(f"metaculus {ref.id} is no yes-or-no question, nor an option of a choice")


def _forecasted(question: Payload) -> Forecasted:
    revealed = question.get("cp_reveal_time")
    return Forecasted(
        id=question.need("id").name(),
        kind=question.need("type").text(),
        options=_labels(question, "options"),
        all_options=_labels(question, "all_options_ever"),
        revealed_at=iso(revealed) if revealed is not None else None,
        history=_history(question),
    )


def _labels(question: Payload, field: str) -> tuple[str, ...]:
    found = question.get(field)
    return tuple(item.text() for item in found.items()) if found is not None else ()


def _history(question: Payload) -> tuple[Crowd, ...]:
    """The whole history; empty where this account is not shown it."""
    aggregations = question.get("aggregations")
    weighted = aggregations.get("recency_weighted") if aggregations is not None else None
    history = weighted.get("history") if weighted is not None else None
    rows = history.items() if history is not None else []
    return tuple(crowd for row in rows if (crowd := _crowd(row)) is not None)


def _crowd(row: Payload) -> Crowd | None:
    """One entry; None where it holds no prediction."""
    centers = row.present("centers")
    if centers is None or not centers.items():
        return None
    return Crowd(since=row.need("start_time").moment(), centers=tuple(_center(item) for item in centers.items()))


def _center(item: Payload) -> float | None:
    return None if item.value is None else item.probability()
