"""Whether a request may still be sent: one who was asleep for long may have lost to others what it was at."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

_allowed: ContextVar[Callable[[], bool] | None] = ContextVar("allowed", default=None)


@contextmanager
def sending_while(allowed: Callable[[], bool]) -> Generator[None]:
    """Let requests that are asked within be sent only while that is so."""
    token = _allowed.set(allowed)
    try:
        yield
    finally:
        _allowed.reset(token)


def may_send() -> bool:
    """Whether what is asked here may be sent now."""
    allowed = _allowed.get()
    return allowed is None or allowed()
