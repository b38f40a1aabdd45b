"""Patience with a provider: how many calls at once, how fast, how often again, and for how long."""

import asyncio
import random
import time
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

from foretell.models.budget import estimate_tokens
from foretell.models.database.interface import Database
from foretell.models.model import Model, ModelBusy, ModelError, Reply, ReplyLost, Request
from foretell.models.rate_limiter import (
    LocalRateLimiter,
    RateLimiter,
    RateLimits,
    SharedConcurrency,
    SharedRateLimiter,
)
from foretell.models.waiting import MORE_TIME, SilenceLimit, StandingStill, note_reply
from foretell.questions.errors import InputError

USUAL_REPLY_TOKENS = 4096
"""Counted against a provider's speed limit until the reply is there."""
UNLIMITED = 1_000_000
"""At once, where only the speed is limited."""


@dataclass(frozen=True, kw_only=True)
class ModelLimits:
    """What a provider allows us and what we put up with."""

    at_once: int = 64
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    attempts: int = 5
    seconds: float = 300.0
    """Longest time for one attempt, from sending to the last byte; of a streamed reply, from one piece to the next."""
    total_seconds: float = 900.0
    """Longest time for all attempts and the pauses between them; waiting for a turn does not count."""
    first_pause: float = 0.5
    """Doubles with every attempt; each pause is drawn between half of it and all of it."""
    longest_pause: float = 60.0
    shared: bool = False
    """Numbers and speeds hold over all processes that have the same journal, and not for each of them."""

    @property
    def rates(self) -> RateLimits:
        """How fast."""
        return RateLimits(requests=self.requests_per_minute, tokens=self.tokens_per_minute)

    def allowing(self, caps: "ModelLimits | None") -> "ModelLimits":
        """The same patience with the numbers and speeds of others."""
        if caps is None:
            return self
        return replace(
            self,
            at_once=caps.at_once,
            requests_per_minute=caps.requests_per_minute,
            tokens_per_minute=caps.tokens_per_minute,
            shared=caps.shared,
        )


LIMIT_FIELDS = {"at_once": "at_once", "requests": "requests_per_minute", "tokens": "tokens_per_minute"}


def parse_limits(text: str) -> dict[str, ModelLimits]:
    """What every provider allows, over all processes together; requests and tokens are those of a minute.

    >>> found = parse_limits("openai requests=500 tokens=2e6 at_once=64; anthropic at_once=8")
    >>> found["openai"].requests_per_minute, found["anthropic"].at_once, found["anthropic"].requests_per_minute
    (500.0, 8, None)
    """
    parsed: dict[str, ModelLimits] = {}
    for part in filter(str.strip, text.split(";")):
        provider, *caps = part.split()
        values: dict[str, Any] = {"at_once": UNLIMITED, "shared": True}
        for cap in caps:
            name, _, number = cap.partition("=")
            try:
                value = float(number)
            except ValueError:
                value = 0.0
            if name not in LIMIT_FIELDS or not 1 <= value < float("inf"):
                hint = "write openai requests=500 tokens=2000000 at_once=64; anthropic at_once=8"
                raise InputError(f"cannot read the limit {cap!r}", path="FORETELL_LIMITS", hint=hint)
            values[LIMIT_FIELDS[name]] = int(value) if name == "at_once" else value
        parsed[provider] = ModelLimits(**values)
    return parsed


class LimitedModel:
    """Waits for a turn, sends, and tries again where the provider was busy."""

    def __init__(
        self,
        inner: Model,
        limits: ModelLimits,
        *,
        pace: RateLimiter | None = None,
        slots: AbstractAsyncContextManager[Any] | None = None,
        rng: random.Random | None = None,
    ) -> None:
        """Pace and slots may be those of many processes."""
        self.limits = limits
        self._inner = inner
        self._slots = slots or asyncio.Semaphore(limits.at_once)
        self._pace = pace or LocalRateLimiter(limits.rates)
        self._counts_tokens = pace is not None or limits.tokens_per_minute is not None
        self._rng = rng or random.Random()

    async def complete(self, request: Request) -> Reply:
        """The reply, after as many attempts as the limits allow."""
        size = estimate_tokens(request) if self._counts_tokens else None
        tokens = size.input + min(size.output, USUAL_REPLY_TOKENS) if size else 0
        left = self.limits.total_seconds
        for attempt in range(1, self.limits.attempts + 1):
            async with _Turn(self._slots, self._pace, tokens):
                start = time.monotonic()
                seconds = min(self.limits.seconds, left)
                try:
                    # A reply that comes in piece by piece is on its way, however slow: only silence ends it.
                    with SilenceLimit(seconds, self.limits.seconds):
                        reply = await self._inner.complete(request)
                    self._pace.used(tokens, reply.tokens.input + reply.tokens.output)
                    note_reply(time.monotonic() - start)
                    return reply
                except TimeoutError:
                    busy = ReplyLost(f"{request.model} gave no answer within {seconds:g} s; {MORE_TIME}")
                except ModelBusy as error:
                    busy = error
                finally:
                    left -= time.monotonic() - start
            pause = self._pause(attempt, busy)
            if attempt == self.limits.attempts or pause >= left:
                raise ModelError(f"{busy} (gave up after {attempt} attempts)") from busy
            left -= pause
            if isinstance(busy, ReplyLost):
                for reservation in request.reservations:
                    request = request.capped(await reservation.lose())
            await asyncio.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def _pause(self, attempt: int, busy: ModelBusy) -> float:
        """What the provider asked for, else a doubling pause; with jitter, so that not all come back at once."""
        if busy.wait is not None:
            self._pace.hold(min(busy.wait, self.limits.longest_pause))
            return busy.wait + self._rng.uniform(0, self.limits.first_pause)
        pause = min(self.limits.longest_pause, self.limits.first_pause * 2 ** (attempt - 1))
        return pause * self._rng.uniform(0.5, 1.0)


class _Turn:
    """A place among those who may ask at once, and a turn at the provider's pace. Waiting for them is no work."""

    __slots__ = ("_pace", "_slots", "_tokens")

    def __init__(self, slots: AbstractAsyncContextManager[Any], pace: RateLimiter, tokens: int) -> None:
        self._slots, self._pace, self._tokens = slots, pace, tokens

    async def __aenter__(self) -> None:
        with StandingStill():
            await self._slots.__aenter__()
            try:
                await self._pace.turn(self._tokens)
            except BaseException as error:
                await self._slots.__aexit__(type(error), error, error.__traceback__)
                raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._slots.__aexit__(kind, error, at)


def limit_model(inner: Model, limits: ModelLimits, place: str, database: Database | None) -> LimitedModel:
    """A model behind its limits: those of this process, or those of all who share a database."""
    if not limits.shared or database is None:
        return LimitedModel(inner, limits)
    pace = SharedRateLimiter(database, place, limits.rates) if limits.rates != RateLimits() else None
    if limits.at_once >= UNLIMITED:
        return LimitedModel(inner, limits, pace=pace)
    slots = SharedConcurrency(database, place, limits.at_once, seconds=limits.seconds)
    return LimitedModel(inner, limits, pace=pace, slots=slots)
