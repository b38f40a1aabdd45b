"""Submit forecasts to Prophet Arena: one per event, replacing the agent's earlier one."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from foretell.data.http import AsyncHttpClient, NotFound, SourceError
from foretell.data.markets.prophet_arena import HOST, PENDING, ProphetArenaClient, WeeklyDeadline
from foretell.data.markets.prophet_arena import PLATFORM as SOURCE
from foretell.data.payload import MalformedPayload, Payload
from foretell.frozen import frozen
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question
from foretell.tournaments.settings import ProphetArenaSettings
from foretell.tournaments.submission import (
    QUOTA_EXCEEDED,
    UNANSWERED,
    ItemResult,
    OutgoingRequest,
    PlatformWriter,
    SubmissionItem,
    SubmissionPlan,
    age_notes,
    backtest_problems,
    newest_forecasts,
    read_each,
    send_one,
    split_id,
    unanswered_items,
    unreadable_item,
)

# Reading events and sending forecasts.

FORECASTS = "/forecasts"
ATTEMPTS = "/forecasts/attempts"
REPLY_FIELDS = (
    "id",
    "window",
    "received_at",
    "window_closes_at",
    "replaces_previous",
    "receipt",
    "listed",
    "listing_note",
)
"""The fields of the arena's reply that the ledger keeps."""
RECEIPT = "pa-receipt-1."
SIGNED = "prophet-arena/seal/v1"
"""The purpose that is part of the signed text, so that a signature cannot be reused for something else."""


@frozen
class ProphetArenaEvent:
    """An event that can be forecast."""

    slug: str
    title: str
    outcomes: tuple[str, ...]
    state: str
    closes_at: datetime | None
    window: int | None = None
    """The round of a weekly question; None for the round that is open."""

    def closed(self, now: datetime) -> str:
        """Return why the event accepts no forecast at that time; empty if it does."""
        if self.state.casefold() not in ("", "open"):
            return f"it is {self.state}"
        return "it is closed" if self.closes_at is not None and self.closes_at <= now else ""

    @classmethod
    def live(cls, row: Payload) -> "ProphetArenaEvent":
        """Parse a live event."""
        return cls(
            slug=row.need("slug").text(),
            title=row.words("title"),
            outcomes=tuple(outcome.need("name").text() for outcome in row.need("outcomes").items()),
            state=row.words("state"),
            closes_at=row.optional_time("window_closes_at") or row.optional_time("close_at"),
        )

    @classmethod
    def of_week(cls, row: Payload, deadline: WeeklyDeadline) -> "ProphetArenaEvent":
        """Parse a question of a weekly release; a settled question is not open."""
        outcomes = row.need("outcomes").items()
        settled = any(outcome.words("resolution") not in ("", PENDING) for outcome in outcomes)
        return cls(
            slug=row.need("event").text(),
            title=row.words("title"),
            outcomes=tuple(outcome.need("name").text() for outcome in outcomes),
            state="settled" if settled else "open" if deadline.published else "closed",
            closes_at=deadline.closes_at,
            window=int(row.need("window").number()),
        )


def seal_fits(receipt: Payload) -> bool:
    """Return whether a receipt's key matches its seal. The key contains the record, and the seal is its checksum."""
    try:
        opening = _decoded(receipt.need("key").text().removeprefix(RECEIPT))
        return hashlib.sha256(opening).hexdigest() == receipt.need("seal").text()
    except (ValueError, MalformedPayload):
        return False


