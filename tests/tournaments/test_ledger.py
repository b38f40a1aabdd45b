"""Changes to the ledger are detected."""

import errno
import json
import os
import subprocess
import sys
import threading
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.cli.main import cli
from foretell.questions.errors import InputError
from foretell.questions.file_lock import LockHeld, locked
from foretell.tournaments.ledger import (
    FIRST_PREVIOUS,
    LedgerCheck,
    LedgerDraft,
    LedgerEntry,
    LedgerHead,
    SubmissionHistory,
    SubmissionLedger,
    digest_of,
    read_ledger,
)

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)


def draft(n: int = 1, kind: str = "intention", **fields: object) -> LedgerDraft:
    content = fields.pop("content", {"question": n, "probability_yes": 0.5})
    base = {"platform": "metaculus", "account": "bot", "question": f"metaculus/{n}", "part": "forecast"}
    return LedgerDraft(**{"kind": kind, "content": content, **base, **fields})


def chain(n: int) -> list[bytes]:
    entries: list[LedgerEntry] = []
    for i in range(1, n + 1):
        previous = entries[-1].hash if entries else FIRST_PREVIOUS
        entries.append(LedgerEntry.sealed(draft(i), number=i, at="2026-11-01", previous=previous))
    return [entry.line().encode() for entry in entries]


def text(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def verify_ledger(content: bytes, noted: LedgerHead | None = None) -> LedgerCheck:
    return LedgerCheck.of(*read_ledger(content), noted)


@pytest.fixture
def ledger(tmp_path: Path) -> SubmissionLedger:
    return SubmissionLedger(tmp_path / "home" / "ledger.jsonl")


def test_entries_are_sealed_and_chained(ledger: SubmissionLedger):
    first, second = ledger.append([draft(1), draft(2)], NOW)
    assert (first.number, second.number) == (1, 2)
    assert (first.previous, second.previous) == (FIRST_PREVIOUS, first.hash)
    assert first.digest == digest_of({"probability_yes": 0.5, "question": 1})
    assert first.at == "2026-11-01T12:00:00.000000+00:00"
    lines = ledger.path.read_text().splitlines()
    assert sorted(json.loads(lines[0])) == sorted(asdict(first))
    assert list(ledger.entries()) == [first, second]
    assert str(ledger.head()) == f"2:{second.hash}"
    verdict = ledger.verify()
    assert verdict.whole
    assert str(verdict) == f"2 intact entries; last hash 2:{second.hash}"


def test_empty_ledger_is_intact(ledger: SubmissionLedger):
    assert list(ledger.entries()) == []
    assert ledger.head() is None
    assert str(ledger.verify()) == "0 intact entries"
    assert ledger.append([], NOW) == []
    assert not ledger.path.exists()


def test_last_entry_is_found_after_long_entries(ledger: SubmissionLedger):
    for n in range(4):
        ledger.append([draft(n, content={"text": "x" * 100_000})], NOW)
    assert ledger.verify().entries == 4


@given(st.data())
@settings(max_examples=300)
def test_every_changed_byte_is_detected(data: st.DataObject):
    lines = chain(4)
    where = data.draw(st.integers(0, 3))
    line = bytearray(lines[where])
    place = data.draw(st.integers(0, len(line) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda b: b not in (line[place], 10)))
    line[place] = byte
    verdict = verify_ledger(text([*lines[:where], bytes(line), *lines[where + 1 :]]))
    assert not verdict.whole
    assert verdict.entries == where


def forged(line: bytes, **changes: object) -> bytes:
    """Return an entry that was changed and sealed again."""
    entry = replace(LedgerEntry.read(line.decode()), **changes)
    fields = {name: getattr(entry, name) for name in ("kind", "platform", "account", "question", "part", "content")}
    return (
        LedgerEntry.sealed(LedgerDraft(**fields), number=entry.number, at=entry.at, previous=entry.previous)
        .line()
        .encode()
    )


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda x: [x[0], x[1].replace(b"0.5", b"0.9"), *x[2:]], "entry 2 (line 2): its content was changed"),
        (lambda x: [x[0], x[1].replace(b"bot", b"you"), *x[2:]], "entry 2 (line 2): it was changed"),
        (lambda x: [x[0], x[1].replace(b'"at":', b'"at": '), *x[2:]], "entry 2 (line 2): it was rewritten"),
        (lambda x: [x[0], forged(x[1], content={"question": 2}), *x[2:]], "entry 3 follows another entry 2"),
        (lambda x: [x[0], *x[2:]], "entry 2 is missing before entry 3"),
        (lambda x: [x[0], *x[3:]], "entries 2 to 3 are missing before entry 4"),
        (lambda x: x[2:], "entries 1 to 2 are missing before entry 3"),
        (lambda x: [x[0], x[2], x[1], x[3]], "entry 3 is in the place of entry 2"),
        (lambda x: [x[0], x[1], x[1], *x[2:]], "entry 2 is in the place of entry 3"),
        (lambda x: [x[0], b"{}", *x[2:]], "entry 2 (line 2) cannot be read: it does not have the fields"),
        (lambda x: [x[0], b"\xff", *x[2:]], "entry 2 (line 2) cannot be read"),
    ],
)
def test_first_changed_entry_is_named(spoil, message: str):
    verdict = verify_ledger(text(spoil(chain(5))))
    assert message in verdict.broken
    assert str(verdict).startswith("broken: ")


