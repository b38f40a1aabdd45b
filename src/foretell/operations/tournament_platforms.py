"""Enter a tournament on any platform, and the platforms with single questions: Metaculus and Prophet Arena."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from foretell.data.http import NotFound, SourceError
from foretell.data.markets.listing import EventListing, ListedEvent, ListingFilter, ListingReport
from foretell.data.markets.metaculus import MetaculusClient, MetaculusEvents, questions_of
from foretell.data.markets.prophet_arena import ProphetArenaWeekly, ProphetArenaWindows
from foretell.data.payload import Payload
from foretell.operations.requests.tournaments import (
    MetaculusSettings,
    ProphetArenaSettings,
    TournamentRunRequest,
)
from foretell.operations.submit import PlatformConnection, open_ledger
from foretell.operations.table import operation
from foretell.operations.tournament import (
    ListedPart,
    ListedQuestion,
    TournamentListing,
    TournamentPlatform,
    TournamentResult,
    TournamentRun,
    run_alone,
    tournament_spec,
)
from foretell.operations.tournament_round import RoundResult, enter_round
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.runs.question_sets import MAX_QUESTIONS, TOURNAMENT_PREFIX, Tournament
from foretell.runs.runner import WatchProgress
from foretell.runs.settings import Settings, load_settings
from foretell.submit import metaculus, prophet_arena
from foretell.submit.forecastbench import PLATFORM as FORECASTBENCH
from foretell.submit.ledger import SubmissionHistory
from foretell.submit.metaculus import (
    MetaculusOptions,
    MetaculusSubmitter,
    OpenMetaculusQuestion,
    questions_in_post,
    read_posts,
)
from foretell.submit.prophet_arena import (
    ProphetArenaEvent,
    ProphetArenaOptions,
    ProphetArenaSubmitter,
    read_events,
)
from foretell.submit.submission import Submitter, split_id

TESTING_AREA = "bot-testing-area"
"""Where Metaculus lets bots be tried."""


def _open_now(now: datetime) -> ListingFilter:
    return ListingFilter(as_of=AsOf(at=now, mode="live"), limit=MAX_QUESTIONS)


async def enter(
    request: TournamentRunRequest,
    settings: Settings | None = None,
    *,
    watch: WatchProgress = lambda _: None,
    tell: Callable[[str], None] = lambda _: None,
) -> TournamentResult | RoundResult:
    """Forecast what is open and unanswered in a tournament, and submit it.

    Returns a `RoundResult` for ForecastBench and a `TournamentResult` for Metaculus and Prophet Arena. Raises
    `InputError` if the request is wrong, a key is missing, or the platform cannot be reached.
    """
    settings = settings or load_settings()
    if request.platform == FORECASTBENCH:
        return await enter_round(request, settings, watch=watch, tell=tell)
    own: MetaculusSettings | ProphetArenaSettings
    connect: Callable[[PlatformConnection], TournamentPlatform]
    if request.platform == metaculus.PLATFORM:
        own = request.section(MetaculusSettings)
        slug = TESTING_AREA if request.sandbox else Tournament.read(request.tournament).slug
        questions = f"{TOURNAMENT_PREFIX}{slug}"
        connect = partial(MetaculusTournament, slug=slug, options=MetaculusOptions(comment=own.comment, clip=True))
    else:
        own, slug = request.section(ProphetArenaSettings), request.name or "weekly"
        questions = f"prophet_arena:{slug}"
        history = SubmissionHistory.of(open_ledger(settings).entries())
        connect = partial(ArenaTrack, own=own, track=slug, history=history)
    run = TournamentRun(
        request=request,
        own=own,
        settings=settings,
        spec=tournament_spec(request, questions),
        platform=request.platform,
        slug=slug,
        watch=watch,
        tell=tell,
    )
    return await run_alone(run, connect)


enter_tournament = operation(TournamentRunRequest)(enter)


# Metaculus.


class TournamentEvents(MetaculusEvents):
    """The open posts of a tournament, and beside them what this account has forecast already."""

    def __init__(self, client: MetaculusClient, slug: str) -> None:
        super().__init__(client, tournaments=(slug,))
        self.parts: dict[str, tuple[OpenMetaculusQuestion, ...]] = {}
        """By question id."""

    async def read(self, row: Payload, as_of: AsOf, report: ListingReport) -> ListedEvent:
        """A post as an event; its forecasts are kept."""
        event = await super().read(row, as_of, report)
        if not all(question.has("my_forecasts") for question in questions_of(row)):
            row = await self.fetch(split_id(event.question.id)[1])
        self.parts[event.question.id] = questions_in_post(row)
        return event


class MetaculusTournament:
    """A tournament of Metaculus."""

    reasons = True

    def __init__(self, wire: PlatformConnection, slug: str, options: MetaculusOptions) -> None:
        self.client, self.writer = wire.metaculus()
        self.slug = slug
        self.options = options

    async def look(self, now: datetime) -> tuple[str, TournamentListing]:
        """The bot's account, and what is open in the tournament."""
        account, events = (await self.writer.account()).name, TournamentEvents(self.client, self.slug)
        listing = events.events(_open_now(now))
        found: list[ListedQuestion] = []
        for event in await listing.all():
            parts = tuple(_part(one) for one in events.parts[event.question.id] if not one.closed(now))
            if parts:
                found.append(ListedQuestion(question=event.question, parts=parts))
            else:
                listing.ledger.left_out["it takes no forecast now"] += 1
        return account, TournamentListing.of(found, _skipped(listing))

    async def submitter(self, forecasts: Sequence[Forecast], now: datetime) -> Submitter:
        """With the posts of these forecasts."""
        account, seen = await read_posts(self.writer, forecasts, (), self.options)
        return MetaculusSubmitter(writer=self.writer, account=account, seen=seen, now=now, options=self.options)

    def address(self, question: str) -> str:
        """The page of a post."""
        return post_address(question)

    def comment_address(self, question: str, reply: dict[str, Any]) -> str:
        """The comment on that page."""
        number = reply.get("comment")
        return f"{post_address(question)}#comment-{number}" if number else ""


