"""The limits of a provider: concurrency, rate, retries and time."""

from dataclasses import replace
from typing import Any

from foretell.frozen import frozen
from foretell.models.rate_limits import PERIODS, RateLimit, Wants
from foretell.questions.errors import InputError

UNLIMITED = 1_000_000
"""Concurrency if only the rate is limited."""
MINUTE, BURST = PERIODS["min"], 5.0
"""Seconds of a provider's limit, and of the shorter span for bursts."""


@frozen
class ModelLimits:
    """Rate limits of a provider, timeouts and retries."""

    at_once: int = 64
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    attempts: int = 5
    seconds: float = 300.0
    """Longest time for one attempt, from sending to the last byte, even if the reply is streamed."""
    total_seconds: float = 900.0
    """Longest time for all attempts with the pauses between them, without waiting for a turn."""
    first_pause: float = 0.5
    """First pause before a retry; see `RetryRule`."""
    longest_pause: float = 60.0
    shared: bool = False
    """Whether the limits hold for all processes with the same journal together, instead of each one."""

    def wants(self, tokens: int) -> Wants:
        """Return the limits that apply to a request with this number of tokens.

        A call may take minutes and is counted when it arrives, so its units count from the time it is sent.

        >>> [(limit.what, limit.most, units) for limit, units in ModelLimits(requests_per_minute=120).wants(50)]
        [('at once', 64, 1), ('requests', 120, 1), ('requests in a burst', 10.0, 1)]
        """
        limits: list[tuple[RateLimit, float]] = []
        if self.at_once < UNLIMITED:
            limits.append((RateLimit(what="at once", most=self.at_once), 1))
        for what, most, units in (
            ("requests", self.requests_per_minute, 1),
            ("tokens", self.tokens_per_minute, tokens),
        ):
            if most is not None:
                burst = max(1.0, most * BURST / MINUTE)
                limits.append((RateLimit(what=what, most=most, seconds=MINUTE, held=False), units))
                limits.append((RateLimit(what=f"{what} in a burst", most=burst, seconds=BURST, held=False), units))
        return limits

    def allowing(self, caps: "ModelLimits | None") -> "ModelLimits":
        """Return the same time limits with another concurrency and rate."""
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


def parse_model_limits(text: str) -> dict[str, ModelLimits]:
    """Parse limits by provider, for all processes together; requests and tokens are per minute.

    >>> limits = parse_model_limits("openai requests=500 tokens=2e6 at_once=64; anthropic at_once=8")
    >>> limits["openai"].requests_per_minute, limits["anthropic"].at_once, limits["anthropic"].requests_per_minute
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
