"""What the ledger says about one thing that might be sent: sent before, perhaps sent, or never."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from foretell.arena.ledger.entry import Entry

Key = tuple[str, str, str, str]


@dataclass(kw_only=True)
class Accounts:
    """Every intention with what became of it."""

    taken: dict[Key, list[Entry]] = field(default_factory=dict[Key, list[Entry]])
    """Intentions that were taken by the platform, oldest first."""
    open: dict[Key, list[Entry]] = field(default_factory=dict[Key, list[Entry]])
    """Intentions of which nobody has noted what became of them: the process ended in between."""

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> "Accounts":
        """From the entries in order."""
        found, by_number = cls(), dict[int, Entry]()
        for entry in entries:
            if entry.kind == "intention":
                by_number[entry.number] = entry
                found.open.setdefault(entry.key, []).append(entry)
            elif (meant := by_number.get(entry.content.get("intention", 0))) is not None:
                found._close(meant, taken=entry.kind == "receipt")
        return found

    def _close(self, meant: Entry, *, taken: bool) -> None:
        waiting = self.open.get(meant.key, [])
        if meant in waiting:
            waiting.remove(meant)
            if taken:
                self.taken.setdefault(meant.key, []).append(meant)
