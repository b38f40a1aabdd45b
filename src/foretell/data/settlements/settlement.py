"""Results that platforms publish, for questions about their markets."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from foretell.data.http import SourceError
from foretell.data.markets.listing import (
    REFUSED,
    SkippedEntry,
    UnsupportedEvent,
    error_context,
)
from foretell.data.markets.market import MarketRef, market_ref, split_part
from foretell.data.payload import MalformedPayload, Payload
from foretell.frozen import frozen
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution

T = TypeVar("T")
Client = TypeVar("Client")


class SettlementSource(Protocol):
    """Reads how markets resolved."""

    @property
    def platform(self) -> str:
        """The platform it reads."""
        ...

    async def settlements(self, questions: Sequence[Question]) -> list[Resolution]:
        """Return the final results. Questions that are still open, proposed or disputed are absent.

        A market that was cancelled or paid in part has no outcome; its payoff is what a one-dollar share was worth.
        Questions of other platforms are ignored.
        """
        ...


@frozen
class SettlementTarget:
    """One target whose outcome is wanted."""

    question: Question
    target: Target
    ref: MarketRef

    @property
    def market(self) -> str:
        """The id of its market."""
        return split_part(self.ref)[0]

    @property
    def part(self) -> str | None:
        """The answer, outcome or option of that market."""
        return split_part(self.ref)[1]


@frozen
class SettledOutcome:
    """The outcome of a target: yes (1), no (0), or neither."""

    outcome: int | None
    payoff: float | None = None
    at: datetime | None = None


@frozen
class SettledMarket:
    """A market as its platform shows it, and the address where that can be read."""

    row: Payload
    provenance: str


class MarketSettlements(ABC, Generic[Client]):
    """Requests the markets of all targets from a platform. Unreadable ones are reported and do not affect others."""

    platform: str
    batch = 1
    """Number of markets per request."""
    absent_is_open = False
    """Whether a market that the platform does not return is simply not settled yet."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.skipped: list[SkippedEntry] = []
        """Entries that could not be read in the last request for results."""

    @abstractmethod
    async def markets(self, ids: Sequence[str]) -> Mapping[str, SettledMarket | str]:
        """Return these markets by id; a string gives the reason why one cannot be read."""

    @abstractmethod
    def outcome(self, row: Payload, target: SettlementTarget) -> SettledOutcome | None:
        """Return the outcome of a target of a market; None if it has none yet."""

    def ref(self, question: Question, target: Target) -> MarketRef | None:
        """Return the market of a target."""
        return market_ref(question, target)

    async def settlements(self, questions: Sequence[Question]) -> list[Resolution]:
        """Return the final results, once for each asking of a question."""
        self.skipped.clear()
        targets: dict[tuple[str, datetime, str], SettlementTarget] = {}
        for question in questions:
            for target in question.targets:
                ref = self.ref(question, target)
                if ref is not None and ref.platform == self.platform:
                    wanted = SettlementTarget(question=question, target=target, ref=ref)
                    targets[question.id, question.due, target.id] = wanted
        by_market: dict[str, list[SettlementTarget]] = {}
        for wanted in targets.values():
            by_market.setdefault(wanted.market, []).append(wanted)
        resolutions: list[Resolution] = []
        for ids in chunks(list(by_market), self.batch):
            markets = await self._markets(ids)
            for id in ids:
                market = markets.get(id, "the platform has no such market")
                if not isinstance(market, str):
                    resolutions += self._read(market, by_market[id])
                elif not self.absent_is_open:
                    for wanted in by_market[id]:
                        self.skipped.append(
                            SkippedEntry(platform=self.platform, id=wanted.ref.id, reason=market, kind="unknown")
                        )
        return resolutions

    async def _markets(self, ids: Sequence[str]) -> Mapping[str, SettledMarket | str]:
        """Return these markets; a rejected batch is split in halves until the entry that causes it is alone."""
        try:
            return await self.markets(ids)
        except SourceError as error:
            if not (error.status in REFUSED or (len(ids) == 1 == self.batch and isinstance(error, MalformedPayload))):
                raise
            if len(ids) == 1:
                return {ids[0]: error.problem}
        half = len(ids) // 2
        return {**await self._markets(ids[:half]), **await self._markets(ids[half:])}

    def by_id(
        self, rows: Iterable[Payload], name: str, provenance: Callable[[str], str]
    ) -> dict[str, SettledMarket | str]:
        """Return rows of a list by the field that identifies them; one without it is reported and left out."""
        markets: dict[str, SettledMarket | str] = {}
        for row in rows:
            place = f"at {row.path or 'the top'}"
            try:
                with error_context(f"{self.platform} market {place}", row.url):
                    id = row.need(name).text()
                    markets[id] = SettledMarket(row=row, provenance=provenance(id))
            except MalformedPayload as error:
                self.skipped.append(SkippedEntry.because(error, self.platform, place))
        return markets

    def _read(self, market: SettledMarket, targets: Iterable[SettlementTarget]) -> list[Resolution]:
        resolutions: list[Resolution] = []
        for target in targets:
            try:
                with error_context(f"{self.platform} market {target.ref.id}", market.provenance):
                    settled = self.outcome(market.row, target)
            except (MalformedPayload, UnsupportedEvent) as error:
                self.skipped.append(SkippedEntry.because(error, self.platform, target.ref.id))
                continue
            if settled is not None:
                resolutions.append(
                    Resolution(
                        question_id=target.question.id,
                        target_id=target.target.id,
                        due=target.question.due,
                        outcome=settled.outcome,
                        payoff=settled.payoff,
                        resolved_at=settled.at,
                        provenance=market.provenance,
                    )
                )
        return resolutions


def chunks(items: Sequence[T], size: int) -> list[Sequence[T]]:
    """Split into chunks of at most `size`.

    >>> chunks([1, 2, 3], 2)
    [[1, 2], [3]]
    """
    return [items[start : start + size] for start in range(0, len(items), size)]
