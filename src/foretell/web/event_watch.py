"""A single poll of the store on behalf of all listeners: idle streams sleep until something happens in their run."""

import asyncio
import logging
import sys
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b

from starlette.concurrency import run_in_threadpool

from foretell.runs.store import RunStore, TrialKey

LOOK_SECONDS = 0.25
"""Seconds between two polls of the store, however many listeners there are."""
CALM_SECONDS = 2.0
"""Seconds between two checks whether a quiet run is over."""
LOOKS_AFTER_NEWS = 4
"""Polls after an event that all check the run, because its last trial is stored after its last event."""
CALM_AT_ONCE = 20
"""Maximum number of quiet runs checked per poll."""
PIECES_KEPT = 64
"""Number of stream chunks cached for other listeners at the same position."""
MAX_STREAMS, MAX_STREAMS_OF_CLIENT = 600, 450
"""Maximum number of concurrent streams, in total and per client address."""

Topic = tuple[str, str | None]
"""A run, or one question of it."""

log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class WatchedTopic:
    """What is known about a run, or about one question of it; shared by all its listeners."""

    news: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there is something to read; replaced by a new event for those who wait afterwards."""
    over: bool = False
    listeners: int = 0
    pending: str = ""
    """Digest of what its trials wait for."""
    looks: int = LOOKS_AFTER_NEWS
    next_look: float = 0.0

    def wake(self) -> None:
        """Wake all listeners, and make them wait on a new event next time."""
        self.news.set()
        self.news = asyncio.Event()


class EventWatch:
    """Polls the store for all streams of a server while there are any. Belongs to one event loop."""

    def __init__(
        self, store: RunStore, over: Callable[[str, str | None], bool], shutting_down: threading.Event
    ) -> None:
        """`over` tells whether nothing more will happen in a run, or to one question of it."""
        self._store = store
        self._over = over
        self._shutting_down = shutting_down
        self._topics: dict[Topic, WatchedTopic] = {}
        self._clients: Counter[str] = Counter()
        self._newest = 0
        self._looking: asyncio.Task[None] | None = None
        self._pieces: OrderedDict[tuple[object, ...], asyncio.Future[object]] = OrderedDict()

    def refusal(self, client: str) -> str:
        """Return why another stream of this client is refused; empty if it is not."""
        if self._clients[client] >= MAX_STREAMS_OF_CLIENT:
            return f"{MAX_STREAMS_OF_CLIENT} event streams of this address are open already; close one and try again"
        if self._clients.total() >= MAX_STREAMS:
            return f"{MAX_STREAMS} event streams are open already; try again in a few seconds"
        return ""

    @contextmanager
    def place(self, client: str) -> Generator[None]:
        """Count a stream of this client while the context is open."""
        self._clients[client] += 1
        try:
            yield
        finally:
            self._clients[client] -= 1
            if not self._clients[client]:
                del self._clients[client]

    @asynccontextmanager
    async def listening(self, run: str, question: str | None) -> AsyncGenerator[WatchedTopic]:
        """Yield the topic of a run, or of one question of it, which signals news while the context is open."""
        topic = (run, question)
        watched = self._topics.setdefault(topic, WatchedTopic())
        watched.listeners += 1
        try:
            # Check again for this listener, which may have come after the last poll.
            newest, _, over, pending = await run_in_threadpool(self.look, sys.maxsize, [topic])
            watched.over = over[topic]
            watched.pending = pending_digest(pending, *topic)
            if self._looking is None or self._looking.done():
                self._newest = newest
                self._looking = asyncio.create_task(self._poll_repeatedly())
            yield watched
        finally:
            watched.listeners -= 1
            if not watched.listeners and self._topics.get(topic) is watched:
                del self._topics[topic]

    async def shared(self, key: tuple[object, ...], make: Callable[[], object]) -> object:
        """Return the result of `make`, computed once for all callers with the same key."""
        result = self._pieces.get(key)
        if result is None:
            result = self._pieces[key] = asyncio.ensure_future(run_in_threadpool(make))
            while len(self._pieces) > PIECES_KEPT:
                self._pieces.popitem(last=False)
        try:
            return await asyncio.shield(result)
        except BaseException:
            if result.done():  # Do not cache failures for other callers.
                self._pieces.pop(key, None)
            raise

    async def _poll_repeatedly(self) -> None:
        while self._topics:
            try:
                await self._poll_once()
            except Exception:  # Keep polling: the next poll may succeed.
                log.exception("polling for events failed")
            await asyncio.sleep(LOOK_SECONDS)

    async def _poll_once(self) -> None:
        if self._shutting_down.is_set():
            for watched in self._topics.values():
                watched.wake()
        topics = [topic for topic, watched in self._topics.items() if watched.looks > 0]
        calm = [topic for topic, watched in self._topics.items() if watched.looks <= 0]
        now = time.monotonic()
        topics += [topic for topic in calm if self._topics[topic].next_look <= now][:CALM_AT_ONCE]
        newest, happened, over, pending = await run_in_threadpool(self.look, self._newest, topics)
        numbers_fell, self._newest = newest < self._newest, newest
        for topic in over.keys() & self._topics.keys():
            watched = self._topics[topic]
            watched.looks -= 1
            watched.next_look = now + CALM_SECONDS
            if over[topic] != watched.over:
                watched.over = over[topic]
                watched.wake()
        for topic, watched in self._topics.items():
            if topic[0] in happened or numbers_fell:
                watched.looks = LOOKS_AFTER_NEWS
                watched.wake()
            if (digest := pending_digest(pending, *topic)) != watched.pending:
                watched.pending = digest
                watched.wake()

    def look(self, seen: int, topics: list[Topic]) -> tuple[int, set[str], dict[Topic, bool], Mapping[TrialKey, str]]:
        """Return the newest event's number, runs with events after `seen`, which topics are over, and pending work."""
        newest = self._store.last_event()
        happened = self._store.runs_with_events(seen) if newest > seen else set[str]()
        return newest, happened, {topic: self._over(*topic) for topic in topics}, self._store.pending_work()


def pending_digest(pending: Mapping[TrialKey, str], run: str, question: str | None = None) -> str:
    """Return a short text that changes with what the trials of a run, or of one of its questions, wait for."""
    own = [(key, body) for key, body in pending.items() if key.run == run and question in (None, key.question)]
    return blake2b(repr(own).encode(), digest_size=6).hexdigest() if own else ""
