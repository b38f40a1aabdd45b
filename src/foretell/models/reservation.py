"""Money reserved for a call, as requests carry it."""

from typing import NamedTuple, Protocol

NANO = 1_000_000_000
"""Nanodollars in a dollar. Amounts are stored as whole nanodollars, so that sums are exact."""


class Grant(NamedTuple):
    """Money reserved for one call."""

    call: int
    """The number of the open call."""
    account: str
    amount: int
    """The reservation in nanodollars."""
    output: int
    """Maximum output tokens."""
    limited: bool
    """Whether some account has a limit, so that the reply must be cut off at `output`."""

    @property
    def dollars(self) -> float:
        """The reservation."""
        return self.amount / NANO


class LosableReservation(Protocol):
    """Money reserved for a call."""

    ended: bool
    """Whether the ledger knows how the call ended."""
    grant: Grant
    """What the ledger has reserved: the most one attempt can cost."""

    @property
    def payer(self) -> str:
        """The run that pays; empty if there is none."""
        ...

    @property
    def ledger(self) -> object:
        """The ledger that holds it."""
        ...

    def ended_with_reply(self) -> None:
        """The journal has billed the call together with its reply."""
        ...

    async def lose(self) -> int:
        """Reserve the next attempt after one that may have been billed. Returns the maximum output tokens."""
        ...

    async def reprice(self, factor: float) -> int:
        """Reserve again because the price multiplier has changed. Returns the maximum output tokens."""
        ...
