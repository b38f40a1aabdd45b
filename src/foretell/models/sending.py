"""Whether a request may still be sent: one who was asleep for long may have lost to others what it was at."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

from foretell.models.model import ModelBusy

_allowed: ContextVar[Callable[[], bool] | None] = ContextVar("allowed", default=None)


class NotSent(ModelBusy):
    """A request that was held back at the last moment, and may be sent later."""


@contextmanager
def sending_while(allowed: Callable[[], bool]) -> Generator[None]:
    """Let requests that are asked within be sent only while that is so, and while whoever asks may send at all."""
    around = _allowed.get()
    token = _allowed.set(allowed if around is None else lambda: allowed() and around())
    try:
        yield
    finally:
        _allowed.reset(token)


@contextmanager
def sending_for_all() -> Generator[None]:
    """Requests that serve many callers at once, such as a batch, do not hang on the one who happened to begin."""
    token = _allowed.set(None)
    try:
        yield
    finally:
        _allowed.reset(token)


def may_send() -> bool:
    """Whether what is asked here may be sent now."""
    allowed = _allowed.get()
    return allowed is None or allowed()


def check_sending() -> None:
    """The last look before the wire: who was asleep since then may send nothing that others took over."""
    if not may_send():
        raise NotSent("this process was away for a while: what is still its own is looked at before it goes on")
