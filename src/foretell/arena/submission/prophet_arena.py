"""Forecasts handed in to Prophet Arena: one an event, which replaces the agent's earlier one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any

from foretell.arena.submission.checks import age, newest, past, unanswered
from foretell.arena.submission.submission import Item, Outcome, Outgoing, Submission, split_id
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question
from foretell.sources.http import SourceError
from foretell.sources.markets.prophet_arena import PLATFORM as SOURCE
from foretell.sources.payload import Malformed
from foretell.sources.posting.poster import Lost, Refused
from foretell.sources.posting.prophet_arena import FORECASTS, ArenaDesk, ArenaEvent

PLATFORM = "prophet-arena"
DIGITS = 10
ALIKE = 1e-9
Seen = Mapping[str, ArenaEvent | str]
"""By slug: the event, or why it could not be read."""


@dataclass(frozen=True, kw_only=True)
class Entrant:
    """Under which name, and how, forecasts are handed in."""

    agent: str
    rationale: bool = False
    """Whether the reasons go along."""
    window: str | None = None
    """Which round of an event; without one it is the open one."""


async def look(desk: ArenaDesk, forecasts: Sequence[Forecast]) -> Seen:
    """What the events ask now. Reads, and writes nothing."""
    seen: dict[str, ArenaEvent | str] = {}
    for slug in (split_id(forecast.question_id)[1] for forecast in newest(forecasts) if _here(forecast)):
        try:
            seen[slug] = await desk.event(slug)
        except SourceError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            seen[slug] = f"Prophet Arena has no event {slug}"
    return seen


@dataclass(frozen=True, kw_only=True)
class ArenaSubmitter:
    """Plans by what was seen; sends through the desk."""

    desk: ArenaDesk
    entrant: Entrant
    seen: Seen
    now: datetime
    platform: str = PLATFORM

    def plan(self, forecasts: Sequence[Forecast], questions: Sequence[Question]) -> Submission:
        """One forecast for every event, with each outcome exactly once; probabilities stay as they are."""
        titles = {question.id: question.text for question in questions}
        items = [self._item(forecast, titles.get(forecast.question_id, "")) for forecast in newest(forecasts)]
        items += unanswered(forecasts, questions)
        return Submission(platform=PLATFORM, account=self.entrant.agent, items=tuple(items))

    def requests(self, items: Sequence[Item]) -> list[Outgoing]:
        """One request for each."""
        address = self.desk.address(FORECASTS)
        return [Outgoing(method="POST", address=address, body=dict(item.content)) for item in items]

    async def stands(self, items: Sequence[Item]) -> list[bool]:
        """Read back. Where the arena's answer cannot be understood, sending again does no harm: it replaces."""
        return [await self._stands(item.content) for item in items]

    async def send(self, items: Sequence[Item]) -> list[Outcome]:
        """One after the other."""
        return [await self._sent(item) for item in items]

    async def _stands(self, body: Mapping[str, Any]) -> bool:
        try:
            shown = await self.desk.stands(body["event"], body["agent"])
        except Malformed:
            return False
        meant = body["probabilities"]
        return (
            shown is not None
            and set(shown) == set(meant)
            and all(abs(shown[name] - meant[name]) <= ALIKE for name in meant)
        )

    async def _sent(self, item: Item) -> Outcome:
        try:
            answer = await self.desk.forecast(item.content)
        except (Refused, Lost) as error:
            state = "lost" if isinstance(error, Lost) else "refused"
            return Outcome(item=item, state=state, reason=error.problem)
        return Outcome(item=item, state="taken", answer=answer)

    def _item(self, forecast: Forecast, title: str) -> Item:
        slug = split_id(forecast.question_id)[1]
        event = self.seen.get(slug, "it is no event of Prophet Arena") if _here(forecast) else "it is no event here"
        name = f"{SOURCE}/{slug}" if _here(forecast) else forecast.question_id
        if isinstance(event, str):
            return Item(question=name, part="forecast", content={}, title=title, problems=(event,))
        probabilities, problems = _matched(event, forecast.p)
        closed = event.closed(self.now)
        problems = [*past(forecast), *([f"the event takes no forecasts: {closed}"] if closed else []), *problems]
        body: dict[str, Any] = {"agent": self.entrant.agent, "event": event.slug, "probabilities": probabilities}
        body |= {"window": self.entrant.window} if self.entrant.window else {}
        body |= {"rationale": forecast.rationale} if self.entrant.rationale and forecast.rationale else {}
        return Item(
            question=name,
            part="forecast",
            content=body if probabilities else {},
            title=event.title,
            problems=tuple(problems),
            notes=age(forecast, self.now),
        )


def _here(forecast: Forecast) -> bool:
    return split_id(forecast.question_id)[0].replace("-", "_") == SOURCE


def _matched(event: ArenaEvent, p: Mapping[str, float]) -> tuple[dict[str, float], list[str]]:
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
