"""The one place that opens connections, for readers of data and for models alike.

It holds what is the same for both: trusted certificates, proxies from the environment, no cookies, no redirects of its
own, a limit on the unpacked size of an answer, a fixed numeric address where a name was checked before, and errors that
say whether anything was sent. Who calls decides how often, how long and how large: see `retry` and `limiter`.

One client does both jobs. aiohttp costs 0.26 ms of CPU time a call with 500 calls at once, httpx2 2.3 to 3.6 ms.
"""

import asyncio
import json
import os
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import cache
from http.client import responses
from inspect import isawaitable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

MAX_HEADER_BYTES = 65_536
"""Maximum size of one header of an answer."""
MAX_URL = 65_536
MOST_PROXIES = 1_000
"""Number of hosts for which the proxy is remembered."""
ENCODINGS = "gzip, deflate"
"""How an answer may be packed; both can be unpacked everywhere."""
KEPT_IN_PATH, KEPT_IN_QUERY = "/:@!$&'()*+,;=~%", "/:@!$&'()*+,;=~%?[]"
"""Characters of an address that are sent as they are."""


class OutgoingError(Exception):
    """A request got no complete answer."""


class NotConnected(OutgoingError):
    """No connection came about; nothing was sent."""


class ConnectionBroke(OutgoingError):
    """The connection broke, or nothing came for too long, after something may have been sent."""


class Unsendable(OutgoingError):
    """The request cannot be sent as it is: its address or a header is not allowed. Nothing was sent."""


class UnreadableBody(OutgoingError):
    """The answer is packed in a way that cannot be unpacked."""


class AnswerTooLarge(OutgoingError):
    """The answer is larger than the caller allows. `beginning` is what was read of it."""

    def __init__(self, longest: int, beginning: bytes) -> None:
        super().__init__(f"answer is larger than {longest:,} bytes")
        self.beginning = beginning


class HttpRequest(NamedTuple):
    """A request as it leaves."""

    method: str
    url: "URL"
    headers: Mapping[str, str] | None = None
    body: bytes | None = None
    address: str | None = None
    """Numeric address to connect to, so that a second name lookup cannot lead elsewhere."""

    def json(self) -> Any:
        """Parse the body as JSON."""
        return json.loads(self.body or b"")


class IncomingAnswer:
    """The head of an answer, and its body as it arrives."""

    __slots__ = ("_content", "_response", "headers", "reason", "status")

    def __init__(
        self,
        status: int,
        reason: str,
        headers: Mapping[str, str],
        content: Callable[[], AsyncIterator[bytes]],
        response: "aiohttp.ClientResponse | None" = None,
    ) -> None:
        """`content` gives the unpacked parts of the body."""
        self.status = status
        self.reason = reason
        self.headers = headers
        """Header values; names are found in upper and lower case."""
        self._content = content
        self._response = response

    @property
    def length(self) -> int | None:
        """Number of bytes of the body, if the server states it and does not pack them."""
        length = self.headers.get("content-length", "")
        return int(length) if length.isdecimal() and "content-encoding" not in self.headers else None

    def parts(self) -> AsyncIterator[bytes]:
        """Parts of the unpacked body as they arrive."""
        packed = self.headers.get("content-encoding", "identity").strip().lower()
        # aiohttp hands on what it does not know; packed bytes would be read as a page or as broken JSON.
        if packed not in ("", "identity", "gzip", "deflate"):
            raise UnreadableBody(f"the answer is packed with {packed}, which was not asked for")
        return self._content()

    async def read(self, longest: int, heard: Callable[[bytes], None] | None = None) -> bytes:
        """The whole body, unpacked. `heard` is called with every part."""
        length = self.length
        if heard is None and self._response is not None and length is not None and length <= longest:
            return await self._response.read()
        read = bytearray()
        async for part in self.parts():
            read += part
            # What is packed may be a thousand times as long as its header says.
            if len(read) > longest:
                if self._response is not None:
                    self._response.close()
                raise AnswerTooLarge(longest, bytes(read))
            if heard is not None:
                heard(part)
        return bytes(read)