def signature_fits(receipt: Payload, public_key: str) -> bool | None:
    """Return whether the arena signed the seal and its timestamp with its key (Ed25519).

    None if that is unknown, because the receipt is not signed or the package `cryptography` is not installed.
    """
    signature = receipt.optional_text("signature")
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        return None
    if not signature or not public_key:
        return None
    # The register writes times to the microsecond.
    at = f"{receipt.need('recorded_at').time():%Y-%m-%dT%H:%M:%S.%f}Z"
    signed = f"{SIGNED}|{receipt.need('seal').text()}|{at}".encode()
    try:
        Ed25519PublicKey.from_public_bytes(_decoded(public_key)).verify(_decoded(signature), signed)
    except (InvalidSignature, ValueError):
        return False
    return True


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class ProphetArenaWriter(PlatformWriter):
    """Reads events through the read-only client, and sends forecasts."""

    def __init__(
        self,
        *,
        client: ProphetArenaClient,
        http: AsyncHttpClient,
        key: str,
        host: str = HOST,
        wait_seconds: float = 2.0,
    ) -> None:
        super().__init__(http=http, host=host, scheme="Bearer", key=key, wait_seconds=wait_seconds)
        self._client = client
        self._public_key: str | None = None

    async def event(self, slug: str) -> ProphetArenaEvent:
        """Read a live event."""
        return ProphetArenaEvent.live(await self._client.event(slug))

    async def weekly_events(self) -> dict[str, ProphetArenaEvent]:
        """Return the questions of the current release by slug and by ticker; empty if there is no release."""
        try:
            release = await self._client.release()
        except NotFound:
            return {}
        deadline, events = WeeklyDeadline.of(release), dict[str, ProphetArenaEvent]()
        for row in release.need("events").items():
            # A question that cannot be parsed is read again from its own address.
            with suppress(MalformedPayload):
                event = ProphetArenaEvent.of_week(row, deadline)
                events |= {event.slug: event} | ({row.words("ticker"): event} if row.words("ticker") else {})
        return events

    async def forecast(self, forecast: Mapping[str, Any]) -> dict[str, Any]:
        """Send a forecast; return when it arrived, whether it replaced another one, and its sealed receipt."""
        row = await self._poster.post_for_reply(self.address(FORECASTS), dict(forecast), Payload.members)
        reply = {name: row[name].value for name in REPLY_FIELDS if name in row and row[name].value is not None}
        if "receipt" not in reply:
            return reply
        fits: dict[str, Any] = {"seal_fits": seal_fits(row["receipt"])}
        with suppress(MalformedPayload):
            if row["receipt"].get("signature") is not None:
                fits["signature_fits"] = await self._signed(row["receipt"])
        return reply | fits

    async def _signed(self, receipt: Payload) -> bool | None:
        """Return whether a receipt has the arena's signature; None if unknown. The forecast was accepted either way."""
        try:
            if self._public_key is None:
                self._public_key = await self._client.public_key()
            return signature_fits(receipt, self._public_key)
        except SourceError:
            return None

    async def report_unanswered(self, agent: str, event: str) -> None:
        """Report that the agent has no forecast of an event; only the agent's owner sees this."""
        body = {"agent": agent, "event": event, "error": UNANSWERED}
        await self._poster.post(self.address(ATTEMPTS), body)

    async def stands(self, slug: str, agent: str) -> Mapping[str, float] | None:
        """Return the agent's latest forecast of an event; None if the arena shows none."""
        try:
            rows = await self._client.own_forecasts(agent, slug)
        except NotFound:
            return None
        mine = [row for row in rows if row.words("agent") == agent and row.words("event") == slug]
        if not mine:
            return None
        newest = max(mine, key=lambda row: row.need("received_at").time()).need("probabilities")
        return {name: p.probability() for name, p in newest.members().items()}


PLATFORM = "prophet-arena"
DIGITS = 10
TOLERANCE = 1e-9
ProphetArenaEvents = Mapping[str, ProphetArenaEvent | str | SourceError]
"""Slug → the event, or why there is none, or the error from reading it."""


@frozen
class ProphetArenaOptions:
    """Options for submitting to Prophet Arena."""

    agent: str
    rationale: bool = False
    """Whether to send the rationale."""
    window: int | None = None
    """The round of the event to forecast; None for the event's own round."""


async def read_events(writer: ProphetArenaWriter, forecasts: Sequence[Forecast]) -> ProphetArenaEvents:
    """Read the current events of the forecasts; writes nothing."""
    slugs = [split_id(forecast.question_id)[1] for forecast in newest_forecasts(forecasts) if _here(forecast)]
    week = await writer.weekly_events() if slugs else {}

    async def read(slug: str) -> ProphetArenaEvent | str:
        try:
            return week.get(slug) or await writer.event(slug)
        except NotFound:
            return f"Prophet Arena has no event {slug}"

    return await read_each(slugs, read)


