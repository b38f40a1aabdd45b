"""Manifold for practice: bets, and a catalogue of markets."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from foretell.frozen import frozen
from foretell.practice.server import PracticeService, ServerRequest, StatusAndBody

_PAGE = {"limit", "offset"}
_BY = {"id", "userId", "username", "contractId", "contractSlug", "answerId"}
_WHEN = {"before", "after", "beforeTime", "afterTime", "order"}
_HOW = {"kinds", "filterRedemptions", "includeZeroShareRedemptions", "commentRepliesOnly", "count", "points", "limit"}
STRICT: Mapping[str, set[str]] = {
    "bets": _BY | _WHEN | _HOW,
    "search-markets": _PAGE | {"term", "filter", "sort", "contractType", "topicSlug", "forYou", "creatorId", "token"},
}
"""Path → the parameters it accepts; any other is rejected."""
FILTERS = ("all", "open", "closed", "resolved", "closing-this-month", "closing-next-month")
MAX_BETS, MAX_FOUND = 50_000, 1000
ONLY_WHOLE = ("answers", "shouldAnswersSumToOne", "addAnswersMode", "description", "textDescription", "groupSlugs")


class ManifoldCatalogue:
    """Complete markets as the platform would send them; search results omit some of their fields."""

    def __init__(self, contracts: Iterable[Mapping[str, Any]] = ()) -> None:
        self.contracts = [dict(contract) for contract in contracts]

    def answer(self, path: str, query: Mapping[str, str]) -> StatusAndBody | None:
        """Return the status and body; None if the path is not part of the catalogue."""
        before, _, name = path.strip("/").rpartition("/")
        if name == "search-markets":
            return 200, self._search(query)
        by = {"market": "id", "slug": "slug"}.get(before.rpartition("/")[2])
        if by is None:
            return None
        contract = next((contract for contract in self.contracts if contract.get(by) == name), None)
        return (200, contract) if contract is not None else (404, {"message": "Contract not found"})

    def _search(self, query: Mapping[str, str]) -> list[dict[str, Any]]:
        wanted = query.get("filter", "all")
        fitting = [contract for contract in self.contracts if wanted == "all" or _state(contract) == wanted]
        if words := set(query.get("term", "").lower().split()):
            fitting = [contract for contract in fitting if words & _words(str(contract.get("question")))]
        if query.get("sort") == "close-date":
            fitting.sort(key=lambda contract: contract.get("closeTime", 0))
        start = int(query.get("offset", "0"))
        rows = fitting[start : start + int(query.get("limit", "100"))]
        return [{name: value for name, value in row.items() if name not in ONLY_WHOLE} for row in rows]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def _refusal(name: str, query: Mapping[str, str]) -> str | None:
    """Return the first parameter that the server would reject; None if all are valid."""
    most = MAX_BETS if name == "bets" else MAX_FOUND
    if name not in STRICT:
        return None
    if unknown := sorted(query.keys() - STRICT[name]):
        return unknown[0]
    if int(query.get("limit", "1")) > most:
        return "limit"
    return "filter" if query.get("filter", "all") not in FILTERS else None


def _state(contract: Mapping[str, Any]) -> str:
    return "resolved" if contract.get("isResolved") else "open"


@frozen
class SampleManifoldBet:
    """A bet at a Unix time in milliseconds that moved the price to `after`."""

    id: str
    at_ms: int
    after: float
    answer: str | None = None
    untaken: bool = False
    """Whether it is a limit order that was not filled."""


class PracticeManifold(PracticeService):
    """Serves `/bets`, newest first, at most `page` at a time, and a catalogue of markets."""

    def __init__(
        self,
        bets: Mapping[str, tuple[SampleManifoldBet, ...]],
        *,
        catalogue: ManifoldCatalogue | None = None,
        page: int = 1000,
    ) -> None:
        """`bets` maps the id of a market to its bets."""
        self.bets = bets
        self.page = page
        self.catalogue = catalogue or ManifoldCatalogue()

    def get(self, request: ServerRequest) -> StatusAndBody:
        """Return the status and body of the answer."""
        path, query = request.path, request.query
        if (problem := _refusal(path.rpartition("/")[2], query)) is not None:
            return 400, {"message": "Error validating request.", "details": [{"field": problem}]}
        if (catalogue_answer := self.catalogue.answer(path, query)) is not None:
            return catalogue_answer
        contract = query.get("contractId", "")
        if not path.endswith("/bets") or contract not in self.bets:
            return 404, {"message": "Contract not found"}
        before = float(query.get("beforeTime", "inf"))
        answer = query.get("answerId")
        chosen = [
            bet
            for bet in self.bets[contract]
            if bet.at_ms < before and (answer is None or bet.answer in (answer, None))
        ]
        newest = sorted(chosen, key=lambda bet: bet.at_ms, reverse=True)
        return 200, [self._row(contract, bet) for bet in newest[: min(self.page, int(query.get("limit", "1000")))]]

    def _row(self, contract: str, bet: SampleManifoldBet) -> dict[str, Any]:
        row: dict[str, Any] = {
            "id": bet.id,
            "contractId": contract,
            "createdTime": bet.at_ms,
            "amount": 0 if bet.untaken else 10,
            "shares": 12.5,
            "outcome": "YES",
            "probBefore": 0.5,
            "probAfter": bet.after,
            "isFilled": not bet.untaken,
            "isCancelled": False,
            **dict.fromkeys(("isResolved", "resolution", "closeTime", "volume", "userName")),
        }
        if bet.answer is not None:
            row["answerId"] = bet.answer
        if bet.untaken:
            row |= {"limitProb": 0.99, "orderAmount": 100}
        return row