class Transport(Protocol):
    """Sends requests: over connections, or to something that stands in for a network."""

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[IncomingAnswer]:
        """Send a request; its answer can be read inside the block."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


# Connections.


class Connections:
    """Connections to servers, which are reused. A `Transport` for any number of event loops.

    Redirects are not followed and cookies are not kept. Proxies come from the environment.
    """

    def __init__(
        self,
        *,
        headers: Mapping[str, str] | None = None,
        connect_seconds: float = 30.0,
        read_seconds: float | None = None,
        idle_seconds: float = 4.0,
        check: Callable[[], None] | None = None,
    ) -> None:
        """Prepare connections; none is opened yet.

        Args:
            headers: Sent with every request.
            connect_seconds: Longest time until a connection is there.
            read_seconds: Longest silence between two parts of an answer; None if the caller limits the time.
            idle_seconds: A connection that was idle for longer is not used again. Many servers close it after five
                seconds, and nobody can tell whether a request that crosses with that was answered.
            check: Called once connected, right before a request is sent; it may raise.
        """
        self._headers = {"Accept": "*/*", "Accept-Encoding": ENCODINGS, **(headers or {})}
        self._connect_seconds = connect_seconds
        self._read_seconds = read_seconds
        self._idle_seconds = idle_seconds
        self._check = check
        self._sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}
        self._proxies: dict[tuple[str, str], str | None] = {}

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[IncomingAnswer]:
        """Send a request; its answer can be read inside the block."""
        return _Exchange(self._session(), request, self._proxy(request.url))

    async def close(self) -> None:
        """Close connections."""
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()

    def _session(self) -> "aiohttp.ClientSession":
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None:
            import aiohttp

            connector = _connector_type()(
                self._check, limit=0, keepalive_timeout=self._idle_seconds, resolver=aiohttp.ThreadedResolver()
            )
            session = self._sessions[loop] = aiohttp.ClientSession(
                connector=connector,
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=self._connect_seconds, sock_read=self._read_seconds
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                max_line_size=MAX_HEADER_BYTES,
                max_field_size=MAX_HEADER_BYTES,
            )
            # Else aiohttp sends a GET twice if the server hangs up, beside our own rule for when to send again.
            session._retry_connection = False  # pyright: ignore[reportPrivateUsage]
        return session

    def _proxy(self, url: "URL") -> str | None:
        """The proxy set in the environment, remembered because the lookup costs as much as a request."""
        key = (url.scheme, url.raw_host or "")
        if key not in self._proxies:
            if len(self._proxies) >= MOST_PROXIES:
                self._proxies.clear()
            found = getproxies()
            self._proxies[key] = None if proxy_bypass(key[1]) else found.get(key[0]) or found.get("all")
        return self._proxies[key]


class _Exchange:
    """One request and its answer. Not a generator, because every call of a model goes through it."""

    __slots__ = ("_context", "_proxy", "_request", "_session")

    def __init__(self, session: "aiohttp.ClientSession", request: HttpRequest, proxy: str | None) -> None:
        self._session, self._request, self._proxy = session, request, proxy

    async def __aenter__(self) -> IncomingAnswer:
        import aiohttp

        method, url, headers, body, address = self._request
        options: dict[str, Any] = {}
        if address is not None:
            # The connection is not used again: another site at the same address must prove its own name.
            headers = {**(headers or {}), "Host": url.host_port_subcomponent or "", "Connection": "close"}
            options["server_hostname"] = url.raw_host
            url = url.with_host(address)
        if url.scheme == "https":
            options["ssl"] = trusted_certificates()
        # Without the payload's type every body would be searched for its kind.
        data = None if body is None else aiohttp.BytesPayload(body)
        try:
            self._context = self._session.request(
                method, url, data=data, headers=headers, proxy=self._proxy, allow_redirects=False, **options
            )
            response = await self._context.__aenter__()
        except Exception as error:
            failure = _failure(error)
            if failure is None and not isinstance(error, ValueError):
                raise
            raise failure or Unsendable(f"cannot be sent: {error}") from None
        return IncomingAnswer(
            response.status, response.reason or "", response.headers, response.content.iter_any, response
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._context.__aexit__(kind, error, at)
        if isinstance(error, Exception) and (failure := _failure(error)) is not None:
            raise failure from None


def _failure(error: Exception) -> OutgoingError | None:
    """Our own error for one of the client library; None if it is something else."""
    import aiohttp

    words = str(error) or type(error).__name__
    if isinstance(error, aiohttp.InvalidURL):
        return Unsendable(f"cannot be sent: {words}")
    if isinstance(error, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)):
        return NotConnected(words)
    if isinstance(error, aiohttp.ClientPayloadError) and "content-encoding" in words:
        return UnreadableBody(words)
    if isinstance(error, aiohttp.ClientResponseError):  # Its words hold what came from the server, of any length.
        return ConnectionBroke("the connection broke: the answer is no proper HTTP, or of another length than it says")
    if isinstance(error, (aiohttp.ClientError, ConnectionError)):
        return ConnectionBroke(f"the connection broke: {words}")
    return None


@cache
def _connector_type() -> "Callable[..., aiohttp.TCPConnector]":
    from aiohttp import TCPConnector

    class CheckingConnector(TCPConnector):
        """Checks again once connected, because the process may have been stopped while it waited for a connection."""

        def __init__(self, check: Callable[[], None] | None, **options: Any) -> None:
            super().__init__(**options)
            self._check = check

        async def connect(self, *args: Any, **kwargs: Any) -> Any:
            connection = await super().connect(*args, **kwargs)
            if self._check is not None:
                try:
                    self._check()
                except BaseException:
                    connection.release()
                    raise
            return connection

    return CheckingConnector


AUTHORITY_FILES = (
    "/etc/ssl/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/cert.pem",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/ssl/ca-bundle.pem",
)
"""Where Linux systems keep certificate authorities, for a Python that was built for another system."""


def trusted_certificates() -> ssl.SSLContext:
    """The certificate authorities that this machine trusts, or those in SSL_CERT_FILE or SSL_CERT_DIR."""
    return _trusted(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _trusted(file: str | None, folder: str | None) -> ssl.SSLContext:
    """Loaded once, because it takes time."""
    if sys.platform in ("win32", "darwin") and not (file or folder):
        import truststore

        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context = ssl.create_default_context()
    paths = ssl.get_default_verify_paths()
    if not paths.cafile and not (paths.capath and any(Path(paths.capath).iterdir())):
        for file in AUTHORITY_FILES:
            if Path(file).is_file():
                context.load_verify_locations(file)
                break
    return context


# Addresses.


def address_of(url: str, params: Mapping[str, str] | tuple[tuple[str, str], ...] | None = None) -> "URL":
    """Parse an address and add query parameters. What is quoted stays as it is, what must be quoted is quoted.

    >>> str(address_of("https://example.org/a b%2Fc?x=1", {"q": "é ü"}))
    'https://example.org/a%20b%2Fc?x=1&q=%C3%A9+%C3%BC'
    """
    from yarl import URL

    try:
        parts = urlsplit(url)
        if len(url) > MAX_URL or not parts.hostname:
            raise ValueError("it is too long" if parts.hostname else "it names no host")
        site = URL(f"{parts.scheme}://{parts.netloc}")
        port = site.port  # Raises if it is no number.
    except ValueError as error:
        raise Unsendable(f"cannot read the address: {error}") from None
    del port
    query = "&".join(filter(None, [quote(parts.query, KEPT_IN_QUERY), urlencode(params or ())]))
    path = quote(parts.path, KEPT_IN_PATH) or "/"
    fragment = quote(parts.fragment, KEPT_IN_QUERY)
    whole = (
        f"{site.scheme}://{site.raw_authority}{path}{f'?{query}' if query else ''}{f'#{fragment}' if fragment else ''}"
    )
    return URL(whole, encoded=True)


# Something that stands in for a network.


class Answer(NamedTuple):
    """An answer that is given without a network."""

    status: int = 200
    body: bytes | AsyncIterator[bytes] = b""
    headers: Mapping[str, str] = {}


class FunctionTransport:
    """Answers from a function instead of a network, to replay recorded answers or to refuse all requests.

    The function returns an `Answer` or raises an `OutgoingError`. It finds headers by names in upper and lower case.

    >>> async def example() -> bytes:
    ...     transport = FunctionTransport(lambda request: Answer(body=request.url.path.encode()))
    ...     async with transport.send(HttpRequest("GET", address_of("https://example.org/a"))) as answer:
    ...         return await answer.read(1000)
    >>> asyncio.run(example())
    b'/a'
    """

    def __init__(self, answer: Callable[[HttpRequest], Answer | Awaitable[Answer]]) -> None:
        self._answer = answer

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[IncomingAnswer]:
        """Answer a request."""
        return _FunctionExchange(self._answer, request)

    async def close(self) -> None:
        """Do nothing: there are no connections."""


class _FunctionExchange:
    def __init__(self, answer: Callable[[HttpRequest], Answer | Awaitable[Answer]], request: HttpRequest) -> None:
        self._answer, self._request = answer, request

    async def __aenter__(self) -> IncomingAnswer:
        from multidict import CIMultiDict

        given = self._answer(self._request._replace(headers=CIMultiDict(self._request.headers or {})))
        answer = await given if isawaitable(given) else given
        assert isinstance(answer, Answer)
        body = answer.body
        headers = CIMultiDict(answer.headers)
        if isinstance(body, bytes):
            headers.setdefault("Content-Length", str(len(body)))
        reason = responses.get(answer.status, "")
        return IncomingAnswer(
            answer.status, reason, headers, lambda: _one_part(body) if isinstance(body, bytes) else body
        )

    async def __aexit__(self, *error: object) -> None:
        pass


async def _one_part(body: bytes) -> AsyncIterator[bytes]:
    if body:
        yield body
