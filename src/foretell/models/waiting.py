"""Sending requests and waiting for replies: permission to send, time limits, and the status shown to users."""

import asyncio
import time
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypeVar

from foretell.models.model import ModelBusy

T = TypeVar("T")

MORE_TIME = "set sampling.reply_seconds=SECONDS to allow more"
"""The setting to change if a reply took too long.

The time is measured from sending to the last piece, so slow models, such as large local ones, need more.
"""
LOOK_AGAIN = 1.0
"""Seconds after which an expired clock checks again whether the reply it waits for has arrived."""

_waiting: "dict[WaitingReply, None]" = {}
"""Replies being waited for, in the order in which they were sent."""
_asker: ContextVar[tuple[str, str, str, int]] = ContextVar("asker", default=("", "", "", 0))
"""The trial for which requests are made: run, question, date and number."""


# What trials wait for, so that users see what each is doing.

_pending: "dict[PendingWork, None]" = {}
"""Requests and tool calls that have begun and not ended, oldest first."""
_inner_work: "ContextVar[PendingWork | None]" = ContextVar("inner_work", default=None)


class PendingWork:
    """A request to a model, or the call of a tool, until its block ends. Not a generator, for speed."""

    __slots__ = ("about", "asked_for", "kind", "name", "outer", "problem", "retries", "since", "token", "tokens")

    def __init__(self, kind: Literal["model", "tool"], name: str, about: str) -> None:
        """`name` is the role or tool, and `about` the model, or what the tool is given."""
        self.kind = kind
        self.name = name
        self.about = about
        self.asked_for = _asker.get()
        self.outer = _inner_work.get()
        self.since = time.time()
        self.tokens = 0
        """Number of tokens of the reply that have arrived."""
        self.retries = 0
        self.problem = ""
        """Why the last attempt failed."""

    def __enter__(self) -> Self:
        """Register the work."""
        _pending[self] = None
        self.token = _inner_work.set(self)
        return self

    def __exit__(self, *error: object) -> None:
        """Remove it: it has ended."""
        del _pending[self]
        _inner_work.reset(self.token)


def pending_work() -> dict[tuple[str, str, str, int], list[dict[str, Any]]]:
    """Return as plain data what each trial waits for, without calls that wait for others in the list."""
    pending = tuple(_pending)
    outer = {work.outer for work in pending}
    trials: dict[tuple[str, str, str, int], list[dict[str, Any]]] = {}
    names = ("kind", "name", "about", "since", "tokens", "retries", "problem")
    for work in pending:
        if work not in outer:
            trials.setdefault(work.asked_for, []).append({name: getattr(work, name) for name in names})
    return trials


def note_retry(problem: str) -> None:
    """Record that a request is sent again, and why."""
    if (work := _inner_work.get()) is not None:
        work.retries += 1
        work.problem = problem


class WaitingReply:
    """A request whose reply has not completely arrived."""

    def __init__(self) -> None:
        self._work = _inner_work.get()
        self.began = time.monotonic()
        self.first: float | None = None
        """The time at which the first piece arrived; None while the model is still processing the input."""
        self.tokens = 0
        self._clocks = _clocks.get()

    def __enter__(self) -> "WaitingReply":
        """Count it among the replies being waited for."""
        _waiting[self] = None
        for clock in self._clocks:
            clock.coming(self)
        return self

    def __exit__(self, *error: object) -> None:
        """Stop counting it: the reply has arrived or has failed."""
        del _waiting[self]
        for clock in self._clocks:
            clock.ended(self)

    def heard(self, tokens: int) -> None:
        """Record that a piece of the reply has arrived."""
        self.first = self.first or time.monotonic()
        self.tokens += tokens
        if self._work is not None:
            self._work.tokens += tokens


class ContextValue(Generic[T]):
    """Sets a context variable for the duration of a block. Not a generator, for speed."""

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
    """Raises `TimeoutError` in its block after this many seconds, even while a reply is arriving.

    It also stops a server that never ends its reply. It does what `asyncio.timeout` does in half the time, which
    matters because every call uses it.
    """

    def __init__(self, seconds: float) -> None:
        self._over = False
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._before = task.cancelling()
        self._end = asyncio.get_running_loop().call_later(seconds, self._cancel)

    def __enter__(self) -> None:
        """Do nothing; the time started in the constructor."""

    def _cancel(self) -> None:
        self._over = True
        self._task.cancel()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End the limit; a cancellation from outside stays one."""
        self._end.cancel()
        if self._over and self._task.uncancel() <= self._before and kind is asyncio.CancelledError:
            raise TimeoutError from error


# Time limits of trials. Waiting for money or for a turn does not count, and a slow model gets more time.

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
    speed. There is time for this many replies as slow as the slowest so far, and a reply that is arriving may finish
    within the time limit of a reply.
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
            return  # `go_on` sets the time again.
        if self.left > 0:
            self._end = self._loop.call_later(self.left, self._due)
        elif self._replies and any(reply.first is not None for reply in self._coming):
            self._end = self._loop.call_later(LOOK_AGAIN, self._due)
        else:
            self._run_out()

    def coming(self, reply: WaitingReply) -> None:
        """Record that a request was sent."""
        self._coming.add(reply)

    def ended(self, reply: WaitingReply) -> None:
        """Record that a reply has arrived or has failed."""
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


class PausedClocks:
    """Stops the surrounding clocks for the duration of a block. Not a generator, for speed."""

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


def asking_for(run: str, question: str, due: str = "", trial: int = 0) -> ContextValue[tuple[str, str, str, int]]:
    """Attribute requests and tool calls inside the block to this trial of a run."""
    return ContextValue(_asker, (run, question, due, trial))


def waiting_text(now: float | None = None) -> str:
    """Return a status text for users while this process waits for replies; empty if it does not."""
    now = time.monotonic() if now is None else now
    replies = tuple(_waiting)
    if not replies:
        return ""
    speeds = [r.tokens / (now - r.first) for r in replies if r.first is not None and now > r.first and r.tokens > 1]
    longest = now - min(reply.began for reply in replies)
    # The sum, because several conversations share one processor.
    speed = f"{sum(speeds):.2g} tokens/s" if sum(speeds) < 10 else f"{sum(speeds):.0f} tokens/s"
    return f"waiting for the model, {speed if speeds else f'{longest:.0f} s'}"


# Whether a request may still be sent: other processes may have taken over the work of a suspended one.

_allowed: ContextVar[Callable[[], bool] | None] = ContextVar("allowed", default=None)


class NotSent(ModelBusy):
    """A request was not sent and may be sent later."""


def sending_while(allowed: Callable[[], bool]) -> ContextValue[Callable[[], bool] | None]:
    """Send requests inside the block only while this condition and the outer ones are true."""
    around = _allowed.get()
    return ContextValue(_allowed, allowed if around is None else lambda: allowed() and around())


def sending_for_all() -> ContextValue[Callable[[], bool] | None]:
    """Ignore outer conditions inside the block, for requests that serve many callers, such as a batch."""
    return ContextValue(_allowed, None)


def may_send() -> bool:
    """Whether a request may be sent now."""
    allowed = _allowed.get()
    return allowed is None or allowed()


def check_sending() -> None:
    """Raise `NotSent` if requests must not be sent, because others may have taken over after a suspension."""
    if not may_send():
        raise NotSent("this process was suspended; it checks which work is still its own before it continues")
