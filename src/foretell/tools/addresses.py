"""Web addresses: normalized locations, and which of them are closed for a question."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache
from importlib.resources import files
from ipaddress import ip_address
from itertools import chain
from typing import Any
from unicodedata import normalize
from urllib.parse import parse_qsl, unquote, urlsplit

from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.plugins import added, load
from foretell.questions.question import Question

SCHEME = pattern(r"^([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
WEB = pattern(r"^https?:/*", re.IGNORECASE)
IN_RUNNING_TEXT = pattern(
    r"(?:https?://|www\.)[^\s<>\"'\]]+|(?<![\w@.-])(?:[a-z0-9-]+\.)+[a-z]{2,}/[^\s<>\"'\]]*", re.IGNORECASE
)
HOST_WITHIN = pattern(r"(?<![a-z0-9-])(?:[a-z0-9-]+\.)+[a-z]{2,}")
AFTER_HOST = pattern(r"\.?(?::\d+)?(/[^\s?&#\"'<>]*)?(\?[^\s#\"'<>]*)?")
LEGACY_IP = pattern(r"^(?:0x[0-9a-f]*|\d+)(?:\.(?:0x[0-9a-f]*|\d+)){0,3}$")
FORBIDDEN = pattern(
    r"[\\\s\x00-\x1f\x7f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    r"\u3164\ufe00-\ufe0f\ufeff\uffa0]"
)
"""Backslashes, spaces and invisible characters, which different programs parse in different ways."""
DRESSING = frozenset({"www", "m", "mobile", "amp"})
HYPHENATED = ("translate.goog", "cdn.ampproject.org")
"""Proxies that give the host behind them as their first label, with hyphens for dots."""
LOOK_ALIKES = str.maketrans("аеіјорсухѕһԁԛԝκοαιν", "aeijopcyxshdqwkoaiv")  # Cyrillic and Greek
UNWRAPPINGS = 6


class UnreadableAddress(ValueError):
    """It cannot be determined where the address leads. The message gives the reason."""


@frozen
class Address:
    """A location on the web, without protocol, account, port, fragment, spelling variants and mobile prefixes."""

    host: str
    path: str = ""
    params: frozenset[tuple[str, str]] = frozenset()


@lru_cache(maxsize=4096)
def address_of(url: str) -> Address | None:
    """Return the location a URL names, or None for a scheme without hosts, such as `file:`.

    >>> address_of("https://user:pw@WWW.Ex%61mple.COM.:8443/A%20b/?q=1#top")
    Address(host='example.com', path='/a b', params=frozenset({('q', '1')}))
    """
    text = normalize("NFKC", url.strip())
    if FORBIDDEN.search(text):
        raise UnreadableAddress("it has characters that programs parse in different ways")
    if (scheme := SCHEME.match(text)) and scheme[1].lower() not in {"http", "https", "ftp"}:
        return None
    try:
        parts = urlsplit(text if scheme else "https://" + WEB.sub("", text).lstrip("/"))
        host = plain_host(parts.hostname or "")
    except ValueError as error:
        raise UnreadableAddress(str(error)) from None
    return Address(host=host, path=plain_path(parts.path), params=_params(parts.query.lower()))


@lru_cache(maxsize=4096)
def plain_host(host: str) -> str:
    """Return the one spelling of a host: decoded, lower case, look-alikes as Latin, no trailing dot, `www.` or `m.`."""
    text = normalize("NFKC", unquote(host)).replace("。", ".").lower().strip(".")
    if not text or FORBIDDEN.search(text) or "/" in text or "@" in text:
        raise UnreadableAddress("it has no host")
    if LEGACY_IP.match(text) or _is_ip(text):
        raise UnreadableAddress("its host is an IP address, whose owner is unknown")
    labels = [_unicode_label(label) for label in text.split(".")]
    ending = labels[-2:]
    return ".".join([label for label in labels[:-2] if label not in DRESSING] + ending).translate(LOOK_ALIKES)


@lru_cache(maxsize=4096)
def plain_path(path: str) -> str:
    """Return the path decoded and in lower case, without repeated or final slashes and without AMP markers."""
    steps = [step for step in fully_decoded(path).lower().split("/") if step and step != "."]
    return "".join("/" + step for step in steps if step != "amp")


def fully_decoded(text: str) -> str:
    """Percent-decode until nothing changes."""
    for _ in range(UNWRAPPINGS):
        decoded = unquote(text)
        if decoded == text:
            return normalize("NFKC", decoded)
        text = decoded
    raise UnreadableAddress("it is percent-encoded too many times")


def _is_ip(host: str) -> bool:
    if ":" not in host and not host.rstrip("]")[-1:].isdigit():
        return False
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _unicode_label(label: str) -> str:
    if not label.startswith("xn--"):
        return label
    try:
        return label[4:].encode("ascii").decode("punycode").lower()
    except (UnicodeError, ValueError):
        raise UnreadableAddress("its host is not a valid international name") from None


@lru_cache(maxsize=4096)
def places_in(url: str) -> tuple[Address, ...]:
    """Return the address itself and all others it contains, as in archives, caches, translators, redirectors."""
    return tuple(dict.fromkeys(_places_in(url)))


def _places_in(url: str) -> Iterator[Address]:
    own = address_of(url)
    if own is not None:
        yield own
        yield from _behind_hyphens(own)
    text = fully_decoded(url).lower()
    for match in HOST_WITHIN.finditer(text):
        rest = AFTER_HOST.match(text, match.end())
        path, query = rest.groups(default="") if rest else ("", "")
        yield from _read_within(match[0], path, query)


def _read_within(host: str, path: str, query: str = "") -> Iterator[Address]:
    try:
        yield Address(host=plain_host(host), path=plain_path(path), params=_params(query.removeprefix("?")))
    except UnreadableAddress:
        return


def _params(query: str) -> frozenset[tuple[str, str]]:
    return frozenset(parse_qsl(query)) if query else frozenset()


def _behind_hyphens(own: Address) -> Iterator[Address]:
    for proxy in HYPHENATED:
        if own.host.endswith("." + proxy):
            label = own.host[: -len(proxy) - 1].split(".")[-1]
            dotted = label.replace("--", "\0").replace("-", ".").replace("\0", "-")
            yield from _read_within(dotted, own.path)


def urls_in(text: str) -> list[str]:
    """Return the addresses in running text, without the punctuation around them.

    >>> urls_in("See https://a.org/x_(y)), www.b.org. and c.org/d; not e.org or me@f.org.")
    ['https://a.org/x_(y)', 'www.b.org', 'c.org/d']
    """
    return [_trimmed(match[0]) for match in IN_RUNNING_TEXT.finditer(text)]


def _trimmed(url: str) -> str:
    url = url.rstrip(".,;:!?*_'\"’”»")
    while url.endswith(")") and url.count(")") > url.count("("):
        url = url[:-1].rstrip(".,;:!?*_'\"’”»")
    return url


# Which addresses are closed for a question: platforms, the live data it resolves on, and the pages it names.


class AddressPatterns:
    """A set of locations that matches the addresses at or below them."""

    def __init__(self, addresses: Iterable[Address]) -> None:
        self._by_host: dict[str, list[Address]] = {}
        for address in dict.fromkeys(addresses):
            self._by_host.setdefault(address.host, []).append(address)
        self._at_or_above = lru_cache(maxsize=1024)(self._places_at_or_above)

    def __len__(self) -> int:
        return sum(map(len, self._by_host.values()))

    def over(self, address: Address) -> Address | None:
        """Return the location that covers an address, or None.

        It matches if its host is the address's host or a parent domain, its path is the same or above, and the address
        has all of its parameters.
        """
        for place in self._at_or_above(address.host):
            below = address.path == place.path or address.path.startswith(place.path + "/")
            if below and place.params <= address.params:
                return place
        return None

    def _places_at_or_above(self, host: str) -> list[Address]:
        """Return the locations on a host and its parent domains, nearest first."""
        labels = host.split(".")
        hosts = (".".join(labels[start:]) for start in range(len(labels)))
        return [place for above in hosts for place in self._by_host.get(above, ())]

    def over_any(self, addresses: Iterable[Address]) -> Address | None:
        """Return the first location that covers any of the addresses, or None."""
        if not self._by_host:
            return None
        return next((place for address in addresses if (place := self.over(address)) is not None), None)


def address_patterns(lines: Iterable[str]) -> AddressPatterns:
    """Return the locations listed in a table."""
    return AddressPatterns(place for line in lines if (place := address_of(line)) is not None)


NOWHERE = AddressPatterns(())


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads(files("foretell.tools").joinpath("blocklist.toml").read_text(encoding="utf-8"))


@cache
def listed(table: str) -> AddressPatterns:
    """Return the locations in a table of the blocklist, such as `mirrors`."""
    return address_patterns(_tables()[table])


@cache
def live_data(source: str) -> AddressPatterns:
    """Return the locations that show the newest figures of a source of questions."""
    return address_patterns(_tables()["live_data"].get(source, ()))


def closed_platforms() -> AddressPatterns:
    """Return the built-in table plus the market sites that plugins add; they can close more sites but open none."""
    hosts = tuple(host for name in added("markets") for host in load("markets", name).hosts)
    return _closed_with(hosts)


@cache
def _closed_with(hosts: tuple[str, ...]) -> AddressPatterns:
    return address_patterns((*_tables()["platforms"], *hosts))


_LIVING_PATH = pattern(
    r"/wiki/|/(?:live|live-?blogs?|live-?updates?|liveticker|en-direct|en-vivo|ao-vivo|trackers?|[\w-]+-tracker"
    r"|[\w-]*live-(?:updates?|blog|results|coverage|ticker)[\w-]*|[\w-]+-as-it-happened[\w-]*)(?:/|\.\w{2,5}$|$)"
    r"|/(?:latest(?:-news)?|standings|rankings?|leaderboards?|scoreboard|scores|tables?|fixtures(?:-and)?-results"
    r"|schedule-and-results|odds|quotes?(?:/[^/]+)?|(?:tags?|topics?|hubs?|authors?|sections?|collections?"
    r"|categor(?:y|ies)"
    r"|channel|thema|themen|tema|temas|sujet|dossier|rubrik|etiqueta|argomento)(?:/[^/]+)?|search|feeds?|rss|atom"
    r"|current"
    r"|now|today|archives?|home|index|default|main|sitemap|statistics|stats|results|dashboards?(?:/[^/]+)?|status"
    r"|timeline"
    r"|changelog|release-notes|history|weather(?:/[^/]+){0,3}|live-?scores?|headlines|newswire"
    r"|trending|popular|most-read|whats-new|updates)(?:\.\w{2,5})?$"
)
"""Lists, boards, live reports and wikis on any site, whose content changes without a new date."""
_FRONT = pattern(
    r"(?:/[a-z]{2}(?:-[a-z]{2})?)?(?:/(?:news|blog|blogs|politics|business|world|sports?|markets?|economy|finance|tech"
    r"|technology|science|health|opinion|nachrichten|politik|wirtschaft|actualites?|noticias|economia|notizie|nieuws"
    r"|nyheter"
    r"|novosti|haberler|berita|tin-tuc|press|press-releases|media)){0,2}"
)
"""The front page of a site or of one of its sections."""
_WIKI_PARAMS = frozenset(("title", "action", "curid", "oldid", "diff"))
_LIST_PARAMS = frozenset(("page", "paged", "offset", "s", "q", "query", "search", "sort", "filter"))
_WRAPPED = pattern(r"^/(?:[\w-]+/){0,3}(?:https?:|www\.)", re.IGNORECASE)
_WRAPPING_PARAMS = frozenset(("url", "u", "uri", "link", "target", "src", "q", "page", "site", "address", "dest"))
_STORED_COPY = pattern(r"/web/\d{4,14}")


def is_living(url: str) -> bool:
    """Whether a page is continually rewritten under the same address, or is a mirror of such a page."""
    addresses = _readable(url)
    if listed("living").over_any(addresses) is not None:
        return True
    if not addresses or not url.lower().startswith("http"):
        return False
    own = addresses[0]
    if listed("mirrors").over(own) is not None or _wraps(own):
        # The contained page decides. Without one in the address, it is unknown what is shown.
        behind = [place for place in addresses[1:] if place.host != own.host]
        newest = own.host == "web.archive.org" and not _STORED_COPY.match(own.path)
        return newest or not behind or any(map(_is_rewritten, behind))
    return _is_rewritten(own)


def _wraps(own: Address) -> bool:
    """Whether an address shows the page of another address that it contains."""
    if _WRAPPED.match(own.path):
        return True
    return any(
        name in _WRAPPING_PARAMS and value.startswith(("http://", "https://", "http%")) for name, value in own.params
    )


def _is_rewritten(address: Address) -> bool:
    labels = address.host.split(".")
    if "wiki" in labels[:-1] or labels[0] in ("live", "status"):
        return True
    names = {name for name, _ in address.params}
    if names & _WIKI_PARAMS and address.path.endswith(".php"):
        return True
    if _FRONT.fullmatch(address.path) or _LIVING_PATH.search(address.path) is not None:
        return True
    if names & _LIST_PARAMS and address.path.count("/") <= 1:
        return True
    return listed("profiles").over(address) is not None and _PROFILE.fullmatch(address.path) is not None


_PROFILE = pattern(
    r"/(?:@?[\w.-]+|(?:r|u|user|c|channel|in|company|groups|hashtag)/[\w.-]+)(?:/(?:about|posts|videos|new|top|hot"
    r"|best|likes))?"
)


TRACKING = ("utm_", "fbclid", "gclid", "ref", "cmpid", "ocid", "mc_")
"""How the names of parameters begin that say where a reader came from."""


def page_of(url: str) -> Address | str:
    """Return the identity of a page: its address without protocol, superfluous parts and tracking parameters.

    >>> page_of("https://www.a.example/x/?utm_source=feed") == page_of("http://a.example/x")
    True
    """
    try:
        address = address_of(url)
    except UnreadableAddress:
        return url.strip()
    if address is None:
        return url.strip()
    return replace(address, params=frozenset(pair for pair in address.params if not pair[0].startswith(TRACKING)))


def is_encyclopedia(url: str) -> bool:
    """Whether an address belongs to an encyclopedia, which is read by revision."""
    return listed("encyclopedias").over_any(_readable(url)[:1]) is not None


def _readable(url: str) -> tuple[Address, ...]:
    try:
        return places_in(url)
    except UnreadableAddress:
        return ()


@frozen
class BlockedAddress:
    """Why an address is closed."""

    reason: str
    unless_stored: bool = False
    """Whether a version stored before the cutoff may be read, because only today's page holds the answer."""


