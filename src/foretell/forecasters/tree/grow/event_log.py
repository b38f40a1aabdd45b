"""Events of concurrent jobs, in an order that depends on the tree and not on timing."""

from collections.abc import Iterable
from math import fsum
from typing import Generic, TypeVar

from foretell.forecasters.forecaster import EventOrdering
from foretell.forecasters.tree.proposition import Tree, post_order
from foretell.questions.forecast import Cost
from foretell.questions.trace import EmitEvent, ModelCalled, TraceEvent, ignore_event

Key = TypeVar("Key")


class JobEvents(EventOrdering):
    """The events of one job, in an order that depends on replies and not on timing. Create it in the job's own task."""

    def __init__(self, on_event: EmitEvent) -> None:
        self._on_event = on_event
        self._ordered: list[TraceEvent] = []
        super().__init__(self._ordered.append)

    def __call__(self, event: TraceEvent) -> None:
        """Store the event and forward it immediately."""
        self._on_event(event)
        super().__call__(event)

    def events(self) -> list[TraceEvent]:
        """Return all events of the job, in order."""
        return [*self._ordered, *self.held()]


class EventLog(Generic[Key]):
    """Stores events by job and forwards them immediately to a listener."""

    def __init__(self, on_event: EmitEvent = ignore_event) -> None:
        self._on_event = on_event
        self.jobs: dict[Key, JobEvents] = {}

    def job(self, key: Key) -> EmitEvent:
        """Return the listener of a new job; call this once, in the job's own task."""
        if key in self.jobs:
            raise ValueError(f"the job {key} was begun twice")
        self.jobs[key] = JobEvents(self._on_event)
        return self.jobs[key]

    def events(self, order: Iterable[Key]) -> list[TraceEvent]:
        """Return all events, job by job in this order, which may include jobs that never ran."""
        return [event for key in order if key in self.jobs for event in self.jobs[key].events()]

    def usage(self) -> Cost:
        """Total cost of the model calls."""
        called = self._calls()
        return Cost(
            # Calls end in any order, and plain sums of floats remember it.
            dollars=round(fsum(event.dollars or 0.0 for event in called), 12),
            input_tokens=sum(event.input_tokens for event in called),
            output_tokens=sum(event.output_tokens for event in called),
            calls=len(called),
            unpriced=sum(event.dollars is None for event in called),
        )

    def models(self) -> tuple[str, ...]:
        """Models used, as ROLE=MODEL."""
        return tuple(sorted({f"{event.role}={event.model}" for event in self._calls()}))

    def _calls(self) -> list[ModelCalled]:
        return [event for event in self.events(self.jobs) if isinstance(event, ModelCalled)]


TreeJob = tuple[str, str]
"""A stage ("analysis", "grounding" or "synthesis") and the claim."""


def tree_job_order(tree: Tree) -> list[TreeJob]:
    """Return the order of jobs: analyses from the root down, then leaves, then syntheses from the leaves up."""
    down, up = list(tree.nodes), post_order(tree)
    stages = (("analysis", down), ("grounding", down), ("synthesis", up))
    return [(stage, node) for stage, nodes in stages for node in nodes]
