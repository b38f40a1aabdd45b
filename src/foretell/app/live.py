"""A run as it goes on, in the terminal: the belief's way, what was searched, what was withheld, what it costs."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from foretell.app.settings import Settings
from foretell.questions.event import BeliefRevised, Event, LeakBlocked, ModelCalled, ToolUsed

if TYPE_CHECKING:
    from foretell.app.running import Watch

LINES = 12


class View:
    """What was told so far, condensed."""

    def __init__(self) -> None:
        self.path: dict[int, list[float]] = {}
        """By trial, the probability of the first target after every step."""
        self.lines: list[str] = []
        self.withheld = 0
        self.calls = 0
        self.dollars = 0.0

    def add(self, trial: int, event: Event) -> None:
        """Take in one event."""
        match event:
            case BeliefRevised():
                self.path.setdefault(trial, []).append(next(iter(event.p.values())))
            case ToolUsed():
                words = next((str(v) for k, v in event.arguments.items() if k != "updated_belief"), "")
                self.lines.append(f"trial {trial}, step {event.step}: {event.tool} {words[:70]}")
            case LeakBlocked():
                self.withheld += 1
            case ModelCalled():
                self.calls += 1
                self.dollars += event.dollars or 0.0
            case _:
                pass

    def text(self) -> str:
        """The view as lines of text.

        >>> view = View()
        >>> view.add(0, BeliefRevised(step=1, p={"yes": 0.4}, reason="", belief={}))
        >>> view.add(0, BeliefRevised(step=2, p={"yes": 0.25}, reason="", belief={}))
        >>> print(view.text())
        trial 0: 40% → 25%
        0 calls · $0.0000 · 0 withheld
        """
        paths = [f"trial {trial}: {' → '.join(f'{p:.0%}' for p in path)}" for trial, path in sorted(self.path.items())]
        spent = f"{self.calls} calls · ${self.dollars:.4f} · {self.withheld} withheld"
        return "\n".join([*paths, *self.lines[-LINES:], spent])


@contextmanager
def live_view(settings: Settings, run: str, *, shown: bool) -> "Generator[Watch | None]":
    """Follows the event store while a run goes on; shown only to a person at a terminal."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(stderr=True)
    if not (shown and console.is_terminal):
        yield None
        return
    view, stop = View(), threading.Event()
    with Live(Text(""), console=console, transient=True, refresh_per_second=4) as live:
        follower = threading.Thread(
            target=_follow, args=(settings, run, view, stop, lambda: live.update(Text(view.text())))
        )
        follower.start()
        try:
            yield None
        finally:
            stop.set()
            follower.join()


def _follow(settings: Settings, run: str, view: View, stop: threading.Event, redraw: Callable[[], None]) -> None:
    """Read new events from the store every now and then, as any other reader would."""
    from foretell.arena.store import Store

    store, seen = Store(settings.store), 0
    while not stop.wait(0.25):
        for number, key, event in store.events(run, after=seen):
            view.add(key.trial, event)
            seen = number
        redraw()
    store.close()
