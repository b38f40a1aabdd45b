"""Damaged files of the home are named, and `foretell doctor` shows how to restore them and repairs what is safe."""

import os
import random
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fakes.models import BackgroundModels
from fakes.stored_run import run_id_of

PAGE = 4096
REPAIR = "foretell doctor --repair"
Damage = Callable[[Path], None]


def flip(at: Callable[[int], int], count: int = 64) -> Damage:
    """Damage some bytes in the middle of a file."""

    def spoil(path: Path) -> None:
        content = bytearray(path.read_bytes())
        start = at(len(content))
        for place in range(start, min(start + count, len(content))):
            content[place] ^= 0xA5
        path.write_bytes(content)

    return spoil


def page_of(table: str, part: float) -> Damage:
    """Damage one leaf page of a table, at a share of its length."""

    def spoil(path: Path) -> None:
        with closing(sqlite3.connect(path)) as con:
            root = con.execute("select rootpage from sqlite_master where name = ?", (table,)).fetchone()[0]
        content = bytearray(path.read_bytes())
        leaves = [n for n in leaf_pages(content, root) if n != root] or [root]
        start = PAGE * (leaves[int(part * (len(leaves) - 1))] - 1)
        content[start : start + PAGE] = random.Random(7).randbytes(PAGE)
        path.write_bytes(content)

    return spoil


def leaf_pages(content: bytearray, page: int) -> list[int]:
    start = PAGE * (page - 1)
    if content[start] in (0x0D, 0x0A):
        return [page]
    cells = int.from_bytes(content[start + 3 : start + 5], "big")
    places = [int.from_bytes(content[start + 12 + 2 * n : start + 14 + 2 * n], "big") for n in range(cells)]
    below = [int.from_bytes(content[start + at : start + at + 4], "big") for at in places]
    below.append(int.from_bytes(content[start + 8 : start + 12], "big"))
    return [leaf for page in below for leaf in leaf_pages(content, page)]


def renamed(path: Path) -> None:
    """Damage the name of a column, so that every page is intact but queries fail."""
    content = path.read_bytes()
    assert b"key BLOB NOT NULL UNIQUE" in content
    path.write_bytes(content.replace(b"key BLOB NOT NULL UNIQUE", b"k\x91y BLOB NOT NULL UNIQUE"))


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 // PAGE * PAGE])


def garbage(path: Path) -> None:
    path.write_bytes(random.Random(3).randbytes(20_000))


DAMAGES: dict[str, tuple[str, Damage]] = {
    "the header of the journal": ("journal.db", flip(lambda _: 0)),
    "the first page of the journal": ("journal.db", flip(lambda _: 100, PAGE - 100)),
    "a name on the first page of the journal": ("journal.db", renamed),
    "a page of the journal": ("journal.db", page_of("kept", 0.5)),
    "half of the journal": ("journal.db", truncated),
    "all of the journal": ("journal.db", garbage),
    "the header of the runs": ("runs.db", flip(lambda _: 0)),
    "a page of the answers": ("runs.db", page_of("cell", 0.5)),
    "a page of the steps": ("runs.db", page_of("event", 0.5)),
    "half of the runs": ("runs.db", truncated),
    "all of the runs": ("runs.db", garbage),
    "the corpus": ("corpus.db", truncated),
    "the rate limits of services": ("services.db", garbage),
}


USES = {
    "journal.db": ("replay",),
    "runs.db": ("show",),
    "services.db": ("show",),
    "corpus.db": ("corpus", "search", "council", "--as-of", "2026-07-01"),
}
"""A command that reads the file."""


