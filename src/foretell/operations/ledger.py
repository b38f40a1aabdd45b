"""What was submitted: list it, and verify the record."""

import json
from dataclasses import asdict
from shlex import quote
from typing import Any

from foretell.frozen import frozen
from foretell.operations.requests.tournaments import LedgerRequest
from foretell.questions.errors import InputError
from foretell.report.result import ReportResult, Result
from foretell.runs.settings import load_settings
from foretell.tournaments.ledger import LEDGER_FILE, LedgerEntry, LedgerHead, SubmissionLedger, open_ledger


class LedgerVerdict(ReportResult):
    """Whether a ledger is unchanged."""

    @property
    def ok(self) -> bool:
        """Whether the ledger is unchanged."""
        return self.report.whole

    def to_dict(self) -> Any:
        """Return the check as plain data."""
        return {"whole": self.report.whole, **asdict(self.report)}


@frozen
class LedgerEntries(Result):
    """Entries of a ledger, and its last hash."""

    entries: tuple[LedgerEntry, ...]
    last_hash: str
    """Number and hash of the last intact entry, which fix the whole ledger; empty if there is none."""
    broken: str = ""
    """The first changed entry; later ones are not shown."""
    practice: str = ""
    """How to list what was sent in practice, which has a ledger of its own; empty if nothing was."""

    @property
    def ok(self) -> bool:
        """Whether all entries are unchanged."""
        return not self.broken

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong with the first changed entry."""
        return (f"broken: {self.broken}; later entries are not shown",) if self.broken else ()

    def rows(self) -> list[dict[str, Any]]:
        """Return the entries with all fields."""
        return [asdict(entry) for entry in self.entries]

    def __str__(self) -> str:
        last = f"last hash {self.last_hash}" if self.last_hash else "no entries"
        sent = f"what was sent in practice: {self.practice}" if self.practice else ""
        return "\n".join(filter(None, [*map(_entry_line, self.entries), last, sent]))


def read_ledger(request: LedgerRequest) -> LedgerEntries | LedgerVerdict:
    """List the entries of the ledger, or check them all.

    Raises InputError if there is no such file, or if the value to check against is not a number and a hash.
    """
    if request.file is not None and not request.file.is_file():
        raise InputError("no such file", path=request.file)
    settings = load_settings()
    ledger = open_ledger(settings) if request.file is None else SubmissionLedger(request.file)
    practised = settings.practice_home / LEDGER_FILE
    list_practice = f"foretell ledger --file {quote(str(practised))}"
    if request.verify is not None:
        try:
            noted = None if request.verify == "all" else LedgerHead.read(request.verify)
        except ValueError as error:
            raise InputError(str(error), column="--verify") from None
        return LedgerVerdict(report=ledger.verify(noted))
    intact, broken, _ = ledger.read()
    entries = [entry for entry in intact if request.platform in (None, entry.platform)]
    last_hash = str(intact[-1].head) if intact else ""
    return LedgerEntries(
        entries=tuple(entries[-request.last :] if request.last else entries),
        last_hash=last_hash,
        broken=broken,
        practice=list_practice if request.file is None and practised.is_file() else "",
    )


def _entry_line(entry: LedgerEntry) -> str:
    head = f"{entry.number:5} {entry.at[:19]} {entry.platform} {entry.account} {entry.question} {entry.part}"
    if entry.kind == "intention":
        content = json.dumps(entry.content, ensure_ascii=False)
        short = content if len(content) <= 60 else content[:59] + "…"
        return f"{head}: to send {short} [{entry.digest[:12]}]"
    return f"{head}: {entry.kind} of entry {entry.content['intention']}: {entry.content.get('how', '')}"
