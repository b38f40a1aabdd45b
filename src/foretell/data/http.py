"""HTTP access to the web: limited in time and size, at the rate each service allows, with clear errors."""

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Container, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cache
from http import HTTPStatus
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from foretell.data.http_cache import FOLDER, HttpCache
from foretell.data.pace import (
    PRACTICE_HEADER,
    KnownService,
    PaceStore,
    ServiceAccess,
    ServiceAddresses,
    ServiceClosed,
    ServiceTurns,
)
from foretell.data.public_address import Resolve, is_public, leads_inside, look_up
from foretell.questions.server_replies import redacted, retry_after

if TYPE_CHECKING:
    import ssl

    import httpx2


# Retries are announced through this logger; without any handler Python would print its bare event names to the user.
logging.getLogger("stamina").addHandler(logging.NullHandler())

RETRY_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
GOOD_STATUS = frozenset({HTTPStatus.OK, HTTPStatus.NOT_MODIFIED})
Progress = Callable[[int, int | None], None]
"""Called with the bytes received so far and the total, if known."""


class SourceError(Exception):
    """An external source could not be read. `status` is its HTTP status, if there was a response."""

    def __init__(self, problem: str, *, url: str, status: int | None = None) -> None:
        self.problem = problem
        self.url = url
        self.status = status
        super().__init__(f"{url}: {problem}")


class NotFound(SourceError):
    """The server has no such resource (404)."""


class ServerBusy(SourceError):
    """A failure worth retrying, perhaps after the wait that the server asked for."""

    def __init__(self, problem: str, *, url: str, status: int | None = None, wait: float | None = None) -> None:
        super().__init__(problem, url=url, status=status)
        self.wait = wait


@dataclass(frozen=True, kw_only=True)
class HttpLimits:
    """Limits on time and size."""

    connect_seconds: float = 10.0
    read_seconds: float = 30.0
    """Longest silence between two pieces of a response."""
    total_seconds: float = 300.0
    """Longest time for one response, checked with every piece."""
    max_bytes: int = 200_000_000
    attempts: int = 5
    wait_seconds: float = 0.5
    """First pause before a retry; it doubles each time, with some jitter."""
    max_wait_seconds: float = 60.0
    max_pause_seconds: float = 120.0
    """Longest pause of a service that we wait for; if it is longer, the caller is told at once."""


@dataclass(frozen=True, kw_only=True)
class HttpResponse:
    """A complete response."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Header values by lower-case name."""
    hops: tuple[str, ...] = ()
    """Every address in the chain of redirects; the last one responded."""


@cache
def user_agent(contact: str = "", *, browser: bool = False) -> str:
    """Our user agent; for some servers in the form of a browser's, because they answer nobody else.

    >>> user_agent("me@example.org").partition(" ")[2]
    '(+me@example.org)'
    """
    name = f"foretell/{version('foretell')}"
    if browser:
        return f"Mozilla/5.0 (compatible; {name}{f'; +{contact}' if contact else ''})"
    return f"{name} (+{contact})" if contact else name


NO_CONTACT = (
    "{} wants to know who asks: foretell doctor --contact you@example.org, or set FORETELL_CONTACT to your address"
)


def retry_attempts(limits: HttpLimits) -> Any:
    """Attempts that wait and repeat after a `ServerBusy`, for use with `async for`."""
    import stamina

    def pause(error: Exception) -> bool | float:
        """Whether to retry, and after which wait if the server named an acceptable one."""
        if not isinstance(error, ServerBusy):
            return False
        if error.wait is None:
            return True
        return error.wait if error.wait <= limits.max_wait_seconds else False

    return stamina.retry_context(
        on=pause,
        attempts=limits.attempts,
        timeout=None,
        wait_initial=limits.wait_seconds,
        wait_max=limits.max_wait_seconds,
        wait_jitter=limits.wait_seconds,
    )


def check_status(response: "httpx2.Response", url: str, *, good: Container[int], explanation: str = "") -> None:
    """Raise an error unless the status is a success; `explanation` is the server's message."""
    status = response.status_code
    if status in good:
        return
    reason = f"the server answered {status} {response.reason_phrase}".rstrip()
    reason += f": {explanation}" if explanation else ""
    if status in RETRY_STATUS:
        raise ServerBusy(reason, url=url, status=status, wait=retry_after(response.headers))
    raise (NotFound if status == HTTPStatus.NOT_FOUND else SourceError)(reason, url=url, status=status)