@frozen
class Blocklist:
    """The addresses closed to one question in a backtest."""

    live: AddressPatterns = NOWHERE
    named: AddressPatterns = NOWHERE
    fronts: frozenset[Address] = frozenset()
    """Front pages of large publishers: only these are closed, not the pages below them."""

    @classmethod
    def of(cls, question: Question) -> "Blocklist":
        """Return the blocklist that follows from a question's source and its own text."""
        labels = [target.label for target in question.targets]
        words = (question.text, question.criteria, question.background, question.url, *labels)
        places: list[Address] = []
        for url in chain.from_iterable(map(urls_in, words)):
            with suppress(UnreadableAddress):
                place = address_of(url)
                places += [place] if place is not None else []
        fronts = [place for place in places if not place.path and listed("publishers").over(place) is not None]
        return cls(
            live=live_data(question.source),
            named=AddressPatterns(place for place in places if place not in fronts),
            fronts=frozenset(fronts),
        )

    def check(self, url: str, *, arrived: bool = False) -> BlockedAddress | None:
        """Return why the address is closed, or None.

        A redirector is closed, because its target is unknown, unless the target was reached (`arrived`).
        """
        try:
            places = places_in(url)
        except UnreadableAddress as error:
            return BlockedAddress(reason=f"the address cannot be trusted: {error}")
        for closed, why, unless_stored in (
            (closed_platforms(), "is a forecasting platform", False),
            (NOWHERE if arrived else listed("redirectors"), "does not say where it leads", False),
            (self.live, "shows the newest figures of the data in question", True),
            (self.named, "is named by the question", True),
        ):
            if (place := closed.over_any(places)) is not None:
                return BlockedAddress(reason=f"{place.host}{place.path} {why}", unless_stored=unless_stored)
        front = next((place for place in places if place in self.fronts), None)
        return BlockedAddress(reason=f"{front.host} is named by the question", unless_stored=True) if front else None
