"""What the terminal shows while an operation runs: bars, a live view of a run or a tree, and confirmation prompts."""

import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import click

from foretell.number_text import duration, percent

if TYPE_CHECKING:
    import asyncio

    from rich.progress import ProgressColumn

    from foretell.arena.live import LiveArena
    from foretell.data.http import Progress
    from foretell.operations.submit import SubmissionPreview
    from foretell.questions.trace import NodeAnalyzed, TraceEvent
    from foretell.runs.executor import RunProgress

Reporting = Generator[dict[str, Any]]
"""Yields the arguments by which an operation reports its progress."""
TREE_LINES, RUN_LINES = 8, 12


def report_line(text: str) -> None:
    """Print a line to standard error."""
    from foretell.report.terminal import echo

    echo(text, err=True)


# Bars on the error stream, shown only in a terminal.


@contextmanager
def _bars(*columns: "ProgressColumn | str") -> Generator[Any]:
    from rich.progress import Progress

    from foretell.report.terminal import console as make_console

    console = make_console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        yield bars


@contextmanager
def progress_bar(what: str) -> Reporting:
    """Show a progress bar with the time left."""
    from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn

    with _bars(what, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()) as bars:
        task = bars.add_task(what, total=None)

        def progress(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total)

        yield {"progress": progress}


@contextmanager
def run_progress() -> Reporting:
    """Show trials done, failures, cost, calls, pending replies and time left."""
    from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn

    from foretell.models.waiting import waiting_text

    spent = "{task.fields[failed]} · {task.fields[money]} · {task.fields[calls]} calls{task.fields[waiting]}"
    with _bars(BarColumn(), MofNCompleteColumn(), spent, TimeRemainingColumn()) as bars:
        task = bars.add_task("run", total=None, failed="0 failed", money="", calls=0, waiting="")

        def watch(now: "RunProgress") -> None:
            failed = f"{now.failed} failed" if not now.fallback else f"{now.failed} failed, {now.fallback} fallback"
            waiting = waiting_text()
            if now.fetched < now.wanted:
                bars.update(task, description="values", total=now.wanted, completed=now.fetched)
                return
            counts = {"failed": failed, "money": str(now.money), "calls": now.calls}
            counts["waiting"] = f" · {waiting}" if waiting else ""
            bars.update(task, description="run", total=now.total, completed=now.done, **counts)

        yield {"watch": watch}


@contextmanager
def _run_with_lines() -> Reporting:
    with run_progress() as reporting:
        yield {**reporting, "tell": report_line}


@contextmanager
def _downloads() -> Reporting:
    """Show a bar for each file."""
    from rich.progress import Progress

    with _bars(*Progress.get_default_columns()) as bars:

        def watch(name: str) -> "Progress":
            task = bars.add_task(name, total=None)
            return lambda received, total: bars.update(task, completed=received, total=total)

        yield {"watch": watch}


# Live views of a run and a tree.


