"""What "nearest" means."""

from typing import Literal

Distance = Literal["squared", "log"]
"""`squared`: Σ w(q − p)². `log`: Σ w·KL(q‖p) of the binary forecasts, a Euclidean projection of the log-odds' kind.

Either way q is at least as good as p in its own score, on every outcome that can happen (Pythagoras; Csiszár 1975).
"""


def check_distance(distance: Distance) -> None:
    """Refuse any other word."""
    if distance not in ("squared", "log"):
        raise ValueError(f"distance {distance!r} is neither squared nor log")
