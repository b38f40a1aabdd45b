"""Access control: reading is open on this machine; spending and writing need the token, and forms must be our own."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Iterable
from dataclasses import field
from email.parser import BytesParser
from email.policy import HTTP
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qs, urlsplit

from fastapi import Depends, HTTPException, Request

from foretell.frozen import frozen
from foretell.patterns import pattern

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
COOKIE, THEME_COOKIE = "foretell_session", "foretell-theme"
THEMES = ("light", "dark")
MAX_FIELDS = 200
"""Maximum number of fields in a form."""
FIELD, HEADER = "csrf", "x-csrf-token"
_HOST = pattern(r"(?P<name>[A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(:\d{1,5})?")


@frozen
class AccessRules:
    """The access settings that the server was started with."""

    token: str | None = field(default=None, repr=False)
    """The server's token; if None, nothing can be spent or written."""
    host: str = "127.0.0.1"
    """The address the server listens on."""
    still: bool = False
    """Whether the pages are written to files, where nobody can ask, log in or follow a run."""

    @property
    def private(self) -> bool:
        """Whether only this machine can reach the server; reading is then open."""
        return self.host.lower() in LOOPBACK or (_is_number(self.host) and ip_address(self.host).is_loopback)

    def admits_host(self, header: str) -> bool:
        """Whether the Host header names this server; this prevents DNS rebinding by other sites.

        >>> AccessRules().admits_host("127.0.0.1:8400"), AccessRules().admits_host("evil.example")
        (True, False)
        """
        name = _host_name(header)
        if name in LOOPBACK or name == self.host.lower():
            return True
        return not self.private and _is_number(name)

    def holds(self, token: str) -> bool:
        """Whether `token` is the server's token."""
        return self.token is not None and hmac.compare_digest(token.encode(), self.token.encode())

    def new_session(self) -> str:
        """Return a new session cookie, which the browser stores instead of the token."""
        nonce = secrets.token_urlsafe(12)
        return f"{nonce}.{self._sign('session', nonce)}"

    def valid_session(self, cookie: str | None) -> bool:
        """Whether this server issued the session cookie with the current token."""
        nonce, dot, signature = (cookie or "").partition(".")
        return bool(dot) and hmac.compare_digest(signature.encode(), self._sign("session", nonce).encode())

    def csrf(self, cookie: str) -> str:
        """Return the CSRF token for forms of this session, which another site cannot know."""
        return self._sign("csrf", cookie.partition(".")[0])

    def _sign(self, purpose: str, nonce: str) -> str:
        # Without a token every signature has a random key, so no session is valid.
        key = (self.token or secrets.token_hex()).encode()
        return hmac.new(key, f"{purpose}:{nonce}".encode(), hashlib.sha256).hexdigest()


def _host_name(header: str) -> str:
    """Return the host name in a Host header; empty if it contains anything else, such as text after a bracket."""
    match = _HOST.fullmatch(header)
    return match["name"].strip("[]").lower() if match else ""


