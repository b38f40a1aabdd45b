"""The ledger of submissions: a hash chain of entries in which any later change is detected."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_args

from foretell.data.files import BINARY
from foretell.frozen import frozen
from foretell.questions.errors import InputError, storage_error
from foretell.questions.file_lock import locked
from foretell.runs.settings import Settings

# Entries record what was going to be sent and its result. Each contains the hash of the entry before it.

EntryKind = Literal["intention", "receipt", "refusal", "absence"]
"""An intention is written before sending; the other kinds record that it was accepted, refused, or did not arrive."""
FIRST_PREVIOUS = "0" * 64
"""The previous hash of the first entry."""
SHORTEST_HASH = 12
"""Minimum number of characters of a hash that identify an entry."""


def canonical(value: Any) -> str:
    """Encode a value as canonical JSON: sorted keys, no spaces, no NaN.

    >>> canonical({"b": 0.1, "a": [1, None]})
    '{"a":[1,null],"b":0.1}'
    """
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def digest_of(value: Any) -> str:
    """Return the SHA-256 of a value's canonical JSON.

    >>> digest_of({}) == hashlib.sha256(b"{}").hexdigest()
    True
    """
    return hashlib.sha256(canonical(value).encode()).hexdigest()


@frozen
class LedgerDraft:
    """An entry before it is added to the ledger."""

    kind: EntryKind
    platform: str
    account: str
    question: str
    part: str
    """Which part of the question it concerns, such as its forecast or a comment."""
    content: Mapping[str, Any]
    """What is sent. A result has the number of its intention, the digest of what was sent, and the reply."""


@frozen
class LedgerEntry(LedgerDraft):
    """An entry of the ledger. Its hash covers all other fields, including the hash of the entry before it."""

    number: int
    at: str
    digest: str
    """SHA-256 of the content."""
    previous: str
    hash: str

    @classmethod
    def sealed(cls, draft: LedgerDraft, *, number: int, at: str, previous: str) -> "LedgerEntry":
        """Create an entry from a draft by computing its hashes."""
        # Not `asdict`, because copying a long content takes longer than hashing it.
        body: dict[str, Any] = dict(vars(draft))
        body |= {"number": number, "at": at, "digest": digest_of(draft.content), "previous": previous}
        return cls(**body, hash=digest_of(body))

    @classmethod
    def read(cls, line: str) -> "LedgerEntry":
        """Parse a line of the ledger. Raises `ValueError` if it is not an entry."""
        body: Any = json.loads(line)
        if not isinstance(body, dict) or sorted(body) != sorted(field.name for field in fields(cls)):
            raise ValueError("it does not have the fields of an entry")
        entry = cls(**body)
        texts = [value for name, value in vars(entry).items() if name not in ("number", "content")]
        if (
            entry.kind not in get_args(EntryKind)
            or type(entry.number) is not int
            or not all(isinstance(text, str) for text in texts)
            or not isinstance(entry.content, dict)
            or (entry.kind != "intention" and type(entry.content.get("intention")) is not int)
        ):
            raise ValueError("its fields have wrong types")
        return entry

    def line(self) -> str:
        """Return the entry as a line of the file."""
        return canonical(vars(self))

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Identifies the item. Entries with the same key are about the same item."""
        return self.platform, self.account, self.question, self.part

    @property
    def head(self) -> "LedgerHead":
        """The head of a ledger that ends with this entry."""
        return LedgerHead(number=self.number, hash=self.hash)

    def fault(self) -> str:
        """Return what was changed after the entry was written; empty if nothing was."""
        if digest_of(self.content) != self.digest:
            return "its content was changed"
        body = dict(vars(self))
        del body["hash"]
        return "" if digest_of(body) == self.hash else "it was changed"


@frozen
class LedgerHead:
    """Identifies the last entry. A copy stored elsewhere proves that nothing was cut off the ledger.

    >>> LedgerHead.read("3:" + "ab" * 32)
    LedgerHead(number=3, hash='abab...')
    """

    number: int | None
    hash: str

    @classmethod
    def read(cls, text: str) -> "LedgerHead":
        """Parse `NUMBER:HASH`, or the beginning of a hash. Raises `ValueError` for anything else."""
        number, colon, hash = text.strip().rpartition(":")
        hash = hash.lower()
        if len(hash) < SHORTEST_HASH or not set(hash) <= set("0123456789abcdef") or (colon and not number.isdigit()):
            raise ValueError(
                f"{text!r} is not a NUMBER:HASH such as 12:9f86d081884c…, as foretell ledger prints it at the end"
            )
        return cls(number=int(number) if colon else None, hash=hash)

    def names(self, entry: LedgerEntry) -> bool:
        """Return whether this head identifies the entry."""
        return entry.hash.startswith(self.hash) and self.number in (None, entry.number)

    def __str__(self) -> str:
        """Format the head as `NUMBER:HASH`, or as the hash alone if there is no number."""
        return f"{self.number}:{self.hash}" if self.number is not None else self.hash


