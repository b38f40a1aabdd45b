"""Calls to a provider within its limits."""

import asyncio
import random
import time

from foretell.models.budget import estimate_tokens
from foretell.models.database.interface import Database
from foretell.models.limits import ModelLimits
from foretell.models.model import BatchDeferred, Model, ModelBusy, ModelError, Reply, ReplyLost, Request
from foretell.models.rate_limits import DatabaseLimits, MemoryLimits, RateLimiter, Taken, Wants
from foretell.models.waiting import MORE_TIME, PausedClocks, ReplyLimit, note_reply, note_retry
from foretell.outgoing.retry import RetryRule

USUAL_REPLY_TOKENS = 4096
"""Tokens counted against the rate limit until the reply has arrived."""


class LimitedModel:
    """Waits for a turn, sends, and retries if the provider was busy."""

    def __init__(
        self,
        inner: Model,
        limits: ModelLimits,
        *,
        limiter: RateLimiter | None = None,
        place: str = "",
        rng: random.Random | None = None,
    ) -> None:
        """The limiter may be shared by several processes; `place` is the provider's name there."""
        self.limits = limits
        self._inner = inner
        self._limiter = limiter or RateLimiter(MemoryLimits(), longest=limits.seconds)
        self._place = place
        self._wants = limits.wants(0) if limits.tokens_per_minute is None else None
        """The same for all requests if tokens are not limited."""
        self._rng = rng or random.Random()
        self._retries = RetryRule(
            attempts=limits.attempts, first_pause=limits.first_pause, longest_pause=limits.longest_pause
        )

    async def complete(self, request: Request) -> Reply:
        """The reply, after as many attempts as the limits allow. A batch that has to wait is not counted as one."""
        wants = self._wants
        if wants is None:
            size = estimate_tokens(request)
            wants = self.limits.wants(size.input + min(size.output, USUAL_REPLY_TOKENS))
        seconds_left = self.limits.total_seconds
        attempt = 0
        while True:
            async with _Turn(self._limiter, self._place, wants) as turn:
                start = time.monotonic()
                seconds = min(self.limits.seconds, seconds_left)
                try:
                    with ReplyLimit(seconds):
                        reply = await self._inner.complete(request)
                    if self._wants is None:
                        turn.wants = self.limits.wants(reply.tokens.input + reply.tokens.output)
                    note_reply(time.monotonic() - start)
                    return reply
                except TimeoutError:
                    busy = ReplyLost(f"{request.model} gave no complete answer within {seconds:g} s; {MORE_TIME}")
                except ModelBusy as error:
                    busy = error
                    if busy.wait is not None:
                        turn.pause = min(busy.wait, self.limits.longest_pause)
                finally:
                    seconds_left -= time.monotonic() - start
            if isinstance(busy, BatchDeferred) and seconds_left > 0:
                continue  # This is not a failed attempt, and the batch has its own pause.
            attempt += 1
            pause = self._pause(attempt, busy, seconds_left)
            seconds_left -= pause
            if isinstance(busy, ReplyLost):
                for reservation in request.reservations:
                    request = request.capped(await reservation.lose())
            note_retry(str(busy))
            await asyncio.sleep(pause)

    def _pause(self, attempt: int, busy: ModelBusy, seconds_left: float) -> float:
        """Seconds before the next attempt, or a `ModelError` if there is none."""
        pause = self._retries.pause(attempt, asked=busy.wait, left=seconds_left, rng=self._rng)
        if pause is None:
            raise ModelError(f"{busy} (gave up after {attempt} attempts)") from busy
        return pause


class _Turn:
    """The time in which a request may be under way. Waiting for it does not count as work."""

    __slots__ = ("_limiter", "_place", "_taken", "pause", "wants")

    def __init__(self, limiter: RateLimiter, place: str, wants: Wants) -> None:
        self._limiter, self._place = limiter, place
        self.wants = wants
        """Corrected once the actual usage is known."""
        self.pause: float | None = None
        """Seconds for which the provider asked to be left alone."""
        self._taken = Taken()

    async def __aenter__(self) -> "_Turn":
        with PausedClocks():
            self._taken = await self._limiter.take(self._place, self.wants)
        return self

    async def __aexit__(self, *error: object) -> None:
        if self.pause is None:
            self._limiter.give_back(self._place, self._taken, self.wants)
        else:
            self._limiter.give_back_and_pause(self._place, self._taken, self.wants, self.pause)


def limit_model(inner: Model, limits: ModelLimits, place: str, database: Database | None) -> LimitedModel:
    """Wrap a model in its limits, for this process or for all processes that share a database."""
    if not limits.shared or database is None:
        return LimitedModel(inner, limits)
    limiter = RateLimiter(DatabaseLimits(database), longest=limits.seconds)
    return LimitedModel(inner, limits, limiter=limiter, place=f"model {place}")
