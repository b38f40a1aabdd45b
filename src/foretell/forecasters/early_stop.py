"""Early stop: on request, running trials answer with their current estimate."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from foretell.models.waiting import ContextValue
from foretell.questions.forecast import StopWish

PATIENCE = 3.0
"""Seconds that a response already in flight may still take to arrive, because it has been paid for."""
_current: ContextVar["EarlyStop | None"] = ContextVar("early_stop", default=None)


class Reschedulable(Protocol):
    """A timeout that ends a block: that of `asyncio.timeout`, or a `WorkClock`."""

    def reschedule(self, when: float | None) -> None:
        """End the block at this time of the event loop."""
        ...


class EarlyStop:
    """A possible request to stop, and the clocks of the work that it would end."""

    def __init__(self) -> None:
        self.wish: StopWish | None = None
        """The requested action; None until a stop is requested."""
        self._answering: list[Reschedulable] = []
        self._ending: list[Reschedulable] = []

    def ask(self, wish: StopWish) -> None:
        """Request a stop: trials that can answer early do so, and all other work ends."""
        if self.wish is None:
            self.wish = wish
            for clock in self._ending:
                self._end(clock)
            for clock in self._answering:
                self._end_by_answer(clock)

    @contextmanager
    def ends(self, clock: Reschedulable) -> Generator[None]:
        """End the clock if a stop is requested within the block, later than those of trials that answer early."""
        self._ending.append(clock)
        self._end(clock)
        try:
            yield
        finally:
            self._ending.remove(clock)

    @contextmanager
    def answers(self, clock: Reschedulable) -> Generator[None]:
        """Like `ends`, for a clock whose owner then gives an answer; a request to pause does nothing."""
        self._answering.append(clock)
        self._end_by_answer(clock)
        try:
            yield
        finally:
            self._answering.remove(clock)

    def _end(self, clock: Reschedulable) -> None:
        if self.wish is not None:
            _within(clock, 2 * PATIENCE if self.wish == "answer" else 0.0)

    def _end_by_answer(self, clock: Reschedulable) -> None:
        if self.wish == "answer":
            _within(clock, PATIENCE)


def _within(clock: Reschedulable, seconds: float) -> None:
    clock.reschedule(asyncio.get_running_loop().time() + seconds)


def stopping_by(stop: EarlyStop) -> ContextValue[EarlyStop | None]:
    """Make this stop visible to the forecasters within the block."""
    return ContextValue(_current, stop)


def early_stop() -> EarlyStop:
    """Return the current stop; outside of `stopping_by`, one that is never requested."""
    return _current.get() or EarlyStop()
