"""HTTP access to the web: limited in time and size, at the rate each service allows, with clear errors."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Container, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import field, replace
from email.utils import parsedate_to_datetime
from functools import cache
from http import HTTPStatus
from importlib.metadata import version
from itertools import count
from json import dumps
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urljoin, urlsplit

from foretell.data.day_cache import DayCache
from foretell.data.http_cache import FOLDER, HttpCache
from foretell.data.service_limits import (
    PRACTICE_HEADER,
    KnownService,
    ServiceAccess,
    ServiceAddresses,
    ServiceClosed,
    ServiceStore,
    ServiceTurns,
)
from foretell.frozen import frozen
from foretell.models.rate_limits import RateLimit
from foretell.outgoing.client import (
    ConnectionBroke,
    Connections,
    HttpRequest,
    IncomingAnswer,
    NotConnected,
    OutgoingError,
    Transport,
    Unsendable,
    address_of,
)
from foretell.outgoing.public_address import Resolve, is_public, leads_inside, look_up
from foretell.outgoing.retry import RetryRule, may_pass
from foretell.questions.server_replies import redacted, retry_after

if TYPE_CHECKING:
    from yarl import URL

log = logging.getLogger(__name__)

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


@frozen
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
    """First pause before a retry; see `RetryRule`."""
    max_wait_seconds: float = 60.0
    """Longest pause before a retry, and longest wait that a server may ask for."""
    max_pause_seconds: float = 120.0
    """Longest pause of a service that we wait for; for a longer pause, an error is raised at once."""

    def at_least(self, seconds: float) -> "HttpLimits":
        """Return the same limits with at least so much time to connect and for a response."""
        names = ("connect_seconds", "read_seconds", "total_seconds")
        return replace(self, **{name: max(getattr(self, name), seconds) for name in names})

    @property
    def retries(self) -> RetryRule:
        """When to send a request again."""
        return RetryRule(
            attempts=self.attempts,
            first_pause=self.wait_seconds,
            longest_pause=self.max_wait_seconds,
            longest_wait=self.max_wait_seconds,
        )


@frozen
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
    """Return our user agent; some servers only respond to one in the form of a browser's.

    >>> user_agent("me@example.org").partition(" ")[2]
    '(+me@example.org)'
    """
    name = f"foretell/{version('foretell')}"
    if browser:
        return f"Mozilla/5.0 (compatible; {name}{f'; +{contact}' if contact else ''})"
    return f"{name} (+{contact})" if contact else name


NO_CONTACT = "{} requires a contact address: set yours with foretell doctor --contact you@example.org"


def check_status(answer: IncomingAnswer, url: str, *, good: Container[int], explanation: str = "") -> None:
    """Raise an error unless the status is a success; `explanation` is the server's message."""
    status = answer.status
    if status in good:
        return
    reason = f"the server answered {status} {answer.reason}".rstrip()
    reason += f": {explanation}" if explanation else ""
    if may_pass(status):
        raise ServerBusy(reason, url=url, status=status, wait=retry_after(answer.headers))
    raise (NotFound if status == HTTPStatus.NOT_FOUND else SourceError)(reason, url=url, status=status)


AdmitAddress = Callable[[str], Awaitable[str | None]]
"""Called before every hop: raises to refuse an address; may return the numeric host to connect to."""

REDIRECT_STATUS = frozenset({301, 302, 303, 307, 308})
MAX_REDIRECTS = 10
MAX_EXPLANATION = 200
LEADS_INSIDE = "redirects from the public web into a private network"
CROSS_SITE_HEADERS = frozenset({"user-agent", "accept", "accept-language"})
"""Headers that may follow a redirect to another site; anything else could be a key."""


DEFINITE_STATUS = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.GONE})
"""Refusals that the same request will get again on the same day."""
SIMULATED_SECONDS = 600.0
"""Least time for a request while time is simulated."""
MOST_AT_ONCE = 100
"""Requests of one client that are under way at the same time."""
Params = Mapping[str, str] | tuple[tuple[str, str], ...]


