"""So many calls at once over all processes with one database: each holds a lease, which ends with the process."""

import asyncio
from collections import deque
from collections.abc import Mapping
from itertools import count
from types import TracebackType
from zlib import crc32

from foretell.llm.database.port import Database, Statements

BEAT = 0.5
"""Seconds between two looks at what others want, while slots are held."""
SOON = 0.1
"""Seconds before asking again for slots that others have to give back first."""
TURNS = 5.0
"""Seconds after which another process comes first where there are fewer slots than processes."""
MEMORY = 0.9
"""How much of an earlier peak is still asked for at the next look: calls come and go."""
_ALL = "SELECT owner, part, held, wanted FROM lease WHERE place = ?"
_HOLD = """
INSERT INTO lease VALUES (?, ?, ?, ?, ?)
ON CONFLICT (place, owner, part) DO UPDATE SET held = excluded.held, wanted = excluded.wanted"""
_LEAVE = "DELETE FROM lease WHERE place = ? AND owner = ? AND part = ?"
_PARTS = count(1)
Holder = tuple[int, int]
"""A process, and which of its several semaphores."""


def fair_shares(slots: int, wanted: Mapping[Holder, int], turn: int = 0) -> dict[Holder, int]:
    """What everybody gets: all they want, or an equal part of what those who want less leave over.

    >>> fair_shares(10, {(1, 1): 2, (2, 1): 30, (3, 1): 5})
    {(1, 1): 2, (2, 1): 4, (3, 1): 4}
    """
    shares: dict[Holder, int] = {}
    first_in_turn = sorted(wanted, key=lambda owner: (wanted[owner], crc32(f"{owner} {turn}".encode())))
    for place, owner in enumerate(first_in_turn):
        left = slots - sum(shares.values())
        shares[owner] = min(wanted[owner], left // (len(wanted) - place))
    return dict(sorted(shares.items()))


class SharedSlots:
    """A semaphore over many processes. Never more than `slots` are held by those who live.

    Slots are leased in bulk and used again at once by whoever waits here; every half second, and when somebody waits,
    the leases are settled anew so that nobody goes short. For one event loop.
    """

    def __init__(self, database: Database, place: str, slots: int) -> None:
        self._db = database
        self._place = place
        self._slots = slots
        self._part = next(_PARTS)
        self._used = 0
        self._allowed = 0
        self._peak = 0.0
        self._settling = False
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._wanted = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        """Wait for a slot."""
        if not self._waiting and self._free:
            self._used += 1
            return
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(slot)
        self._wanted.set()
        if self._keeper is None or self._keeper.done():
            self._keeper = asyncio.create_task(self._keep())
        try:
            await slot
        except asyncio.CancelledError:
            if slot.done() and not slot.cancelled() and slot.exception() is None:
                self._release()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """Give it back."""
        self._release()

    @property
    def _free(self) -> bool:
        # While the leases are settled nothing is handed out: what is in use then is what we have told.
        return not self._settling and self._used < self._allowed

    def _release(self) -> None:
        self._used -= 1
        self._hand_out()

    def _hand_out(self) -> None:
        while self._waiting and self._free:
            slot = self._waiting.popleft()
            if not slot.done():
                self._used += 1
                slot.set_result(None)

    async def _keep(self) -> None:
        try:
            while await self._settled() or self._used or self._waiting:
                self._wanted.clear()
                if self._waiting:
                    await asyncio.sleep(SOON)
                else:
                    await self._until_wanted()
        except Exception as error:
            for slot in self._waiting:
                if not slot.done():
                    slot.set_exception(error)
            self._waiting.clear()

    async def _until_wanted(self) -> None:
        try:
            async with asyncio.timeout(BEAT):
                await self._wanted.wait()
        except TimeoutError:
            return

    async def _settled(self) -> int:
        """Settle the leases; how many slots are ours now."""
        self._settling = True
        try:
            now = self._used + sum(not slot.done() for slot in self._waiting)
            self._peak = max(now, MEMORY * self._peak) if now else 0.0
            held, self._allowed = await self._db.aside(self._settle, self._used, round(self._peak))
        finally:
            self._settling = False
        self._hand_out()
        return held

    def _settle(self, used: int, wanted: int) -> tuple[int, int]:
        """How many slots we hold from now on, and how many of them we may use."""
        me = (self._db.life.id, self._part)
        gone = self._db.life.gone({owner for owner, *_ in self._db.read(_ALL, (self._place,))})

        def work(statements: Statements) -> tuple[int, int]:
            rows = {(owner, part): rest for owner, part, *rest in statements.read(_ALL, (self._place,))}
            for holder in [holder for holder in rows if holder[0] in gone]:
                statements.write(_LEAVE, (self._place, *holder))
                del rows[holder]
            rows.pop(me, None)
            wants = {holder: max(held, want) for holder, (held, want) in rows.items()} | {me: wanted}
            share = fair_shares(self._slots, wants, int(statements.now() / TURNS))[me]
            left = self._slots - sum(held for held, _ in rows.values())
            held = max(used, min(share, left))
            if held or wanted:
                statements.write(_HOLD, (self._place, *me, held, wanted))
            else:
                statements.write(_LEAVE, (self._place, *me))
            return held, min(share, held)

        return self._db.together(work, alone=f"slots/{self._place}")
