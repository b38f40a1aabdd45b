"""Waiting for calls under way before a budget is called spent.

A budget sets aside what a call may cost at most; many calls at once can fill it although they will cost a tenth of
that. A run ends such a trial in its standing belief; a study that asks each case once would lose the case.
"""

import asyncio

from foretell.llm.message import Reply, Request
from foretell.llm.model import BudgetSpent, Model


class CallsUnderWay:
    """How many calls within one budget are on their way, and when the next of them is back."""

    def __init__(self) -> None:
        self.count = 0
        self._landing = asyncio.Event()

    def landed(self) -> None:
        """One is back and what it did not need is free again."""
        landing, self._landing = self._landing, asyncio.Event()
        landing.set()

    async def next(self) -> None:
        """Wait for the next one to be back."""
        await self._landing.wait()


class Patient:
    """The same model; a call that finds no room waits until others are back, and is refused only when none is out."""

    def __init__(self, inner: Model, calls: CallsUnderWay) -> None:
        self._inner = inner
        self._calls = calls

    async def complete(self, request: Request) -> Reply:
        """The reply, or `BudgetSpent` when even alone there is no room for the call."""
        while True:
            self._calls.count += 1
            try:
                reply = await self._inner.complete(request)
            except BudgetSpent:
                self._calls.count -= 1
                if not self._calls.count:
                    raise
            except BaseException:
                self._calls.count -= 1
                self._calls.landed()
                raise
            else:
                self._calls.count -= 1
                self._calls.landed()
                return reply
            await self._calls.next()
