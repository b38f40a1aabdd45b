"""What goes on, in the terminal: a run or a tree as it grows, what it costs, how long it may take."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from foretell.questions.trace import (
    BeliefRevised,
    EmitEvent,
    LeakBlocked,
    ModelCalled,
    NodeAnalyzed,
    NodeGrounded,
    NodeSynthesized,
    ToolUsed,
    TraceEvent,
    ignore_event,
)

if TYPE_CHECKING:
    from foretell.runs.executor import WatchEvents


TREE_LINES = 8


class TreeLiveView:
    """What was told so far, condensed."""

    def __init__(self) -> None:
        self.claims = 1
        self.parents: set[tuple[str, str]] = set()
        self.grounded = 0
        self.failed = 0
        self.joined = 0
        self.calls = 0
        self.dollars = 0.0
        self.withheld = 0
        self.lines: list[str] = []

    def add(self, event: TraceEvent) -> None:
        """Take in one event."""
        match event:
            case NodeAnalyzed():
                self.claims += len(event.added)
                self.parents |= {(event.tree, id) for id in _parents(event)}
                self.lines.append(f"{event.node} taken apart into {len(event.added)} claims")
            case NodeGrounded():
                self.grounded += 1
                self.failed += event.p is None
                told = f"{event.p:.0%}" if event.p is not None else f"failed: {event.error[:80]}"
                self.lines.append(f"{event.node} grounded by {event.grounder}: {told}")
            case NodeSynthesized():
                self.joined += 1
                told = f"{event.p:.0%}" if event.p is not None else "nothing"
                self.lines.append(f"{event.node} put together: {told}")
            case ToolUsed():
                words = next((str(value) for value in event.arguments.values()), "")
                self.lines.append(f"  {event.tool} {words[:70]}")
            case LeakBlocked():
                self.withheld += 1
            case ModelCalled():
                self.calls += 1
                self.dollars += event.dollars or 0.0
            case _:
                pass

    @property
    def leaves(self) -> int:
        """Claims that have no children so far."""
        return self.claims - len(self.parents)

    def left(self, elapsed: float) -> float | None:
        """Seconds that are left if it goes on as it has, leaves and parents counted alike; None before the first."""
        done = self.grounded + self.joined
        return elapsed * (self.claims - done) / done if done else None

    def text(self, elapsed: float = 0.0) -> str:
        """The view as lines of text.

        >>> view = TreeLiveView()
        >>> view.add(NodeAnalyzed(node="P0", added=("P1", "P2"), claims={"P1": "a", "P2": "b"}))
        >>> view.add(NodeGrounded(node="P1", p=0.4, grounder="search"))
        >>> print(view.text(elapsed=10.0))
        P0 taken apart into 2 claims
        P1 grounded by search: 40%
        3 claims · 1 of 2 leaves grounded · 0 of 1 put together · 0 calls · $0.0000 · 0 withheld · about 20 s left
        """
        failed = f" ({self.failed} failed)" if self.failed else ""
        parts = [
            f"{self.claims} claims",
            f"{self.grounded} of {self.leaves} leaves grounded{failed}",
            f"{self.joined} of {len(self.parents)} put together",
            f"{self.calls} calls",
            f"${self.dollars:.4f}",
            f"{self.withheld} withheld",
        ]
        left = self.left(elapsed)
        if left is not None:
            parts.append(f"about {left:.0f} s left")
        return "\n".join([*self.lines[-TREE_LINES:], " · ".join(parts)])


def _parents(event: NodeAnalyzed) -> set[str]:
    """The claims that have children now, told from the ids of those that were added."""
    if not event.added:
        return set()
    above = {id.rpartition(".")[0] for id in event.added if "." in id}
    return {id for id in above if id in event.claims} | {event.node}


# A run as it goes on, in the terminal: the belief's way, what was searched, what was withheld, what it costs.

RUN_LINES = 12


class RunLiveView:
    """What was told so far, condensed."""

    def __init__(self) -> None:
        self.path: dict[int, list[float]] = {}
        """By trial, the probability of the first target after every step."""
        self.lines: list[str] = []
        self.withheld = 0
        self.calls = 0
        self.dollars = 0.0

    def add(self, trial: int, event: TraceEvent) -> None:
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

        >>> view = RunLiveView()
        >>> view.add(0, BeliefRevised(step=1, p={"yes": 0.4}, reason="", belief={}))
        >>> view.add(0, BeliefRevised(step=2, p={"yes": 0.25}, reason="", belief={}))
        >>> print(view.text())
        trial 0: 40% → 25%
        0 calls · $0.0000 · 0 withheld
        """
        paths = [f"trial {trial}: {' → '.join(f'{p:.0%}' for p in path)}" for trial, path in sorted(self.path.items())]
        spent = f"{self.calls} calls · ${self.dollars:.4f} · {self.withheld} withheld"
        return "\n".join([*paths, *self.lines[-RUN_LINES:], spent])


@contextmanager
def _drawn(text: Callable[[float], str], *, shown: bool) -> Generator[bool]:
    """Draw a text, made anew four times a second, on standard error; only for a person at a terminal.

    Args:
        text: The text after so many seconds.
        shown: False where nobody wants to see it.
    """
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console, began = Console(stderr=True), time.monotonic()
    if not (shown and console.is_terminal):
        yield False
        return

    def drawn() -> Text:
        return Text(text(time.monotonic() - began))

    with Live(console=console, transient=True, refresh_per_second=4, get_renderable=drawn):
        yield True


@contextmanager
def tree_live_view(*, shown: bool) -> Generator[EmitEvent]:
    """Draws a tree's growth."""
    view = TreeLiveView()
    with _drawn(view.text, shown=shown) as visible:
        yield view.add if visible else ignore_event


@contextmanager
def run_live_view(*, shown: bool) -> "Generator[WatchEvents | None]":
    """Draws what happens in a run: beliefs, searches and cost."""
    view = RunLiveView()
    with _drawn(lambda _: view.text(), shown=shown) as visible:
        yield view.add if visible else None
