"""How long before the close an event was asked."""

from dataclasses import dataclass

import numpy as np

from foretell.evaluate.arrays import Floats, Ints


@dataclass(frozen=True, kw_only=True)
class LeadTime:
    """A stretch of time before the close, its longer end included."""

    name: str
    hours: float
    """The longer end."""


LEAD_TIMES = (
    LeadTime(name="0–3 h", hours=3),
    LeadTime(name="3–6 h", hours=6),
    LeadTime(name="6–12 h", hours=12),
    LeadTime(name="12–24 h", hours=24),
    LeadTime(name="1–3 d", hours=72),
    LeadTime(name="3–7 d", hours=168),
    LeadTime(name="7–30 d", hours=720),
    LeadTime(name="over 30 d", hours=float("inf")),
)


def lead_time_of(hours: Floats) -> Ints:
    """The place of each in `LEAD_TIMES`; −1 where the close was unknown.

    >>> lead_time_of(np.array([0.5, 3.0, 30.0, np.nan])).tolist()
    [0, 0, 4, -1]
    """
    edges = np.array([one.hours for one in LEAD_TIMES])
    found = np.searchsorted(edges, np.maximum(np.nan_to_num(hours), 0.0), side="left")
    return np.where(np.isnan(hours), -1, found)