def test_every_damage_is_named_with_how_to_restore_it(build_workspace: Callable[..., Any], tmp_path: Path) -> None:
    with BackgroundModels(script="foretell.practice.models.scripts:agent_script") as provider:
        workspace = build_workspace(provider.url, count=4)
        spec = workspace.spec(trials=2)
        run = workspace.run(spec)
        assert run == run_id_of(spec)
        answers, whole = workspace.answers(run), tmp_path / "whole"
        recovers = sqlite_recovers(tmp_path)
        for name in ("journal.db", "runs.db", "corpus.db"):
            with closing(sqlite3.connect(workspace.home / name)) as con:
                con.execute("pragma wal_checkpoint(truncate)")
        shutil.copytree(workspace.home, whole)
        for what, (name, spoil) in DAMAGES.items():
            shutil.rmtree(workspace.home)
            shutil.copytree(whole, workspace.home)
            spoil(workspace.home / name)
            damaged = (workspace.home / name).read_bytes()

            foretell = workspace.foretell("doctor")
            assert (foretell.returncode, name in foretell.stdout, "doctor --repair" in foretell.stdout) == (
                1,
                True,
                True,
            ), what
            assert (f"sqlite3 {name} .recover" in foretell.stdout) == (name != "services.db"), what
            result = workspace.foretell(*USES[name], *([] if name == "corpus.db" else [run]))
            assert result.returncode == 0 if name == "services.db" else result.returncode in (0, 1, 2), (what, result)
            assert len(result.stderr.strip().splitlines()) <= 1, (what, result.stderr)
            assert (
                result.returncode == 0
                or name in result.stderr + result.stdout
                or "answers are the same" in result.stdout
            )

            repaired = workspace.foretell("doctor", "--repair")
            if name == "services.db":
                assert repaired.returncode == 0, (what, repaired.stdout)
                (aside,) = workspace.home.glob(f"{name}.damaged-*[0-9]")
                assert aside.read_bytes() == damaged, what
                continue
            # The damaged file is unchanged.
            assert (repaired.returncode, (workspace.home / name).read_bytes()) == (1, damaged), what
            if "page of" in what and recovers:
                advised = next(line for line in repaired.stdout.splitlines() if ".recover" in line)
                command = advised.partition("sqlite.org): ")[2].partition(f" && {REPAIR}")[0]
                subprocess.run(["sh", "-c", command], check=True)
                assert workspace.foretell("doctor", "--repair").returncode == 0
            elif name == "corpus.db":
                shutil.copy(whole / name, workspace.home / name)
            else:
                (workspace.home / name).unlink()
            # Run again, it is the same run with the same answers; only lost replies are requested again.
            provider.reset()
            workspace.run(spec)
            assert workspace.answers(run) == answers, what
            billed = sum(provider.stats()["billed"].values())
            assert billed == 0 or name == "journal.db", (what, repaired.stdout)


def sqlite_recovers(folder: Path) -> bool:
    """Whether the sqlite3 of this machine has the command .recover."""
    with closing(sqlite3.connect(folder / "try.db")) as con:
        con.execute("create table t (a)")
    if shutil.which("sqlite3") is None:
        return False
    tried = subprocess.run(["sqlite3", folder / "try.db", ".recover"], capture_output=True, text=True, check=False)
    return "CREATE TABLE t" in tried.stdout


def test_repair_rebuilds_indexes_accounts_and_requests(workspace: Any, provider: BackgroundModels) -> None:
    """They may be missing in a file that SQLite has recovered."""
    spec = workspace.spec()
    run = workspace.run(spec)
    answers = workspace.answers(run)
    with closing(sqlite3.connect(workspace.home / "journal.db")) as con:
        before = con.execute("select id, billed from account order by id").fetchall()
        con.executescript("delete from account; delete from account_around")
        lost = con.execute("select key from sent limit 1").fetchone()
        con.execute("delete from sent where key = ?", lost)
        con.commit()
    with closing(sqlite3.connect(workspace.home / "runs.db")) as con:
        con.execute("pragma writable_schema = on")
        sql = "create index event_of_run on event (run, trial)"
        con.execute("update sqlite_master set sql = ? where name = 'event_of_run'", (sql,))
        con.commit()
    assert workspace.foretell("doctor").returncode == 1
    repaired = workspace.foretell("doctor", "--repair")
    assert repaired.returncode == 0, repaired.stdout
    for note in ("its indexes were rebuilt", "1 replies have their request again", "accounts of 1 runs were rebuilt"):
        assert note in repaired.stdout
    with closing(sqlite3.connect(workspace.home / "journal.db")) as con:
        after = con.execute("select id, billed from account order by id").fetchall()
        assert [id for id, _ in after] == [id for id, _ in before if id == run]
        assert con.execute("select 1 from sent where key = ?", lost).fetchone()
    provider.reset()
    workspace.run(spec)
    assert workspace.answers(run) == answers
    assert not provider.stats()["billed"]


