"""Results of Prophet Arena's events, told with each outcome. What was called off has no outcome."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus

from foretell.data.http import SourceError
from foretell.data.markets.catalogue import UnsupportedEvent, moment
from foretell.data.markets.listing import OnSkipped, ignore_skipped
from foretell.data.markets.prices import MarketRef
from foretell.data.markets.prophet_arena import PLATFORM, ProphetArenaClient
from foretell.data.payload import Payload
from foretell.data.settlements.settlement import SettledOutcome, SettlementTarget, read_settlements, report_unknown
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution

VERDICTS: Mapping[str, int | None] = {"yes": 1, "true": 1, "1": 1, "no": 0, "false": 0, "0": 0, "void": None}
PENDING = ("", "none", "unresolved", "pending", "open")


class ProphetArenaSettlements:
    """Results by event slug, one by one."""

    platform = PLATFORM

    def __init__(self, client: ProphetArenaClient, *, tell: OnSkipped = ignore_skipped) -> None:
        self._client = client
        self._tell = tell

    async def settlements(self, questions: Sequence[Question]) -> list[Resolution]:
        """Final results."""
        found: list[Resolution] = []
        for slug, group in _by_event(questions).items():
            try:
                row = await self._client.event(slug)
            except SourceError as error:
                if error.status != HTTPStatus.NOT_FOUND:
                    raise
                report_unknown(group, self._tell)
                continue
            found += read_settlements(
                group, lambda one, row=row: _settled_outcome(row, one.target), row.url, self._tell
            )
        return found


def _by_event(questions: Sequence[Question]) -> dict[str, list[SettlementTarget]]:
    found: dict[str, dict[tuple[object, ...], SettlementTarget]] = {}
    for question in questions:
        if question.source != PLATFORM:
            continue
        slug = question.id.removeprefix(f"{PLATFORM}/")
        for target in question.targets:
            ref = MarketRef(platform=PLATFORM, id=f"{slug}#{target.id}")
            one = SettlementTarget(question=question, target=target, ref=ref)
            found.setdefault(slug, {})[question.id, question.due, target.id] = one
    return {slug: list(group.values()) for slug, group in found.items()}


def _settled_outcome(row: Payload, target: Target) -> SettledOutcome | None:
    outcomes = {outcome.need("name").text().casefold(): outcome for outcome in row.need("outcomes").items()}
    outcome = outcomes.get(target.id.casefold())
    if outcome is None:
        raise UnsupportedEvent(f"the event has no outcome {target.id!r}")
    field = outcome.present("resolution")
    told = "" if field is None else str(field.value).casefold().removesuffix(".0")
    if field is None or told in PENDING:
        return None
    if told not in VERDICTS:
        field.wrong("yes, no or void")
    return SettledOutcome(outcome=VERDICTS[told], at=moment(row, "resolved_at"))
