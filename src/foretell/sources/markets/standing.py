"""Which markets of an event can still be asked about."""

from collections.abc import Sequence
from dataclasses import dataclass

from foretell.questions.question import Target
from foretell.sources.listing import Status
from foretell.sources.payload import Payload

GOING_ON: tuple[Status, ...] = ("open", "unopened")


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One market of an event."""

    row: Payload
    target: Target
    status: Status
    lost: bool = False
    """It is known to have come out no."""


@dataclass(frozen=True, kw_only=True)
class EventStanding:
    """An event by the state of its markets."""

    asked: tuple[Standing, ...]
    """Those that are still going on, or all of them where none is."""
    finished: tuple[str, ...]
    exclusive: bool
    status: Status


def standing(markets: Sequence[Standing | None], *, exclusive: bool) -> EventStanding:
    """Sort out what is over.

    The platform's word that exactly one market comes true holds for the rest only if all that was left out has lost:
    among markets still open none may come true when one that is already closed has won.
    """
    known = [market for market in markets if market is not None]
    going_on = [market for market in known if market.status in GOING_ON]
    asked = going_on or known
    ids = {market.target.id for market in asked}
    finished = [market for market in known if market.target.id not in ids]
    certain = len(known) == len(markets) and all(market.lost for market in finished)
    return EventStanding(
        asked=tuple(asked),
        finished=tuple(market.target.id for market in finished),
        exclusive=exclusive and certain and len(asked) > 1,
        status=_status(known),
    )


def _status(markets: Sequence[Standing]) -> Status:
    told = {market.status for market in markets}
    if "open" in told:
        return "open"
    if "unopened" in told:
        return "unopened"
    return "resolved" if told == {"resolved"} else "closed"
