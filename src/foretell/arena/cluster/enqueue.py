"""Which cells of a run are queued, and when all of them have ended."""

from collections.abc import Iterable, Iterator, Sequence

from foretell.arena.cells import Cell
from foretell.arena.cluster.engine import CellQueue, Queued
from foretell.arena.store import CellKey, Store


def not_queued(cells: Iterable[Cell], standing: Iterable[Queued]) -> Iterator[Queued]:
    """Those of the cells that nobody has before them, each as the attempt after its last.

    >>> list(not_queued([], []))
    []
    """
    last: dict[CellKey, Queued] = {}
    for queued in standing:
        if queued.key not in last or queued.attempt > last[queued.key].attempt:
            last[queued.key] = queued
    for cell in cells:
        before = last.get(cell.key)
        if before is None:
            yield Queued(key=cell.key)
        elif not before.open:
            yield Queued(key=cell.key, attempt=before.attempt + 1)


def unanswered(store: Store, cells: Sequence[Cell]) -> list[Cell]:
    """Cells that have neither forecast nor failure."""
    if not cells:
        return []
    ended = store.ended(cells[0].run)
    return [cell for cell in cells if (cell.key.question, cell.key.due, cell.key.trial) not in ended]


def enqueue(queue: CellQueue, store: Store, cells: Sequence[Cell]) -> list[Cell]:
    """Queue what is open and not queued yet; done again, it changes nothing. What is open."""
    left = unanswered(store, cells)
    if left:
        standing = queue.of_run(left[0].run)
        queue.add(not_queued(unanswered(store, left), standing))
    return left
