"""Forecasts handed in to Prophet Arena: one an event, which replaces the agent's earlier one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from foretell.data.http import AsyncHttpClient, NotFound
from foretell.data.markets.prophet_arena import HOST, OVER, ProphetArenaClient
from foretell.data.markets.prophet_arena import PLATFORM as SOURCE
from foretell.data.payload import MalformedPayload
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question
from foretell.submit.sending import Poster, send_one
from foretell.submit.submission import (
    OutgoingRequest,
    SendResult,
    SubmissionItem,
    SubmissionPlan,
    age_notes,
    backtest_problems,
    newest_forecasts,
    split_id,
    unanswered_items,
)

# Prophet Arena's counter: one forecast an event, which replaces the agent's earlier one.

FORECASTS = "/forecasts"


@dataclass(frozen=True, kw_only=True)
class ProphetArenaEvent:
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


class ProphetArenaWriter:
    """Reads events through the reading client, and writes through a client that never repeats by itself."""

    def __init__(
        self,
        *,
        client: ProphetArenaClient,
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
        return f"ProphetArenaWriter(host={self._host!r})"

    def address(self, path: str) -> str:
        """Where a path leads."""
        return f"{self._host}{path}"

    async def event(self, slug: str) -> ProphetArenaEvent:
        """One event as it stands."""
        row = await self._client.event(slug)
        return ProphetArenaEvent(
            slug=row.need("slug").text(),
            title=row.words("title"),
            outcomes=tuple(one.need("name").text() for one in row.need("outcomes").items()),
            status=row.words("status"),
            closes_at=row.optional_time("close_at"),
        )

    async def forecast(self, forecast: Mapping[str, Any]) -> dict[str, Any]:
        """What the arena says in return: when it came, whether it replaced another, and its sealed receipt."""
        answer = await self._poster.post_for_reply(self.address(FORECASTS), dict(forecast))
        row = answer.get("data") or answer
        names = ("received_at", "replaces_previous", "receipt")
        return {name: found.value for name in names if (found := row.get(name)) is not None}

    async def stands(self, slug: str, agent: str) -> Mapping[str, float] | None:
        """The agent's newest forecast of an event; None where the arena shows none."""
        try:
            answer = await self._client.read(f"/events/{quote(slug, safe='')}/forecasts", {"agent": agent})
        except NotFound:
            return None
        rows = [row for row in answer.need("data").items() if row.words("agent") == agent]
        if not rows:
            return None
        newest = max(rows, key=lambda row: row.words("received_at")).need("probabilities")
        return {name: p.probability() for name, p in newest.members().items()}


PLATFORM = "prophet-arena"
DIGITS = 10
TOLERANCE = 1e-9
ProphetArenaEvents = Mapping[str, ProphetArenaEvent | str]
"""By slug: the event, or why it could not be read."""


@dataclass(frozen=True, kw_only=True)
class ProphetArenaOptions:
    """Under which name, and how, forecasts are handed in."""

    agent: str
    rationale: bool = False
    """Whether the reasons go along."""
    window: str | None = None
    """Which round of an event; without one it is the open one."""


async def read_events(desk: ProphetArenaWriter, forecasts: Sequence[Forecast]) -> ProphetArenaEvents:
    """What the events ask now. Reads, and writes nothing."""
    seen: dict[str, ProphetArenaEvent | str] = {}
    for slug in (split_id(forecast.question_id)[1] for forecast in newest_forecasts(forecasts) if _here(forecast)):
        try:
            seen[slug] = await desk.event(slug)
        except NotFound:
            seen[slug] = f"Prophet Arena has no event {slug}"
    return seen


@dataclass(frozen=True, kw_only=True)
class ProphetArenaSubmitter:
    """Plans by what was seen; sends through the desk."""

    desk: ProphetArenaWriter
    entrant: ProphetArenaOptions
    seen: ProphetArenaEvents
    now: datetime
    platform: str = PLATFORM

    def plan(self, forecasts: Sequence[Forecast], questions: Sequence[Question]) -> SubmissionPlan:
        """One forecast for every event, with each outcome exactly once; probabilities stay as they are."""
        titles = {question.id: question.text for question in questions}
        items = [self._item(forecast, titles.get(forecast.question_id, "")) for forecast in newest_forecasts(forecasts)]
        items += unanswered_items(forecasts, questions)
        return SubmissionPlan(platform=PLATFORM, account=self.entrant.agent, items=tuple(items))

    def requests(self, items: Sequence[SubmissionItem]) -> list[OutgoingRequest]:
        """One request for each."""
        address = self.desk.address(FORECASTS)
        return [OutgoingRequest(method="POST", address=address, body=dict(item.content)) for item in items]

    async def stands(self, items: Sequence[SubmissionItem]) -> list[bool]:
        """Read back. Where the arena's answer cannot be understood, sending again does no harm: it replaces."""
        return [await self._stands(item.content) for item in items]

    async def send(self, items: Sequence[SubmissionItem]) -> list[SendResult]:
        """One after the other."""
        return [await send_one(item, self.desk.forecast(item.content)) for item in items]

    async def _stands(self, body: Mapping[str, Any]) -> bool:
        try:
            shown = await self.desk.stands(body["event"], body["agent"])
        except MalformedPayload:
            return False
        meant = body["probabilities"]
        return (
            shown is not None
            and set(shown) == set(meant)
            and all(abs(shown[name] - meant[name]) <= TOLERANCE for name in meant)
        )

    def _item(self, forecast: Forecast, title: str) -> SubmissionItem:
        slug = split_id(forecast.question_id)[1]
        event = self.seen.get(slug, "it is no event of Prophet Arena") if _here(forecast) else "it is no event here"
        name = f"{SOURCE}/{slug}" if _here(forecast) else forecast.question_id
        if isinstance(event, str):
            return SubmissionItem(question=name, part="forecast", content={}, title=title, problems=(event,))
        probabilities, problems = _matched(event, forecast.p)
        closed = event.closed(self.now)
        problems = [
            *backtest_problems(forecast),
            *([f"the event takes no forecasts: {closed}"] if closed else []),
            *problems,
        ]
        body: dict[str, Any] = {"agent": self.entrant.agent, "event": event.slug, "probabilities": probabilities}
        body |= {"window": self.entrant.window} if self.entrant.window else {}
        body |= {"rationale": forecast.rationale} if self.entrant.rationale and forecast.rationale else {}
        return SubmissionItem(
            question=name,
            part="forecast",
            content=body if probabilities else {},
            title=event.title,
            problems=tuple(problems),
            notes=age_notes(forecast, self.now),
        )


def _here(forecast: Forecast) -> bool:
    return split_id(forecast.question_id)[0].replace("-", "_") == SOURCE


def _matched(event: ProphetArenaEvent, p: Mapping[str, float]) -> tuple[dict[str, float], list[str]]:
    """Every outcome as the arena spells it, and what does not fit; upper and lower case do not matter."""
    told: dict[str, float] = {}
    problems: list[str] = []
    for name, value in p.items():
        if name.casefold() in told:
            problems.append(f"the outcome {name!r} is there twice")
        told[name.casefold()] = value
    known = {name.casefold() for name in event.outcomes}
    problems += [f"{name!r} is not an outcome" for name in p if name.casefold() not in known]
    problems += [f"the outcome {name!r} has no probability" for name in event.outcomes if name.casefold() not in told]
    if problems:
        return {}, problems
    return {name: round(told[name.casefold()], DIGITS) for name in event.outcomes}, []
