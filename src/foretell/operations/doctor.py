"""What is set up on this machine, what is missing, and what to do about each."""

import asyncio
import json
import platform
import re
import shutil
import socket
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from importlib.metadata import PackageNotFoundError, distribution, requires, version
from pathlib import Path
from typing import Literal
from uuid import uuid4

from foretell.data.files import write_atomically
from foretell.data.known_services import KNOWN_SERVICES
from foretell.data.pace import PaceStore
from foretell.models.database.sqlite import RESERVED_BYTES, open_read_only
from foretell.models.journal import Journal, entry_fault
from foretell.operations.repair import (
    ANSWERS,
    ENTRIES,
    TABLE_NOUNS,
    HomeFile,
    StoredCheck,
    check_answers,
    check_entries,
    file_faults,
    home_files,
    in_use,
    missing_runs,
    newer_parts,
    repair_file,
    set_aside_answers,
    set_aside_entries,
    set_aside_rows,
    unreadable_rows,
)
from foretell.operations.requests import DoctorRequest
from foretell.operations.result import Result
from foretell.operations.services import reach_services
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError
from foretell.questions.storage_errors import storage_error
from foretell.report.document import find_chromium
from foretell.runs.settings import KEYS, SETTINGS_FILE, Settings, load_settings, read_contact
from foretell.runs.store import RunStore, answer_fault
from foretell.submit.ledger import LEDGER_FILE, SubmissionLedger

FindingState = Literal["ok", "missing", "optional", "wrong", "repaired"]
OWN_EXTRAS = ("dev", "oracles", "docs")
"""Only for those who work on foretell itself."""
EXTRAS = {
    "llm": "asks models and reads web pages",
    "local": "runs a model in a GGUF file on this machine",
    "web": "foretell serve",
    "mcp": "foretell mcp",
    "cluster": "runs of many machines in PostgreSQL",
    "notebook": "agents that write Python",
    "plots": "charts as PNG and PDF",
    "stats": "further tests of statistics",
    "inspect": "tasks of Inspect",
}
LOCAL_SERVERS = {"Ollama": 11434, "LM Studio": 1234, "llama.cpp or vLLM": 8000}
"""Where programs that serve models usually listen."""
WAIT = 0.2
SCARCE_BYTES = 500_000_000
"""Room on a disk below which one should think of it."""
REACH_SECONDS = 20.0
SKEW_SECONDS = 60.0
"""Seconds that a clock may differ from others'."""
AHEAD = timedelta(minutes=10)
"""How far in the future something stored may lie before the clock is doubted."""
REPAIR = "foretell doctor --repair"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    what: str
    state: FindingState
    detail: str
    advice: str = ""
    """What to do, where there is something to do; a command where one does it."""
    notes: tuple[str, ...] = field(default=())
    """What a repair did, and what was lost."""


