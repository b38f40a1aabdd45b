"""HTTP connections of readers of data and of models.

Certificates are those that the machine trusts, and proxies come from the environment. There are no cookies and no
redirects. The decompressed size of an answer is limited, a host name that was checked keeps its numeric address, and
errors tell whether anything was sent. Retries are in `retry`, rate limits in `foretell.models.rate_limits`.

aiohttp takes 0.26 ms of CPU time per call with 500 concurrent calls, httpx2 2.3 to 3.6 ms.
"""

import asyncio
import json
import os
import re
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
"""Maximum number of hosts for which the proxy is cached."""
ENCODINGS = "gzip, deflate"
"""Accepted compression of answers."""
KEPT_IN_PATH, KEPT_IN_QUERY = "/:@!$&'()*+,;=~%", "/:@!$&'()*+,;=~%?[]"
"""Characters of an address that are sent as they are."""


class OutgoingError(Exception):
    """A request got no complete answer."""


class NotConnected(OutgoingError):
    """The connection failed, and nothing was sent."""


class ConnectionBroke(OutgoingError):
    """The connection broke or timed out after something may have been sent."""


class Unsendable(OutgoingError):
    """The request's address or a header is not valid. Nothing was sent."""


class UnreadableBody(OutgoingError):
    """The answer cannot be decompressed."""


class AnswerTooLarge(OutgoingError):
    """The answer is larger than the caller allows. `beginning` is what was read of it."""

    def __init__(self, longest: int, beginning: bytes) -> None:
        super().__init__(f"answer is larger than {longest:,} bytes")
        self.beginning = beginning


class HttpRequest(NamedTuple):
    """A request."""

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
        """`content` yields the decompressed parts of the body."""
        self.status = status
        self.reason = reason
        self.headers = headers
        """Headers; names are case-insensitive."""
        self._content = content
        self._response = response

    @property
    def length(self) -> int | None:
        """Number of bytes of the body, if the server states it and does not compress them."""
        length = self.headers.get("content-length", "")
        return int(length) if length.isdecimal() and "content-encoding" not in self.headers else None

    def parts(self) -> AsyncIterator[bytes]:
        """Return the parts of the decompressed body as they arrive."""
        encoding = self.headers.get("content-encoding", "identity").strip().lower()
        # aiohttp passes on compressed bytes of a kind that it does not know.
        if encoding not in ("", "identity", "gzip", "deflate"):
            raise UnreadableBody(f"the answer is compressed with {encoding}, which was not requested")
        return self._content()

    async def read(self, longest: int, heard: Callable[[bytes], None] | None = None) -> bytes:
        """Return the whole body, decompressed. `heard` is called with every part."""
        length = self.length
        if heard is None and self._response is not None and length is not None and length <= longest:
            return await self._response.read()
        read = bytearray()
        async for part in self.parts():
            read += part
            # Decompressed data may be a thousand times as long as the header says.
            if len(read) > longest:
                if self._response is not None:
                    self._response.close()
                raise AnswerTooLarge(longest, bytes(read))
            if heard is not None:
                heard(part)
        return bytes(read)


