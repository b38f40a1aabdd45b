"""Events of one cell in an order that its replies decide, not the clock."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from foretell.questions.event import Emit, Event


class InOrder:
    """Passes events on. Those of tasks that ran side by side are held until the cell's own task speaks again.

    Each task's events stay together; which task comes first is decided by what they tell, because which was quicker is
    chance. Made in the cell's own task.
    """

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._own = asyncio.current_task()
        self._held: dict[Any, list[Event]] = {}

    def __call__(self, event: Event) -> None:
        """Tell it now, or when its turn comes."""
        task = asyncio.current_task()
        if task is self._own:
            self.release()
            self._emit(event)
        else:
            self._held.setdefault(task, []).append(event)

    def release(self) -> None:
        """Tell what was held."""
        groups = list(self._held.values())
        self._held.clear()
        for group in sorted(groups, key=_written) if len(groups) > 1 else groups:
            for event in group:
                self._emit(event)


def _written(group: Sequence[Event]) -> str:
    return json.dumps([[type(event).__name__, vars(event)] for event in group], sort_keys=True, default=str)