@frozen
class ProphetArenaSubmitter:
    """Plans submissions from the events that were read, and sends them."""

    writer: ProphetArenaWriter
    entrant: ProphetArenaOptions
    seen: ProphetArenaEvents
    now: datetime
    platform: str = PLATFORM

    def plan(self, forecasts: Sequence[Forecast], questions: Sequence[Question]) -> SubmissionPlan:
        """Plan one forecast per event, with each outcome exactly once and probabilities unchanged."""
        titles = {question.id: question.text for question in questions}
        items = [self._item(forecast, titles.get(forecast.question_id, "")) for forecast in newest_forecasts(forecasts)]
        items += unanswered_items(forecasts, questions)
        return SubmissionPlan(platform=PLATFORM, account=self.entrant.agent, items=tuple(items))

    def requests(self, items: Sequence[SubmissionItem]) -> list[OutgoingRequest]:
        """Return one request per item."""
        address = self.writer.address(FORECASTS)
        return [OutgoingRequest(method="POST", address=address, body=dict(item.content)) for item in items]

    async def stands(self, items: Sequence[SubmissionItem]) -> list[bool]:
        """Return whether the arena already has each forecast.

        False if the reply cannot be parsed, because sending again only replaces the earlier forecast.
        """
        return [await self._stands(item.content) for item in items]

    async def report_unanswered(self, plan: SubmissionPlan) -> None:
        """Report the events for which the agent has no forecast."""
        for item in plan.refused:
            if UNANSWERED in item.problems and item.question.startswith(f"{SOURCE}/"):
                # It is only for the owner's statistics, so a failure does not matter.
                with suppress(SourceError):
                    await self.writer.report_unanswered(self.entrant.agent, split_id(item.question)[1])

    async def send(self, items: Sequence[SubmissionItem]) -> list[ItemResult]:
        """Send the forecasts one after the other until the daily quota is used up."""
        sent: list[ItemResult] = []
        for item in items:
            if sent and QUOTA_EXCEEDED in sent[-1].reason:
                reason = f"not sent: {QUOTA_EXCEEDED} until 00:00 UTC"
                sent.append(ItemResult(item=item, fate="refused", reason=reason))
            else:
                sent.append(await send_one(item, self.writer.forecast(item.content)))
        return sent

    async def _stands(self, body: Mapping[str, Any]) -> bool:
        try:
            shown = await self.writer.stands(body["event"], body["agent"])
        except MalformedPayload:
            return False
        wanted = body["probabilities"]
        return (
            shown is not None
            and set(shown) == set(wanted)
            and all(abs(shown[name] - wanted[name]) <= TOLERANCE for name in wanted)
        )

    def _item(self, forecast: Forecast, title: str) -> SubmissionItem:
        slug = split_id(forecast.question_id)[1]
        event = self.seen.get(slug, "Prophet Arena has no such event") if _here(forecast) else "it is not an event here"
        name = f"{SOURCE}/{slug}" if _here(forecast) else forecast.question_id
        if not isinstance(event, ProphetArenaEvent):
            return unreadable_item(name, title, event)
        # A weekly question may be named by its ticker, but is sent under its slug.
        name = f"{SOURCE}/{event.slug}"
        probabilities, problems = _matched(event, forecast.p)
        closed = event.closed(self.now)
        problems = [
            *backtest_problems(forecast),
            *([f"the event accepts no forecasts: {closed}"] if closed else []),
            *problems,
        ]
        body: dict[str, Any] = {"agent": self.entrant.agent, "event": event.slug, "probabilities": probabilities}
        window = event.window if self.entrant.window is None else self.entrant.window
        body |= {} if window is None else {"window": window}
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
    """Match outcomes to the arena's spelling, ignoring case; return the probabilities and the problems."""
    by_name: dict[str, float] = {}
    problems: list[str] = []
    for name, value in p.items():
        if name.casefold() in by_name:
            problems.append(f"the outcome {name!r} occurs twice")
        by_name[name.casefold()] = value
    known = {name.casefold() for name in event.outcomes}
    problems += [f"{name!r} is not an outcome" for name in p if name.casefold() not in known]
    problems += [
        f"the outcome {name!r} has no probability" for name in event.outcomes if name.casefold() not in by_name
    ]
    if problems:
        return {}, problems
    return {name: round(by_name[name.casefold()], DIGITS) for name in event.outcomes}, []


async def agent_name(client: ProphetArenaClient, own: ProphetArenaSettings) -> str:
    """Return the name under which we forecast: the configured one, else our agent of the weekly track."""
    name = own.agent or await client.weekly_agent()
    if not name:
        raise InputError("Prophet Arena needs the name of the agent", column="--set tournament.agent")
    return name