@dataclass(frozen=True, kw_only=True)
class DoctorResult(Result):
    """All findings, in the order of their weight."""

    lines = "findings"
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong; what is merely missing can be done without."""
        return all(finding.state != "wrong" for finding in self.findings)

    def __str__(self) -> str:
        marks = {"ok": "ok", "missing": "--", "optional": "  ", "wrong": "!!", "repaired": "ok"}
        lines: list[str] = []
        for one in self.findings:
            lines.append(f"{marks[one.state]:2} {one.what:16} {one.detail}")
            lines += [f"{'':20}{line}" for line in (*one.notes, one.advice) if line]
        return "\n".join(lines)


async def doctor(request: DoctorRequest, settings: Settings | None = None) -> DoctorResult:
    """Look at everything; with a contact, keep that first."""
    if request.contact is not None:
        settings = settings or load_settings()
        keep_contact(settings.home, read_contact(request.contact))
    settings = load_settings() if request.contact is not None else settings or load_settings()
    skew: float | None = None
    reached: list[Finding] = []
    if request.reach:
        reached, skew = await _reach(settings)
    findings = [
        _python(),
        *_home(settings),
        *await asyncio.to_thread(lambda: list(look_at_databases(settings, repair=request.repair))),
        _contact(settings),
        *_keys(settings),
        _model(settings),
        _clock(settings, skew),
        _database(settings),
        await _sandbox(),
        *_extras(),
        _browser(),
        *reached,
    ]
    return DoctorResult(findings=tuple(findings))


def keep_contact(home: Path, contact: str) -> None:
    """Write the contact into the settings of the home; the rest of the file stays as it is."""
    path = home / SETTINGS_FILE
    line = f"contact = {json.dumps(contact)}"
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    # At the top: below a heading it would belong to that.
    rest = re.sub(r"(?m)^contact\s*=.*\n?", "", before)
    write_atomically(path, f"{line}\n{rest}".encode(), private=True)


def _python() -> Finding:
    parts = (
        f"Python {platform.python_version()}",
        f"foretell {version('foretell')}",
        f"SQLite {sqlite3.sqlite_version}",
        platform.system(),
    )
    return Finding(what="Python", state="ok", detail=", ".join(parts))


def _home(settings: Settings) -> Iterator[Finding]:
    home = settings.home
    probe = home / f".doctor-{uuid4().hex}"
    try:
        home.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        advice = "export FORETELL_HOME=FOLDER, with a folder that can be written to; what is stored can still be read"
        yield Finding(
            what="home", state="wrong", detail=f"{home} cannot be written to: {error.strerror}", advice=advice
        )
        return
    yield Finding(what="home", state="ok", detail=str(home))
    yield _disk(home)
    with closing(PaceStore(settings.access.state_file)) as store:
        now = datetime.now(UTC).timestamp()
        closed = [name for name, state in store.states().items() if state.closed > now]
    if closed:
        yield Finding(
            what="services",
            state="missing",
            detail=f"not asked for now: {', '.join(closed)}",
            advice="foretell services says until when",
        )


def _disk(home: Path) -> Finding:
    usage = shutil.disk_usage(home)
    detail = f"{usage.free / 1e9:,.1f} GB of {usage.total / 1e9:,.1f} GB free"
    if usage.free < RESERVED_BYTES:
        advice = f"free some space: nothing is asked while less than {RESERVED_BYTES // 10**6} MB are left"
        return Finding(what="disk", state="wrong", detail=detail, advice=advice)
    if usage.free < SCARCE_BYTES:
        advice = "free some space, or export FORETELL_HOME=FOLDER on another disk"
        return Finding(what="disk", state="missing", detail=detail, advice=advice)
    return Finding(what="disk", state="ok", detail=detail)


def look_at_databases(settings: Settings, *, repair: bool) -> Iterator[Finding]:
    """Every database of the home: whether it is sound, of a version that is known, and as it was written.

    A journal on a server may be long: its entries are read only where it is to be repaired.
    """
    if repair and settings.database is not None:
        with closing(Journal(settings.database)) as journal:
            check = StoredCheck.of(journal.database.stream(ENTRIES), entry_fault)
        detail = f"{check.total:,} replies and tool results on the server are as they were stored"
        yield _edited(check, settings, repair=True) or Finding(what="journal", state="ok", detail=detail)
        with closing(RunStore(settings.database)) as store:
            check = StoredCheck.of(store.database.stream(ANSWERS), answer_fault)
        detail = f"{check.total:,} answers on the server are as they were stored"
        yield _edited_answers(check, settings, repair=True) or Finding(what="runs", state="ok", detail=detail)
    for file in home_files(settings):
        try:
            yield _looked_at(file, settings, repair=repair)
        except (OSError, sqlite3.DatabaseError, InputError) as error:
            yield Finding(
                what=file.path.name, state="wrong", detail=str(storage_error(error, file.path) or error), advice=REPAIR
            )
    ledger = SubmissionLedger(settings.home / LEDGER_FILE)
    if ledger.path.exists():
        check = ledger.verify()
        advice = "" if check.whole else "nothing is submitted on it: keep the file elsewhere, and a new one is begun"
        yield Finding(what=LEDGER_FILE, state="ok" if check.whole else "wrong", detail=str(check), advice=advice)
    aside = sorted(one.name for one in settings.home.glob("*.db.damaged-*") if not one.name.endswith(("-wal", "-shm")))
    if aside:
        detail = f"damaged files are still kept: {', '.join(aside[-3:])}"
        yield Finding(what="", state="optional", detail=detail, advice="delete them when nothing is missed")


def _looked_at(file: HomeFile, settings: Settings, *, repair: bool) -> Finding:
    name = file.path.name
    if faults := file_faults(file):
        detail = f"damaged: {'; '.join(faults)}"[:300]
        if not repair:
            return Finding(what=name, state="wrong", detail=detail, advice=REPAIR)
        if in_use(file.path):
            advice = f"end the processes that use it, then {REPAIR}"
            return Finding(what=name, state="wrong", detail=f"{detail}; a process has it open", advice=advice)
        return Finding(what=name, state="repaired", detail=f"was {detail}", notes=tuple(repair_file(file, settings)))
    if newer := newer_parts(file):
        advice = "pip install --upgrade foretell, or export FORETELL_HOME=FOLDER with another folder"
        return Finding(what=name, state="wrong", detail=f"a newer foretell wrote it: {newer[0]}", advice=advice)
    detail = f"{file.what}: sound, {file.path.stat().st_size / 1e6:,.1f} MB"
    if file.what == "runs" and (gone := missing_runs(file)):
        detail += f", but the journal has paid replies of {gone} runs that are not here"
        advice = "foretell run SPEC with the same spec: it is the same run, and its replies are free"
        return Finding(what=name, state="missing", detail=detail, advice=advice)
    if file.what not in ("journal", "runs"):
        return Finding(what=name, state="ok", detail=detail)
    journal = file.what == "journal"
    check = check_entries(file.path) if journal else check_answers(file.path)
    detail += f", {check.total:,} {'replies and tool results' if journal else 'answers'}"
    detail += f"; {check.unverified:,} of before there were checksums are taken as they are" if check.unverified else ""
    edited = (
        _edited(check, settings, repair=repair)
        if journal
        else _unreadable(file, settings, repair=repair) or _edited_answers(check, settings, repair=repair)
    )
    return edited or Finding(what=name, state="ok", detail=detail)


def _edited(check: StoredCheck, settings: Settings, *, repair: bool) -> Finding | None:
    """Entries of the journal that are not what was stored."""
    if not check.wrong:
        return None
    first = f"{check.wrong[0][1]} {check.wrong[0][2]} ({bytes(check.wrong[0][0]).hex()[:12]})"
    detail = f"{len(check.wrong)} entries were changed after they were stored and are not used, e.g. {first}"
    if not repair:
        return Finding(what="journal.db", state="wrong", detail=detail, advice=REPAIR)
    with closing(Journal(settings.journal)) as journal:
        done = set_aside_entries(journal, check.wrong, settings.home)
    return Finding(what="journal.db", state="repaired", detail=detail, notes=(done,))


def _unreadable(file: HomeFile, settings: Settings, *, repair: bool) -> Finding | None:
    """Runs, questions and steps that cannot be read, in a file that is sound by itself."""
    with closing(open_read_only(file.path)) as con:
        wrong = unreadable_rows(con)
    if not wrong:
        return None
    detail = f"{', '.join(f'{len(rows)} {TABLE_NOUNS[table]}' for table, rows in wrong.items())} cannot be read"
    if not repair:
        return Finding(what=file.path.name, state="wrong", detail=detail, advice=REPAIR)
    with closing(RunStore(settings.store)) as store:
        done = tuple(set_aside_rows(store, wrong, settings))
    again = _edited_answers(check_answers(file.path), settings, repair=True)
    notes = done + (again.notes if again else ())
    return Finding(what=file.path.name, state="repaired", detail=detail, notes=notes)


def _edited_answers(check: StoredCheck, settings: Settings, *, repair: bool) -> Finding | None:
    """Answers of runs that are not what was stored."""
    if not check.wrong:
        return None
    run, question, _, trial, *_ = check.wrong[0]
    first = f"run {run}, {question}, trial {trial}"
    detail = f"{len(check.wrong)} answers were changed after they were stored and are not used, e.g. {first}"
    if not repair:
        return Finding(what="runs.db", state="wrong", detail=detail, advice=REPAIR)
    with closing(RunStore(settings.store)) as store:
        done = tuple(set_aside_answers(store, check.wrong, settings))
    return Finding(what="runs.db", state="repaired", detail=detail, notes=done)


async def _reach(settings: Settings) -> tuple[list[Finding], float | None]:
    """Every service that is set up, asked one cheap thing."""
    checks, skew = await reach_services(settings, REACH_SECONDS)
    states: dict[str, FindingState] = {"ok": "ok", "failed": "wrong", "left out": "optional"}
    findings = [
        Finding(
            what=one.service,
            state=states[one.verdict],
            detail=f"{one.what}: {one.detail}" if one.what else one.detail,
            advice=f"foretell services check {one.service}" if one.verdict == "failed" else "",
        )
        for one in checks
    ]
    return findings, skew


def _contact(settings: Settings) -> Finding:
    wanted = ", ".join(facts.title for facts in KNOWN_SERVICES.values() if facts.needs_contact)
    if settings.contact:
        return Finding(what="contact", state="ok", detail=settings.contact)
    return Finding(
        what="contact",
        state="missing",
        detail=f"none: {wanted} cannot be asked, others do not know whom to tell of a problem",
        advice="foretell doctor --contact you@example.org, or set FORETELL_CONTACT",
    )


def _keys(settings: Settings) -> Iterator[Finding]:
    found = {service: [name for name in names if settings.keys.get(name)] for service, names in KEYS.items()}
    present = sorted({name for names in found.values() for name in names[:1]})
    missing = sorted({KEYS[service][0] for service, names in found.items() if not names})
    state: FindingState = "ok" if present else "missing"
    advice = (
        "" if present else "export OPENAI_API_KEY=… (or another of the keys below), or take a model on this machine"
    )
    yield Finding(what="keys", state=state, detail=f"set: {', '.join(present) or 'none'}", advice=advice)
    if missing:
        yield Finding(what="", state="optional", detail=f"not set: {', '.join(missing)}")


def _model(settings: Settings) -> Finding:
    named = settings.keys.get("FORETELL_MODEL")
    listening = [name for name, port in LOCAL_SERVERS.items() if _listens(port)]
    local = f"; on this machine: {', '.join(listening)}" if listening else ""
    if named:
        return Finding(what="model", state="ok", detail=f"FORETELL_MODEL is {named}{local}")
    return Finding(
        what="model",
        state="missing",
        detail=f"FORETELL_MODEL is not set{local}",
        advice="set it to provider:name (foretell models list), or to a model here: compat:NAME@http://localhost:11434/v1",
    )


def _listens(port: int) -> bool:
    with socket.socket() as one:
        one.settimeout(WAIT)
        return one.connect_ex(("127.0.0.1", port)) == 0


def _clock(settings: Settings, skew: float | None) -> Finding:
    """This machine's clock: simulated, in the past, behind what is stored, or apart from everybody else's."""
    now = datetime.now(UTC)
    mend = "set this machine's clock (timedatectl set-ntp true): forecasts are stamped with it"
    if settings.clock:
        detail = f"FORETELL_CLOCK is {settings.clock}: a simulation's time"
        return Finding(what="clock", state="wrong", detail=detail, advice="unset FORETELL_CLOCK for live questions")
    facts = max(date.fromisoformat(one.date) for one in KNOWN_SERVICES.values())
    if now.date() < facts:
        return Finding(what="clock", state="wrong", detail=f"{now:%Y-%m-%d %H:%M} UTC lies in the past", advice=mend)
    # A part of an example was made on a simulated clock.
    newest = None if settings.is_example else _newest_stored(settings)
    if newest is not None and newest > now + AHEAD:
        detail = f"{now:%Y-%m-%d %H:%M} UTC, but something here was stored at {newest:%Y-%m-%d %H:%M}: it was set back"
        return Finding(what="clock", state="wrong", detail=detail, advice=mend)
    if skew is not None and abs(skew) > SKEW_SECONDS:
        way = "ahead of" if skew > 0 else "behind"
        detail = f"{timedelta(seconds=round(abs(skew)))} {way} the clocks of services"
        return Finding(what="clock", state="wrong", detail=detail, advice=mend)
    agrees = "" if skew is None else ", as services have it"
    return Finding(what="clock", state="ok", detail=f"{now:%Y-%m-%d %H:%M:%S} UTC by this machine{agrees}")


def _newest_stored(settings: Settings) -> datetime | None:
    """The latest moment that the home knows of: of a run, or when the pace of services was last written."""
    found: list[datetime] = []
    asked = {"runs.db": "SELECT max(created) FROM run", "services.db": "SELECT max(wall) FROM clock"}
    for name, query in asked.items():
        with suppress(sqlite3.DatabaseError, ValueError, TypeError):
            with closing(open_read_only(settings.home / name)) as con:
                (value,) = con.execute(query).fetchone()
            found.append(datetime.fromtimestamp(value, UTC) if isinstance(value, float) else instant(value))
    return max(found, default=None)


def _database(settings: Settings) -> Finding:
    if not settings.database:
        detail = "runs are kept in the home; FORETELL_DATABASE_URL would share them between machines"
        return Finding(what="PostgreSQL", state="optional", detail=detail)
    try:
        import psycopg
    except ImportError:
        return Finding(
            what="PostgreSQL",
            state="wrong",
            detail="FORETELL_DATABASE_URL is set, but psycopg is not installed",
            advice="pip install 'foretell[cluster]'",
        )
    try:
        with psycopg.connect(settings.database, connect_timeout=5) as db:
            number = db.info.server_version // 10_000
    except psycopg.Error as error:
        problem = " ".join(str(error).split())[:200]
        advice = "start the server, or correct FORETELL_DATABASE_URL"
        return Finding(what="PostgreSQL", state="wrong", detail=f"does not answer: {problem}", advice=advice)
    return Finding(what="PostgreSQL", state="ok", detail=f"version {number} answers")


async def _sandbox() -> Finding:
    from foretell.tools.notebook.limits import KernelLimits
    from foretell.tools.notebook.sandbox import SandboxUnavailable
    from foretell.tools.notebook.sandbox_check import check_sandbox

    try:
        await check_sandbox(KernelLimits())
    except SandboxUnavailable as error:
        advice = "apt install bubblewrap, or the like; only agents with a notebook need it"
        return Finding(what="sandbox", state="missing", detail=str(error), advice=advice)
    return Finding(what="sandbox", state="ok", detail="bubblewrap was tried and holds; agents may write Python")


def _extras() -> Iterator[Finding]:
    needed: dict[str, list[str]] = {}
    for line in requires("foretell") or ():
        named = re.search(r"extra == ['\"]([\w-]+)['\"]", line)
        other = "win32" in line and sys.platform == "win32"
        if named and named[1] not in OWN_EXTRAS and not other:
            needed.setdefault(named[1], []).append(re.split(r"[\s\[<>=!~;(]", line, maxsplit=1)[0])
    for extra, packages in needed.items():
        lacking = [name for name in packages if not _installed(name)]
        use = EXTRAS.get(extra, "")
        if lacking:
            detail = f"{use}: lacks {', '.join(lacking)}"
            yield Finding(
                what=f"extra {extra}", state="optional", detail=detail, advice=f"pip install 'foretell[{extra}]'"
            )
        else:
            yield Finding(what=f"extra {extra}", state="ok", detail=use)


def _installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _browser() -> Finding:
    found = find_chromium()
    detail = found or "not found; it prints reports as PDF (--out report.pdf)"
    return Finding(what="chromium", state="ok" if found else "optional", detail=detail)