# Checking the ledger.


@frozen
class LedgerCheck:
    """The result of checking every line of the ledger."""

    entries: int
    """Number of intact entries from the start."""
    head: LedgerHead | None
    """The head of the last intact entry; None if there is none."""
    broken: str = ""
    """The first entry that was changed, and how; empty if there is none."""
    torn: bool = False
    """Whether the last line is incomplete because a crash interrupted the write. It was not acted on."""
    cut: str = ""
    """Why a head noted elsewhere does not belong to this ledger; empty if it does."""

    @classmethod
    def of(cls, good: Sequence[LedgerEntry], broken: str, torn: bool, noted: LedgerHead | None = None) -> "LedgerCheck":
        """Combine what was read with a head noted elsewhere, without which a chain cut at its end looks whole."""
        cut = "" if noted is None or broken else _missing_head(good, noted)
        return cls(entries=len(good), head=good[-1].head if good else None, broken=broken, torn=torn, cut=cut)

    @property
    def whole(self) -> bool:
        """Whether the ledger is intact, as far as it can be checked."""
        return not self.broken and not self.cut

    def __str__(self) -> str:
        """Describe the result in one line."""
        if self.broken:
            return f"broken: {self.broken}; the {self.entries} entries before it are intact"
        summary = f"{self.entries} intact entries"
        summary += f"; last hash {self.head}" if self.head else ""
        if self.cut:
            return f"broken: {self.cut}; the file has {summary}"
        return summary + ("; the last line is incomplete and does not count" if self.torn else "")


def read_ledger(text: bytes) -> tuple[list[LedgerEntry], str, bool]:
    """Return the intact entries from the start, the fault of the next one, and whether the last line is incomplete."""
    *lines, rest = text.split(b"\n")
    good: list[LedgerEntry] = []
    for number, line in enumerate(lines, start=1):
        entry = _read_entry(line, number)
        broken = entry if isinstance(entry, str) else _misplaced(entry, good, lines)
        if isinstance(entry, str) or broken:
            return good, broken, False
        good.append(entry)
    return good, "", bool(rest)


def _read_entry(line: bytes, number: int) -> LedgerEntry | str:
    """Parse the entry on a line, or return what is wrong with it."""
    try:
        entry = LedgerEntry.read(line.decode())
    except (ValueError, TypeError) as error:
        return f"entry {number} (line {number}) cannot be read: {error}"
    fault = entry.fault() or ("" if entry.line().encode() == line else "it was rewritten")
    return f"entry {entry.number} (line {number}): {fault}" if fault else entry


def _misplaced(entry: LedgerEntry, good: Sequence[LedgerEntry], lines: Sequence[bytes]) -> str:
    """Return why an entry cannot follow the ones before it; empty if it can."""
    expected, previous = len(good) + 1, good[-1].hash if good else FIRST_PREVIOUS
    if entry.number == expected:
        return "" if entry.previous == previous else f"entry {expected} follows another entry {expected - 1}"
    numbers = {other.number for line in lines if isinstance(other := _read_entry(line, 0), LedgerEntry)}
    if entry.number > expected and expected not in numbers:
        last = entry.number - 1
        gone = f"entry {expected} is" if last == expected else f"entries {expected} to {last} are"
        return f"{gone} missing before entry {entry.number}"
    return f"entry {entry.number} is in the place of entry {expected}: the order was changed, or it is repeated"


def _missing_head(good: Sequence[LedgerEntry], noted: LedgerHead) -> str:
    if any(noted.names(entry) for entry in good):
        return ""
    if noted.number is not None and noted.number > len(good):
        return f"entry {noted.number}, which was noted, is missing: the end was cut off"
    return "the entry that was noted is missing: the end was cut off or rewritten"


# The file. Lines are appended under a lock and are on disk before anything is sent.

LEDGER_FILE = "ledger.jsonl"
"""Name of the ledger's file in foretell's home folder."""
BLOCK = 64 * 1024


