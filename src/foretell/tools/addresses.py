"""Normalizes web addresses, so that no spelling hides where they lead."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from unicodedata import normalize
from urllib.parse import parse_qsl, unquote, urlsplit

SCHEME = re.compile(r"^([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
WEB = re.compile(r"^https?:/*", re.IGNORECASE)
IN_RUNNING_TEXT = re.compile(
    r"(?:https?://|www\.)[^\s<>\"'\]]+|(?<![\w@.-])(?:[a-z0-9-]+\.)+[a-z]{2,}/[^\s<>\"'\]]*", re.IGNORECASE
)
HOST_WITHIN = re.compile(r"(?<![a-z0-9-])(?:[a-z0-9-]+\.)+[a-z]{2,}")
AFTER_HOST = re.compile(r"\.?(?::\d+)?(/[^\s?&#\"'<>]*)?(\?[^\s#\"'<>]*)?")
LEGACY_IP = re.compile(r"^(?:0x[0-9a-f]*|\d+)(?:\.(?:0x[0-9a-f]*|\d+)){0,3}$")
FORBIDDEN = re.compile(
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
    """It cannot be determined where the address leads; the message says why."""


@dataclass(frozen=True, kw_only=True)
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
        raise UnreadableAddress("it holds characters that programs read in different ways")
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
        raise UnreadableAddress("it names no host")
    if LEGACY_IP.match(text) or _is_ip(text):
        raise UnreadableAddress("it names a machine by number, so nobody can tell whose it is")
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
    raise UnreadableAddress("it is encoded over and over")


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
    for found in HOST_WITHIN.finditer(text):
        rest = AFTER_HOST.match(text, found.end())
        path, query = rest.groups(default="") if rest else ("", "")
        yield from _read_within(found[0], path, query)


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
    return [_trimmed(found[0]) for found in IN_RUNNING_TEXT.finditer(text)]


def _trimmed(url: str) -> str:
    url = url.rstrip(".,;:!?*_'\"’”»")
    while url.endswith(")") and url.count(")") > url.count("("):
        url = url[:-1].rstrip(".,;:!?*_'\"’”»")
    return url
