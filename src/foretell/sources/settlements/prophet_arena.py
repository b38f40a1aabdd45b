"""Results of Prophet Arena's events, told with each outcome. What was called off has no outcome."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus

from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution
from foretell.sources.http import SourceError
from foretell.sources.listing import Tell, unheard
from foretell.sources.market import MarketRef
from foretell.sources.markets.catalogue import Unsupported
from foretell.sources.markets.fields import moment
from foretell.sources.markets.prophet_arena import PLATFORM, ArenaClient
from foretell.sources.payload import Payload
from foretell.sources.settlements.settlement import Sought, Verdict, judged, unknown

VERDICTS: Mapping[str, int | None] = {"yes": 1, "true": 1, "1": 1, "no": 0, "false": 0, "0": 0, "void": None}
PENDING = ("", "none", "unresolved", "pending", "open")


class ArenaSettlements:
    """Results by event slug, one by one."""

    platform = PLATFORM

    def __init__(self, client: ArenaClient, *, tell: Tell = unheard) -> None:
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
                unknown(group, self._tell)
                continue
            found += judged(group, lambda one, row=row: _verdict(row, one.target), row.url, self._tell)
        return found


def _by_event(questions: Sequence[Question]) -> dict[str, list[Sought]]:
    found: dict[str, dict[tuple[object, ...], Sought]] = {}
    for question in questions:
        if question.source != PLATFORM:
            continue
        slug = question.id.removeprefix(f"{PLATFORM}/")
        for target in question.targets:
            ref = MarketRef(platform=PLATFORM, id=f"{slug}#{target.id}")
            one = Sought(question=question, target=target, ref=ref)
            found.setdefault(slug, {})[question.id, question.due, target.id] = one
    return {slug: list(group.values()) for slug, group in found.items()}


def _verdict(row: Payload, target: Target) -> Verdict | None:
    outcomes = {outcome.need("name").text().casefold(): outcome for outcome in row.need("outcomes").items()}
    outcome = outcomes.get(target.id.casefold())
    if outcome is None:
        raise Unsupported(f"the event has no outcome {target.id!r}")
    field = outcome.present("resolution")
    told = "" if field is None else str(field.value).casefold().removesuffix(".0")
    if field is None or told in PENDING:
        return None
    if told not in VERDICTS:
        field.wrong("yes, no or void")
    return Verdict(outcome=VERDICTS[told], at=moment(row, "resolved_at"))
