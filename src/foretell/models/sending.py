"""Decides whether a request may still be sent: a process that was suspended may have lost its work to others."""

from collections.abc import Callable
from contextvars import ContextVar

from foretell.models.model import ModelBusy
from foretell.models.waiting import ContextValue

_allowed: ContextVar[Callable[[], bool] | None] = ContextVar("allowed", default=None)


class NotSent(ModelBusy):
    """A request that was held back at the last moment and may be sent later."""


def sending_while(allowed: Callable[[], bool]) -> ContextValue[Callable[[], bool] | None]:
    """Requests made inside the block are sent only while the condition holds, and while outer conditions hold."""
    around = _allowed.get()
    return ContextValue(_allowed, allowed if around is None else lambda: allowed() and around())


def sending_for_all() -> ContextValue[Callable[[], bool] | None]:
    """Requests that serve many callers, such as a batch, do not depend on the conditions of the first one."""
    return ContextValue(_allowed, None)


def may_send() -> bool:
    """Whether a request may be sent now."""
    allowed = _allowed.get()
    return allowed is None or allowed()


def check_sending() -> None:
    """The last check before sending: a process that was suspended must not send what others took over."""
    if not may_send():
        raise NotSent("this process was away for a while: what is still its own is looked at before it goes on")