def _part(part: OpenMetaculusQuestion) -> ListedPart:
    return ListedPart(
        name=part.name,
        closes_at=part.closes_at,
        answered=part.standing is not None,
        since=part.standing.since if part.standing else None,
        target=str(part.id) if part.grouped else "",
    )


def _skipped(listing: EventListing) -> Counter[str]:
    return Counter(one.reason for one in listing.ledger.skipped) + listing.ledger.left_out


def post_address(question: str) -> str:
    """The address of a question's page.

    >>> post_address("metaculus/20925#52")
    'https://www.metaculus.com/questions/20925/'
    """
    return f"https://www.metaculus.com/questions/{split_id(question)[1].partition('#')[0]}/"


# Prophet Arena: the weekly release, or the live events with a round that takes forecasts now.


class ArenaTrack:
    """A track of Prophet Arena. Reasons are sent along, and no forecast waits for them."""

    reasons = False

    def __init__(
        self, wire: PlatformConnection, own: ProphetArenaSettings, track: str, history: SubmissionHistory
    ) -> None:
        self._client, self._writer = wire.prophet_arena()
        self._own = own
        self._track = track
        self._history = history
        self._agent = own.agent

    async def agent(self) -> str:
        """Under which name we forecast: the one that is given, else our agent of the weekly track."""
        self._agent = self._agent or await self._client.weekly_agent()
        if not self._agent:
            raise InputError("Prophet Arena wants to know which agent this is", column="tournament.agent")
        return self._agent

    async def look(self, now: datetime) -> tuple[str, TournamentListing]:
        """The agent, and what takes forecasts now."""
        agent, weekly = await self.agent(), self._track == "weekly"
        events = ProphetArenaWeekly(self._client) if weekly else ProphetArenaWindows(self._client)
        listing = events.events(_open_now(now))
        try:
            listed = await listing.all()
        except NotFound:
            return agent, TournamentListing(questions=(), skipped={"there is no release now": 1})
        open_ = set[str]() if weekly else {row.words("event") for row in await self._client.open_windows(agent)}
        found: list[ListedQuestion] = []
        for event in listed:
            question = event.question
            slug = split_id(question.id)[1]
            if weekly:
                part = await self._weekly_part(question.id, slug, agent, question.closes_at)
            else:
                # A round that the arena calls unanswered is, whatever was said in an earlier one.
                closes, answered = question.closes_at, slug not in open_
                part = ListedPart(name=question.id, closes_at=closes, answered=answered, certain=True)
            found.append(ListedQuestion(question=question, parts=(part,)))
        return agent, TournamentListing.of(found, _skipped(listing))

    async def _weekly_part(self, name: str, slug: str, agent: str, closes: datetime | None) -> ListedPart:
        """What the ledger does not know is read from the arena: nothing is asked twice though all here was lost."""
        if (prophet_arena.PLATFORM, agent, name, "forecast") in self._history.taken:
            return ListedPart(name=name, closes_at=closes, answered=True)
        try:
            own = await self._client.own_forecasts(agent, slug)
        except NotFound:
            own = list[Payload]()
        moments = [row.need("received_at").time() for row in own]
        return ListedPart(name=name, closes_at=closes, answered=bool(own), since=max(moments, default=None))

    async def submitter(self, forecasts: Sequence[Forecast], now: datetime) -> Submitter:
        """With what the events of these forecasts ask now; a live forecast names its round."""
        options = ProphetArenaOptions(agent=await self.agent(), rationale=self._own.reasons)
        seen = await read_events(self._writer, forecasts)
        if self._track == "live":
            rounds = {row.words("event"): row for row in await self._client.open_windows()}
            seen = {slug: _of_round(event, rounds.get(slug)) for slug, event in seen.items()}
        return ProphetArenaSubmitter(writer=self._writer, entrant=options, seen=seen, now=now)

    def address(self, question: str) -> str:
        """The page of an event."""
        return f"https://www.prophetarena.co/events/{split_id(question)[1]}"

    def comment_address(self, question: str, reply: dict[str, Any]) -> str:
        """None: reasons stand beside the forecast."""
        return ""


def _of_round(
    event: ProphetArenaEvent | str | SourceError, row: Payload | None
) -> ProphetArenaEvent | str | SourceError:
    """The event with the number and the end of its open round."""
    if not isinstance(event, ProphetArenaEvent):
        return event
    if row is None:
        return "no round of it is open"
    closes = row.optional_time("closes_at") or event.closes_at
    return replace(event, closes_at=closes, window=int(row.need("round").number()))
