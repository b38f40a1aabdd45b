"""Watch standing questions: look at each when it is due."""

import asyncio
from collections.abc import Collection
from contextlib import suppress
from datetime import datetime, timedelta

from foretell.data.http import SourceError
from foretell.data.untrusted import for_log
from foretell.forecasters.forecaster import CannotForecast
from foretell.models.model import ModelError
from foretell.questions.clock_jump import ClockReading, jump_text
from foretell.questions.errors import InputError, NoAnswer
from foretell.standing.question_look import look_at
from foretell.standing.schedule import next_look, set_back
from foretell.standing.watcher import Watcher

POLL_SECONDS = 20.0
"""Seconds between checks whether a look is due."""
AT_ONCE = 4
"""Questions that are looked at at the same time; the limits of every service hold for all together."""
RETRY = timedelta(minutes=30)
"""Time after which a look that failed as a whole is tried again."""
LAST_SECONDS = 20.0
"""Seconds in which notices that are being sent may still be sent after a stop. The others stay in the queue."""


async def due_questions(watcher: Watcher, now: datetime, ids: Collection[str] | None = None) -> list[str]:
    """Return the open questions whose look is due, the longest overdue first.

    Looks that were planned before the clock was set back are planned again, so that none is skipped.
    """
    store = watcher.store
    due: list[tuple[datetime, str]] = []
    for standing, planned in await store.db.aside(store.planned):
        if ids is not None and standing.id not in ids:
            continue
        if planned <= now:
            due.append((planned, standing.id))
        elif set_back(standing, planned, now):
            await store.db.aside(store.plan, standing.id, next_look(standing, now))
    return [id for _, id in sorted(due)]


async def watch(
    watcher: Watcher,
    *,
    once: bool = False,
    until: datetime | None = None,
    ids: Collection[str] | None = None,
    stop: asyncio.Event | None = None,
    poll_seconds: float = POLL_SECONDS,
) -> int:
    """Look at questions when they are due. Overdue looks at a question are one look.

    Args:
        watcher: What to watch with.
        once: Look at what is due now, and return.
        until: Return at this time; None watches until `stop` is set or no question is open.
        ids: Only these questions; None for all that are open.
        stop: Ends the watch after the looks that are under way.
        poll_seconds: Seconds between checks whether a look is due.

    Returns:
        The number of looks.
    """
    stop = stop or asyncio.Event()
    sending = _Sending(watcher)
    slots, looks = asyncio.Semaphore(AT_ONCE), 0
    before = ClockReading.now()

    async def look(id: str) -> int:
        async with slots:
            return 0 if stop.is_set() else int(await _look_or_retry(watcher, id))

    while not stop.is_set():
        sending.begin()
        now = watcher.clock()
        looks += sum(await asyncio.gather(*(look(id) for id in await due_questions(watcher, now, ids))))
        if once or (until is not None and watcher.clock() >= until):
            break
        if not await watcher.store.db.aside(watcher.store.planned):
            break
        with suppress(TimeoutError):
            async with asyncio.timeout(poll_seconds):
                await stop.wait()
        reading = ClockReading.now()
        if jump := before.jump_to(reading):
            watcher.warn(f"{jump_text(jump)}; looks that are overdue now become one")
        before = reading
    await sending.end(again=not stop.is_set())
    return looks


class _Sending:
    """Sends waiting notices while questions are looked at, one round at a time."""

    def __init__(self, watcher: Watcher) -> None:
        self.deliver = watcher.deliver
        self.round: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Begin a round, unless one is under way."""
        if self.deliver is not None and (self.round is None or self.round.done()):
            if self.round is not None:
                self.round.result()
            self.round = asyncio.create_task(self.deliver())

    async def end(self, *, again: bool) -> None:
        """Wait for the round that is under way; `again` waits for all of it, and sends what has been queued since."""
        if self.round is not None and self.deliver is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.round, None if again else LAST_SECONDS)
            if again:
                await self.deliver()


async def _look_or_retry(watcher: Watcher, id: str) -> bool:
    """Look at a question; if the whole look fails, try again later and go on with the others."""
    try:
        return await look_at(watcher, id, watcher.clock(), if_due=True) is not None
    except (InputError, NoAnswer, ModelError, SourceError, CannotForecast) as error:
        watcher.failed(f"{id} could not be looked at: {for_log(error)}")
        store = watcher.store
        await store.db.aside(store.plan, id, watcher.clock() + RETRY)
        return False
