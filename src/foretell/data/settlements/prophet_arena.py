"""Results of Prophet Arena's events, stated with each outcome. Voided ones have no outcome."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta

from foretell.data.http import NotFound
from foretell.data.markets.listing import UnsupportedEvent
from foretell.data.markets.market import MarketRef
from foretell.data.markets.prophet_arena import PENDING, PLATFORM, ProphetArenaClient
from foretell.data.payload import Payload
from foretell.data.settlements.settlement import MarketSettlements, SettledMarket, SettledOutcome, SettlementTarget
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution

RESULTS: Mapping[str, int | None] = {"yes": 1, "no": 0, "void": None}


class ProphetArenaSettlements(MarketSettlements[ProphetArenaClient]):
    """Results by event slug, one by one."""

    platform = PLATFORM

    def ref(self, question: Question, target: Target) -> MarketRef | None:
        """Build the reference from event and target: events have no price history, so no market refers to them."""
        return MarketRef(platform=question.source, id=f"{question.id.removeprefix(f'{PLATFORM}/')}#{target.id}")

    async def markets(self, ids: Sequence[str]) -> dict[str, SettledMarket | str]:
        """Return one event."""
        try:
            row = await self._client.event(ids[0])
        except NotFound:
            return {}
        return {ids[0]: SettledMarket(row=row, provenance=row.url)}

    def outcome(self, row: Payload, target: SettlementTarget) -> SettledOutcome | None:
        """Return the resolution of an outcome of the event."""
        name = target.target.id
        outcomes = {outcome.need("name").text().casefold(): outcome for outcome in row.need("outcomes").items()}
        if name.casefold() not in outcomes:
            raise UnsupportedEvent(f"the event has no outcome {name!r}")
        # The field is absent while nothing is decided.
        field = outcomes[name.casefold()].get("resolution")
        result = "" if field is None else field.text().casefold()
        if field is None or result == PENDING:
            return None
        if result not in RESULTS:
            field.wrong("yes, no or void")
        return SettledOutcome(outcome=RESULTS[result], at=row.optional_time("resolved_at"))


def week_of(day: date) -> str:
    """Return the release that a day belongs to: releases are named by their Sunday.

    >>> week_of(date(2026, 11, 16)), week_of(date(2026, 11, 15))
    ('2026-11-15', '2026-11-15')
    """
    return str(day - timedelta(days=(day.weekday() + 1) % 7))


async def weekly_results(client: ProphetArenaClient, questions: Iterable[Question]) -> list[Resolution]:
    """Return the results of weekly questions from their releases; pending and void ones are absent."""
    by_week: dict[str, dict[str, Question]] = {}
    for question in questions:
        slug = question.id.removeprefix(f"{PLATFORM}/")
        by_week.setdefault(week_of(question.due.date()), {})[slug] = question
    resolutions: list[Resolution] = []
    for week, by_slug in by_week.items():
        try:
            release = await client.release(week)
        except NotFound:
            continue
        for row in release.need("events").items():
            question = by_slug.get(row.need("event").text())
            for row_outcome in row.need("outcomes").items() if question is not None else ():
                outcome = RESULTS.get(row_outcome.words("resolution").casefold())
                if question is not None and outcome is not None:
                    target = row_outcome.need("name").text()
                    resolutions.append(
                        Resolution(
                            question_id=question.id,
                            target_id=target,
                            due=question.due,
                            outcome=outcome,
                            resolved_at=row.optional_time("close_at"),
                            provenance=release.url,
                        )
                    )
    return resolutions
