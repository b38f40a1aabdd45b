"""A stand-in for Manifold: its bets, and a catalogue beside them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from foretell.practice.markets.faults import MarketFaults
from foretell.practice.server import PracticeServer, ServerRequest, ServerResponse

# The catalogue of a fake Manifold: whole markets, and the bare ones its search shows.

CatalogueAnswer = tuple[int, Any]
ONLY_WHOLE = ("answers", "shouldAnswersSumToOne", "addAnswersMode", "description", "textDescription", "groupSlugs")


@dataclass(frozen=True, kw_only=True)
class FakeAnswer:
    """One answer of a multiple choice."""

    id: str
    text: str
    p: float
    resolution: str | None = None
    resolved_ms: int | None = None


@dataclass(frozen=True, kw_only=True)
class FakeContract:
    """A market; times in thousandths of a second."""

    id: str
    question: str
    p: float | None = None
    answers: tuple[FakeAnswer, ...] = ()
    sums_to_one: bool = True
    kind: str = "BINARY"
    volume: float = 100.0
    created_ms: int = 1_767_225_600_000
    closes_ms: int | None = 1_798_761_600_000
    resolution: str | None = None
    resolved_ms: int | None = None
    resolved_p: float | None = None
    shares: Mapping[str, float] | None = None
    topics: tuple[str, ...] = ()
    token: str = "MANA"


def contract_body(contract: FakeContract) -> dict[str, Any]:
    """A whole market as sent."""
    told = {
        "probability": contract.p,
        "closeTime": contract.closes_ms,
        "resolution": contract.resolution,
        "resolutionTime": contract.resolved_ms,
        "resolutionProbability": contract.resolved_p,
        "resolutions": contract.shares,
    }
    body: dict[str, Any] = {
        "id": contract.id,
        "creatorId": "u1",
        "creatorUsername": "someone",
        "creatorName": "Someone",
        "createdTime": contract.created_ms,
        "question": contract.question,
        "slug": f"slug-{contract.id.lower()}",
        "url": f"https://manifold.markets/someone/slug-{contract.id.lower()}",
        "outcomeType": contract.kind,
        "mechanism": "cpmm-1" if contract.kind == "BINARY" else "cpmm-multi-1",
        "totalLiquidity": 1000,
        "volume": contract.volume,
        "volume24Hours": contract.volume / 10,
        "isResolved": contract.resolution is not None,
        "uniqueBettorCount": 12,
        "token": contract.token,
        "description": {"type": "doc", "content": []},
        "textDescription": "Resolves yes if it happens.",
        "groupSlugs": list(contract.topics),
        **{name: value for name, value in told.items() if value is not None},
    }
    if contract.kind == "MULTIPLE_CHOICE":
        body |= {
            "answers": [_answer(contract.id, n, answer) for n, answer in enumerate(contract.answers)],
            "shouldAnswersSumToOne": contract.sums_to_one,
            "addAnswersMode": "DISABLED",
        }
    return body


def _answer(contract: str, n: int, answer: FakeAnswer) -> dict[str, Any]:
    told = {"resolution": answer.resolution, "resolutionTime": answer.resolved_ms}
    return {
        "id": answer.id,
        "index": n,
        "contractId": contract,
        "userId": "u1",
        "text": answer.text,
        "createdTime": 1_767_225_600_000,
        "isOther": False,
        "pool": {"YES": 100, "NO": 100},
        "probability": answer.p,
        "volume": 10,
        **{name: value for name, value in told.items() if value is not None},
    }


class ManifoldCatalogue:
    """Serves markets given as the platform would send them whole."""

    def __init__(self, contracts: Iterable[Mapping[str, Any]] = ()) -> None:
        self.contracts = [dict(contract) for contract in contracts]

    def answer(self, path: str, query: Mapping[str, str]) -> CatalogueAnswer | None:
        """Status and body; None for what is no part of the catalogue."""
        before, _, name = path.strip("/").rpartition("/")
        if name == "search-markets":
            return 200, self._found(query)
        by = {"market": "id", "slug": "slug"}.get(before.rpartition("/")[2])
        if by is None:
            return None
        found = next((contract for contract in self.contracts if contract.get(by) == name), None)
        return (200, found) if found is not None else (404, {"message": "Contract not found"})

    def _found(self, query: Mapping[str, str]) -> list[dict[str, Any]]:
        wanted = query.get("filter", "all")
        fitting = [contract for contract in self.contracts if wanted == "all" or _state(contract) == wanted]
        if query.get("sort") == "close-date":
            fitting.sort(key=lambda contract: contract.get("closeTime", 0))
        start = int(query.get("offset", "0"))
        rows = fitting[start : start + min(int(query.get("limit", "100")), 1000)]
        return [{name: value for name, value in row.items() if name not in ONLY_WHOLE} for row in rows]


def _state(contract: Mapping[str, Any]) -> str:
    return "resolved" if contract.get("isResolved") else "open"


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
        self.trouble = MarketFaults()

    def having(self, catalogue: ManifoldCatalogue, trouble: MarketFaults | None = None) -> Self:
        """The same, with a catalogue, and perhaps in trouble."""
        self.catalogue, self.trouble = catalogue, trouble or self.trouble
        return self

    def server(self) -> PracticeServer:
        """A server that answers so."""
        server = PracticeServer()
        server.route("GET", "*", self._respond)
        return server

    def _respond(self, request: ServerRequest) -> ServerResponse:
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
