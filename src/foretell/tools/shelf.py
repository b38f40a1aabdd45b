"""What a model was allowed to see, by the id under which it may be cited and read further."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MethodType
from weakref import WeakMethod

from foretell.tools.tool import Item, ToolFailed

READ_LIMIT = 24_000
"""Characters of one text that can ever be read."""


@dataclass(frozen=True, kw_only=True)
class Admitted:
    """An item that passed the fence."""

    id: str
    item: Item
    shown: str
    """What the model saw of it."""
    whole: bool
    """Whether the whole text was judged; if not, only what was shown may be used."""

    @property
    def url(self) -> str:
        """Where it is from."""
        return self.item.url

    @property
    def title(self) -> str:
        """Its headline."""
        return self.item.title

    @property
    def published(self) -> datetime | None:
        """Its date, or that of the stored version."""
        return self.item.published or self.item.captured


Vet = Callable[[Sequence[Admitted]], Awaitable[list[bool]]]
"""Judges the whole text of items of which only a part was shown."""


class Shelf:
    """Admitted items in the order of their arrival. Only the fence puts something on it."""

    def __init__(self) -> None:
        self._admitted: dict[str, Admitted] = {}
        self._vet: Callable[[], Vet | None] | None = None

    def __contains__(self, source_id: str) -> bool:
        return source_id in self._admitted

    def __len__(self) -> int:
        return len(self._admitted)

    def __getitem__(self, source_id: str) -> Admitted:
        return self._admitted[source_id]

    @property
    def ids(self) -> tuple[str, ...]:
        """Everything that may be cited."""
        return tuple(self._admitted)

    def guard(self, vet: Vet) -> None:
        """From now on whole texts are judged by `vet` before they are read. One fence per shelf."""
        if self._vet is not None:
            raise ValueError("this shelf already belongs to a fence; every trial needs its own")
        # Weakly: a fence holds its shelf, and the two in a circle would keep every text of a trial long after its end.
        self._vet = WeakMethod(vet) if isinstance(vet, MethodType) else lambda: vet

    def put(self, admitted: Admitted) -> None:
        """Keep an item that passed."""
        self._admitted[admitted.id] = admitted

    async def read(self, ids: Sequence[str]) -> list[tuple[Admitted, str]]:
        """Items with as much of their text as may be read: all of it where it passes, else what was shown before."""
        unknown = [source_id for source_id in ids if source_id not in self._admitted]
        if unknown:
            known = ", ".join(self._admitted) or "none yet"
            raise ToolFailed(f"There is no result {unknown[0]!r}. Results so far: {known}.")
        vet = self._vet() if self._vet is not None else None
        if vet is None:
            raise ToolFailed("Nothing can be read: no fence guards these results.")
        partly = [self._admitted[source_id] for source_id in dict.fromkeys(ids) if not self._admitted[source_id].whole]
        for admitted, passed in zip(partly, await vet(partly) if partly else [], strict=True):
            shown = admitted.item.text[:READ_LIMIT] if passed else admitted.shown
            self._admitted[admitted.id] = replace(
                admitted, whole=True, item=replace(admitted.item, text=shown), shown=admitted.shown
            )
        return [(found := self._admitted[source_id], found.item.text[:READ_LIMIT]) for source_id in dict.fromkeys(ids)]
