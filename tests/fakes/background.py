"""A server of this package on its own event loop in a thread, so that it answers while a test waits."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar

from foretell.practice.server import PracticeServer

Server = TypeVar("Server", bound=PracticeServer)


class Background(Generic[Server]):
    """A server that listens from its creation until it is closed."""

    def __init__(self, make: Callable[[], Server]) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.server = make()
        self._on_loop(self.server.__aenter__())

    def _on_loop(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=30)

    @property
    def url(self) -> str:
        return self.server.url

    def close(self) -> None:
        self._on_loop(self.server.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