class AsyncHttpClient:
    """Sends requests with retries, within each host's rate limit, and never shows a key.

    Give it another transport to replay or to refuse the network. Use one client per event loop.

    >>> from foretell.outgoing.client import Answer, FunctionTransport
    >>> async def example() -> bytes:
    ...     transport = FunctionTransport(lambda request: Answer(body=b"ok"))
    ...     async with AsyncHttpClient(transport=transport) as client:
    ...         return (await client.get("https://example.org/")).body
    >>> asyncio.run(example())
    b'ok'
    """

    def __init__(
        self,
        *,
        limits: HttpLimits | None = None,
        transport: Transport | None = None,
        secrets: tuple[str, ...] = (),
        access: ServiceAccess | None = None,
        resolve: Resolve | None = None,
    ) -> None:
        """`access` has the user agent and the place of shared rate limits; without it, limits apply to this client.

        `resolve` looks up where a redirect leads; nothing is looked up with a custom transport.
        """
        self.limits = limits or HttpLimits(total_seconds=60.0, max_bytes=20_000_000)
        self._secrets: list[str] = []
        self._access = access or ServiceAccess()
        if self._access.simulated:
            # Otherwise the load of the machine would decide what is read, and at which simulated time.
            self.limits = self.limits.at_least(SIMULATED_SECONDS)
        self._resolve = resolve or (look_up if transport is None else None)
        # With a custom transport no request leaves this machine, so no service needs rate limits.
        self._services = ServiceAddresses(self._access) if transport is None else None
        self._turns = ServiceTurns(
            ServiceStore(self._access.state),
            patience=self.limits.max_pause_seconds,
            longest=self.limits.total_seconds + self.limits.connect_seconds,
        )
        home = self._access.home
        self._cache = None if home is None or transport is not None else HttpCache(home / FOLDER)
        self._daily: DayCache | None = None
        self._user_agent = self._access.user_agent() or user_agent(self._access.contact)
        self._transport = transport or Connections(
            connect_seconds=self.limits.connect_seconds, read_seconds=self.limits.read_seconds
        )
        self._open = asyncio.Semaphore(MOST_AT_ONCE)
        self._dates: dict[str, tuple[str, float]] = {}
        """By host: the time stated in its first response, and this machine's time then."""
        for secret in secrets:
            self.keep_secret(secret)

    async def __aenter__(self) -> "AsyncHttpClient":
        """Use as a context manager, so that connections are closed."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close connections."""
        await self.aclose()

    def clock_skew(self) -> float | None:
        """Seconds by which this machine's clock is ahead of the servers' clocks; None without any response."""
        ahead: list[float] = []
        for stated, here in self._dates.values():
            with suppress(ValueError, TypeError):
                ahead.append(here - parsedate_to_datetime(stated).timestamp())
        return sorted(ahead)[len(ahead) // 2] if ahead else None

    async def aclose(self) -> None:
        """Close connections."""
        self._turns.close()
        await self._transport.close()

    def once_a_day(self, daily: DayCache) -> "AsyncHttpClient":
        """Return this client, with its connections and limits, storing what known services answer to GET for a day.

        A client without a home stores nothing.
        """
        client = copy(self)
        client._daily = None if self._access.home is None else daily
        return client

    def keep_secret(self, secret: str) -> None:
        """Hide this text in every error, address and log line of this client."""
        if secret and secret not in self._secrets:
            self._secrets.append(secret)

    def redact(self, text: str) -> str:
        """Return the text with every secret hidden."""
        return redacted(text, self._secrets)

    def limit_rate(self, url: str, *, per_second: float, burst: int = 1) -> None:
        """Limit the request rate for the host of this address. Limits of known services are not changed."""
        if per_second <= 0 or burst < 1:
            raise ValueError("per_second must be positive and burst at least 1")
        if self._services is not None:
            parts, limit = urlsplit(url), RateLimit(most=burst, seconds=burst / per_second, held=False)
            self._services.limit_host(parts.netloc, parts.path, limit)

    def stand_in(self, url: str, public: str) -> None:
        """Treat an address as that of a public service, so that its limits apply."""
        if self._services is not None:
            self._services.stand_in(url, public)

    async def get(  # noqa: PLR0913 - one parameter for each thing that differs between sites
        self,
        url: str,
        *,
        params: Params | None = None,
        headers: Mapping[str, str] | None = None,
        follow_redirects: bool = True,
        admit: AdmitAddress | None = None,
        progress: Progress | None = None,
        stored_mark: str = "",
    ) -> HttpResponse:
        """Return the response to a GET: 200, 304, or a redirect that is not followed. Otherwise raise `SourceError`.

        A response with the header `stored_mark` was stored by an archive: its status is that of the stored page and
        says nothing about the archive.
        """
        request = self._request("GET", url, params=params, headers=headers)
        hops: list[str] = []
        while True:
            hops.append(self.redact(str(request.url)))
            good = GOOD_STATUS | REDIRECT_STATUS
            if admit is not None:
                request = request._replace(address=await admit(str(request.url)))
            if self._daily is not None and admit is None and self._service(request) is not None:
                answer = await self._once_a_day(self._daily, request, good)
            else:
                key = None if admit else self._cache_key(request)
                answer = await self._cached_or_sent(key, request, good, progress=progress, mark=stored_mark)
            if answer.status not in REDIRECT_STATUS or not follow_redirects:
                return HttpResponse(status=answer.status, body=answer.body, headers=answer.headers, hops=tuple(hops))
            if len(hops) > MAX_REDIRECTS:
                raise SourceError(f"more than {MAX_REDIRECTS} redirects", url=hops[0])
            previous, request = request, self._next_hop(request, answer, headers or {}, hops[-1])
            if admit is None:
                address = await self._hop_address(previous, request, hops[-1])
                request = request._replace(address=address)

    async def post(
        self,
        url: str,
        *,
        json: Any = None,
        form: Mapping[str, str] | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        admit: AdmitAddress | None = None,
    ) -> HttpResponse:
        """Return the 2xx response to a POST of JSON, a form or bytes. Any other raises `SourceError`."""
        kind, body = "", content or b""
        if json is not None:
            kind, body = "application/json", dumps(json, ensure_ascii=False, separators=(",", ":")).encode()
        elif form is not None:
            kind, body = "application/x-www-form-urlencoded", urlencode(form).encode()
        all_headers = {**({"Content-Type": kind} if kind else {}), **(headers or {})}
        request = self._request("POST", url, headers=all_headers, body=body)
        if admit is not None:
            request = request._replace(address=await admit(str(request.url)))
        return await self._with_retries(request, range(200, 300))

    def _next_hop(
        self, request: HttpRequest, answer: HttpResponse, headers: Mapping[str, str], shown: str
    ) -> HttpRequest:
        try:
            target = address_of(urljoin(str(request.url), answer.headers["location"]))
        except (KeyError, ValueError, Unsendable):
            raise SourceError("redirects to an invalid address", url=shown, status=answer.status) from None
        if target.scheme not in ("http", "https"):
            raise SourceError("redirects to an address that is not http", url=shown, status=answer.status)
        if leads_inside(target.raw_host or "") and not leads_inside(request.url.raw_host or ""):
            raise SourceError(LEADS_INSIDE, url=shown, status=answer.status)
        same_site = target.origin() == request.url.origin()
        passed_on = {k: v for k, v in headers.items() if same_site or k.lower() in CROSS_SITE_HEADERS}
        return self._request("GET", str(target), headers=passed_on)

    async def _hop_address(self, previous: HttpRequest, target: HttpRequest, shown: str) -> str | None:
        """Return the numeric address of another site; raise `SourceError` if it is in a private network.

        A service within such a network may redirect within it.
        """
        if target.url.raw_host == previous.url.raw_host:
            return previous.address
        numbers = await self._numbers(target)
        if not all(map(is_public, numbers)):
            inside = leads_inside(previous.url.raw_host or "")
            if not inside and all(map(is_public, await self._numbers(previous))):
                raise SourceError(LEADS_INSIDE, url=shown)
            return None
        return min(numbers, key=lambda number: ":" in number, default=None)

    async def _numbers(self, request: HttpRequest) -> list[str]:
        if self._resolve is None:
            return []
        try:
            return await self._resolve(request.url.raw_host or "", request.url.port or 80)
        except (OSError, UnicodeError):
            return []  # A proxy may know the name.

    def _request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None,
        params: Params | None = None,
        body: bytes | None = None,
    ) -> HttpRequest:
        """Return a request with the user agent that its service accepts, unless the caller sets one."""
        try:
            address = address_of(url, params)
        except Unsendable as error:
            raise SourceError(self.redact(str(error)), url=self.redact(url)) from None
        sent_headers = dict(headers or {})
        if "user-agent" not in {name.lower() for name in sent_headers}:
            service = self._services and self._services.find(_netloc(address), address.path)
            sent_headers["User-Agent"] = self._user_agent
            if service is not None:
                own = self._access.user_agent(service.name)
                sent_headers["User-Agent"] = own or user_agent(self._access.contact, browser=service.facts.browser)
        return HttpRequest(method, address, sent_headers, body)

    def _service(self, request: HttpRequest) -> KnownService | None:
        return self._services and self._services.find(_netloc(request.url), request.url.path)

    def _cache_key(self, request: HttpRequest) -> str | None:
        """Return the cache key of a response; None if caching is useless or the request contains a key."""
        service = self._service(request)
        url = str(request.url)
        if self._cache is None or service is None or not service.facts.cached or self.redact(url) != url:
            return None
        return self._cache.key(url, request.headers or {})

    async def _cached_or_sent(
        self, key: str | None, request: HttpRequest, good: Container[int], **options: Any
    ) -> HttpResponse:
        """Return the response from the cache while it is fresh; otherwise send a conditional request."""
        if self._cache is None or key is None:
            return await self._with_retries(request, good, **options)
        known = self._cache.find(key)
        if known is None or not known.fresh(self._cache.now()):
            if known is not None:
                request = request._replace(headers={**(request.headers or {}), **known.conditions})
            answer = await self._with_retries(request, good, **options)
            if known is None or answer.status != HTTPStatus.NOT_MODIFIED:
                if answer.status == HTTPStatus.OK:
                    self._cache.keep(key, answer.body, answer.headers)
                return answer
            known = self._cache.renew(key, known, answer.headers)
        return HttpResponse(status=HTTPStatus.OK, body=known.body, headers=known.headers)

    async def _once_a_day(self, daily: DayCache, request: HttpRequest, good: Container[int]) -> HttpResponse:
        """Return today's response, sending the request only if no process of this machine has sent it today."""
        url = self.redact(str(request.url))

        async def send() -> tuple[dict[str, Any], bytes]:
            try:
                answer = await self._with_retries(request, good)
            except SourceError as error:
                if error.status not in DEFINITE_STATUS:
                    raise
                return {"status": error.status, "problem": error.problem}, b""
            return {"status": answer.status, "headers": dict(answer.headers)}, answer.body

        facts, body = await daily.once(str(request.url), send)
        if "problem" in facts:
            missing = facts["status"] == HTTPStatus.NOT_FOUND
            raise (NotFound if missing else SourceError)(facts["problem"], url=url, status=facts["status"])
        return HttpResponse(status=facts["status"], body=body, headers=facts["headers"])

    async def _with_retries(
        self, request: HttpRequest, good: Container[int], *, progress: Progress | None = None, mark: str = ""
    ) -> HttpResponse:
        service = self._service(request)
        url = self.redact(str(request.url))
        for attempt in count(1):
            try:
                if service is not None:
                    return await self._in_turn(service, request, url, good, progress, mark)
                return await self._once(request, url, good, progress, mark)
            except ServerBusy as busy:
                pause = self.limits.retries.pause(attempt, asked=busy.wait)
                if pause is None:
                    raise
            await asyncio.sleep(pause)
        raise AssertionError("retrying either returns or raises")

    async def _in_turn(
        self,
        service: KnownService,
        request: HttpRequest,
        url: str,
        good: Container[int],
        progress: Progress | None,
        mark: str,
    ) -> HttpResponse:
        """Send a request to a known service when its limits allow; a pause it asks for applies to all clients."""
        nameless = not self._access.contact and not self._access.user_agent(service.name)
        if service.public and service.facts.needs_contact and nameless:
            problem = NO_CONTACT.format(service.facts.title)
            self._turns.warn_once(service, problem)
            raise SourceError(problem, url=url)
        try:
            weigh = service.facts.weigh
            weight = weigh(dict(request.url.query)) if weigh is not None else 1
            async with self._turns.turn(service, request.url.path, weight) as turn:
                try:
                    answer = await self._once(request, url, good, progress, mark)
                    turn.problem = ""
                    return answer
                except SourceError as error:
                    turn.problem = "" if isinstance(error, NotFound) else error.problem
                    spared = self._turns.spared(service)
                    if isinstance(error, ServerBusy) and _asks_to_pause(error, spared=spared):
                        await self._turns.refused(service, turn, error.wait, error.problem)
                        error.wait = 0.0
                    raise
        except ServiceClosed as closed:
            raise SourceError(str(closed), url=url, status=HTTPStatus.TOO_MANY_REQUESTS) from None

    async def _once(
        self, request: HttpRequest, url: str, good: Container[int], progress: Progress | None, mark: str
    ) -> HttpResponse:
        async with self._open:
            try:
                async with asyncio.timeout(self.limits.total_seconds):
                    return await self._answer(request, url, good, progress, mark)
            except TimeoutError:
                failure = SourceError(f"the response took longer than {self.limits.total_seconds:g} s", url=url)
            except (NotConnected, ConnectionBroke) as error:
                failure = ServerBusy(self.redact(str(error)), url=url)
            except OutgoingError as error:
                failure = SourceError(self.redact(str(error)), url=url)
        # Raised here, outside the handlers, so that no chained exception reveals what was redacted.
        raise failure

    async def _answer(
        self, request: HttpRequest, url: str, good: Container[int], progress: Progress | None, mark: str
    ) -> HttpResponse:
        async with self._transport.send(request) as answer:
            status, headers = answer.status, answer.headers
            log.debug("%s %s: %d", request.method, url, status)
            self._dates.setdefault(request.url.raw_host or "", (headers.get("date", ""), time.time()))
            service = self._service(request)
            if service is not None:
                self._turns.answered_by(service, practice=PRACTICE_HEADER in headers)
            if not (mark and mark in headers):
                explanation = "" if status in good else await self._explanation(answer)
                check_status(answer, url, good=good, explanation=explanation)
            body = b"" if status in REDIRECT_STATUS else await self._body(answer, progress)
        return HttpResponse(status=status, body=body, headers=_joined(headers), hops=(url,))

    async def _body(self, answer: IncomingAnswer, progress: Progress | None) -> bytes:
        if progress is None:
            return await answer.read(self.limits.max_bytes)
        total, received = answer.length, 0

        def on_part(part: bytes) -> None:
            nonlocal received
            received += len(part)
            progress(received, total)

        return await answer.read(self.limits.max_bytes, on_part)

    async def _explanation(self, answer: IncomingAnswer) -> str:
        """Return the beginning of the server's message about a failure, unless it is a web page."""
        if "html" in answer.headers.get("content-type", ""):
            return ""
        async for part in answer.parts():
            text = " ".join(self.redact(part.decode("utf-8", "replace")).split())
            return text[:MAX_EXPLANATION]
        return ""


def _netloc(url: "URL") -> str:
    """Return the host of an address, with its port if it is not the usual one."""
    return url.host_port_subcomponent or ""


def _joined(headers: Mapping[str, str]) -> dict[str, str]:
    """Return header values by lower-case name; the values of a repeated name are joined by commas."""
    joined: dict[str, str] = {}
    for name, value in headers.items():
        key = name.lower()
        joined[key] = f"{joined[key]}, {value}" if key in joined else value
    return joined


def _asks_to_pause(error: ServerBusy, *, spared: bool) -> bool:
    """Whether all clients should pause; a practice server that states no time is just retried."""
    return error.wait is not None or (error.status == HTTPStatus.TOO_MANY_REQUESTS and not spared)
