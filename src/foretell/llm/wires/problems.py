"""A provider's refusal as one of our errors, told in one line that never holds a key."""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from foretell.llm.model import ModelBusy, ModelError, ModelRefused

BUSY = frozenset({408, 409, 425, 429})
LONGEST = 300
"""Characters of a provider's own words that are passed on."""


SHORTEST = 6
"""Characters of a key worth hiding: local servers take any word, such as "x"."""


def http_problem(status: int, told: str, *, model: str, wait: float | None = None, code: str = "") -> ModelError:
    """The error for an HTTP status. `code` is the provider's own word for it, where it has one."""
    if status in (401, 403):
        # Providers quote the key they refuse, sometimes only in part: their words stay out.
        return ModelRefused(f"{model}: the provider does not accept the key (HTTP {status})")
    text = f"{model}: HTTP {status}" + (f": {told}" if told else "")
    if "insufficient_quota" in code or status == 402:
        return ModelRefused(f"{text} (no credit is left)")
    if status in BUSY or status >= 500:
        return ModelBusy(text, wait=wait)
    return ModelRefused(text)


def without_key(text: str, key: str) -> str:
    """Text that may be shown: shortened, on one line, and without the key."""
    clean = " ".join((text.replace(key, "***") if len(key) >= SHORTEST else text).split())
    return clean if len(clean) <= LONGEST else clean[:LONGEST] + "…"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds a server asked us to wait: in milliseconds, in seconds, or as a date by its own clock.

    >>> retry_after({"retry-after": "1.5"}), retry_after({"retry-after-ms": "250"}), retry_after({})
    (1.5, 0.25, None)
    """
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) * scale)
        except (KeyError, ValueError):
            continue
    try:
        until, now = parsedate_to_datetime(headers["retry-after"]), parsedate_to_datetime(headers["date"])
    except (KeyError, ValueError):
        return None
    return max(0.0, (_aware(until) - _aware(now)).total_seconds())


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
