"""What happened while thoughts were thought, told in the order of their places and never in that of the clock."""

from foretell.forecasters.tree.growing.record import Told, usage_of
from foretell.questions.event import Emit, Event, ignore
from foretell.questions.forecast import Usage

Place = tuple[int, int, int]
"""Which tree, which level of it, and which of the lines that reach it."""
Job = tuple[int, ...]
"""A place with what is done there; jobs are told in their order."""


def key(place: Place, stage: int, number: int = 0) -> Job:
    """One job: stage by stage within a level (proposals, groundings, ratings, conclusions), then line by line.

    >>> key((1, 2, 3), 0) < key((1, 2, 1), 1) < key((1, 3, 1), 0)
    True
    """
    tree, level, branch = place
    return (tree, level, stage, branch, number)


class Minutes:
    """Keeps the events of every job apart, and passes them on at once to whoever watches."""

    def __init__(self, watch: Emit = ignore) -> None:
        self._watch = watch
        self._told: dict[Job, Told] = {}

    def of(self, job: Job) -> Emit:
        """The listener of one job; asked for in the job's own task, once."""
        if job in self._told:
            raise ValueError(f"the job {job} was begun twice")
        self._told[job] = Told(self._watch)
        return self._told[job]

    def events(self) -> list[Event]:
        """All of them, job by job."""
        return [event for job in sorted(self._told) for event in self._told[job].events()]

    def usage(self) -> Usage:
        """What the models cost together."""
        return usage_of(self.events())
