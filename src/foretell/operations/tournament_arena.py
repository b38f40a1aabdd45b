"""Prophet Arena visited: the weekly release, or the live events with a round that takes forecasts now."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime

from foretell.data.http import NotFound
from foretell.data.markets.listing import ListingFilter
from foretell.data.markets.prophet_arena import ProphetArenaClient, ProphetArenaWeekly, ProphetArenaWindows
from foretell.data.payload import Payload
from foretell.operations.requests import ProphetArenaTournamentRequest
from foretell.operations.submit import PlatformConnection, open_ledger
from foretell.operations.table import operation
from foretell.operations.tournament import (
    ListedPart,
    ListedQuestion,
    TournamentListing,
    TournamentResult,
    TournamentVisit,
    practice_world,
    visit_alone,
)
from foretell.operations.tournament_plan import tournament_spec
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.runs.question_sets import MAX_QUESTIONS
from foretell.runs.runner import WatchProgress
from foretell.runs.settings import Settings, load_settings
from foretell.submit.ledger import SubmissionHistory
from foretell.submit.prophet_arena import (
    PLATFORM,
    ProphetArenaEvent,
    ProphetArenaEvents,
    ProphetArenaOptions,
    ProphetArenaSubmitter,
    ProphetArenaWriter,
    read_events,
)
from foretell.submit.submission import Submitter, split_id

PRACTICE_AGENT = "practice-agent"


async def visit_arena(
    request: ProphetArenaTournamentRequest,
    settings: Settings | None = None,
    *,
    watch: WatchProgress = lambda _: None,
    tell: Callable[[str], None] = lambda _: None,
) -> TournamentResult:
    """Forecast what is open and unanswered in a track of Prophet Arena, and send it.

    Args:
        request: The track and how to take part.
        settings: This machine's; without them, from the environment.
        watch: Is told how far the run is.
        tell: Is given a line about what goes on.
    """
    settings = settings or load_settings()
    if not request.practice:
        return await _visit(request, settings, watch, tell)
    async with practice_world(settings) as (world, engine):
        mine = {"search": (engine,), "agent": request.agent or PRACTICE_AGENT}
        return await _visit(request.model_copy(update=mine), world, watch, tell)


enter_prophet_arena = operation(ProphetArenaTournamentRequest)(visit_arena)


async def _visit(
    request: ProphetArenaTournamentRequest, settings: Settings, watch: WatchProgress, tell: Callable[[str], None]
) -> TournamentResult:
    spec = tournament_spec(request, settings, f"prophet_arena:{request.track}")
    history = SubmissionHistory.of(open_ledger(settings).entries())

    def reached(wire: PlatformConnection) -> ArenaVisits:
        client = ProphetArenaClient(http=wire.reading, key=wire.key, **wire.host)
        writer = ProphetArenaWriter(client=client, http=wire.writing, key=wire.key, **wire.host)
        return ArenaVisits(client=client, writer=writer, request=request, history=history)

    visit = TournamentVisit(
        request=request, settings=settings, spec=spec, platform=PLATFORM, slug=request.track, watch=watch, tell=tell
    )
    return await visit_alone(visit, reached)


class ArenaVisits:
    """A track of Prophet Arena. Reasons are sent along, and no forecast waits for them."""

    reasons = False

    def __init__(
        self,
        *,
        client: ProphetArenaClient,
        writer: ProphetArenaWriter,
        request: ProphetArenaTournamentRequest,
        history: SubmissionHistory,
    ) -> None:
        self._client = client
        self._writer = writer
        self._request = request
        self._history = history
        self._agent = request.agent

    async def agent(self) -> str:
        """Under which name we forecast: the one that is given, else our agent of the weekly track."""
        self._agent = self._agent or await self._client.weekly_agent()
        if not self._agent:
            raise InputError("Prophet Arena wants to know which agent this is", column="--agent")
        return self._agent

    async def look(self, now: datetime) -> tuple[str, TournamentListing]:
        """The agent, and what takes forecasts now."""
        agent, weekly = await self.agent(), self._request.track == "weekly"
        events = ProphetArenaWeekly(self._client) if weekly else ProphetArenaWindows(self._client)
        listing = events.events(ListingFilter(as_of=AsOf(at=now, mode="live"), limit=MAX_QUESTIONS))
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
        skipped = Counter(one.reason for one in listing.ledger.skipped) + listing.ledger.left_out
        return agent, TournamentListing.of(found, skipped)

    async def _weekly_part(self, name: str, slug: str, agent: str, closes: datetime | None) -> ListedPart:
        """What the ledger does not know is read from the arena: nothing is asked twice though all here was lost."""
        if (PLATFORM, agent, name, "forecast") in self._history.taken:
            return ListedPart(name=name, closes_at=closes, answered=True)
        try:
            own = await self._client.own_forecasts(agent, slug)
        except NotFound:
            own = list[Payload]()
        moments = [row.need("received_at").time() for row in own]
        return ListedPart(name=name, closes_at=closes, answered=bool(own), since=max(moments, default=None))

    async def submitter(self, forecasts: Sequence[Forecast], now: datetime) -> Submitter:
        """With what the events of these forecasts ask now; a live forecast names its round."""
        options = ProphetArenaOptions(agent=await self.agent(), rationale=self._request.reasons)
        seen: ProphetArenaEvents = await read_events(self._writer, forecasts)
        if self._request.track == "live":
            rounds = {row.words("event"): row for row in await self._client.open_windows()}
            seen = {slug: _of_round(event, rounds.get(slug)) for slug, event in seen.items()}
        return ProphetArenaSubmitter(writer=self._writer, entrant=options, seen=seen, now=now)

    def address(self, question: str) -> str:
        """The page of an event."""
        return f"https://www.prophetarena.co/events/{split_id(question)[1]}"


def _of_round(event: ProphetArenaEvent | str, row: Payload | None) -> ProphetArenaEvent | str:
    """The event with the number and the end of its open round."""
    if isinstance(event, str):
        return event
    if row is None:
        return "no round of it is open"
    return ProphetArenaEvent(
        slug=event.slug,
        title=event.title,
        outcomes=event.outcomes,
        state=event.state,
        closes_at=row.optional_time("closes_at") or event.closes_at,
        window=int(row.need("round").number()),
    )
