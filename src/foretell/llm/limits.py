"""Patience with a provider: how many calls at once, how fast, how often again, and for how long."""

import asyncio
import random
import time
from dataclasses import dataclass

from foretell.llm.cost import estimate_tokens
from foretell.llm.failures import ReplyLost
from foretell.llm.message import Reply, Request
from foretell.llm.model import Model, ModelBusy, ModelError
from foretell.llm.pace import LocalPace, Pace


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a provider allows us and what we put up with."""

    at_once: int = 64
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    attempts: int = 5
    seconds: float = 300.0
    """Longest time for one attempt, from sending to the last byte."""
    total_seconds: float = 900.0
    """Longest time for all attempts and the pauses between them; waiting for a turn does not count."""
    first_pause: float = 0.5
    """Doubles with every attempt; each pause is drawn between half of it and all of it."""
    longest_pause: float = 60.0


class Limited:
    """Waits for a turn, sends, and tries again where the provider was busy."""

    def __init__(
        self, inner: Model, limits: Limits, *, pace: Pace | None = None, rng: random.Random | None = None
    ) -> None:
        self.limits = limits
        self._inner = inner
        self._slots = asyncio.Semaphore(limits.at_once)
        self._pace = pace or LocalPace(requests=limits.requests_per_minute, tokens=limits.tokens_per_minute)
        self._counts_tokens = pace is not None or limits.tokens_per_minute is not None
        self._rng = rng or random.Random()

    async def complete(self, request: Request) -> Reply:
        """The reply, after as many attempts as the limits allow."""
        size = estimate_tokens(request) if self._counts_tokens else None
        tokens = size.input + size.output if size else 0
        left = self.limits.total_seconds
        for attempt in range(1, self.limits.attempts + 1):
            async with self._slots:
                await self._pace.turn(tokens)
                start = time.monotonic()
                try:
                    return await self._send(request, tokens, min(self.limits.seconds, left))
                except ModelBusy as error:
                    busy = error
                finally:
                    left -= time.monotonic() - start
            pause = self._pause(attempt, busy)
            if attempt == self.limits.attempts or pause >= left:
                raise ModelError(f"{busy} (gave up after {attempt} attempts)") from busy
            left -= pause
            await asyncio.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    async def _send(self, request: Request, tokens: int, seconds: float) -> Reply:
        try:
            async with asyncio.timeout(seconds):
                reply = await self._inner.complete(request)
        except TimeoutError:
            raise ReplyLost(f"{request.model} gave no answer within {seconds:g} s") from None
        self._pace.used(tokens, reply.tokens.input + reply.tokens.output)
        return reply

    def _pause(self, attempt: int, busy: ModelBusy) -> float:
        """What the provider asked for, else a doubling pause; with jitter, so that not all come back at once."""
        if busy.wait is not None:
            self._pace.hold(min(busy.wait, self.limits.longest_pause))
            return busy.wait + self._rng.uniform(0, self.limits.first_pause)
        pause = min(self.limits.longest_pause, self.limits.first_pause * 2 ** (attempt - 1))
        return pause * self._rng.uniform(0.5, 1.0)
