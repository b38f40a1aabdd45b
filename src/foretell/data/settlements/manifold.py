"""Manifold's results. Markets may also be cancelled, or resolved to a probability."""

from collections.abc import Sequence
from datetime import datetime

from foretell.data.http import NotFound
from foretell.data.markets.listing import UnsupportedEvent
from foretell.data.markets.manifold import BINARY, CHOICE, MILLI, ManifoldClient, sums_to_one
from foretell.data.payload import Payload
from foretell.data.settlements.settlement import MarketSettlements, SettledMarket, SettledOutcome, SettlementTarget

RESULTS = {"YES": 1, "NO": 0}
CANCELLED = "CANCEL"
BY_PROBABILITY = "MKT"
SEVERAL = (BY_PROBABILITY, "CHOOSE_MULTIPLE")


class ManifoldSettlements(MarketSettlements[ManifoldClient]):
    """Results by contract; the platform has no batch request, so markets are read one by one."""

    platform = "manifold"

    async def markets(self, ids: Sequence[str]) -> dict[str, SettledMarket | str]:
        """Return one market."""
        try:
            row = await self._client.contract(ids[0])
        except NotFound:
            return {}
        return {ids[0]: SettledMarket(row=row, provenance=row.url)}

    def outcome(self, row: Payload, target: SettlementTarget) -> SettledOutcome | None:
        """Return the outcome of a yes/no market by its resolution, of an answer by its own or that of the market."""
        kind = row.need("outcomeType").text()
        if kind == BINARY and target.part is None:
            return _plain(row) if row.need("isResolved").flag() else None
        if kind != CHOICE or target.part is None:
            raise UnsupportedEvent(f"a market of type {kind} has no such target")
        answers = {answer.need("id").name(): answer for answer in row.need("answers").items()}
        if target.part not in answers:
            raise UnsupportedEvent(f"the market has no answer {target.part!r} any more")
        if not sums_to_one(row):
            return _independent(row, answers[target.part])
        if not row.need("isResolved").flag():
            return None
        result, at = row.need("resolution"), _at(row)
        if result.text() == CANCELLED:
            return SettledOutcome(outcome=None, at=at)
        if result.text() in SEVERAL:
            return _share(row, target.part, at)
        if result.text() not in answers:
            result.wrong("an answer, MKT or CANCEL")
        return SettledOutcome(outcome=int(result.text() == target.part), at=at)


def _plain(row: Payload) -> SettledOutcome:
    """Return the resolution of a yes/no market, or of one answer."""
    result, at = row.need("resolution"), _at(row)
    if result.text() in RESULTS:
        return SettledOutcome(outcome=RESULTS[result.text()], at=at)
    if result.text() == BY_PROBABILITY:
        worth = row.get("resolutionProbability")
        return SettledOutcome(outcome=None, payoff=None if worth is None else worth.probability(), at=at)
    if result.text() != CANCELLED:
        result.wrong("YES, NO, MKT or CANCEL")
    return SettledOutcome(outcome=None, at=at)


def _independent(row: Payload, answer: Payload) -> SettledOutcome | None:
    """Return the outcome by the answer's own resolution; without one it is open, unless the market was cancelled."""
    if answer.words("resolution"):
        return _plain(answer)
    over = row.need("isResolved").flag() and row.words("resolution") == CANCELLED
    return SettledOutcome(outcome=None, at=_at(row)) if over else None


def _share(row: Payload, id: str, at: datetime | None) -> SettledOutcome:
    """Return the outcome if several answers share the dollar. A whole share is a yes, none is a no.

    Today's server does not publish the shares; then it is unknown what an answer paid.
    """
    shares = row.get("resolutions")
    if shares is None:
        return SettledOutcome(outcome=None, at=at)
    whole = sum(member.number() for member in shares.members().values())
    own = shares.get(id)
    part = own.number() / whole if own is not None and whole > 0 else 0.0
    if part in (0.0, 1.0):
        return SettledOutcome(outcome=int(part), at=at)
    return SettledOutcome(outcome=None, payoff=part, at=at)


def _at(row: Payload) -> datetime | None:
    at = row.get("resolutionTime")
    return None if at is None else at.unix_time(per_second=MILLI)
