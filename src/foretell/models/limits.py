"""Limits on calls to a provider: concurrency, rate, retries and time."""

import asyncio
import random
import time
from dataclasses import dataclass, replace
from typing import Any

from foretell.models.budget import estimate_tokens
from foretell.models.database.interface import Database
from foretell.models.model import BatchDeferred, Model, ModelBusy, ModelError, Reply, ReplyLost, Request
from foretell.models.waiting import MORE_TIME, ReplyLimit, StandingStill, note_reply
from foretell.outgoing.limiter import DatabaseLimits, Limit, Limiter, MemoryLimits, Taken, Wants
from foretell.outgoing.retry import RetryRule
from foretell.questions.errors import InputError

USUAL_REPLY_TOKENS = 4096
"""Tokens counted against the rate limit until the reply has arrived."""
UNLIMITED = 1_000_000
"""Concurrency if only the rate is limited."""
MINUTE, BURST = 60.0, 5.0
"""Seconds of a provider's limit, and of the shorter span in which its share may pass at once."""


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

    def wants(self, tokens: int) -> Wants:
        """The limits that a request of so many tokens falls under.

        A call may take minutes and is counted when it arrives, so its units count from sending.

        >>> [(limit.what, limit.most, units) for limit, units in ModelLimits(requests_per_minute=120).wants(50)]
        [('at once', 64, 1), ('requests', 120, 1), ('requests in a burst', 10.0, 1)]
        """
        found: list[tuple[Limit, float]] = []
        if self.at_once < UNLIMITED:
            found.append((Limit(what="at once", most=self.at_once, seconds=0.0), 1))
        for what, most, units in (
            ("requests", self.requests_per_minute, 1),
            ("tokens", self.tokens_per_minute, tokens),
        ):
            if most is not None:
                burst = max(1.0, most * BURST / MINUTE)
                found.append((Limit(what=what, most=most, seconds=MINUTE, held=False), units))
                found.append((Limit(what=f"{what} in a burst", most=burst, seconds=BURST, held=False), units))
        return found

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
                raise InputError(f"cannot read the limit {cap!r}", hint=hint)
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
        limiter: Limiter | None = None,
        place: str = "",
        rng: random.Random | None = None,
    ) -> None:
        """The limiter may be shared by several processes; `place` is the provider's name there."""
        self.limits = limits
        self._inner = inner
        self._limiter = limiter or Limiter(MemoryLimits(), longest=limits.seconds)
        self._place = place
        self._wants = limits.wants(0) if limits.tokens_per_minute is None else None
        """The same for all requests if tokens do not count."""
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
        left = self.limits.total_seconds
        attempt = 0
        while True:
            async with _Turn(self._limiter, self._place, wants) as turn:
                start = time.monotonic()
                seconds = min(self.limits.seconds, left)
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
                finally:
                    left -= time.monotonic() - start
            if isinstance(busy, BatchDeferred) and left > 0:
                continue  # That is no failed attempt, and its batch has a pause of its own.
            attempt += 1
            pause = self._pause(attempt, busy, left)
            left -= pause
            if isinstance(busy, ReplyLost):
                for reservation in request.reservations:
                    request = request.capped(await reservation.lose())
            await asyncio.sleep(pause)

    def _pause(self, attempt: int, busy: ModelBusy, left: float) -> float:
        """Seconds before the next attempt, or a `ModelError` if there is none."""
        if busy.wait is not None:
            self._limiter.pause(self._place, min(busy.wait, self.limits.longest_pause))
        pause = self._retries.pause(attempt, asked=busy.wait, left=left, rng=self._rng)
        if pause is None:
            raise ModelError(f"{busy} (gave up after {attempt} attempts)") from busy
        return pause


class _Turn:
    """The time in which a request may be under way. Waiting for it does not count as work."""

    __slots__ = ("_limiter", "_place", "_taken", "wants")

    def __init__(self, limiter: Limiter, place: str, wants: Wants) -> None:
        self._limiter, self._place = limiter, place
        self.wants = wants
        """Corrected when it is known what was used."""
        self._taken = Taken()

    async def __aenter__(self) -> "_Turn":
        with StandingStill():
            self._taken = await self._limiter.take(self._place, self.wants)
        return self

    async def __aexit__(self, *error: object) -> None:
        self._limiter.give_back(self._place, self._taken, self.wants)


def limit_model(inner: Model, limits: ModelLimits, place: str, database: Database | None) -> LimitedModel:
    """A model behind its limits, for this process or for all that share a database."""
    if not limits.shared or database is None:
        return LimitedModel(inner, limits)
    limiter = Limiter(DatabaseLimits(database), longest=limits.seconds)
    return LimitedModel(inner, limits, limiter=limiter, place=f"model {place}")
