"""What the registry knows of a prediction market: one row for its listing, its prices and the way to its answers."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foretell.data.markets.event_search import EventSearch
from foretell.data.markets.listing import EventSource
from foretell.data.markets.prices import PriceSource
from foretell.data.service import ServiceConfig
from foretell.questions.errors import InputError

IdInAddress = Callable[[Sequence[str], Mapping[str, list[str]]], str | None]
"""From the steps of an address's path and its query to the market's id; None where the address names none."""


@dataclass(frozen=True, kw_only=True)
class Market:
    """A platform: how to reach it, and how its ids and addresses look."""

    hosts: tuple[str, ...]
    """Its web sites. They are closed to whoever forecasts in a backtest, because they show how questions came out."""
    client: Callable[[ServiceConfig], Any]
    """Opens the one connection that listing, prices and settlements share."""
    events: Callable[[Any], EventSource] | None = None
    """From the client to what is listed now."""
    part: Callable[[Any, str], EventSource | None] | None = None
    """From the client and a name to what is listed in that series, tournament or topic; None where no part can be
    called so. A question set is then named `market:PART`; an event needs nothing of the kind."""
    search: Callable[[Any, ServiceConfig], EventSearch] | None = None
    """From the client and its settings to what finds events by words; None where the platform has no such thing."""
    prices: Callable[[Any], PriceSource] | None = None
    """From the client to price histories."""
    settlements: str = ""
    """"module:attribute" of what makes settlements from the client. Only its name stands here, so that nobody who
    reads a market loads its answers; where it is empty, the plug-in `settlements` of the same name is used."""
    key_variables: tuple[str, ...] = ()
    key_required: bool = True
    facts: str = ""
    """What the adapter was built from: the version and date of the service's specification, and of recorded answers."""
    own_id: re.Pattern[str] | None = None
    """How the platform's own ids look; None where questions do not lead to prices."""
    target_is_market: bool = False
    """Whether each target of an event is a market by itself."""
    has_parts: bool = True
    """Whether one market can hold several targets, written ID#PART."""
    id_in_address: IdInAddress | None = None

    def __post_init__(self) -> None:
        if not self.hosts:
            raise InputError("a market must name its web sites", column="hosts", hint='e.g. hosts=("example.com",)')
