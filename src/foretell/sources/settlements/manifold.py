"""Manifold's results. Markets may also be called off, or resolved to a probability."""

from collections.abc import Sequence
from datetime import datetime
from http import HTTPStatus

from foretell.questions.question import Question
from foretell.questions.resolution import Resolution
from foretell.sources.http import SourceError
from foretell.sources.listing import Tell, unheard
from foretell.sources.markets.catalogue import Unsupported
from foretell.sources.markets.fields import flag, is_set, words
from foretell.sources.markets.manifold import MILLI, ManifoldClient
from foretell.sources.markets.manifold_events import BINARY, CHOICE, answers_of
from foretell.sources.payload import Payload
from foretell.sources.settlements.settlement import Sought, Verdict, by_market, judged, sought, unknown

RESULTS = {"YES": 1, "NO": 0}
CANCELLED = "CANCEL"
BY_PROBABILITY = "MKT"
SEVERAL = (BY_PROBABILITY, "CHOOSE_MULTIPLE")


class ManifoldSettlements:
    """Results by contract; the platform has no list to ask, so markets are read one by one."""

    platform = "manifold"

    def __init__(self, client: ManifoldClient, *, tell: Tell = unheard) -> None:
        self._client = client
        self._tell = tell

    async def settlements(self, questions: Sequence[Question]) -> list[Resolution]:
        """Final results."""
        found: list[Resolution] = []
        for market, group in by_market(sought(questions, self.platform)).items():
            try:
                row = await self._client.contract(market)
            except SourceError as error:
                if error.status != HTTPStatus.NOT_FOUND:
                    raise
                unknown(group, self._tell)
                continue
            found += judged(group, lambda one, row=row: _verdict(row, one), row.url, self._tell)
        return found


def _verdict(row: Payload, one: Sought) -> Verdict | None:
    kind = row.need("outcomeType").text()
    if kind == BINARY and one.part is None:
        return _plain(row) if flag(row.need("isResolved")) else None
    if kind == CHOICE and one.part is not None:
        answer = next((a for a in answers_of(row) if a.need("id").name() == one.part), None)
        if answer is None:
            raise Unsupported(f"the market has no answer {one.part!r} any more")
        return _chosen(row, answer, one.part)
    raise Unsupported(f"a market of type {kind} has no such target")


def _plain(row: Payload) -> Verdict:
    """The resolution of a yes-or-no market, or of one answer."""
    field, at = row.need("resolution"), _at(row)
    told = field.text()
    if told in RESULTS:
        return Verdict(outcome=RESULTS[told], at=at)
    if told == BY_PROBABILITY:
        return Verdict(outcome=None, payoff=row.need("resolutionProbability").probability(), at=at)
    return Verdict(outcome=None, at=at) if told == CANCELLED else field.wrong("YES, NO, MKT or CANCEL")


def _chosen(row: Payload, answer: Payload, id: str) -> Verdict | None:
    """One answer: by its own resolution where answers are independent, else by that of the market."""
    if not is_set(row, "shouldAnswersSumToOne"):
        return _plain(answer) if words(answer, "resolution") else _called_off(row)
    if not flag(row.need("isResolved")):
        return None
    told, at = row.need("resolution").text(), _at(row)
    if told == CANCELLED:
        return Verdict(outcome=None, at=at)
    if told in SEVERAL:
        return _share(row, id, at)
    if told not in {one.need("id").name() for one in answers_of(row)}:
        row.need("resolution").wrong("an answer, MKT or CANCEL")
    return Verdict(outcome=int(told == id), at=at)


def _called_off(row: Payload) -> Verdict | None:
    """An answer without a word of its own: open, unless the whole market was called off."""
    over = flag(row.need("isResolved")) and words(row, "resolution") == CANCELLED
    return Verdict(outcome=None, at=_at(row)) if over else None


def _share(row: Payload, id: str, at: datetime | None) -> Verdict:
    """Several answers share the dollar. A whole share is a yes and none is a no."""
    shares = row.get("resolutions")
    if shares is None:
        return Verdict(outcome=None, at=at)
    whole = sum(member.number() for member in shares.members())
    own = shares.get(id)
    part = own.number() / whole if own is not None and whole > 0 else 0.0
    return Verdict(outcome=int(part), at=at) if part in (0.0, 1.0) else Verdict(outcome=None, payoff=part, at=at)


def _at(row: Payload) -> datetime | None:
    told = row.get("resolutionTime")
    return None if told is None else told.moment(per_second=MILLI)
