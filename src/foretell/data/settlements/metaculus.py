"""Metaculus's resolutions. Ambiguous and annulled questions have no outcome.

Of closed questions an account sees only some resolutions; what is withheld is told apart from what is open.
"""

from collections.abc import Sequence
from http import HTTPStatus

from foretell.data.http import NotFound, SourceError
from foretell.data.markets.listing import OnSkipped, UnsupportedEvent, ignore_skipped
from foretell.data.markets.metaculus import CHOICE, MetaculusClient, questions_of, status_of
from foretell.data.payload import Payload
from foretell.data.settlements.settlement import MarketSettlements, SettledMarket, SettledOutcome, SettlementTarget

RESULTS = {"yes": 1, "no": 0, "ambiguous": None, "annulled": None}


class MetaculusSettlements(MarketSettlements):
    """Resolutions by post, fifty at a time; a post the list leaves out is asked for by itself."""

    platform = "metaculus"
    batch = 50

    def __init__(self, client: MetaculusClient, *, tell: OnSkipped = ignore_skipped) -> None:
        super().__init__(tell=tell)
        self._client = client

    async def markets(self, ids: Sequence[str]) -> dict[str, SettledMarket | str]:
        """From the list, and what is missing there one by one."""
        answer = await self._client.read("/posts/", [*(("ids", id) for id in ids), ("limit", str(self.batch))])
        listed = {row.need("id").name(): row for row in answer.need("results").items()}
        found: dict[str, SettledMarket | str] = {}
        for id in ids:
            try:
                row = listed.get(id) or await self._client.whole_post(id)
            except NotFound:
                continue
            except SourceError as error:
                if error.status != HTTPStatus.FORBIDDEN:
                    raise
                found[id] = "this account may not read the post"
            else:
                found[id] = SettledMarket(row=row, provenance=f"https://www.metaculus.com/questions/{id}/")
        return found

    def outcome(self, row: Payload, one: SettlementTarget) -> SettledOutcome | None:
        """The resolution of a question, or whether an option is the one chosen."""
        question = _question(row, one)
        if status_of(question) != "resolved":
            return None
        result, at = question.words("resolution"), question.optional_time("actual_resolve_time")
        if not result:
            raise UnsupportedEvent("its resolution is not shown to this account")
        choice = question.need("type").text() == CHOICE
        if RESULTS.get(result.casefold(), "") is None or (result.casefold() in RESULTS and not choice):
            return SettledOutcome(outcome=RESULTS[result.casefold()], at=at)
        if not choice:
            question.need("resolution").wrong("yes, no, ambiguous or annulled")
        if one.part not in (*question.texts("all_options_ever"), *question.texts("options")):
            raise UnsupportedEvent(f"the question has no option {one.part!r}")
        return SettledOutcome(outcome=int(result == one.part), at=at)


def _question(row: Payload, one: SettlementTarget) -> Payload:
    """The question meant: the only one, or one of a group by its number."""
    if (single := row.get("question")) is not None:
        kind = single.need("type").text()
        if kind not in ("binary", CHOICE):
            raise UnsupportedEvent(f"a question of type {kind} has no yes-or-no targets")
        return single
    found = next((question for question in questions_of(row) if question.need("id").name() == one.part), None)
    if found is None:
        raise UnsupportedEvent(f"the post holds no question {one.part or 'of its own'}")
    return found
