"""Is the ledger as it was written? Names the first entry that is not."""

from collections.abc import Sequence
from dataclasses import dataclass

from foretell.arena.ledger.entry import START, Entry, Head


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a look at every line found."""

    entries: int
    """Good ones, from the first on."""
    head: Head | None
    """The last good one."""
    broken: str = ""
    """The first entry that is not as it was written, and why."""
    torn: bool = False
    """The last line was never finished: a crash while writing. It holds nothing that was acted upon."""
    cut: str = ""
    """Why a head noted elsewhere does not belong to this ledger."""

    @property
    def whole(self) -> bool:
        """Whether it is as it was written, as far as can be told."""
        return not self.broken and not self.cut

    def __str__(self) -> str:
        """For people."""
        if self.broken:
            return f"broken: {self.broken}; {self.entries} entries before it are as they were written"
        told = f"{self.entries} entries, each as it was written"
        told += f"; head {self.head}" if self.head else ""
        if self.cut:
            return f"broken: {self.cut}; what is here is a chain of {told}"
        return told + ("; the last line was never finished and does not count" if self.torn else "")


def verify(text: bytes, noted: Head | None = None) -> Verdict:
    """Check every line against the one before it, and the whole against a head noted elsewhere.

    A chain cannot show by itself that its tail was cut off or written anew: only a noted head can.
    """
    *lines, rest = text.split(b"\n")
    good: list[Entry] = []
    broken = ""
    for number, line in enumerate(lines, start=1):
        found = _read(line, number)
        broken = found if isinstance(found, str) else _misplaced(found, good, lines)
        if isinstance(found, str) or broken:
            break
        good.append(found)
    cut = "" if noted is None or broken else _cut(good, noted)
    return Verdict(
        entries=len(good), head=good[-1].head if good else None, broken=broken, torn=bool(rest) and not broken, cut=cut
    )


def _read(line: bytes, number: int) -> Entry | str:
    """The entry of a line by itself, or what is wrong with it."""
    try:
        entry = Entry.read(line.decode())
    except (ValueError, TypeError) as error:
        return f"entry {number} (line {number}) cannot be read: {error}"
    fault = entry.fault() or ("" if entry.line().encode() == line else "it was written anew")
    return f"entry {entry.number} (line {number}): {fault}" if fault else entry


def _misplaced(entry: Entry, good: Sequence[Entry], lines: Sequence[bytes]) -> str:
    """Why a sealed entry cannot follow those before it; empty if it can."""
    expected, previous = len(good) + 1, good[-1].hash if good else START
    if entry.number == expected:
        return "" if entry.previous == previous else f"entry {expected} follows another entry {expected - 1}"
    numbers = {other.number for line in lines if isinstance(other := _read(line, 0), Entry)}
    if entry.number > expected and expected not in numbers:
        last = entry.number - 1
        gone = f"entry {expected} is" if last == expected else f"entries {expected} to {last} are"
        return f"{gone} missing before entry {entry.number}"
    return f"entry {entry.number} stands in the place of entry {expected}: the order was changed, or it is repeated"


def _cut(good: Sequence[Entry], noted: Head) -> str:
    if any(noted.names(entry) for entry in good):
        return ""
    if noted.number is not None and noted.number > len(good):
        return f"entry {noted.number}, which was noted, is not there: the end was cut off"
    return "the entry that was noted is not there: the end was cut off or written anew"
