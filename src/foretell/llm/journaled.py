"""The journal around a model, in two halves: look up before waiting for a turn, write down next to the wire."""

from contextvars import ContextVar

from foretell.llm.canonical import pack_reply, request_key, unpack_reply
from foretell.llm.journal import Answer, Asked, Journal
from foretell.llm.message import Reply, Request
from foretell.llm.model import Model
from foretell.llm.prices import Prices

_ASKED: ContextVar[tuple[Request, Asked] | None] = ContextVar("asked", default=None)
"""Saves the inner half from hashing a long conversation a second time."""


def asked_of(request: Request) -> Asked:
    """The request as the journal names it."""
    held = _ASKED.get()
    if held is not None and held[0] is request:
        return held[1]
    return Asked(key=request_key(request), kind="model", model=request.model, slot=request.slot)


class Remembered:
    """Answers from the journal where it can, without waiting for a turn; equal requests in flight are sent once."""

    def __init__(self, inner: Model, journal: Journal) -> None:
        self._inner = inner
        self._journal = journal

    async def complete(self, request: Request) -> Reply:
        """The kept reply, or a new one."""
        asked = asked_of(request)
        token = _ASKED.set((request, asked))
        try:
            return await self._journal.share(asked, lambda: self._inner.complete(request), read=unpack_reply)
        finally:
            _ASKED.reset(token)


class Recorded:
    """Writes down each send before it happens, and each reply before anyone sees it. Stands next to the wire."""

    def __init__(self, wire: Model, journal: Journal, prices: Prices) -> None:
        self._wire = wire
        self._journal = journal
        self._prices = prices

    async def complete(self, request: Request) -> Reply:
        """The reply as kept: should another process have been quicker with the same request, its reply."""
        came: list[tuple[Reply, bytes]] = []

        async def send() -> Answer:
            reply = await self._wire.complete(request)
            body = pack_reply(reply)
            came.append((reply, body))
            return Answer(body=body, tokens=reply.tokens, dollars=self._prices.dollars(request.model, reply.tokens))

        kept = await self._journal.record(asked_of(request), send)
        reply, body = came[0]
        return reply if kept is body else unpack_reply(kept)
