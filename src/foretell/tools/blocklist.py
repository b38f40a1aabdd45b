"""Which addresses a question closes: the platforms, the live data it resolves on, and the pages it names."""

from collections.abc import Iterable
from dataclasses import dataclass

from foretell.questions.question import Question
from foretell.tools.addresses import Address, UnreadableAddress, address_of, places_in, urls_in
from foretell.tools.resolution_hosts import ENCYCLOPEDIAS, LIVE_DATA, LIVING, OPAQUE, PLATFORMS, WIDE


def under(address: Address, place: Address) -> bool:
    """Whether an address lies at or below a place, subdomains included."""
    if address.host != place.host and not address.host.endswith("." + place.host):
        return False
    if address.path != place.path and not address.path.startswith(place.path + "/"):
        return False
    return place.params <= address.params


def places(lines: Iterable[str]) -> tuple[Address, ...]:
    """The places a table lists."""
    return tuple(place for line in lines if (place := address_of(line)) is not None)


CLOSED = places(PLATFORMS)
REWRITTEN = places(LIVING)
ENCYCLOPEDIC = places(ENCYCLOPEDIAS)
REDIRECTORS = places(OPAQUE)
FRONT_PAGES = places(WIDE)


def is_living(url: str) -> bool:
    """Whether a page is rewritten for ever under its address.

    >>> is_living("https://en.m.wikipedia.org/wiki/Elo"), is_living("https://www.reuters.com/world/x")
    (True, False)
    """
    return any(under(address, place) for address in _readable(url) for place in REWRITTEN)


def is_encyclopedia(url: str) -> bool:
    """Whether an address is that of an encyclopedia, which is read by revision."""
    return any(under(address, place) for address in _readable(url)[:1] for place in ENCYCLOPEDIC)


def _readable(url: str) -> list[Address]:
    try:
        return list(places_in(url))
    except UnreadableAddress:
        return []


@dataclass(frozen=True, kw_only=True)
class Blocked:
    """Why an address is closed."""

    reason: str
    unless_stored: bool = False
    """A version stored before the cutoff may be read: only today's page holds the answer."""


@dataclass(frozen=True, kw_only=True)
class Blocklist:
    """The addresses closed to one question in a backtest."""

    live: tuple[Address, ...] = ()
    named: tuple[Address, ...] = ()

    @classmethod
    def of(cls, question: Question) -> "Blocklist":
        """What the question's source and its own words close."""
        words = (question.text, question.criteria, question.background, question.url, *(_labels(question)))
        named = [place for words_ in words for url in urls_in(words_) if (place := _named(url)) is not None]
        return cls(live=places(LIVE_DATA.get(question.source, ())), named=tuple(dict.fromkeys(named)))

    def check(self, url: str, *, arrived: bool = False) -> Blocked | None:
        """Why the address is closed, or None. A redirector says nothing until one has `arrived` somewhere.

        >>> Blocklist().check("https://web.archive.org/web/2026/https%3A%2F%2Fpolymarket.com/event/x")
        Blocked(reason='polymarket.com is a forecasting platform', unless_stored=False)
        """
        try:
            found = list(places_in(url))
        except UnreadableAddress as error:
            return Blocked(reason=f"the address cannot be trusted: {error}")
        for closed, why, unless_stored in (
            (CLOSED, "is a forecasting platform", False),
            (() if arrived else REDIRECTORS, "does not say where it leads", False),
            (self.live, "shows the newest figures of the data in question", True),
            (self.named, "is named by the question", True),
        ):
            for place in closed:
                if any(under(address, place) for address in found):
                    return Blocked(reason=f"{place.host}{place.path} {why}", unless_stored=unless_stored)
        return None


def _labels(question: Question) -> list[str]:
    return [target.label for target in question.targets]


def _named(url: str) -> Address | None:
    try:
        place = address_of(url)
    except UnreadableAddress:
        return None
    # The front page of a large publisher is no page that a cutoff could save: it is refused for having no date.
    wide = place is not None and not place.path and any(under(place, front) for front in FRONT_PAGES)
    return None if wide else place
