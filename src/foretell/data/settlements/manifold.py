"""Manifold's results. Markets may also be called off, or resolved to a probability."""

from collections.abc import Sequence
from datetime import datetime
from http import HTTPStatus

from foretell.data.http import SourceError
from foretell.data.markets.catalogue import UnsupportedEvent, flag, is_set, words
from foretell.data.markets.listing import OnSkipped, ignore_skipped
from foretell.data.markets.manifold import BINARY, CHOICE, MILLI, ManifoldClient, answers_of
from foretell.data.payload import Payload
from foretell.data.settlements.settlement import (
    SettledOutcome,
    SettlementTarget,
    by_market,
    read_settlements,
    report_unknown,
    settlement_targets,
)
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution

RESULTS = {"YES": 1, "NO": 0}
CANCELLED = "CANCEL"
BY_PROBABILITY = "MKT"
SEVERAL = (BY_PROBABILITY, "CHOOSE_MULTIPLE")


class ManifoldSettlements:
    """Results by contract; the platform has no list to ask, so markets are read one by one."""

    platform = "manifold"

    def __init__(self, client: ManifoldClient, *, tell: OnSkipped = ignore_skipped) -> None:
        self._client = client
        self._tell = tell

    async def settlements(self, questions: Sequence[Question]) -> list[Resolution]:
        """Final results."""
        found: list[Resolution] = []
        for market, group in by_market(settlement_targets(questions, self.platform)).items():
            try:
                row = await self._client.contract(market)
            except SourceError as error:
                if error.status != HTTPStatus.NOT_FOUND:
                    raise
                report_unknown(group, self._tell)
                continue
            found += read_settlements(group, lambda one, row=row: _settled_outcome(row, one), row.url, self._tell)
        return found


def _settled_outcome(row: Payload, one: SettlementTarget) -> SettledOutcome | None:
    kind = row.need("outcomeType").text()
    if kind == BINARY and one.part is None:
        return _plain(row) if flag(row.need("isResolved")) else None
    if kind == CHOICE and one.part is not None:
        answer = next((a for a in answers_of(row) if a.need("id").name() == one.part), None)
        if answer is None:
            raise UnsupportedEvent(f"the market has no answer {one.part!r} any more")
        return _chosen(row, answer, one.part)
    raise UnsupportedEvent(f"a market of type {kind} has no such target")


def _plain(row: Payload) -> SettledOutcome:
    """The resolution of a yes-or-no market, or of one answer."""
    field, at = row.need("resolution"), _at(row)
    told = field.text()
    if told in RESULTS:
        return SettledOutcome(outcome=RESULTS[told], at=at)
    if told == BY_PROBABILITY:
        return SettledOutcome(outcome=None, payoff=row.need("resolutionProbability").probability(), at=at)
    return SettledOutcome(outcome=None, at=at) if told == CANCELLED else field.wrong("YES, NO, MKT or CANCEL")


def _chosen(row: Payload, answer: Payload, id: str) -> SettledOutcome | None:
    """One answer: by its own resolution where answers are independent, else by that of the market."""
    if not is_set(row, "shouldAnswersSumToOne"):
        return _plain(answer) if words(answer, "resolution") else _called_off(row)
    if not flag(row.need("isResolved")):
        return None
    told, at = row.need("resolution").text(), _at(row)
    if told == CANCELLED:
        return SettledOutcome(outcome=None, at=at)
    if told in SEVERAL:
        return _share(row, id, at)
    if told not in {one.need("id").name() for one in answers_of(row)}:
        row.need("resolution").wrong("an answer, MKT or CANCEL")
    return SettledOutcome(outcome=int(told == id), at=at)


def _called_off(row: Payload) -> SettledOutcome | None:
    """An answer without a word of its own: open, unless the whole market was called off."""
    over = flag(row.need("isResolved")) and words(row, "resolution") == CANCELLED
    return SettledOutcome(outcome=None, at=_at(row)) if over else None


def _share(row: Payload, id: str, at: datetime | None) -> SettledOutcome:
    """Several answers share the dollar. A whole share is a yes and none is a no."""
    shares = row.get("resolutions")
    if shares is None:
        return SettledOutcome(outcome=None, at=at)
    whole = sum(member.number() for member in shares.members())
    own = shares.get(id)
    part = own.number() / whole if own is not None and whole > 0 else 0.0
    return (
        SettledOutcome(outcome=int(part), at=at)
        if part in (0.0, 1.0)
        else SettledOutcome(outcome=None, payoff=part, at=at)
    )


def _at(row: Payload) -> datetime | None:
    told = row.get("resolutionTime")
    return None if told is None else told.moment(per_second=MILLI)