def test_empty_store_is_recreated_and_missing_runs_are_reported(
    workspace: Any, provider: BackgroundModels, caplog: pytest.LogCaptureFixture
) -> None:
    spec = workspace.spec()
    run = workspace.run(spec)
    answers = workspace.answers(run)
    (workspace.home / "runs.db").write_bytes(b"")
    os.utime(workspace.home / "runs.db", (0, 0))
    caplog.clear()
    assert workspace.foretell("runs").returncode == 0
    assert f"{workspace.home}/runs.db was empty and is created again" in caplog.text
    assert "the journal has paid replies of 1 runs that are not here" in workspace.foretell("doctor").stdout
    provider.reset()
    workspace.run(spec)
    assert workspace.answers(run) == answers
    assert not provider.stats()["billed"]


def test_edited_reply_fails_its_trial_and_is_moved_aside(workspace: Any, provider: BackgroundModels) -> None:
    spec = workspace.spec()
    run = workspace.run(spec)
    with closing(sqlite3.connect(workspace.home / "journal.db")) as con:
        key, answer = con.execute("select key, answer from kept where kind = 'model' limit 1").fetchone()
        con.execute("update kept set answer = ? where key = ?", (answer.replace(b"0", b"9"), key))
        con.commit()
    replayed = workspace.foretell("replay", run)
    assert (replayed.returncode, f"({key.hex()[:12]}) is not used" in replayed.stderr) == (1, True)
    (workspace.home / "runs.db").unlink()
    failed = workspace.foretell("run", spec.name)
    assert failed.returncode == 3
    shown = workspace.foretell("show", run, "--json")
    assert '"failed": 1' in shown.stdout
    assert "was changed after it was stored" in shown.stdout
    foretell = workspace.foretell("doctor")
    assert foretell.returncode == 1
    assert key.hex()[:12] in foretell.stdout
    assert workspace.foretell("doctor", "--repair").returncode == 0
    assert len(list(workspace.home.glob("journal.db.set-aside-*.jsonl"))) == 1
    provider.reset()
    workspace.run(spec)
    assert sum(provider.stats()["billed"].values()) >= 1
    assert workspace.foretell("doctor").returncode == 0


def test_an_edited_answer_is_named_and_computed_again(workspace: Any, provider: BackgroundModels) -> None:
    run = workspace.run(workspace.spec())
    answers = workspace.answers(run)
    with closing(sqlite3.connect(workspace.home / "runs.db")) as con:
        question, forecast = con.execute("select question, forecast from cell limit 1").fetchone()
        con.execute(
            "update cell set forecast = ? where question = ?",
            (forecast.replace('"p":{"yes":0', '"p":{"yes":1'), question),
        )
        con.commit()
    shown = workspace.foretell("show", run)
    assert (shown.returncode, f"the stored answer to {question}, trial 0 of run {run}" in shown.stderr) == (2, True)
    assert "doctor --repair" in shown.stderr
    foretell = workspace.foretell("doctor")
    assert (foretell.returncode, "1 answers were changed after they were stored" in foretell.stdout) == (1, True)
    provider.reset()
    assert workspace.foretell("doctor", "--repair").returncode == 0
    assert len(list(workspace.home.glob("runs.db.set-aside-*.jsonl"))) == 1
    assert workspace.answers(run) == answers
    assert not provider.stats()["billed"]
    # An event that is not JSON any more, on an intact page.
    with closing(sqlite3.connect(workspace.home / "runs.db")) as con:
        con.execute("update event set body = '{' where id = (select min(id) from event where kind = 'ModelCalled')")
        con.commit()
    listed = workspace.foretell("runs")
    assert (listed.returncode, listed.stderr.count("\n")) == (2, 1)
    assert "runs.db: the file is damaged: malformed JSON" in listed.stderr
    assert workspace.foretell("doctor", "--repair").returncode == 0
    assert workspace.foretell("runs").returncode == 0
    # Answers without checksums are accepted and counted.
    with closing(sqlite3.connect(workspace.home / "runs.db")) as con:
        con.execute("update cell set checksum = null")
        con.commit()
    assert workspace.answers(run) == answers
    assert f"{len(answers)} stored before checksums existed" in workspace.foretell("doctor").stdout
    # An invalid write-ahead log is ignored, and nothing in the files is lost.
    for name in ("runs.db", "journal.db"):
        with closing(sqlite3.connect(workspace.home / name)) as con:
            con.execute("pragma wal_checkpoint(truncate)")
        garbage(workspace.home / f"{name}-wal")
    shown = workspace.foretell("show", run)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert workspace.answers(run) == answers
    assert workspace.foretell("doctor").returncode == 0
    workspace.run(workspace.spec())
    assert not provider.stats()["billed"]
