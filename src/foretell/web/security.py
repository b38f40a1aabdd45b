"""Access control: reading is open on this machine; spending and writing need the token, and forms must be our own."""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Annotated
from urllib.parse import parse_qs, urlsplit

from fastapi import Depends, HTTPException, Request

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
COOKIE, THEME_COOKIE = "foretell_session", "foretell-theme"
THEMES = ("light", "dark")
MAX_FIELDS = 200
"""Maximum number of fields in a form."""
FIELD, HEADER = "csrf", "x-csrf-token"
_HOST = re.compile(r"(?P<name>[A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(:\d{1,5})?")


@dataclass(frozen=True, kw_only=True)
class AccessRules:
    """The access settings that the server was started with."""

    token: str | None = field(default=None, repr=False)
    """The server's token; if None, nothing can be spent or written."""
    host: str = "127.0.0.1"
    """The address the server listens on."""
    still: bool = False
    """Whether the pages are written to files, where nobody can ask, log in or listen."""

    @property
    def private(self) -> bool:
        """Whether only this machine can reach the server; reading is then open."""
        return _loopback(self.host)

    def admits_host(self, header: str) -> bool:
        """Whether the Host header names this server; this prevents DNS rebinding by other sites.

        >>> AccessRules().admits_host("127.0.0.1:8400"), AccessRules().admits_host("evil.example")
        (True, False)
        """
        name = _host_name(header)
        if name in LOOPBACK or name == self.host.lower():
            return True
        return not self.private and _is_number(name)

    def holds(self, given: str) -> bool:
        """Whether `given` is the token."""
        return self.token is not None and hmac.compare_digest(given.encode(), self.token.encode())

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
        # Without a token nothing is ever signed the same way twice: no session holds.
        key = (self.token or secrets.token_hex()).encode()
        return hmac.new(key, f"{purpose}:{nonce}".encode(), hashlib.sha256).hexdigest()


def _host_name(header: str) -> str:
    """Return the host name in a Host header; empty if it holds anything else, such as text after a bracket."""
    found = _HOST.fullmatch(header)
    return found["name"].strip("[]").lower() if found else ""


def _is_number(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _loopback(host: str) -> bool:
    return host.lower() in LOOPBACK or (_is_number(host) and ip_address(host).is_loopback)


@dataclass(frozen=True, kw_only=True)
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
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    return given.strip() if kind.lower() == "bearer" else None


def has_token(request: Request, access: AccessRules) -> bool:
    """Whether the request carries the token itself or a session made with it."""
    return access.holds(_bearer(request) or "") or access.valid_session(request.cookies.get(COOKIE))


def require_token(request: Request) -> None:
    """Refuse requests without token or session."""
    access, given = access_of(request), _bearer(request)
    if given is not None and not access.holds(given):
        raise HTTPException(401, "that is not the token of this server", {"WWW-Authenticate": "Bearer"})
    if not has_token(request, access):
        how = "open the link that foretell serve printed, or send Authorization: Bearer TOKEN"
        reason = how if access.token is not None else "the server was started without one"
        raise HTTPException(401, f"this needs the token: {reason}", {"WWW-Authenticate": "Bearer"})


TokenHeld = Annotated[None, Depends(require_token)]
"""Parameter of every route that shows what only the owner of the machine may know."""


async def _trusted(request: Request) -> None:
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
    """Return the fields of a posted form; empty if the body is not a form."""
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        return {}
    body = (await request.body()).decode("utf-8", "replace")
    try:
        return parse_qs(body, keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise HTTPException(413, f"a form may have {MAX_FIELDS} fields at most") from None


TokenRequired = Annotated[None, Depends(_trusted)]
"""Parameter of every route that spends or writes."""
