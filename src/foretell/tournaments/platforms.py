"""The platforms with single questions: what is open on Metaculus and Prophet Arena, and how forecasts are sent."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from foretell.data.http import NotFound, SourceError
from foretell.data.markets.listing import EventListing, ListedEvent, ListingFilter, ListingReport
from foretell.data.markets.metaculus import MetaculusClient, MetaculusEvents, questions_of
from foretell.data.markets.prophet_arena import ProphetArenaWeekly, ProphetArenaWindows
from foretell.data.payload import Payload
from foretell.data.service import practice_page
from foretell.questions.as_of import AsOf
from foretell.questions.forecast import Forecast
from foretell.runs.listings import MAX_QUESTIONS
from foretell.tournaments import prophet_arena
from foretell.tournaments.connection import PlatformConnection
from foretell.tournaments.ledger import SubmissionHistory
from foretell.tournaments.metaculus import (
    MetaculusOptions,
    MetaculusSubmitter,
    OpenMetaculusQuestion,
    questions_in_post,
    read_posts,
)
from foretell.tournaments.policy import ListedPart, ListedQuestion, TournamentListing
from foretell.tournaments.prophet_arena import (
    ProphetArenaEvent,
    ProphetArenaOptions,
    ProphetArenaSubmitter,
    agent_name,
    read_events,
)
from foretell.tournaments.question_visit import TournamentPlatform
from foretell.tournaments.settings import ProphetArenaSettings
from foretell.tournaments.submission import Submitter, split_id

TESTING_AREA = "bot-testing-area"
"""The tournament of Metaculus for testing bots."""


def _open_now(now: datetime) -> ListingFilter:
    return ListingFilter(as_of=AsOf(at=now, mode="live"), limit=MAX_QUESTIONS)


# Metaculus.


class TournamentEvents(MetaculusEvents):
    """The open posts of a tournament, and the forecasts that this account has already made."""

    def __init__(self, client: MetaculusClient, slug: str) -> None:
        super().__init__(client, tournaments=(slug,))
        self.parts: dict[str, tuple[OpenMetaculusQuestion, ...]] = {}
        """By question id."""

    async def read(self, row: Payload, as_of: AsOf, report: ListingReport) -> ListedEvent:
        """Return a post as an event, and record its forecasts."""
        event = await super().read(row, as_of, report)
        if not all(question.has("my_forecasts") for question in questions_of(row)):
            row = await self.fetch(split_id(event.question.id)[1])
        self.parts[event.question.id] = questions_in_post(row)
        return event


class MetaculusTournament(TournamentPlatform):
    """A tournament of Metaculus."""

    reasons = True

    def __init__(self, connection: PlatformConnection, slug: str, options: MetaculusOptions) -> None:
        self.client, self.writer = connection.metaculus()
        self.slug = slug
        self.options = options

    async def look(self, now: datetime) -> tuple[str, TournamentListing]:
        """Return the bot's account, and what is open in the tournament."""
        account, events = (await self.writer.account()).name, TournamentEvents(self.client, self.slug)
        listing = events.events(_open_now(now))
        listed_questions: list[ListedQuestion] = []
        for event in await listing.all():
            parts = tuple(_part(part) for part in events.parts[event.question.id] if not part.closed(now))
            if parts:
                listed_questions.append(ListedQuestion(question=event.question, parts=parts))
            else:
                listing.ledger.left_out["it accepts no forecasts now"] += 1
        return account, TournamentListing.of(listed_questions, _skipped(listing))

    async def submitter(self, forecasts: Sequence[Forecast], now: datetime) -> Submitter:
        """Return a submitter for the posts of these forecasts."""
        account, seen = await read_posts(self.writer, forecasts, (), self.options)
        return MetaculusSubmitter(writer=self.writer, account=account, seen=seen, now=now, options=self.options)

    def address(self, question: str) -> str:
        """Return the address of a post."""
        return practice_page(post_address(question), {"metaculus": self.client.host})

    def comment_address(self, question: str, reply: dict[str, Any]) -> str:
        """Return the address of the comment on that page."""
        number = reply.get("comment")
        return f"{self.address(question)}#comment-{number}" if number else ""


