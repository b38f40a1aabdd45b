"""Replies that come in piece by piece: who waits is told of each, and a person sees how fast they come."""

import asyncio
import time
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")

TOLD_EVERY = 1.0
"""Seconds between two words to whoever waits: moving a deadline for every token would cost more than reading it."""

_waiting: "dict[WaitingReply, None]" = {}
"""In the order in which they were sent."""
_listener: ContextVar[Callable[[], None] | None] = ContextVar("listener", default=None)


class WaitingReply:
    """A request that was sent and whose reply is not there yet, or not all of it."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.first: float | None = None
        """When the first piece came: until then the model reads."""
        self.tokens = 0
        self._listener = _listener.get()
        self._told = self.began

    def __enter__(self) -> "WaitingReply":
        """Counts among the replies that are waited for until it is there."""
        _waiting[self] = None
        return self

    def __exit__(self, *error: object) -> None:
        """It is there, or will not come."""
        del _waiting[self]

    def heard(self, tokens: int) -> None:
        """A piece came."""
        now = time.monotonic()
        self.first = self.first or now
        self.tokens += tokens
        if self._listener is not None and now - self._told >= TOLD_EVERY:
            self._told = now
            self._listener()


class ContextValue(Generic[T]):
    """A context variable with another value while a block lasts. No generator, because every call goes through it."""

    __slots__ = ("_token", "_value", "_variable")

    def __init__(self, variable: ContextVar[T], value: T) -> None:
        self._variable = variable
        self._value = value

    def __enter__(self) -> None:
        """Set it."""
        self._token = self._variable.set(self._value)

    def __exit__(self, *error: object) -> None:
        """As it was."""
        self._variable.reset(self._token)


class SilenceLimit:
    """Ends what is asked within by `TimeoutError`, after so many seconds in which no piece of a reply came.

    What `asyncio.timeout` does, and tells whoever reads the reply, at half the price: every call goes through it.
    """

    def __init__(self, seconds: float, between: float) -> None:
        """Seconds to the first piece, and from one piece to the next."""
        self._loop, self._between = asyncio.get_running_loop(), between
        self._over = False
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._before = task.cancelling()
        self._end = self._loop.call_later(seconds, self._cancel)

    def __enter__(self) -> None:
        """From here on."""
        self._token = _listener.set(self._heard)

    def _cancel(self) -> None:
        self._over = True
        self._task.cancel()

    def _heard(self) -> None:
        if not self._over:
            self._end.cancel()
            self._end = self._loop.call_later(self._between, self._cancel)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """It is there, or took too long; who was cancelled by others stays so."""
        _listener.reset(self._token)
        self._end.cancel()
        if self._over and self._task.uncancel() <= self._before and kind is asyncio.CancelledError:
            raise TimeoutError from error


def waiting_text(now: float | None = None) -> str:
    """What a person is shown while replies are on their way; empty where none is."""
    now = time.monotonic() if now is None else now
    replies = tuple(_waiting)
    if not replies:
        return ""
    speeds = [r.tokens / (now - r.first) for r in replies if r.first is not None and now > r.first and r.tokens > 1]
    longest = now - min(reply.began for reply in replies)
    # Together: several conversations share one processor.
    speed = f"{sum(speeds):.2g} tokens/s" if sum(speeds) < 10 else f"{sum(speeds):.0f} tokens/s"
    return f"waiting for the model, {speed if speeds else f'{longest:.0f} s'}"
