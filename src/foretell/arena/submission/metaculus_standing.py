"""Is this the forecast that counts on Metaculus already?"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from foretell.sources.posting.metaculus_asked import Asked

ALIKE = 1e-9


def same(asked: Asked, body: Mapping[str, Any], now: datetime) -> bool:
    """Whether the account's standing forecast of a question says what the body says."""
    standing = asked.standing
    if body.get("question") != asked.id or standing is None or (standing.until is not None and standing.until <= now):
        return False
    meant = _values(asked, body)
    shown = standing.values
    if asked.kind == "binary":
        # Shown as no and yes, or as yes alone.
        shown = shown[-1:]
    return len(meant) == len(shown) and all(_alike(a, b) for a, b in zip(meant, shown, strict=True))


def _values(asked: Asked, body: Mapping[str, Any]) -> list[float | None]:
    """In the order in which the platform shows them."""
    if "probability_yes" in body:
        return [body["probability_yes"]]
    if "continuous_cdf" in body:
        return list(body["continuous_cdf"])
    options = body.get("probability_yes_per_category", {})
    shown = asked.standing.values if asked.standing else ()
    order = asked.options if len(shown) == len(asked.options) else asked.counted
    return [options.get(option) for option in order]


def _alike(a: float | None, b: float | None) -> bool:
    return a is None and b is None if a is None or b is None else abs(a - b) <= ALIKE