def _part(part: OpenMetaculusQuestion) -> ListedPart:
    return ListedPart(
        name=part.name,
        closes_at=part.closes_at,
        answered=part.standing is not None,
        since=part.standing.since if part.standing else None,
        target=str(part.id) if part.grouped else "",
    )


def _skipped(listing: EventListing) -> Counter[str]:
    return Counter(event.reason for event in listing.ledger.skipped) + listing.ledger.left_out


def post_address(question: str) -> str:
    """Return the address of a question's page.

    >>> post_address("metaculus/20925#52")
    'https://www.metaculus.com/questions/20925/'
    """
    return f"https://www.metaculus.com/questions/{split_id(question)[1].partition('#')[0]}/"


# Prophet Arena: the weekly release, or the live events with a round that takes forecasts now.


class ArenaTrack(TournamentPlatform):
    """A track of Prophet Arena. Reasons are sent with the forecasts but are not required."""

    reasons = False

    def __init__(
        self, connection: PlatformConnection, own: ProphetArenaSettings, track: str, history: SubmissionHistory
    ) -> None:
        self._client, self._writer = connection.prophet_arena()
        self._own = own
        self._track = track
        self._history = history
        self._agent = ""

    async def agent(self) -> str:
        """Return the name under which we forecast."""
        self._agent = self._agent or await agent_name(self._client, self._own)
        return self._agent

    async def look(self, now: datetime) -> tuple[str, TournamentListing]:
        """Return the agent, and what accepts forecasts now."""
        agent, weekly = await self.agent(), self._track == "weekly"
        events = ProphetArenaWeekly(self._client) if weekly else ProphetArenaWindows(self._client)
        listing = events.events(_open_now(now))
        try:
            listed = await listing.all()
        except NotFound:
            return agent, TournamentListing(skipped={"there is no release now": 1})
        open_ = set[str]() if weekly else {row.words("event") for row in await self._client.open_windows(agent)}
        listed_questions: list[ListedQuestion] = []
        for event in listed:
            question = event.question
            slug = split_id(question.id)[1]
            if weekly:
                part = await self._weekly_part(question.id, slug, agent, question.closes_at)
            else:
                # Trust the arena that a round is unanswered, even if an earlier one was answered.
                closes, answered = question.closes_at, slug not in open_
                part = ListedPart(name=question.id, closes_at=closes, answered=answered, certain=True)
            listed_questions.append(ListedQuestion(question=question, parts=(part,)))
        return agent, TournamentListing.of(listed_questions, _skipped(listing))

    async def _weekly_part(self, name: str, slug: str, agent: str, closes: datetime | None) -> ListedPart:
        """Return the part of an event. Forecasts that are not in the ledger are read from the arena."""
        if (prophet_arena.PLATFORM, agent, name, "forecast") in self._history.taken:
            return ListedPart(name=name, closes_at=closes, answered=True)
        try:
            own = await self._client.own_forecasts(agent, slug)
        except NotFound:
            own = list[Payload]()
        times = [row.need("received_at").time() for row in own]
        return ListedPart(name=name, closes_at=closes, answered=bool(own), since=max(times, default=None))

    async def submitter(self, forecasts: Sequence[Forecast], now: datetime) -> Submitter:
        """Return a submitter for the current events of these forecasts; a live forecast names its round."""
        options = ProphetArenaOptions(agent=await self.agent(), rationale=self._own.reasons)
        seen = await read_events(self._writer, forecasts)
        if self._track == "live":
            rounds = {row.words("event"): row for row in await self._client.open_windows()}
            seen = {slug: _of_round(event, rounds.get(slug)) for slug, event in seen.items()}
        return ProphetArenaSubmitter(writer=self._writer, entrant=options, seen=seen, now=now)

    def address(self, question: str) -> str:
        """Return the address of an event."""
        url = f"https://www.prophetarena.co/events/{split_id(question)[1]}"
        return practice_page(url, {"prophet_arena": self._client.host})


def _of_round(
    event: ProphetArenaEvent | str | SourceError, row: Payload | None
) -> ProphetArenaEvent | str | SourceError:
    """Return the event with the number and the end of its open round."""
    if not isinstance(event, ProphetArenaEvent):
        return event
    if row is None:
        return "no round of it is open"
    closes = row.optional_time("closes_at") or event.closes_at
    return replace(event, closes_at=closes, window=int(row.need("round").number()))