class SubmissionLedger:
    """A file of JSON lines shared by all processes on this machine."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, drafts: Sequence[LedgerDraft], at: datetime) -> list[LedgerEntry]:
        """Append sealed entries in order, all or none. They are durable on disk when this returns.

        An incomplete line left by a crash is moved to a separate file next to this one.
        """
        if not drafts:
            return []
        try:
            with locked(self._beside("lock")):
                return self._appended(drafts, at.isoformat(timespec="microseconds"))
        except OSError as error:
            raise storage_error(error, self.path) or error from None

    def _appended(self, drafts: Sequence[LedgerDraft], at: str) -> list[LedgerEntry]:
        self._remove_torn_line()
        last = self._last()
        entries: list[LedgerEntry] = []
        for draft in drafts:
            before = entries[-1] if entries else last
            number, previous = (before.number + 1, before.hash) if before else (1, FIRST_PREVIOUS)
            entries.append(LedgerEntry.sealed(draft, number=number, at=at, previous=previous))
        self._write("".join(f"{entry.line()}\n" for entry in entries).encode(), new=last is None)
        return entries

    def read(self) -> tuple[list[LedgerEntry], str, bool]:
        """Read the file like `read_ledger`, even if this process may not write the lock file next to it."""
        with ExitStack() as reading:
            # The lock prevents reading half a line. A process that may only read works without it.
            with suppress(OSError):
                reading.enter_context(locked(self._beside("lock")))
            return read_ledger(self.path.read_bytes() if self.path.exists() else b"")

    def entries(self) -> list[LedgerEntry]:
        """Return all entries in order. Raises `InputError` if an entry was changed."""
        good, broken, _ = self.read()
        if broken:
            raise self._problem(broken, len(good) + 1)
        return good

    def head(self) -> LedgerHead | None:
        """Return the head of the ledger; None if it is empty."""
        entries = self.entries()
        return entries[-1].head if entries else None

    def verify(self, noted: LedgerHead | None = None) -> LedgerCheck:
        """Check every entry, and that a head noted elsewhere is among them."""
        return LedgerCheck.of(*self.read(), noted)

    def sending(self, platform: str) -> AbstractContextManager[None]:
        """Return a lock to hold while sending, so that two processes do not send the same item. Raises `LockHeld`."""
        return locked(self._beside(f"{platform}.lock"), wait=False)

    def _beside(self, ending: str) -> Path:
        return self.path.with_name(f"{self.path.name}.{ending}")

    def _problem(self, broken: str, row: int | None = None) -> InputError:
        hint = "foretell ledger --verify shows what happened; keep the file and start a new one"
        return InputError(broken, path=self.path, row=row, hint=hint)

    def _last(self) -> LedgerEntry | None:
        """Return the last complete entry, reading from the end of the file."""
        if not self.path.exists():
            return None
        with self.path.open("rb") as file:
            position, tail = file.seek(0, os.SEEK_END), b""
            while position > 0 and tail.count(b"\n") < 2:
                step = min(BLOCK, position)
                position = file.seek(position - step)
                tail = file.read(step) + tail
        lines = tail.split(b"\n")[:-1]
        last = _read_entry(lines[-1], 0) if lines else None
        if isinstance(last, str):
            raise self._problem(f"its last entry was changed: {last.partition(': ')[2]}")
        return last

    def _remove_torn_line(self) -> None:
        """Move an incomplete last line into a separate file."""
        if not self.path.exists():
            return
        with self.path.open("r+b") as file:
            if file.seek(0, os.SEEK_END) == 0:
                return
            file.seek(-1, os.SEEK_END)
            if file.read() == b"\n":
                return
            file.seek(0)
            text = file.read()
            end = text.rfind(b"\n") + 1
            with self._beside("torn").open("ab") as torn:
                torn.write(text[end:] + b"\n")
            file.truncate(end)
            os.fsync(file.fileno())

    def _write(self, text: bytes, *, new: bool) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self.path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | BINARY, 0o600)
        try:
            before = os.fstat(file).st_size
            try:
                while text:
                    text = text[os.write(file, text) :]
                os.fsync(file)
            except OSError:  # A full disk may have written a part of it.
                os.ftruncate(file, before)
                raise
        finally:
            os.close(file)
        if new:
            _sync_folder(self.path.parent)


def _sync_folder(folder: Path) -> None:
    """Make the name of a new file durable. On systems that cannot sync folders, this is not needed."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:  # Windows
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# The results of items in the ledger.

ItemKey = tuple[str, str, str, str]


@dataclass(kw_only=True)
class SubmissionHistory:
    """All intentions in the ledger by item, with their results."""

    taken: dict[ItemKey, list[LedgerEntry]] = field(default_factory=dict[ItemKey, list[LedgerEntry]])
    """Item → intentions that the platform accepted, oldest first."""
    open: dict[ItemKey, list[LedgerEntry]] = field(default_factory=dict[ItemKey, list[LedgerEntry]])
    """Item → intentions without a recorded result, because the process ended in between."""

    @classmethod
    def of(cls, entries: Iterable[LedgerEntry]) -> "SubmissionHistory":
        """Build the history from the entries, in order."""
        history, by_number = cls(), dict[int, LedgerEntry]()
        for entry in entries:
            if entry.kind == "intention":
                by_number[entry.number] = entry
                history.open.setdefault(entry.key, []).append(entry)
                continue
            intention = by_number.get(entry.content["intention"])
            if intention is not None and intention in (waiting := history.open.get(intention.key, [])):
                waiting.remove(intention)
                if entry.kind == "receipt":
                    history.taken.setdefault(intention.key, []).append(intention)
        return history


def open_ledger(settings: Settings) -> SubmissionLedger:
    """Return the ledger of this machine."""
    return SubmissionLedger(settings.home / LEDGER_FILE)