def _is_number(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


@frozen
class Visitor:
    """The visitor of a page, as seen by templates."""

    may_write: bool = False
    csrf: str = ""
    """CSRF token that every posted form must contain."""
    can_log_in: bool = False
    still: bool = False
    """Whether the page is written to a file, so that what needs a server is left out."""
    theme: str = ""
    """The visitor's chosen theme; empty to follow the system."""


def access_of(request: Request) -> AccessRules:
    """Return the access settings of the server."""
    return request.app.state.serving.access


def visitor_of(request: Request) -> Visitor:
    """Return the visitor who sent the request."""
    access, cookie = access_of(request), request.cookies.get(COOKIE)
    chosen = request.cookies.get(THEME_COOKIE, "")
    theme = chosen if chosen in THEMES else ""
    if cookie and access.valid_session(cookie):
        return Visitor(may_write=True, csrf=access.csrf(cookie), theme=theme)
    return Visitor(can_log_in=access.token is not None, still=access.still, theme=theme)


def _bearer(request: Request) -> str | None:
    """Return the bearer token of the request, or None."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


def has_token(request: Request, access: AccessRules) -> bool:
    """Whether the request carries the token itself or a session made with it."""
    return access.holds(_bearer(request) or "") or access.valid_session(request.cookies.get(COOKIE))


def require_token(request: Request) -> None:
    """Refuse requests without token or session."""
    access, token = access_of(request), _bearer(request)
    if token is not None and not access.holds(token):
        raise HTTPException(401, "that is not the token of this server", {"WWW-Authenticate": "Bearer"})
    if not has_token(request, access):
        how = "open the link that foretell serve printed, or send Authorization: Bearer TOKEN"
        reason = how if access.token is not None else "the server was started without one"
        raise HTTPException(401, f"this needs the token: {reason}", {"WWW-Authenticate": "Bearer"})


async def require_trust(request: Request) -> None:
    """Refuse requests that may not spend or write: without token or session, or with a form that is not ours."""
    require_token(request)
    if _bearer(request) is not None:
        return
    access, cookie = access_of(request), request.cookies[COOKIE]
    origin = request.headers.get("origin")
    same_origin = origin is None or urlsplit(origin).netloc == request.headers.get("host", "")
    sign = request.headers.get(HEADER) or (await form_of(request)).get(FIELD, [""])[0]
    if not same_origin or not hmac.compare_digest(sign.encode(), access.csrf(cookie).encode()):
        raise HTTPException(403, "the form did not come from this server; reload the page and send it again")


async def form_of(request: Request) -> dict[str, list[str]]:
    """Return the text fields of a posted form; empty if the body is not a form."""
    kind, body = request.headers.get("content-type", ""), await request.body()
    if kind.startswith("multipart/form-data"):
        fields: dict[str, list[str]] = {}
        for name, file, content in _parts(kind, body):
            if file is None:
                fields.setdefault(name, []).append(content.decode("utf-8", "replace"))
        return fields
    if not kind.startswith("application/x-www-form-urlencoded"):
        return {}
    try:
        return parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise HTTPException(413, TOO_MANY_FIELDS) from None


async def files_of(request: Request) -> list[tuple[str, bytes]]:
    """Return name and content of the files that a form sends; empty files are left out."""
    kind = request.headers.get("content-type", "")
    if not kind.startswith("multipart/form-data"):
        return []
    parts = _parts(kind, await request.body())
    return [(file, content) for _, file, content in parts if file and content]


TOO_MANY_FIELDS = f"a form may have {MAX_FIELDS} fields at most"


def _parts(kind: str, body: bytes) -> list[tuple[str, str | None, bytes]]:
    """Return the parts of a form with files: name of the field, name of the file, and content."""
    head = b"MIME-Version: 1.0\r\nContent-Type: " + kind.encode("latin-1", "replace") + b"\r\n\r\n"
    message = BytesParser(policy=HTTP).parsebytes(head + body)
    parts: list[tuple[str, str | None, bytes]] = []
    for part in message.iter_parts() if message.is_multipart() else ():
        content: Any = part.get_payload(decode=True)
        if not isinstance(content, bytes):
            continue  # A nested message.
        name = part.get_param("name", "", header="content-disposition")
        parts.append((str(name), part.get_filename(), content))
        if len(parts) > MAX_FIELDS:
            raise HTTPException(413, TOO_MANY_FIELDS)
    return parts


TokenRequired = Annotated[None, Depends(require_trust)]
"""Parameter of every route that spends or writes."""


# What strangers do not see: addresses of the owner's servers, paths of this machine, and what was spent.

HIDDEN_TYPES = (
    *(f"text/{name}" for name in ("html", "plain", "markdown", "csv", "event-stream")),
    *("application/json", "application/problem+json"),
)
"""Kinds of responses that may name an address or a path; the others are our own scripts, styles and pictures."""
USUAL_FOLDERS = ("home", "Users", "root", "tmp", "var", "private", "mnt", "media", "srv", "opt")
"""First folders of paths on any machine."""
# The patterns begin with literal text, and are used only if it occurs: every page passes through them.
# A backslash may stand before a mark in Markdown; in JSON it stands before a quote or a letter, where the text ends.
_REST = rb"""(?:[^\s"'<>&,;()\[\]\\]|\\[^\s"'a-z])*"""
_SCHEME = rb"http(?i:s?\\?(?::|%3A)(?:/|%2F){2})"
_NETWORK = rb"(?i:localhost|127\.|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|\[::1\]|\[f[cd])"
_AFTER_NAME = pattern(rb"\\?(?:@|%40)" + _SCHEME + _REST)
_OWN_ADDRESS = pattern(_SCHEME + _NETWORK + _REST)
_LOUD_SCHEME = pattern(rb"http(?=s?\\?(?::|%3A)(?:/|%2F){2})", re.IGNORECASE)
_AMOUNT = rb"(?:-?\d[\d.eE+-]*|\"\d[^\"]*\")"
_AMOUNTS = ("dollars", "billed", "reused", "reserved", "budget", "money")
_AMOUNT_KEYS = tuple(f"{name}{end}".encode() for name in _AMOUNTS for end in ('"', '\\"'))
_MONEY = pattern(
    rb'("(?:[a-z_]*dollars|billed|reused|reserved|budget|money)\\?":\s*)'
    rb"(?:" + _AMOUNT + rb"|\{[^{}]*\})"
)
"""Amounts and budgets in JSON, by the names of their fields."""


def private_text_filter(addresses: Iterable[str], routes: Iterable[str]) -> Callable[[bytes], bytes]:
    """Return a function that removes addresses of own servers and amounts from a text, and the folders from paths.

    Args:
        addresses: Further own addresses, which may look public.
        routes: First parts of the addresses of pages, which are not folders.

    >>> private_text_filter(["https://proxy.example/v1"], [])(b"compat:own@http://127.0.0.1:80/v1 of /home/me/q.csv")
    b'compat:own of q.csv'
    """
    first = {*USUAL_FOLDERS, *(path.name for path in Path("/").iterdir())} - set(routes)
    names = b"|".join(re.escape(name).encode() for name in sorted(first))
    # After the name of a provider, every path is one of this machine.
    more = rb"(?:/|%2F)" + _REST
    paths = [
        re.compile(
            slash
            + rb"(?:(?<=[a-z]:"
            + slash
            + rb")[\w.-]+|"
            + rb"(?<![\w.%~-]"
            + slash
            + rb")(?<!:/"
            + slash
            + rb")(?:"
            + names
            + rb"))"
            + more
        )
        for slash in (b"/", b"%2F")
    ]
    parts = [urlsplit(address) for address in addresses]
    own = [_SCHEME + rb"(?i:" + re.escape(part.netloc).encode() + rb")" + _REST for part in parts if part.netloc]
    named = re.compile(b"|".join(own)) if own else None

    def last_part(match: re.Match[bytes]) -> bytes:
        return re.split(rb"/|%2F", match[0].rstrip(b"/"))[-1]

    def filtered(text: bytes) -> bytes:
        if any(key in text for key in _AMOUNT_KEYS):
            text = _MONEY.sub(rb"\1null", text)
        quiet = text.lower()
        if b"http" in quiet:
            if quiet.count(b"http") != text.count(b"http"):
                text = _LOUD_SCHEME.sub(b"http", text)
            if b"@http" in quiet or b"%40http" in quiet:
                text = _AFTER_NAME.sub(b"", text)
            text = _OWN_ADDRESS.sub(b"(own server)", text)
            text = text if named is None else named.sub(b"(own server)", text)
        for path in paths:
            text = path.sub(last_part, text)
        return text

    return filtered
