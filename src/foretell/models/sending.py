"""Whether a request may still be sent: one who was asleep for long may have lost to others what it was at."""

from collections.abc import Callable
from contextvars import ContextVar

from foretell.models.model import ModelBusy
from foretell.models.waiting import ContextValue

_allowed: ContextVar[Callable[[], bool] | None] = ContextVar("allowed", default=None)


class NotSent(ModelBusy):
    """A request that was held back at the last moment, and may be sent later."""


def sending_while(allowed: Callable[[], bool]) -> ContextValue[Callable[[], bool] | None]:
    """Let requests that are asked within be sent only while that is so, and while whoever asks may send at all."""
    around = _allowed.get()
    return ContextValue(_allowed, allowed if around is None else lambda: allowed() and around())


def sending_for_all() -> ContextValue[Callable[[], bool] | None]:
    """Requests that serve many callers at once, such as a batch, do not hang on the one who happened to begin."""
    return ContextValue(_allowed, None)


def may_send() -> bool:
    """Whether what is asked here may be sent now."""
    allowed = _allowed.get()
    return allowed is None or allowed()


def check_sending() -> None:
    """The last look before the wire: who was asleep since then may send nothing that others took over."""
    if not may_send():
        raise NotSent("this process was away for a while: what is still its own is looked at before it goes on")
