"""Sending requests and waiting for replies: who may send, how long a reply may take, what users see meanwhile."""

import asyncio
import time
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Generic, TypeVar

from foretell.models.model import ModelBusy

T = TypeVar("T")

MORE_TIME = "set sampling.reply_seconds=SECONDS to allow more"
"""Which setting to change if a reply took too long, for each interface. A file is a run's spec or an arena's entry.

The time runs from sending to the last piece, so slow models, such as large ones on a small machine, need a longer one.
"""
LOOK_AGAIN = 1.0
"""Seconds after which a clock that has run out looks again whether the reply it waits for has arrived."""

_waiting: "dict[WaitingReply, None]" = {}
"""Replies being waited for, in the order in which they were sent."""
_cell: ContextVar[tuple[str, str]] = ContextVar("cell", default=("", ""))
"""The run and question for which requests are made."""


class WaitingReply:
    """A request that was sent and whose reply has not completely arrived."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.first: float | None = None
        """When the first piece arrived; until then the model is reading."""
        self.tokens = 0
        self.cell = _cell.get()
        self._clocks = _clocks.get()

    def __enter__(self) -> "WaitingReply":
        """Count it among the replies being waited for."""
        _waiting[self] = None
        for clock in self._clocks:
            clock.coming(self)
        return self

    def __exit__(self, *error: object) -> None:
        """The reply has arrived or will not come."""
        del _waiting[self]
        for clock in self._clocks:
            clock.ended(self)

    def heard(self, tokens: int) -> None:
        """A piece of the reply has arrived."""
        self.first = self.first or time.monotonic()
        self.tokens += tokens


class ContextValue(Generic[T]):
    """Sets a context variable for the duration of a block. Not a generator, because every call goes through it."""

    __slots__ = ("_token", "_value", "_variable")

    def __init__(self, variable: ContextVar[T], value: T) -> None:
        self._variable = variable
        self._value = value

    def __enter__(self) -> None:
        """Set the value."""
        self._token = self._variable.set(self._value)

    def __exit__(self, *error: object) -> None:
        """Restore the earlier value."""
        self._variable.reset(self._token)


class ReplyLimit:
    """Raises `TimeoutError` in its block after so many seconds, however much of a reply has arrived by then.

    A server that never stops writing would otherwise hold its caller, and be paid, for ever. It does what
    `asyncio.timeout` does at half the cost, since every call goes through it.
    """

    def __init__(self, seconds: float) -> None:
        self._over = False
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._before = task.cancelling()
        self._end = asyncio.get_running_loop().call_later(seconds, self._cancel)

    def __enter__(self) -> None:
        """The limit has begun."""

    def _cancel(self) -> None:
        self._over = True
        self._task.cancel()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End the limit; a cancellation from outside stays one."""
        self._end.cancel()
        if self._over and self._task.uncancel() <= self._before and kind is asyncio.CancelledError:
            raise TimeoutError from error


# How long a piece of work may take. Waiting for money or for a turn is no work, and a slow model gets more time.

USUAL_SECONDS = 600.0
"""How long one trial may take by default."""
MORE_SECONDS = "{:g} s were not enough; set options.seconds=SECONDS to allow more"
"""Which setting to change if it took too long."""
MORE_THAN_MEASURED = 1.5
"""A reply may take this many times as long as the slowest so far."""
_clocks: "ContextVar[tuple[WorkClock, ...]]" = ContextVar("clocks", default=())