class Transport(Protocol):
    """Sends requests over connections or to a substitute for a network."""

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[IncomingAnswer]:
        """Send a request. Its answer can be read inside the block."""
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
        """Prepare connections. None is opened yet.

        Args:
            headers: Sent with every request.
            connect_seconds: Maximum time to connect.
            read_seconds: Maximum time between two parts of an answer; None if the caller limits the time.
            idle_seconds: A connection that was idle for longer is not reused. Many servers close it after five seconds,
                and a request that is sent just then may or may not have been processed.
            check: Called after connecting, right before a request is sent. It may raise.
        """
        self._headers = {"Accept": "*/*", "Accept-Encoding": ENCODINGS, **(headers or {})}
        self._connect_seconds = connect_seconds
        self._read_seconds = read_seconds
        self._idle_seconds = idle_seconds
        self._check = check
        self._sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}
        self._proxies: dict[tuple[str, str], str | None] = {}

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[IncomingAnswer]:
        """Send a request. Its answer can be read inside the block."""
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
            # Otherwise aiohttp repeats a GET if the server closes the connection, besides our own retries.
            session._retry_connection = False  # pyright: ignore[reportPrivateUsage]
        return session

    def _proxy(self, url: "URL") -> str | None:
        """Return the proxy from the environment, cached because the lookup costs as much as a request."""
        key = (url.scheme, url.raw_host or "")
        if key not in self._proxies:
            if len(self._proxies) >= MOST_PROXIES:
                self._proxies.clear()
            proxies = getproxies()
            self._proxies[key] = None if proxy_bypass(key[1]) else proxies.get(key[0]) or proxies.get("all")
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
            # The connection is not reused, because another site at the same address needs its own certificate check.
            headers = {**(headers or {}), "Host": url.host_port_subcomponent or "", "Connection": "close"}
            options["server_hostname"] = url.raw_host
            url = url.with_host(address)
        if url.scheme == "https":
            options["ssl"] = trusted_certificates()
        # With an explicit payload type, aiohttp need not look it up.
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
    """Convert an error of the client library to ours; None for other errors."""
    import aiohttp

    # The library names its settings in the message.
    message = re.sub(r" ssl:(<[^>]*>|\w+)", "", str(error)) or type(error).__name__
    if isinstance(error, aiohttp.InvalidURL):
        return Unsendable(f"cannot be sent: {message}")
    if isinstance(error, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)):
        return NotConnected(message)
    if isinstance(error, aiohttp.ClientPayloadError) and "content-encoding" in message:
        return UnreadableBody(message)
    if isinstance(error, aiohttp.ClientResponseError):  # Its message contains text of the server, of any length.
        return ConnectionBroke("the connection broke: the answer is not valid HTTP, or its length is wrong")
    if isinstance(error, (aiohttp.ClientError, ConnectionError)):
        return ConnectionBroke(f"the connection broke: {message}")
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
"""Files of certificate authorities on Linux systems, for a Python that was built for another system."""


def trusted_certificates() -> ssl.SSLContext:
    """Return a context with the certificate authorities of this machine, or those in SSL_CERT_FILE or SSL_CERT_DIR."""
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
    """Parse an address and add query parameters. Characters are quoted if needed and not yet quoted.

    >>> str(address_of("https://example.org/a b%2Fc?x=1", {"q": "é ü"}))
    'https://example.org/a%20b%2Fc?x=1&q=%C3%A9+%C3%BC'
    """
    from yarl import URL

    try:
        parts = urlsplit(url)
        if len(url) > MAX_URL or not parts.hostname:
            raise ValueError("it is too long" if parts.hostname else "it has no host")
        site = URL(f"{parts.scheme}://{parts.netloc}")
        port = site.port  # Raises if it is not a number.
    except ValueError as error:
        raise Unsendable(f"cannot read the address: {error}") from None
    del port
    query = "&".join(filter(None, [quote(parts.query, KEPT_IN_QUERY), urlencode(params or ())]))
    path = quote(parts.path, KEPT_IN_PATH) or "/"
    fragment = quote(parts.fragment, KEPT_IN_QUERY)
    address = (
        f"{site.scheme}://{site.raw_authority}{path}{f'?{query}' if query else ''}{f'#{fragment}' if fragment else ''}"
    )
    return URL(address, encoded=True)


# A substitute for a network.


class Answer(NamedTuple):
    """An answer without a network."""

    status: int = 200
    body: bytes | AsyncIterator[bytes] = b""
    headers: Mapping[str, str] = {}


class FunctionTransport:
    """Answers from a function instead of a network, to replay recorded answers or to reject all requests.

    The function returns an `Answer` or raises an `OutgoingError`. Names of headers are case-insensitive.

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

        result = self._answer(self._request._replace(headers=CIMultiDict(self._request.headers or {})))
        answer = await result if isawaitable(result) else result
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
