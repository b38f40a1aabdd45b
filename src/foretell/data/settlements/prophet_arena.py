"""Results of Prophet Arena's events, told with each outcome. What was called off has no outcome."""

from collections.abc import Mapping, Sequence

from foretell.data.http import NotFound
from foretell.data.markets.listing import OnSkipped, UnsupportedEvent, ignore_skipped
from foretell.data.markets.prices import MarketRef
from foretell.data.markets.prophet_arena import PENDING, PLATFORM, ProphetArenaClient
from foretell.data.payload import Payload
from foretell.data.settlements.settlement import MarketSettlements, SettledMarket, SettledOutcome, SettlementTarget
from foretell.questions.question import Question, Target

RESULTS: Mapping[str, int | None] = {"yes": 1, "no": 0, "void": None}


class ProphetArenaSettlements(MarketSettlements):
    """Results by event slug, one by one."""

    platform = PLATFORM

    def __init__(self, client: ProphetArenaClient, *, tell: OnSkipped = ignore_skipped) -> None:
        super().__init__(tell=tell)
        self._client = client

    def ref(self, question: Question, target: Target) -> MarketRef | None:
        """Events have no price history, so no market refers to them."""
        return MarketRef(platform=question.source, id=f"{question.id.removeprefix(f'{PLATFORM}/')}#{target.id}")

    async def markets(self, ids: Sequence[str]) -> dict[str, SettledMarket | str]:
        """One event."""
        try:
            row = await self._client.event(ids[0])
        except NotFound:
            return {}
        return {ids[0]: SettledMarket(row=row, provenance=row.url)}

    def outcome(self, row: Payload, one: SettlementTarget) -> SettledOutcome | None:
        """The resolution of an outcome of the event."""
        name = one.target.id
        outcomes = {outcome.need("name").text().casefold(): outcome for outcome in row.need("outcomes").items()}
        if name.casefold() not in outcomes:
            raise UnsupportedEvent(f"the event has no outcome {name!r}")
        # Left out where nothing is decided.
        field = outcomes[name.casefold()].get("resolution")
        result = "" if field is None else field.text().casefold()
        if field is None or result == PENDING:
            return None
        if result not in RESULTS:
            field.wrong("yes, no or void")
        return SettledOutcome(outcome=RESULTS[result], at=row.optional_time("resolved_at"))
