"""Which addresses a question closes: the platforms, the live data it resolves on, and the pages it names."""

from collections.abc import Iterable
from dataclasses import dataclass

from foretell.questions.question import Question
from foretell.tools.addresses import Address, UnreadableAddress, address_of, places_in, urls_in
from foretell.tools.resolution_hosts import ENCYCLOPEDIAS, LIVE_DATA, LIVING, OPAQUE, PLATFORMS, WIDE


class Places:
    """Places of the web, found by the addresses that lie at or below them."""

    def __init__(self, addresses: Iterable[Address]) -> None:
        self._by_host: dict[str, list[Address]] = {}
        for address in dict.fromkeys(addresses):
            self._by_host.setdefault(address.host, []).append(address)

    def __len__(self) -> int:
        return sum(map(len, self._by_host.values()))

    def over(self, address: Address) -> Address | None:
        """The place an address belongs to: its host or a host above, at or below the path, with the same parameters."""
        labels = address.host.split(".")
        for start in range(len(labels)):
            for place in self._by_host.get(".".join(labels[start:]), ()):
                below = address.path == place.path or address.path.startswith(place.path + "/")
                if below and place.params <= address.params:
                    return place
        return None

    def over_any(self, addresses: Iterable[Address]) -> Address | None:
        """The first place any of the addresses belongs to."""
        return next((place for address in addresses if (place := self.over(address)) is not None), None)


def places(lines: Iterable[str]) -> Places:
    """The places a table lists."""
    return Places(place for line in lines if (place := address_of(line)) is not None)


NOWHERE = Places(())
CLOSED = places(PLATFORMS)
REWRITTEN = places(LIVING)
ENCYCLOPEDIC = places(ENCYCLOPEDIAS)
REDIRECTORS = places(OPAQUE)
FRONT_PAGES = places(WIDE)
LIVE = {source: places(lines) for source, lines in LIVE_DATA.items()}


def is_living(url: str) -> bool:
    """Whether a page is rewritten for ever under its address.

    >>> is_living("https://en.m.wikipedia.org/wiki/Elo"), is_living("https://www.reuters.com/world/x")
    (True, False)
    """
    return REWRITTEN.over_any(_readable(url)) is not None


def is_encyclopedia(url: str) -> bool:
    """Whether an address is that of an encyclopedia, which is read by revision."""
    return ENCYCLOPEDIC.over_any(_readable(url)[:1]) is not None


def _readable(url: str) -> tuple[Address, ...]:
    try:
        return places_in(url)
    except UnreadableAddress:
        return ()


@dataclass(frozen=True, kw_only=True)
class Blocked:
    """Why an address is closed."""

    reason: str
    unless_stored: bool = False
    """A version stored before the cutoff may be read: only today's page holds the answer."""


@dataclass(frozen=True, kw_only=True)
class Blocklist:
    """The addresses closed to one question in a backtest."""

    live: Places = NOWHERE
    named: Places = NOWHERE
    fronts: frozenset[Address] = frozenset()
    """Front pages of large publishers: closed alone, without what lies below."""

    @classmethod
    def of(cls, question: Question) -> "Blocklist":
        """What the question's source and its own words close."""
        words = (question.text, question.criteria, question.background, question.url, *(_labels(question)))
        named = [place for text in words for url in urls_in(text) if (place := _named(url)) is not None]
        fronts = [place for place in named if not place.path and FRONT_PAGES.over(place) is not None]
        return cls(
            live=LIVE.get(question.source, NOWHERE),
            named=Places(place for place in named if place not in fronts),
            fronts=frozenset(fronts),
        )

    def check(self, url: str, *, arrived: bool = False) -> Blocked | None:
        """Why the address is closed, or None. A redirector says nothing until one has `arrived` somewhere.

        >>> Blocklist().check("https://web.archive.org/web/2026/https%3A%2F%2Fpolymarket.com/event/x")
        Blocked(reason='polymarket.com is a forecasting platform', unless_stored=False)
        """
        try:
            found = places_in(url)
        except UnreadableAddress as error:
            return Blocked(reason=f"the address cannot be trusted: {error}")
        for closed, why, unless_stored in (
            (CLOSED, "is a forecasting platform", False),
            (NOWHERE if arrived else REDIRECTORS, "does not say where it leads", False),
            (self.live, "shows the newest figures of the data in question", True),
            (self.named, "is named by the question", True),
        ):
            if (place := closed.over_any(found)) is not None:
                return Blocked(reason=f"{place.host}{place.path} {why}", unless_stored=unless_stored)
        front = next((place for place in found if place in self.fronts), None)
        return Blocked(reason=f"{front.host} is named by the question", unless_stored=True) if front else None


def _labels(question: Question) -> list[str]:
    return [target.label for target in question.targets]


def _named(url: str) -> Address | None:
    try:
        return address_of(url)
    except UnreadableAddress:
        return None
