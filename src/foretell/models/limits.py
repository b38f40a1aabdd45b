"""Limits on calls to a provider: concurrency, rate, retries and time."""

import asyncio
import random
import time
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

from foretell.models.budget import estimate_tokens
from foretell.models.database.interface import Database
from foretell.models.model import BatchDeferred, Model, ModelBusy, ModelError, Reply, ReplyLost, Request
from foretell.models.rate_limiter import (
    LocalRateLimiter,
    RateLimiter,
    RateLimits,
    SharedConcurrency,
    SharedRateLimiter,
)
from foretell.models.waiting import MORE_TIME, ReplyLimit, StandingStill, note_reply
from foretell.outgoing.retry import RetryRule
from foretell.questions.errors import InputError

USUAL_REPLY_TOKENS = 4096
"""Tokens counted against the rate limit until the reply has arrived."""
UNLIMITED = 1_000_000
"""Concurrency if only the rate is limited."""


@dataclass(frozen=True, kw_only=True)
class ModelLimits:
    """What a provider allows, and how long we wait and retry."""

    at_once: int = 64
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    attempts: int = 5
    seconds: float = 300.0
    """Longest time for one attempt, from sending to the last byte, also where a reply is streamed."""
    total_seconds: float = 900.0
    """Longest time for all attempts with the pauses between them, without waiting for a turn."""
    first_pause: float = 0.5
    """First pause before a retry; see `RetryRule`."""
    longest_pause: float = 60.0
    shared: bool = False
    """Whether the limits hold for all processes with the same journal together, instead of each one."""

    @property
    def rates(self) -> RateLimits:
        """The rate limits."""
        return RateLimits(requests=self.requests_per_minute, tokens=self.tokens_per_minute)

    def allowing(self, caps: "ModelLimits | None") -> "ModelLimits":
        """The same patience with another concurrency and rate."""
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
    """Parse limits by provider, for all processes together; requests and tokens are per minute.

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
    """Waits for a turn, sends, and retries if the provider was busy."""

    def __init__(
        self,
        inner: Model,
        limits: ModelLimits,
        *,
        pace: RateLimiter | None = None,
        slots: AbstractAsyncContextManager[Any] | None = None,
        rng: random.Random | None = None,
    ) -> None:
        """The rate limiter and the semaphore may be shared by several processes."""
        self.limits = limits
        self._inner = inner
        self._slots = slots or asyncio.Semaphore(limits.at_once)
        self._pace = pace or LocalRateLimiter(limits.rates)
        self._counts_tokens = pace is not None or limits.tokens_per_minute is not None
        self._rng = rng or random.Random()
        self._retries = RetryRule(
            attempts=limits.attempts, first_pause=limits.first_pause, longest_pause=limits.longest_pause
        )

    async def complete(self, request: Request) -> Reply:
        """The reply, after as many attempts as the limits allow. A batch that has to wait is not counted as one."""
        size = estimate_tokens(request) if self._counts_tokens else None
        tokens = size.input + min(size.output, USUAL_REPLY_TOKENS) if size else 0
        left = self.limits.total_seconds
        attempt = 0
        while True:
            async with _Turn(self._slots, self._pace, tokens):
                start = time.monotonic()
                seconds = min(self.limits.seconds, left)
                try:
                    with ReplyLimit(seconds):
                        reply = await self._inner.complete(request)
                    self._pace.used(tokens, reply.tokens.input + reply.tokens.output)
                    note_reply(time.monotonic() - start)
                    return reply
                except TimeoutError:
                    busy = ReplyLost(f"{request.model} gave no complete answer within {seconds:g} s; {MORE_TIME}")
                except ModelBusy as error:
                    busy = error
                finally:
                    left -= time.monotonic() - start
            if isinstance(busy, BatchDeferred) and left > 0:
                continue  # That is no failed attempt, and its batch has a pause of its own.
            attempt += 1
            if busy.wait is not None:
                self._pace.hold(min(busy.wait, self.limits.longest_pause))
            pause = self._retries.pause(attempt, asked=busy.wait, left=left, rng=self._rng)
            if pause is None:
                raise ModelError(f"{busy} (gave up after {attempt} attempts)") from busy
            left -= pause
            if isinstance(busy, ReplyLost):
                for reservation in request.reservations:
                    request = request.capped(await reservation.lose())
            await asyncio.sleep(pause)


class _Turn:
    """A slot among concurrent calls and a turn at the provider's rate. Waiting for them does not count as work."""

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
    """A model behind its limits, for this process or for all that share a database."""
    if not limits.shared or database is None:
        return LimitedModel(inner, limits)
    pace = SharedRateLimiter(database, place, limits.rates) if limits.rates != RateLimits() else None
    if limits.at_once >= UNLIMITED:
        return LimitedModel(inner, limits, pace=pace)
    slots = SharedConcurrency(database, place, limits.at_once, seconds=limits.seconds)
    return LimitedModel(inner, limits, pace=pace, slots=slots)