class LiveView:
    """The base of the live views: recent lines, and counts of calls, dollars and withheld texts."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        from foretell.questions.trace import CallMeter

        self.meter = CallMeter()
        self.withheld = 0

    def count(self, event: "TraceEvent") -> None:
        """Count model calls, their cost and withheld texts."""
        from foretell.questions.trace import LeakBlocked

        self.meter.count(event)
        self.withheld += isinstance(event, LeakBlocked)

    def counts(self) -> str:
        """Return calls, dollars, withheld texts and pending requests as text."""
        from foretell.models.ledger import Money
        from foretell.models.waiting import waiting_text

        cost = self.meter.cost
        money = str(Money(billed=cost.dollars, reused=cost.reused))
        parts = (f"{cost.calls} calls", money, f"{self.withheld} withheld", waiting_text())
        return " · ".join(filter(None, parts))


class TreeLiveView(LiveView):
    """A live view of a growing tree, with an estimate of the time left."""

    def __init__(self) -> None:
        super().__init__()
        self.claims = 1
        self.parents: set[tuple[str, str]] = set()
        self.grounded = 0
        self.failed = 0
        self.joined = 0

    def add(self, event: "TraceEvent") -> None:
        """Update the view with one event."""
        from foretell.questions.trace import NodeAnalyzed, NodeGrounded, NodeSynthesized, ToolUsed

        match event:
            case NodeAnalyzed():
                self.claims += len(event.added)
                self.parents |= {(event.tree, id) for id in _parents(event)}
                self.lines.append(f"{event.node} broken down into {len(event.added)} claims")
            case NodeGrounded():
                self.grounded += 1
                self.failed += event.p is None
                result = percent(event.p) if event.p is not None else f"failed: {event.error[:80]}"
                self.lines.append(f"{event.node} grounded by {event.grounder}: {result}")
            case NodeSynthesized():
                self.joined += 1
                result = "nothing" if event.p is None else percent(event.p)
                failed = next((f", {note[:120]}" for note in event.notes if note.startswith("synthesis failed")), "")
                self.lines.append(f"{event.node} put together: {result}{failed}")
            case ToolUsed():
                words = next((str(value) for value in event.arguments.values()), "")
                self.lines.append(f"  {event.tool} {words[:70]}")
            case _:
                self.count(event)

    def text(self, elapsed: float) -> str:
        """Return the view as lines of text.

        >>> from foretell.questions.trace import NodeAnalyzed, NodeGrounded
        >>> view = TreeLiveView()
        >>> view.add(NodeAnalyzed(node="P0", added=("P1", "P2"), claims={"P1": "a", "P2": "b"}))
        >>> view.add(NodeGrounded(node="P1", p=0.4, grounder="search"))
        >>> print(view.text(10.0))
        P0 broken down into 2 claims
        P1 grounded by search: 40 %
        3 claims · 1 of 2 leaves grounded · 0 of 1 put together · 0 calls · $0 billed · 0 withheld · about 20 s left
        """
        leaves, done = self.claims - len(self.parents), self.grounded + self.joined
        failed = f" ({self.failed} failed)" if self.failed else ""
        parts = [
            f"{self.claims} claims",
            f"{self.grounded} of {leaves} leaves grounded{failed}",
            f"{self.joined} of {len(self.parents)} put together",
            self.counts(),
        ]
        if done:  # Assumes that leaves and parents take equally long.
            parts.append(f"about {duration(elapsed * (self.claims - done) / done)} left")
        return "\n".join([*self.lines[-TREE_LINES:], " · ".join(parts)])


def _parents(event: "NodeAnalyzed") -> set[str]:
    """Return the claims that now have children, according to the ids that were added."""
    if not event.added:
        return set()
    above = {id.rpartition(".")[0] for id in event.added if "." in id}
    return {id for id in above if id in event.claims} | {event.node}


class RunLiveView(LiveView):
    """A live view of a run: how estimates changed, searches, withheld texts and cost."""

    def __init__(self) -> None:
        super().__init__()
        self.path: dict[int, list[float]] = {}
        """Trial → probability of the first target after every step."""

    def add(self, trial: int, event: "TraceEvent") -> None:
        """Update the view with one event."""
        from foretell.questions.trace import BeliefRevised, ToolUsed

        match event:
            case BeliefRevised():
                self.path.setdefault(trial, []).append(next(iter(event.p.values())))
            case ToolUsed():
                words = next((str(v) for k, v in event.arguments.items() if k != "updated_belief"), "")
                self.lines.append(f"trial {trial}, step {event.step}: {event.tool} {words[:70]}")
            case _:
                self.count(event)

    def text(self, _: float) -> str:
        """Return the view as lines of text.

        >>> from foretell.questions.trace import BeliefRevised
        >>> view = RunLiveView()
        >>> view.add(0, BeliefRevised(step=1, p={"yes": 0.4}, reason="", belief={}))
        >>> view.add(0, BeliefRevised(step=2, p={"yes": 0.25}, reason="", belief={}))
        >>> print(view.text(1.0))
        trial 0: 40 % → 25 %
        0 calls · $0 billed · 0 withheld
        """
        paths = [f"trial {trial}: {' → '.join(map(percent, path))}" for trial, path in sorted(self.path.items())]
        return "\n".join([*paths, *self.lines[-RUN_LINES:], self.counts()])


@contextmanager
def live_view(kind: "type[TreeLiveView | RunLiveView]") -> Reporting:
    """Draw a view on standard error four times a second, if that is a terminal."""
    from rich.live import Live
    from rich.text import Text

    from foretell.report.terminal import console as make_console

    view, console, began = kind(), make_console(stderr=True), time.monotonic()
    if not console.is_terminal:
        yield {"tell": report_line}
        return

    def drawn() -> Text:
        return Text(view.text(time.monotonic() - began))

    def tell(line: str) -> None:
        console.print(Text(line))

    with Live(console=console, transient=True, refresh_per_second=4, get_renderable=drawn):
        yield {"watch": view.add, "tell": tell}


@contextmanager
def _asking() -> Reporting:
    """Show the steps of the answer; a watch ends on a signal, after the looks that are under way."""
    from foretell.runs.event_loop import on_signals

    def begin(stop: "asyncio.Event") -> None:
        on_signals(stop.set)

    with live_view(RunLiveView) as reporting:
        yield {**reporting, "begin": begin}


# Lines, and confirmation before something is sent.


@contextmanager
def _lines() -> Reporting:
    yield {"tell": report_line}


@contextmanager
def _confirmation() -> Reporting:
    def confirm(preview: "SubmissionPreview") -> None:
        from foretell.questions.errors import InputError

        if not sys.stdin.isatty():
            raise InputError("confirmation needs a terminal", hint="pass --yes to send, or --dry-run to preview")
        for item in preview.fresh:
            report_line(f"  {item.question} {item.part}: {item.title}")
        click.confirm("Send?", abort=True, err=True)

    yield {"tell": report_line, "confirm": confirm}


@contextmanager
def _arena_service() -> Reporting:
    """Show a bar over contexts and forecasts; print the lines of a service, and stop it on a signal."""
    import asyncio
    from contextlib import ExitStack

    from foretell.report.terminal import echo
    from foretell.runs.event_loop import on_signals

    bars: dict[str, Any] = {}

    def begin(arena: "LiveArena", stop: asyncio.Event) -> None:
        on_signals(stop.set)
        report_line(f"arena {arena.name}: {len(arena.spec.entries)} entries; Ctrl-C to leave")

    with ExitStack() as stack:

        def watch(progress: "RunProgress") -> None:
            if not bars:  # A service, which prints lines, has no bar.
                bars.update(stack.enter_context(run_progress()))
            bars["watch"](progress)

        yield {"watch": watch, "tell": echo, "begin": begin}


VIEWS: Mapping[str, Callable[[], AbstractContextManager[Mapping[str, Any]]]] = {
    "ask": _asking,
    "tree grow": lambda: live_view(TreeLiveView),
    "tree update": lambda: live_view(TreeLiveView),
    "run": _run_with_lines,
    "grid": _run_with_lines,
    "audit": run_progress,
    "backtest": lambda: progress_bar("forecasting"),
    "demo": _lines,
    "arena run": _arena_service,
    "data pull": _downloads,
    "submit": _confirmation,
    "tournament run": _run_with_lines,
    "tournament results": _lines,
}
"""Words of a command → the progress view shown while it runs."""