def test_cut_tail_is_detected_only_by_a_noted_head():
    lines = chain(5)
    noted = LedgerEntry.read(lines[4].decode()).head
    assert verify_ledger(text(lines), noted).whole
    assert verify_ledger(text(lines[:3])).whole
    cut = verify_ledger(text(lines[:3]), noted)
    assert not cut.whole
    assert "entry 5, which was noted, is missing: the end was cut off" in str(cut)
    rewritten = verify_ledger(text([*lines[:4], forged(lines[4], account="you")]), noted)
    assert "cut off or rewritten" in str(rewritten)
    assert verify_ledger(text(lines), LedgerHead.read(noted.hash[:16])).whole
    assert not verify_ledger(text(lines[:3]), LedgerHead.read(noted.hash[:16])).whole
    assert verify_ledger(text(lines), LedgerEntry.read(lines[1].decode()).head).whole


@pytest.mark.parametrize("wrong", ["", "12", "x:aaaaaaaaaaaa", "zzzzzzzzzzzzzz", "3:abc"])
def test_invalid_heads_are_rejected(wrong: str):
    with pytest.raises(ValueError, match="is not a NUMBER:HASH"):
        LedgerHead.read(wrong)


def test_incomplete_line_is_moved_aside(ledger: SubmissionLedger):
    ledger.append([draft(1)], NOW)
    whole = ledger.path.read_bytes()
    ledger.path.write_bytes(whole + chain(2)[1][:70])
    assert [entry.number for entry in ledger.entries()] == [1]
    assert ledger.verify().torn
    assert "incomplete" in str(ledger.verify())
    assert ledger.head() is not None
    (second,) = ledger.append([draft(3)], NOW)
    assert second.number == 2
    assert ledger.verify().whole
    assert not ledger.verify().torn
    assert ledger.path.with_name("ledger.jsonl.torn").read_bytes() == chain(2)[1][:70] + b"\n"


def test_nothing_is_appended_after_a_changed_entry(ledger: SubmissionLedger):
    ledger.append([draft(1)], NOW)
    with ledger.path.open("ab") as file:
        file.write(b"nonsense\n")
    with pytest.raises(InputError, match="was changed"):
        ledger.append([draft(2)], NOW)
    with pytest.raises(InputError, match="row 2"):
        list(ledger.entries())
    assert "entry 2 (line 2) cannot be read" in ledger.verify().broken


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda x: [x[0], x[1].replace(b'"receipt"', b'"refusal"'), x[2]], "entry 2 .* it was changed"),
        (lambda x: [x[0], x[2]], "entry 2 is missing"),
        (lambda x: [x[1], x[0], x[2]], "entry 2 is in the place of entry 1"),
        (lambda x: [x[0], x[1], x[2].replace(b"/2", b"/9")], "entry 3 .* it was changed"),
    ],
    ids=["edited", "removed", "swapped", "the last"],
)
def test_edited_entries_are_not_used(ledger: SubmissionLedger, spoil, message: str):
    """A receipt that is changed to a refusal must not cause a second submission."""
    ledger.append([draft(1), draft(1, "receipt", content={"intention": 1}), draft(2)], NOW)
    lines = ledger.path.read_bytes().splitlines()
    ledger.path.write_bytes(text(spoil(lines)))
    for reads in (ledger.entries, ledger.head):
        with pytest.raises(InputError, match=message):
            reads()
    shown = CliRunner().invoke(cli, ["ledger", "--file", str(ledger.path)])
    assert (shown.exit_code, "broken: " in shown.stderr) == (1, True)
    if message.startswith("entry 3"):
        with pytest.raises(InputError, match="its last entry was changed"):
            ledger.append([draft(3)], NOW)
        assert "metaculus/1 forecast: receipt" in shown.stdout