def _length(response: "httpx2.Response") -> int | None:
    """Number of bytes still to come, if the server states it and does not compress them."""
    length = response.headers.get("content-length", "")
    plain = "content-encoding" not in response.headers
    return int(length) if length.isdigit() and plain else None


def _encodings(response: "httpx2.Response") -> list[str]:
    """How an answer is packed, apart from not at all."""
    names = [name.strip().lower() for name in response.headers.get("content-encoding", "").split(",")]
    return [name for name in names if name not in ("", "identity")]


def error_message(error: Exception) -> str:
    """The message of an error, or at least its type."""
    return str(error) or type(error).__name__


class RequestRate:
    """How often a server may be asked: a token bucket with a small burst.

    Callers are admitted in the order in which they came, without busy waiting.

    >>> now = [0.0]
    >>> pace = RequestRate(per_second=2.0, burst=2, clock=lambda: now[0])
    >>> [pace.reserve() for _ in range(4)]
    [0.0, 0.0, 0.5, 1.0]
    """

    def __init__(self, *, per_second: float, burst: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        if per_second <= 0 or burst < 1:
            raise ValueError("per_second must be positive and burst at least 1")
        self._gap = 1.0 / per_second
        self._slack = (burst - 1) * self._gap
        self._clock = clock
        self._next = float("-inf")

    def reserve(self) -> float:
        """Take the next free slot and return the seconds until it."""
        now = self._clock()
        place = max(self._next, now - self._slack)
        self._next = place + self._gap
        return max(0.0, place - now)

    async def wait(self) -> None:
        """Wait for this caller's turn."""
        if (seconds := self.reserve()) > 0:
            await asyncio.sleep(seconds)


AdmitAddress = Callable[[str], Awaitable[str | None]]
"""Called before every hop: raises to refuse an address; may return the numeric host to connect to."""

REDIRECT_STATUS = frozenset({301, 302, 303, 307, 308})
MAX_REDIRECTS = 10
MAX_EXPLANATION = 200
LEADS_INSIDE = "redirects from the public web into a private network"
CROSS_SITE_HEADERS = frozenset({"user-agent", "accept", "accept-language"})
"""Headers that may follow a redirect to another site; anything else could be a key."""


@cache
def _trusted(file: str | None, folder: str | None) -> "ssl.SSLContext":
    """The trusted certificate authorities, loaded once because it takes time."""
    import httpx2

    return httpx2.create_ssl_context()


class AsyncHttpClient:
    """Reads addresses with retries, at the pace each host bears, and never shows a key.

    Give it another transport to replay or to refuse the network. Use one client per event loop.

    >>> import httpx2
    >>> async def example() -> bytes:
    ...     transport = httpx2.MockTransport(lambda request: httpx2.Response(200, content=b"ok"))
    ...     async with AsyncHttpClient(transport=transport) as client:
    ...         return (await client.get("https://example.org/")).body
    >>> asyncio.run(example())
    b'ok'
    """

    def __init__(
        self,
        *,
        limits: HttpLimits | None = None,
        transport: "httpx2.AsyncBaseTransport | None" = None,
        secrets: tuple[str, ...] = (),
        access: ServiceAccess | None = None,
        resolve: Resolve | None = None,
    ) -> None:
        """`access` says who asks and where the shared rate limits are stored; without it they are this client's own.

        `resolve` looks up where a redirect leads; nothing is looked up with a custom transport.
        """
        import httpx2

        self.limits = limits or HttpLimits(total_seconds=60.0, max_bytes=20_000_000)
        self._veil = _SecretLogFilter()
        self._paces: dict[str, RequestRate] = {}
        self._access = access or ServiceAccess()
        self._resolve = resolve or (look_up if transport is None else None)
        # Through a transport of somebody's own nothing leaves this machine that would have to be spared.
        self._services = ServiceAddresses(self._access) if transport is None else None
        self._turns = ServiceTurns(
            PaceStore(self._access.state_file),
            patience=self.limits.max_pause_seconds,
            longest=self.limits.total_seconds + self.limits.connect_seconds,
        )
        home = self._access.home
        self._cache = None if home is None or transport is not None else HttpCache(home / FOLDER)
        timeout = httpx2.Timeout(self.limits.read_seconds, connect=self.limits.connect_seconds)
        name = self._access.user_agent() or user_agent(self._access.contact)
        verify = (
            _trusted(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")) if transport is None else False
        )
        self._client = httpx2.AsyncClient(
            transport=transport, timeout=timeout, headers={"User-Agent": name}, verify=verify
        )
        self._dates: dict[str, tuple[str, float]] = {}
        """By host: the time stated in its first response, and this machine's time then."""
        logging.getLogger("httpx2").addFilter(self._veil)
        for secret in secrets:
            self.keep_secret(secret)

    async def __aenter__(self) -> "AsyncHttpClient":
        """Use as a context manager, so that connections are closed."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close connections."""
        await self.aclose()

    def clock_skew(self) -> float | None:
        """Seconds by which this machine's clock is ahead of the servers' clocks; None if nobody has answered."""
        ahead: list[float] = []
        for told, here in self._dates.values():
            with suppress(ValueError, TypeError):
                ahead.append(here - parsedate_to_datetime(told).timestamp())
        return sorted(ahead)[len(ahead) // 2] if ahead else None

    async def aclose(self) -> None:
        """Close connections."""
        logging.getLogger("httpx2").removeFilter(self._veil)
        self._turns.close()
        await self._client.aclose()

    def keep_secret(self, secret: str) -> None:
        """Hide this text in every error, address and log line of this client."""
        if secret and secret not in self._veil.secrets:
            self._veil.secrets.append(secret)

    def redact(self, text: str) -> str:
        """The text with every secret hidden."""
        return redacted(text, self._veil.secrets)

    def pace(self, url: str, *, per_second: float, burst: int = 1) -> None:
        """Limit the request rate for the host of this address. Limits of known services are not changed."""
        parts = urlsplit(url)
        if self._services is not None and self._services.find(parts.netloc, parts.path) is None:
            self._paces[parts.netloc] = RequestRate(per_second=per_second, burst=burst)

    def stand_in(self, url: str, public: str) -> None:
        """Treat an address as that of a public service, so that its limits apply."""
        if self._services is not None:
            self._services.stand_in(url, public)

    async def get(  # noqa: PLR0913 - one parameter for each thing that differs between sites
        self,
        url: str,
        *,
        params: Mapping[str, str] | tuple[tuple[str, str], ...] | None = None,
        headers: Mapping[str, str] | None = None,
        follow_redirects: bool = True,
        admit: AdmitAddress | None = None,
        progress: Progress | None = None,
        stored_mark: str = "",
    ) -> HttpResponse:
        """The response to a GET: 200, 304, or a redirect that is not followed. Otherwise raises `SourceError`.

        A response with the header `stored_mark` was stored by an archive: its status is that of the stored page and
        says nothing about the archive.
        """
        request = self._request("GET", url, params=params, headers=headers)
        hops: list[str] = []
        address: str | None = None
        while True:
            hops.append(self.redact(str(request.url)))
            good = GOOD_STATUS | REDIRECT_STATUS
            address = await admit(str(request.url)) if admit else address
            key = None if admit else self._cache_key(request)
            options = {"address": address, "progress": progress, "mark": stored_mark}
            answer = await self._kept_or_asked(key, request, good, **options)
            if answer.status not in REDIRECT_STATUS or not follow_redirects:
                return HttpResponse(status=answer.status, body=answer.body, headers=answer.headers, hops=tuple(hops))
            if len(hops) > MAX_REDIRECTS:
                raise SourceError(f"more than {MAX_REDIRECTS} redirects", url=hops[0])
            came, request = request, self._next_hop(request, answer, headers or {}, hops[-1])
            address = None if admit else await self._hop_address(came.url, request.url, hops[-1])

    async def post(
        self,
        url: str,
        *,
        json: Any = None,
        form: Mapping[str, str] | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> HttpResponse:
        """The answer to a POST of JSON, a form or bytes: any 2xx; redirects are not followed. Else a `SourceError`."""
        request = self._request("POST", url, json=json, data=form, content=content, headers=headers)
        return await self._with_retries(request, range(200, 300))

    def _next_hop(
        self, request: "httpx2.Request", answer: HttpResponse, headers: Mapping[str, str], shown: str
    ) -> "httpx2.Request":
        import httpx2

        try:
            target = request.url.join(answer.headers["location"])
        except (KeyError, httpx2.InvalidURL):
            raise SourceError("redirects to no readable address", url=shown, status=answer.status) from None
        if target.scheme not in ("http", "https"):
            raise SourceError("redirects to something that is not http", url=shown, status=answer.status)
        if leads_inside(target.host) and not leads_inside(request.url.host):
            raise SourceError(LEADS_INSIDE, url=shown, status=answer.status)
        same_site = (target.scheme, target.netloc) == (request.url.scheme, request.url.netloc)
        kept = {k: v for k, v in headers.items() if same_site or k.lower() in CROSS_SITE_HEADERS}
        return self._request("GET", target, headers=kept)

    async def _hop_address(self, came: "httpx2.URL", target: "httpx2.URL", shown: str) -> str | None:
        """The numeric address of another site's name; refused if it leads into a private network.

        A service within such a network may redirect within it.
        """
        if target.host == came.host:
            return None
        numbers = await self._numbers(target)
        if not all(map(is_public, numbers)):
            if not leads_inside(came.host) and all(map(is_public, await self._numbers(came))):
                raise SourceError(LEADS_INSIDE, url=shown)
            return None
        return min(numbers, key=lambda one: ":" in one, default=None)

    async def _numbers(self, url: "httpx2.URL") -> list[str]:
        if self._resolve is None:
            return []
        try:
            return await self._resolve(url.raw_host.decode(), url.port or (443 if url.scheme == "https" else 80))
        except (OSError, UnicodeError):
            return []  # Somebody between here and there may know the name.

    def _request(self, method: str, url: Any, *, headers: Mapping[str, str] | None, **content: Any) -> "httpx2.Request":
        """A request with the user agent that its service accepts, unless the caller sets one."""
        request = self._client.build_request(method, url, headers=headers, **content)
        service = self._service(request)
        if service is not None and "user-agent" not in {name.lower() for name in headers or {}}:
            own = self._access.user_agent(service.name)
            request.headers["User-Agent"] = own or user_agent(self._access.contact, browser=service.facts.browser)
        return request

    def _service(self, request: "httpx2.Request") -> KnownService | None:
        return self._services and self._services.find(request.url.netloc.decode(), request.url.path)

    def _cache_key(self, request: "httpx2.Request") -> str | None:
        """The cache key of a response; None if caching is useless or the request contains a key."""
        service = self._service(request)
        url = str(request.url)
        if self._cache is None or service is None or not service.facts.cached or self.redact(url) != url:
            return None
        return self._cache.key(url, dict(request.headers))

    async def _kept_or_asked(
        self, key: str | None, request: "httpx2.Request", good: Container[int], **options: Any
    ) -> HttpResponse:
        """The response from the cache while it is fresh, else a conditional request."""
        if self._cache is None or key is None:
            return await self._with_retries(request, good, **options)
        known = self._cache.find(key)
        if known is None or not known.fresh(self._cache.now()):
            request.headers.update({} if known is None else known.conditions)
            answer = await self._with_retries(request, good, **options)
            if known is None or answer.status != HTTPStatus.NOT_MODIFIED:
                if answer.status == HTTPStatus.OK:
                    self._cache.keep(key, answer.body, answer.headers)
                return answer
            known = self._cache.renew(key, known, answer.headers)
        return HttpResponse(status=HTTPStatus.OK, body=known.body, headers=known.headers)

    async def _with_retries(
        self,
        request: "httpx2.Request",
        good: Container[int],
        *,
        address: str | None = None,
        progress: Progress | None = None,
        mark: str = "",
    ) -> HttpResponse:
        service = self._service(request)
        pace = self._paces.get(request.url.netloc.decode())
        pinned = _pinned(request, address) if address else request
        url = self.redact(str(request.url))
        async for attempt in retry_attempts(self.limits):
            with attempt:
                if service is not None:
                    return await self._in_turn(service, pinned, url, good, progress, mark)
                if pace is not None:
                    await pace.wait()
                return await self._once(pinned, url, good, progress, mark)
        raise AssertionError("retrying either returns or raises")

    async def _in_turn(
        self,
        service: KnownService,
        request: "httpx2.Request",
        url: str,
        good: Container[int],
        progress: Progress | None,
        mark: str,
    ) -> HttpResponse:
        """Ask a known service when it is our turn; a pause it asks for applies to everyone."""
        nameless = not self._access.contact and not self._access.user_agent(service.name)
        if service.public and service.facts.needs_contact and nameless:
            problem = NO_CONTACT.format(service.facts.title)
            self._turns.say_once(service, problem)
            raise SourceError(problem, url=url)
        try:
            weigh = service.facts.weigh
            weight = weigh(dict(request.url.params)) if weigh is not None else 1
            async with self._turns.turn(service, request.url.path, weight) as turn:
                try:
                    answer = await self._once(request, url, good, progress, mark)
                    turn.problem = ""
                    return answer
                except SourceError as error:
                    turn.problem = "" if isinstance(error, NotFound) else error.problem
                    spared = self._turns.spared(service)
                    if isinstance(error, ServerBusy) and _asks_to_pause(error, spared=spared):
                        self._turns.refused(service, turn, error.wait, error.problem)
                        error.wait = 0.0
                    raise
        except ServiceClosed as closed:
            raise SourceError(str(closed), url=url, status=HTTPStatus.TOO_MANY_REQUESTS) from None

    async def _once(
        self, request: "httpx2.Request", url: str, good: Container[int], progress: Progress | None, mark: str
    ) -> HttpResponse:
        import httpx2

        try:
            async with asyncio.timeout(self.limits.total_seconds):
                return await self._answer(request, url, good, progress, mark)
        except TimeoutError:
            failure = SourceError(f"answer took longer than {self.limits.total_seconds:g} s", url=url)
        except httpx2.TransportError as error:
            failure = ServerBusy(self.redact(error_message(error)), url=url)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            failure = SourceError(self.redact(error_message(error)), url=url)
        # Raised out here so that no chained exception carries what was hidden.
        raise failure

    async def _answer(
        self, request: "httpx2.Request", url: str, good: Container[int], progress: Progress | None, mark: str
    ) -> HttpResponse:
        response = await self._client.send(request, stream=True)
        self._dates.setdefault(request.url.host, (response.headers.get("date", ""), time.time()))
        service = self._service(request)
        if service is not None:
            self._turns.answered_by(service, practice=PRACTICE_HEADER in response.headers)
        try:
            status = response.status_code
            if not (mark and mark in response.headers):
                explanation = "" if status in good else await self._explanation(response)
                check_status(response, url, good=good, explanation=explanation)
            body = b"" if status in REDIRECT_STATUS else await self._body(response, url, progress)
        finally:
            await response.aclose()
        return HttpResponse(status=status, body=body, headers=dict(response.headers.items()), hops=(url,))

    async def _body(self, response: "httpx2.Response", url: str, progress: Progress | None) -> bytes:
        body = bytearray()
        total = _length(response)
        # httpx hands on what it cannot unpack; without this, packed bytes would be read as a page or as broken JSON.
        asked = response.request.headers.get("accept-encoding", "")
        if packed := [name for name in _encodings(response) if name not in asked]:
            raise SourceError(f"the answer is packed with {packed[0]}, which was not asked for", url=url)
        async for part in response.aiter_bytes():
            body += part
            if len(body) > self.limits.max_bytes:
                raise SourceError(f"answer is larger than {self.limits.max_bytes:,} bytes", url=url)
            if progress is not None:
                progress(len(body), total)
        return bytes(body)

    async def _explanation(self, response: "httpx2.Response") -> str:
        """The beginning of the server's message about a failure, unless it is a web page."""
        if "html" in response.headers.get("content-type", ""):
            return ""
        async for part in response.aiter_bytes():
            text = " ".join(self.redact(part.decode("utf-8", "replace")).split())
            return text[:MAX_EXPLANATION]
        return ""


def _asks_to_pause(error: ServerBusy, *, spared: bool) -> bool:
    """Whether everyone should pause; a practice server without a stated time is just retried a little later."""
    return error.wait is not None or (error.status == HTTPStatus.TOO_MANY_REQUESTS and not spared)


def _pinned(request: "httpx2.Request", address: str) -> "httpx2.Request":
    """The request sent to a fixed numeric address, so that a second name lookup cannot lead elsewhere.

    Its connection is not reused: another site at the same address must prove its own name.
    """
    import httpx2

    extensions = {**request.extensions, "sni_hostname": request.url.host}
    headers = {**request.headers, "Connection": "close"}
    return httpx2.Request("GET", request.url.copy_with(host=address), headers=headers, extensions=extensions)


class _SecretLogFilter(logging.Filter):
    """Hides secrets in log lines."""

    def __init__(self) -> None:
        super().__init__()
        self.secrets: list[str] = []

    def filter(self, record: logging.LogRecord) -> bool:
        """Redact the line and let it through."""
        if self.secrets:
            record.msg, record.args = redacted(record.getMessage(), self.secrets), ()
        return True
