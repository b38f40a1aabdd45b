"""A stand-in for Manifold: its bets, and a catalogue beside them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from foretell.fakes.markets.manifold_catalogue import ManifoldCatalogue
from foretell.fakes.markets.trouble import Trouble
from foretell.fakes.server import FakeServer, Request, Response


@dataclass(frozen=True, kw_only=True)
class FakeBet:
    """A bet at a Unix millisecond that left the price at `after`."""

    id: str
    at_ms: int
    after: float
    answer: str | None = None
    untaken: bool = False
    """An order in the book that nobody took."""


class FakeManifold:
    """Answers `/bets`, newest first, at most `page` at a time."""

    def __init__(
        self,
        bets: Mapping[str, tuple[FakeBet, ...]],
        *,
        slugs: Mapping[str, str] | None = None,
        canary: str = "",
        careless: bool = False,
        page: int = 1000,
    ) -> None:
        """Keys of `bets` are contract ids; `slugs` leads to them. `careless` ignores the time asked for."""
        self.bets = bets
        self.slugs = slugs or {}
        self.canary = canary
        self.careless = careless
        self.page = page
        self.catalogue = ManifoldCatalogue()
        self.trouble = Trouble()

    def having(self, catalogue: ManifoldCatalogue, trouble: Trouble | None = None) -> Self:
        """The same, with a catalogue, and perhaps in trouble."""
        self.catalogue, self.trouble = catalogue, trouble or self.trouble
        return self

    def server(self) -> FakeServer:
        """A server that answers so."""
        server = FakeServer()
        server.route("GET", "*", self._respond)
        return server

    def _respond(self, request: Request) -> Response:
        return self.trouble.response(request, *self.answer(request.path, request.query))

    def answer(self, path: str, query: Mapping[str, str]) -> tuple[int, Any]:
        """Status and body."""
        if (told := self.catalogue.answer(path, query)) is not None:
            return told
        contract = query.get("contractId") or self.slugs.get(query.get("contractSlug", ""), "")
        if not path.endswith("/bets") or contract not in self.bets:
            return 404, {"message": "Contract not found"}
        before = float("inf") if self.careless else float(query.get("beforeTime", "inf"))
        answer = query.get("answerId")
        chosen = [
            bet
            for bet in self.bets[contract]
            if bet.at_ms < before and (answer is None or bet.answer in (answer, None))
        ]
        newest = sorted(chosen, key=lambda bet: bet.at_ms, reverse=True)
        return 200, [self._row(contract, bet) for bet in newest[: min(self.page, int(query.get("limit", "1000")))]]

    def _row(self, contract: str, bet: FakeBet) -> dict[str, Any]:
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
            **{name: self.canary for name in ("isResolved", "resolution", "closeTime", "volume", "userName")},
        }
        if bet.answer is not None:
            row["answerId"] = bet.answer
        if bet.untaken:
            row |= {"limitProb": 0.99, "orderAmount": 100}
        return row
