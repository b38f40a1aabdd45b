"""One way out to the web: bounded in time and size, patient with busy servers, plain about what went wrong."""

import logging
import time
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from importlib.metadata import version
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    import httpx2

# Retries are announced through this logger; without any handler Python would print its bare event names to the user.
logging.getLogger("stamina").addHandler(logging.NullHandler())

RETRY_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
GOOD_STATUS = frozenset({HTTPStatus.OK, HTTPStatus.NOT_MODIFIED})
HIDDEN = "•••"
Progress = Callable[[int, int | None], None]
"""Called with the bytes received so far and the total, where the server told it."""


class SourceError(Exception):
    """A source off this machine could not be read. `status` is its HTTP answer, where there was one."""

    def __init__(self, problem: str, *, url: str, status: int | None = None) -> None:
        self.problem = problem
        self.url = url
        self.status = status
        super().__init__(f"{url}: {problem}")


class Busy(SourceError):
    """A failure worth another try, perhaps after the wait the server asked for."""

    def __init__(self, problem: str, *, url: str, status: int | None = None, wait: float | None = None) -> None:
        super().__init__(problem, url=url, status=status)
        self.wait = wait


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How long and how much to put up with."""

    connect_seconds: float = 10.0
    read_seconds: float = 30.0
    """Longest silence between two pieces of an answer."""
    total_seconds: float = 300.0
    """Longest time for one answer, checked at every piece."""
    max_bytes: int = 200_000_000
    attempts: int = 5
    wait_seconds: float = 0.5
    """First pause before another try; it doubles each time, with some jitter."""
    max_wait_seconds: float = 60.0


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A complete response."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names in lower case."""
    hops: tuple[str, ...] = ()
    """Every address of the chain of redirects, the last being the one that answered."""


class HttpClient:
    """Reads addresses with retries. Give it another transport to replay or to refuse the network.

    >>> import httpx2
    >>> client = HttpClient(transport=httpx2.MockTransport(lambda request: httpx2.Response(200, content=b"ok")))
    >>> client.get("https://example.org/").body
    b'ok'
    """

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        transport: "httpx2.BaseTransport | None" = None,
        secrets: tuple[str, ...] = (),
    ) -> None:
        import httpx2

        self.limits = limits or Limits()
        self.secrets = secrets
        """Keys that no error may show."""
        timeout = httpx2.Timeout(self.limits.read_seconds, connect=self.limits.connect_seconds)
        agent = {"User-Agent": user_agent()}
        self._client = httpx2.Client(transport=transport, timeout=timeout, headers=agent, follow_redirects=True)

    def __enter__(self) -> "HttpClient":
        """Use as a context manager to close connections at the end."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close connections."""
        self.close()

    def close(self) -> None:
        """Close connections."""
        self._client.close()

    def get(
        self,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        progress: Progress | None = None,
    ) -> Answer:
        """The answer to a GET: 200, or 304 where a condition was sent. Anything else raises `SourceError`."""
        request = self._client.build_request("GET", url, params=params, headers=headers)
        for attempt in retrying(self.limits):
            with attempt:
                return self._once(request, progress)
        raise AssertionError("retrying either returns or raises")

    def _once(self, request: "httpx2.Request", progress: Progress | None) -> Answer:
        import httpx2

        url = redacted(str(request.url), self.secrets)
        try:
            response = self._client.send(request, stream=True)
            try:
                check_status(response, url)
                body = self._body(response, url, progress)
            finally:
                response.close()
        except httpx2.TransportError as error:
            raise Busy(redacted(told(error), self.secrets), url=url) from self._shown(error)
        except httpx2.HTTPError as error:
            raise SourceError(redacted(told(error), self.secrets), url=url) from self._shown(error)
        hops = tuple(redacted(str(one.url), self.secrets) for one in (*response.history, response))
        return Answer(status=response.status_code, body=body, headers=dict(response.headers.items()), hops=hops)

    def _shown(self, error: Exception) -> Exception | None:
        """The cause, unless showing it would show a key."""
        return error if redacted(told(error), self.secrets) == told(error) else None

    def _body(self, response: "httpx2.Response", url: str, progress: Progress | None) -> bytes:
        deadline = time.monotonic() + self.limits.total_seconds
        total = _length(response)
        parts: list[bytes] = []
        size = 0
        for part in response.iter_bytes():
            parts.append(part)
            size += len(part)
            if size > self.limits.max_bytes:
                raise SourceError(f"answer is larger than {self.limits.max_bytes:,} bytes", url=url)
            if time.monotonic() > deadline:
                raise SourceError(f"answer took longer than {self.limits.total_seconds:g} s", url=url)
            if progress is not None:
                progress(size, total)
        return b"".join(parts)


def user_agent() -> str:
    """How we introduce ourselves to servers."""
    return f"foretell/{version('foretell')}"


def redacted(text: str, secrets: Iterable[str]) -> str:
    """The text with every secret hidden, also where it stands encoded in an address.

    >>> redacted("https://example.org/?key=a%2Fb was refused", ["a/b"])
    'https://example.org/?key=••• was refused'
    """
    for secret in filter(None, secrets):
        for form in {secret, quote(secret), quote(secret, safe=""), quote_plus(secret)}:
            text = text.replace(form, HIDDEN)
    return text


def retrying(limits: Limits) -> Any:
    """Attempts that wait and repeat after a `Busy`, to be walked by `for` or `async for`."""
    import stamina

    def pause(error: Exception) -> bool | float:
        """Whether to try again, and after which wait where the server named one that is bearable."""
        if not isinstance(error, Busy):
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


def check_status(response: "httpx2.Response", url: str, *, good: Container[int] = GOOD_STATUS, said: str = "") -> None:
    """Raise where the server did not answer as hoped; `said` is its own explanation."""
    status = response.status_code
    if status in good:
        return
    reason = f"the server answered {status} {response.reason_phrase}".rstrip() + (f": {said}" if said else "")
    if status in RETRY_STATUS:
        raise Busy(reason, url=url, status=status, wait=_retry_after(response))
    raise SourceError(reason, url=url, status=status)


def _retry_after(response: "httpx2.Response") -> float | None:
    """Seconds the server asked to wait, given as a number or as a date relative to its own clock."""
    told = response.headers.get("retry-after")
    if told is None:
        return None
    try:
        return max(0.0, float(told))
    except ValueError:
        pass
    try:
        until, now = parsedate_to_datetime(told), parsedate_to_datetime(response.headers.get("date", ""))
    except ValueError:
        return None
    return max(0.0, (_aware(until) - _aware(now)).total_seconds())


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _length(response: "httpx2.Response") -> int | None:
    told = response.headers.get("content-length", "")
    plain = "content-encoding" not in response.headers
    return int(told) if told.isdigit() and plain else None


def told(error: Exception) -> str:
    """What an error says, or at least its kind."""
    return str(error) or type(error).__name__
