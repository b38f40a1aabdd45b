"""Stopping early: somebody wants the answer now, so a trial under way answers with what it believes so far."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, Protocol

from foretell.models.waiting import ContextValue

PATIENCE = 3.0
"""Seconds in which a reply that is already on its way may still arrive: it has been paid for."""
StopWish = Literal["answer", "pause"]
"""What is to happen to trials under way: they answer with what they believe, or are left unfinished for later."""
_current: ContextVar["EarlyStop | None"] = ContextVar("early_stop", default=None)


class Reschedulable(Protocol):
    """A clock that ends a block: that of `asyncio.timeout`, or a `WorkClock`."""

    def reschedule(self, when: float | None) -> None:
        """End the block at this time of the event loop."""
        ...


class EarlyStop:
    """A request to stop that can still come, and the clocks of those who would end by it."""

    def __init__(self) -> None:
        self.wish: StopWish | None = None
        """None until somebody asks."""
        self._answering: list[Reschedulable] = []
        self._ending: list[Reschedulable] = []

    def ask(self, wish: StopWish) -> None:
        """Stop now: whoever can answer early does, and everybody else is ended."""
        if self.wish is None:
            self.wish = wish
            for clock in self._ending:
                self._end(clock)
            for clock in self._answering:
                self._end_by_answer(clock)

    @contextmanager
    def ends(self, clock: Reschedulable) -> Generator[None]:
        """While the block lasts, the clock runs out when a stop is asked for, after those who answer early."""
        self._ending.append(clock)
        self._end(clock)
        try:
            yield
        finally:
            self._ending.remove(clock)

    @contextmanager
    def answers(self, clock: Reschedulable) -> Generator[None]:
        """The same for a clock whose owner then gives an answer; nothing happens where a pause is wanted."""
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
    """Let forecasters within the block see that stop."""
    return ContextValue(_current, stop)


def early_stop() -> EarlyStop:
    """The stop that whoever forecasts here listens to; one that never comes where nobody can ask."""
    return _current.get() or EarlyStop()