class WorkClock:
    """Raises `TimeoutError` in its block after some seconds of work, like `asyncio.timeout`.

    The clock stops while the block waits for money or for its turn. With `replies`, the limit follows the model's
    speed: there is time for this many replies as slow as the slowest so far, and a reply that is arriving may finish
    within the time that a reply has.
    """

    def __init__(self, seconds: float, *, replies: int = 0) -> None:
        self.seconds = seconds
        """The current limit."""
        self.expired = False
        self._replies = replies
        self._idle, self._pauses, self._paused_at = 0.0, 0, 0.0
        self._fixed = False
        self._coming: set[WaitingReply] = set()

    async def __aenter__(self) -> "WorkClock":
        """Start the clock."""
        task = asyncio.current_task()
        assert task is not None
        self._loop, self._task, self._before = asyncio.get_running_loop(), task, task.cancelling()
        self._began = self._loop.time()
        self._end: asyncio.TimerHandle | None = self._loop.call_later(self.seconds, self._due)
        self._token = _clocks.set((*_clocks.get(), self))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """Stop the clock; a cancellation from outside stays one."""
        _clocks.reset(self._token)
        if self._end is not None:
            self._end.cancel()
        if self.expired and self._task.uncancel() <= self._before and kind is asyncio.CancelledError:
            raise TimeoutError from error

    @property
    def worked(self) -> float:
        """Seconds of work so far."""
        now = self._paused_at if self._pauses else self._loop.time()
        return now - self._began - self._idle

    @property
    def left(self) -> float:
        """Seconds until the limit."""
        return self.seconds - self.worked

    def reschedule(self, when: float | None) -> None:
        """End the block at a time of the event loop, whatever it is waiting for; None cancels that."""
        if self._end is not None:
            self._end.cancel()
        self._fixed = when is not None
        if when is None:
            self._end = self._loop.call_later(max(0.0, self.left), self._due)
        else:
            self._end = self._loop.call_at(when, self._run_out)

    def _run_out(self) -> None:
        self.expired = True
        self._task.cancel()

    def _due(self) -> None:
        self._end = None
        if self._pauses:
            return  # Who goes on sets the time anew.
        if self.left > 0:
            self._end = self._loop.call_later(self.left, self._due)
        elif self._replies and any(reply.first is not None for reply in self._coming):
            self._end = self._loop.call_later(LOOK_AGAIN, self._due)
        else:
            self._run_out()

    def coming(self, reply: WaitingReply) -> None:
        """A request was sent."""
        self._coming.add(reply)

    def ended(self, reply: WaitingReply) -> None:
        """Its reply has arrived or will not come."""
        self._coming.discard(reply)

    def replied(self, seconds: float) -> None:
        """Record how long a reply took."""
        self.seconds = max(self.seconds, self._replies * MORE_THAN_MEASURED * seconds)

    def pause(self) -> None:
        """Stop the clock."""
        self._pauses += 1
        if self._pauses == 1:
            self._paused_at = self._loop.time()

    def go_on(self) -> None:
        """Let the clock continue."""
        self._pauses -= 1
        if not self._pauses:
            self._idle += self._loop.time() - self._paused_at
            if self._end is None and not self.expired and not self._fixed:
                self._end = self._loop.call_later(max(0.0, self.left), self._due)


class StandingStill:
    """Stops the surrounding clocks for the duration of a block. Not a generator, because every call goes through it."""

    __slots__ = ("_clocks",)

    def __enter__(self) -> None:
        """Stop the clocks."""
        self._clocks = _clocks.get()
        for clock in self._clocks:
            clock.pause()

    def __exit__(self, *error: object) -> None:
        """Let them continue."""
        for clock in self._clocks:
            clock.go_on()


def note_reply(seconds: float) -> None:
    """Tell the surrounding clocks how long a reply took."""
    for clock in _clocks.get():
        clock.replied(seconds)


def asking_for(run: str, question: str) -> ContextValue[tuple[str, str]]:
    """Requests inside the block are for this question of a run."""
    return ContextValue(_cell, (run, question))


def waiting_text(now: float | None = None, *, run: str = "", question: str | None = None) -> str:
    """What to show a user while replies are on their way to this process; empty if none are.

    Covers all runs, one run, or one of its questions.
    """
    now = time.monotonic() if now is None else now
    replies = [
        one for one in tuple(_waiting) if run in ("", one.cell[0]) and (question is None or one.cell[1] == question)
    ]
    if not replies:
        return ""
    speeds = [r.tokens / (now - r.first) for r in replies if r.first is not None and now > r.first and r.tokens > 1]
    longest = now - min(reply.began for reply in replies)
    # Together: several conversations share one processor.
    speed = f"{sum(speeds):.2g} tokens/s" if sum(speeds) < 10 else f"{sum(speeds):.0f} tokens/s"
    return f"waiting for the model, {speed if speeds else f'{longest:.0f} s'}"


# Whether a request may still be sent: a process that was suspended may have lost its work to others.

_allowed: ContextVar[Callable[[], bool] | None] = ContextVar("allowed", default=None)


class NotSent(ModelBusy):
    """A request that was held back at the last moment and may be sent later."""


def sending_while(allowed: Callable[[], bool]) -> ContextValue[Callable[[], bool] | None]:
    """Requests made inside the block are sent only while the condition holds, and while outer conditions hold."""
    around = _allowed.get()
    return ContextValue(_allowed, allowed if around is None else lambda: allowed() and around())


def sending_for_all() -> ContextValue[Callable[[], bool] | None]:
    """Requests that serve many callers, such as a batch, do not depend on the conditions of the first one."""
    return ContextValue(_allowed, None)


def may_send() -> bool:
    """Whether a request may be sent now."""
    allowed = _allowed.get()
    return allowed is None or allowed()


def check_sending() -> None:
    """The last check before sending: a process that was suspended must not send what others took over."""
    if not may_send():
        raise NotSent("this process was away for a while: what is still its own is looked at before it goes on")
