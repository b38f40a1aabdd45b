"""What happened while a tree grew, told in the order of the tree: which leaf was quicker is chance and is not told."""

import asyncio
import json
from collections.abc import Iterable, Sequence
from typing import Literal

from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.walk import post_order
from foretell.questions.event import Emit, Event, ModelCalled, ignore
from foretell.questions.forecast import Usage

Stage = Literal["analysis", "grounding", "synthesis"]


class Told:
    """The events of one job, in an order that replies decide and not the clock.

    What tasks tell that ran side by side within the job is held until the job's own task speaks again; which of them
    comes first is decided by what they tell. Made in the job's own task.
    """

    def __init__(self, watch: Emit) -> None:
        self._watch = watch
        self._own = asyncio.current_task()
        self._events: list[Event] = []
        self._held: dict[object, list[Event]] = {}

    def __call__(self, event: Event) -> None:
        """Take it in, and let whoever watches know at once."""
        self._watch(event)
        task = asyncio.current_task()
        if task is self._own:
            if self._held:
                self._events = self.events()
                self._held.clear()
            self._events.append(event)
        else:
            self._held.setdefault(task, []).append(event)

    def events(self) -> list[Event]:
        """All of them."""
        groups = sorted(self._held.values(), key=_written) if len(self._held) > 1 else self._held.values()
        return [*self._events, *(event for group in groups for event in group)]


def _written(group: Sequence[Event]) -> str:
    return json.dumps([[type(event).__name__, vars(event)] for event in group], sort_keys=True, default=str)


class Record:
    """Keeps the events of every job apart, and passes them on at once to whoever watches."""

    def __init__(self, watch: Emit = ignore) -> None:
        self._watch = watch
        self._told: dict[tuple[Stage, str], Told] = {}

    def of(self, stage: Stage, node: str) -> Emit:
        """The listener of one job; asked for in the job's own task, once."""
        self._told[stage, node] = Told(self._watch)
        return self._told[stage, node]

    def events(self, tree: Tree) -> list[Event]:
        """All events: analyses from the root down, then leaves, then syntheses from the leaves up."""
        up = post_order(tree)
        down = list(tree.nodes)
        order: list[tuple[Stage, Iterable[str]]] = [("analysis", down), ("grounding", down), ("synthesis", up)]
        jobs = [self._told[stage, node] for stage, nodes in order for node in nodes if (stage, node) in self._told]
        return [event for told in jobs for event in told.events()]

    def usage(self) -> Usage:
        """What the models cost together."""
        return usage_of(event for told in self._told.values() for event in told.events())


def usage_of(events: Iterable[Event]) -> Usage:
    """What the model calls among some events cost."""
    called = [event for event in events if isinstance(event, ModelCalled)]
    return Usage(
        dollars=sum(event.dollars or 0.0 for event in called),
        input_tokens=sum(event.input_tokens for event in called),
        output_tokens=sum(event.output_tokens for event in called),
        calls=len(called),
    )