def test_an_empty_ledger_says_how_to_list_what_practice_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path))
    assert "practice" not in CliRunner().invoke(cli, ["ledger"]).stdout
    (tmp_path / "practice").mkdir()
    SubmissionLedger(tmp_path / "practice" / "ledger.jsonl").append([draft(1)], NOW)
    told = CliRunner().invoke(cli, ["ledger"]).stdout
    _, _, command = told.partition("what was sent in practice: foretell ")
    shown = CliRunner().invoke(cli, command.split())
    assert (shown.exit_code, "metaculus/1" in shown.stdout) == (0, True)


def test_full_disk_writes_all_or_nothing(ledger: SubmissionLedger, monkeypatch: pytest.MonkeyPatch):
    ledger.append([draft(1)], NOW)
    before, write, left = ledger.path.read_bytes(), os.write, [700]

    def into_what_is_left(file: int, data: bytes) -> int:
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = write(file, data[: left[0]])
        left[0] -= written
        return written

    monkeypatch.setattr(os, "write", into_what_is_left)
    with pytest.raises(InputError, match="the disk is full"):
        ledger.append([draft(n) for n in range(2, 9)], NOW)
    assert (ledger.path.read_bytes(), left) == (before, [0])
    monkeypatch.undo()
    assert ledger.append([draft(2)], NOW)[0].number == 2


def test_ledger_is_readable_in_a_read_only_folder(ledger: SubmissionLedger, monkeypatch: pytest.MonkeyPatch):
    ledger.append([draft(1)], NOW)
    opened = os.open

    def read_only(path: Any, flags: int, *more: Any, **options: Any) -> int:
        # Threads of other tests may open files meanwhile.
        if flags & (os.O_CREAT | os.O_RDWR | os.O_WRONLY) and threading.current_thread() is threading.main_thread():
            raise OSError(errno.EROFS, "Read-only file system")
        return opened(path, flags, *more, **options)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", read_only)
        assert (ledger.verify().entries, str(ledger.head())[:2]) == (1, "1:")
        with pytest.raises(InputError, match="read-only"):
            ledger.append([draft(2)], NOW)


WRITER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from foretell.tournaments.ledger import LedgerDraft, SubmissionLedger
ledger = SubmissionLedger(Path(sys.argv[1]))
for n in range(40):
    drafts = [LedgerDraft(kind="intention", platform="p", account=sys.argv[2], question=f"q{n}", part="forecast",
                    content={"n": n, "i": i}) for i in range(3)]
    ledger.append(drafts, datetime.now(UTC))
"""


def test_two_processes_write_one_hash_chain(ledger: SubmissionLedger):
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(ledger.path), name]) for name in ("a", "b")]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    verdict = ledger.verify()
    assert (verdict.whole, verdict.entries) == (True, 240)
    accounts = [entry.account for entry in ledger.entries()]
    assert accounts.count("a") == accounts.count("b") == 120
    # Entries that are appended together stay together.
    assert all(len(set(accounts[i : i + 3])) == 1 for i in range(0, 240, 3))


def test_sending_lock_is_exclusive(tmp_path: Path):
    with locked(tmp_path / "lock"), pytest.raises(LockHeld), locked(tmp_path / "lock", wait=False):
        pass
    with locked(tmp_path / "lock", wait=False):
        pass


def test_history_has_accepted_and_open_intentions(ledger: SubmissionLedger):
    first, second, third = ledger.append([draft(1), draft(2), draft(3)], NOW)
    ledger.append([draft(1, "receipt", content={"intention": 1}), draft(2, "refusal", content={"intention": 2})], NOW)
    history = SubmissionHistory.of(ledger.entries())
    assert history.taken == {first.key: [first]}
    assert {key: entries for key, entries in history.open.items() if entries} == {third.key: [third]}
    assert history.open[second.key] == []
