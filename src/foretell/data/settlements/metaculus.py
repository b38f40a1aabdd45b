"""Metaculus's resolutions. Ambiguous and annulled questions have no outcome.

Of closed questions an account sees only some resolutions; what is withheld is told apart from what is open.
"""

from collections.abc import Sequence
from http import HTTPStatus

from foretell.data.http import SourceError
from foretell.data.markets.catalogue import UnsupportedEvent, moment, words
from foretell.data.markets.listing import OnSkipped, SkippedEntry, ignore_skipped
from foretell.data.markets.metaculus import STATUS, MetaculusClient
from foretell.data.payload import Payload
from foretell.data.settlements.settlement import (
    SettledOutcome,
    SettlementTarget,
    by_market,
    chunks,
    read_settlements,
    report_unknown,
    settlement_targets,
)
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution

BATCH = 50
RESULTS = {"yes": 1, "no": 0}
NOTHING = ("ambiguous", "annulled")


class MetaculusSettlements:
    """Resolutions by post, fifty at a time; a post the list leaves out is asked for by itself."""

    platform = "metaculus"

    def __init__(self, client: MetaculusClient, *, tell: OnSkipped = ignore_skipped) -> None:
        self._client = client
        self._tell = tell

    async def settlements(self, questions: Sequence[Question]) -> list[Resolution]:
        """Final resolutions."""
        wanted = by_market(settlement_targets(questions, self.platform))
        found: list[Resolution] = []
        for posts in chunks(list(wanted), BATCH):
            rows = await self._listed(posts)
            for post in posts:
                row = rows.get(post) or await self._alone(post, wanted[post])
                if row is not None:
                    provenance = f"https://www.metaculus.com/questions/{post}/"
                    found += read_settlements(
                        wanted[post], lambda one, row=row: _settled_outcome(row, one), provenance, self._tell
                    )
        return found

    async def _listed(self, posts: Sequence[str]) -> dict[str, Payload]:
        answer = await self._client.read("/posts/", [*(("ids", post) for post in posts), ("limit", str(BATCH))])
        return {row.need("id").name(): row for row in answer.need("results").items()}

    async def _alone(self, post: str, group: list[SettlementTarget]) -> Payload | None:
        try:
            return await self._client.post(post)
        except SourceError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                report_unknown(group, self._tell)
            elif error.status == HTTPStatus.FORBIDDEN:
                reason = "this account may not read the post"
                self._tell(SkippedEntry(platform=self.platform, id=post, reason=reason, kind="unknown"))
            else:
                raise
            return None


def _settled_outcome(row: Payload, one: SettlementTarget) -> SettledOutcome | None:
    question = _question(row, one)
    told = question.need("status")
    status = STATUS.get(told.text()) or told.wrong("a status we know")
    if status != "resolved":
        return None
    result, at = words(question, "resolution"), moment(question, "actual_resolve_time")
    if not result:
        raise UnsupportedEvent("its resolution is not shown to this account")
    if result.casefold() in NOTHING:
        return SettledOutcome(outcome=None, at=at)
    if question.need("type").text() == "multiple_choice":
        return SettledOutcome(outcome=int(result == _option(question, one)), at=at)
    if result.casefold() not in RESULTS:
        question.need("resolution").wrong("yes, no, ambiguous or annulled")
    return SettledOutcome(outcome=RESULTS[result.casefold()], at=at)


def _question(row: Payload, one: SettlementTarget) -> Payload:
    """The question meant: the only one, or one of a group by its number."""
    single, group = row.get("question"), row.get("group_of_questions")
    if single is not None:
        kind = single.need("type").text()
        if kind not in ("binary", "multiple_choice"):
            raise UnsupportedEvent(f"a question of type {kind} has no yes-or-no targets")
        return single
    inside = group.need("questions").items() if group is not None else []
    found = next((question for question in inside if question.need("id").name() == one.part), None)
    if found is None:
        raise UnsupportedEvent(f"the post holds no question {one.part or 'of its own'}")
    return found


def _option(question: Payload, one: SettlementTarget) -> str:
    for name in ("all_options_ever", "options"):
        listed = question.get(name)
        if listed is not None and one.part in [item.text() for item in listed.items()]:
            return one.part or ""
    raise UnsupportedEvent(f"the question has no option {one.part!r}")
