"""What happened while a tree grew, told in the order of the tree: which leaf was quicker is chance and is not told."""

import asyncio
import json
from collections.abc import Iterable, Sequence
from typing import Literal

from foretell.forecasters.tree.proposition import Tree, post_order
from foretell.questions.forecast import Cost
from foretell.questions.trace import EmitEvent, ModelCalled, TraceEvent, ignore_event

Stage = Literal["analysis", "grounding", "synthesis"]


class JobEvents:
    """The events of one job, in an order that replies decide and not the clock.

    What tasks tell that ran side by side within the job is held until the job's own task speaks again; which of them
    comes first is decided by what they tell. Made in the job's own task.
    """

    def __init__(self, watch: EmitEvent) -> None:
        self._watch = watch
        self._own = asyncio.current_task()
        self._events: list[TraceEvent] = []
        self._held: dict[object, list[TraceEvent]] = {}

    def __call__(self, event: TraceEvent) -> None:
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

    def events(self) -> list[TraceEvent]:
        """All of them."""
        groups = sorted(self._held.values(), key=_written) if len(self._held) > 1 else self._held.values()
        return [*self._events, *(event for group in groups for event in group)]


def _written(group: Sequence[TraceEvent]) -> str:
    return json.dumps([[type(event).__name__, vars(event)] for event in group], sort_keys=True, default=str)


class TreeEventLog:
    """Keeps the events of every job apart, and passes them on at once to whoever watches."""

    def __init__(self, watch: EmitEvent = ignore_event) -> None:
        self._watch = watch
        self._told: dict[tuple[Stage, str], JobEvents] = {}

    def of(self, stage: Stage, node: str) -> EmitEvent:
        """The listener of one job; asked for in the job's own task, once."""
        self._told[stage, node] = JobEvents(self._watch)
        return self._told[stage, node]

    def events(self, tree: Tree) -> list[TraceEvent]:
        """All events: analyses from the root down, then leaves, then syntheses from the leaves up."""
        up = post_order(tree)
        down = list(tree.nodes)
        order: list[tuple[Stage, Iterable[str]]] = [("analysis", down), ("grounding", down), ("synthesis", up)]
        jobs = [self._told[stage, node] for stage, nodes in order for node in nodes if (stage, node) in self._told]
        return [event for told in jobs for event in told.events()]

    def usage(self) -> Cost:
        """What the models cost together."""
        return usage_of(event for told in self._told.values() for event in told.events())


def usage_of(events: Iterable[TraceEvent]) -> Cost:
    """What the model calls among some events cost."""
    called = [event for event in events if isinstance(event, ModelCalled)]
    return Cost(
        dollars=sum(event.dollars or 0.0 for event in called),
        input_tokens=sum(event.input_tokens for event in called),
        output_tokens=sum(event.output_tokens for event in called),
        calls=len(called),
    )


# What happened while thoughts were thought, told in the order of their places and never in that of the clock.

ThoughtPosition = tuple[int, int, int]
"""Which tree, which level of it, and which of the lines that reach it."""
JobKey = tuple[int, ...]
"""A place with what is done there; jobs are told in their order."""


def job_key(place: ThoughtPosition, stage: int, number: int = 0) -> JobKey:
    """One job: stage by stage within a level (proposals, groundings, ratings, conclusions), then line by line.

    >>> job_key((1, 2, 3), 0) < job_key((1, 2, 1), 1) < job_key((1, 3, 1), 0)
    True
    """
    tree, level, branch = place
    return (tree, level, stage, branch, number)


class ThoughtEventLog:
    """Keeps the events of every job apart, and passes them on at once to whoever watches."""

    def __init__(self, watch: EmitEvent = ignore_event) -> None:
        self._watch = watch
        self._told: dict[JobKey, JobEvents] = {}

    def of(self, job: JobKey) -> EmitEvent:
        """The listener of one job; asked for in the job's own task, once."""
        if job in self._told:
            raise ValueError(f"the job {job} was begun twice")
        self._told[job] = JobEvents(self._watch)
        return self._told[job]

    def events(self) -> list[TraceEvent]:
        """All of them, job by job."""
        return [event for job in sorted(self._told) for event in self._told[job].events()]

    def usage(self) -> Cost:
        """What the models cost together."""
        return usage_of(self.events())
