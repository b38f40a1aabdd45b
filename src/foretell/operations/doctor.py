"""Check the set-up of this machine and its services: what works, what is missing, what is wrong, how to fix it."""

import asyncio
import json
import platform
import re
import shlex
import shutil
import socket
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from importlib.metadata import PackageNotFoundError, distribution, requires, version
from pathlib import Path
from typing import Literal
from uuid import uuid4

from foretell.data.files import write_atomically
from foretell.data.known_services import KNOWN_SERVICES
from foretell.data.service_limits import ServiceStore
from foretell.frozen import frozen
from foretell.models.database.integrity import CheckedTable, StoredCheck, newest_value
from foretell.models.database.sqlite import RESERVED_BYTES
from foretell.models.journal import Journal
from foretell.models.journal_check import ENTRIES, rebuild_accounts
from foretell.operations.repair import (
    LIMITS,
    HomeFile,
    file_faults,
    home_files,
    in_use,
    missing_runs,
    newer_parts,
    rebuild_file,
    set_aside,
    set_aside_rows,
)
from foretell.operations.requests.setup import DoctorRequest
from foretell.operations.services import ALL, check_services, list_services, reach_services
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError, storage_error
from foretell.report.result import Result
from foretell.runs.services import SEARCH_ENGINES
from foretell.runs.settings import (
    KEYS,
    OLD,
    SETTINGS_FILE,
    SETTINGS_TEMPLATE,
    Settings,
    load_settings,
    read_contact,
    read_settings_file,
)
from foretell.runs.store import RunStore
from foretell.runs.stored_rows import ANSWERS, TABLE_NOUNS, unreadable_rows
from foretell.tournaments.ledger import LEDGER_FILE, open_ledger

FindingState = Literal["ok", "missing", "optional", "wrong", "repaired"]
OWN_EXTRAS = ("dev", "oracles", "docs")
"""Extras for developers of foretell."""
EXTRAS = {
    "llm": "asks models and reads web pages",
    "local": "runs a model in a GGUF file on this machine",
    "web": "foretell serve",
    "mcp": "foretell mcp",
    "cluster": "runs of many machines in PostgreSQL",
    "notebook": "agents that write Python",
    "plots": "charts as PNG",
    "stats": "further tests of statistics",
    "inspect": "tasks of Inspect",
}
MODEL_PROVIDERS = ("openai", "anthropic", "google", "openrouter")
LOCAL_SERVERS = {"Ollama": 11434, "LM Studio": 1234, "llama.cpp or vLLM": 8000}
"""Local model servers, with the ports they usually listen on."""
WAIT = 0.2
SCARCE_BYTES = 500_000_000
"""Warn when less disk space than this is free."""
REACH_SECONDS = 20.0
SKEW_SECONDS = 60.0
"""How far the clock may differ from the clocks of services."""
AHEAD = timedelta(minutes=10)
"""How far in the future a stored time may be before the clock is reported as wrong."""
REPAIR = "foretell doctor --repair"


@frozen(kw_only=False)
class Finding:
    """The state of one part of the set-up."""

    what: str
    state: FindingState
    detail: str
    advice: str = ""
    """How to fix it: a command, where there is one."""
    notes: tuple[str, ...] = ()
    """What a repair did, and what was lost."""


@frozen
class DoctorResult(Result):
    """All findings, the most important first."""

    lines = "findings"
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong. Missing parts are optional."""
        return all(finding.state != "wrong" for finding in self.findings)

    def __str__(self) -> str:
        marks = {"ok": "ok", "missing": "--", "optional": "  ", "wrong": "!!", "repaired": "ok"}
        lines: list[str] = []
        for finding in self.findings:
            lines.append(f"{marks[finding.state]:2} {finding.what:16} {finding.detail}")
            lines += [f"{'':20}{line}" for line in (*finding.notes, finding.advice) if line]
        return "\n".join(lines)


async def run_doctor(request: DoctorRequest, settings: Settings | None = None) -> Result:
    """Check the set-up or, with `services`, list or check the services; a contact is saved first."""
    settings = settings or load_settings()
    if request.contact is not None:
        contact = read_contact(request.contact)
        save_contact(settings.home, contact)
        settings = replace(settings, contact=contact)
    if request.services is None:
        return await doctor(request, settings)
    if request.repair:
        raise InputError("has no effect with --services", column="--repair", hint="leave one of them out")
    name = None if request.services == ALL else request.services
    return await check_services(name, settings) if request.online else list_services(name, settings)


async def doctor(request: DoctorRequest, settings: Settings | None = None) -> DoctorResult:
    """Check everything but the services one by one."""
    settings = settings or load_settings()
    skew: float | None = None
    reached: list[Finding] = []
    if request.online:
        reached, skew = await _reach(settings)
    findings = [
        _python(),
        *_home(settings),
        *await asyncio.to_thread(lambda: list(look_at_databases(settings, repair=request.repair))),
        _settings_file(settings),
        _contact(settings),
        *look_at_setup(settings),
        await look_at_sandbox(),
        *_keys(settings),
        _model(settings),
        _clock(settings, skew),
        *_extras(),
        *reached,
    ]
    return DoctorResult(findings=tuple(findings))


def save_contact(home: Path, contact: str) -> None:
    """Save the contact in settings.toml, and leave the rest of the file as it is; a new file explains every key."""
    path = home / SETTINGS_FILE
    line = f"contact = {json.dumps(contact)}\n"
    before = path.read_text(encoding="utf-8") if path.is_file() else SETTINGS_TEMPLATE
    text, replaced = re.subn(r"(?m)^(# )?contact\s*=.*\n?", lambda _: line, before, count=1)
    # At the top: below a heading it would belong to that table.
    write_atomically(path, (text if replaced else line + before).encode(), private=True)


def _python() -> Finding:
    parts = (
        f"Python {platform.python_version()}",
        f"foretell {version('foretell')}",
        f"SQLite {sqlite3.sqlite_version}",
        platform.system(),
    )
    return Finding("Python", "ok", ", ".join(parts))


def _home(settings: Settings) -> Iterator[Finding]:
    home = settings.home
    probe = home / f".doctor-{uuid4().hex}"
    try:
        home.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        advice = "export FORETELL_HOME=FOLDER, with a folder that can be written to; what is stored can still be read"
        yield Finding("home", "wrong", f"{home} cannot be written to: {error.strerror}", advice)
        return
    yield Finding("home", "ok", str(home))
    yield _disk(home)
    with closing(ServiceStore(settings.access.state)) as store:
        now = datetime.now(UTC).timestamp()
        closed = [name for name, state in store.states().items() if state.closed > now]
    if closed:
        yield Finding(
            "services", "missing", f"not used for now: {', '.join(closed)}", "foretell doctor --services says why"
        )


def _settings_file(settings: Settings) -> Finding:
    """Report where the file of settings is, what it sets, and which old variables override it."""
    path = settings.home / SETTINGS_FILE
    old = [name for name in OLD if settings.keys.get(name)]
    if old:
        keys = dict.fromkeys(OLD[name][0] for name in old)
        advice = f"set {', '.join(keys)} in {path} instead: later versions do not read these variables"
        return Finding("settings", "missing", f"variables of an earlier version: {', '.join(old)}", advice)
    if not path.is_file():
        advice = "foretell doctor --contact you@example.org creates it, with every setting explained"
        return Finding("settings", "optional", f"no {path}", advice)
    try:
        saved = read_settings_file(settings.home)
    except InputError as error:
        return Finding("settings", "wrong", str(error), f"edit {path}")
    return Finding("settings", "ok", f"{path}: {', '.join(saved) or 'sets nothing'}")


def _disk(home: Path) -> Finding:
    usage = shutil.disk_usage(home)
    detail = f"{usage.free / 1e9:,.1f} GB of {usage.total / 1e9:,.1f} GB free"
    if usage.free < RESERVED_BYTES:
        advice = f"free some space: no request is sent while less than {RESERVED_BYTES // 10**6} MB are left"
        return Finding("disk", "wrong", detail, advice)
    if usage.free < SCARCE_BYTES:
        advice = "free some space, or export FORETELL_HOME=FOLDER on another disk"
        return Finding("disk", "missing", detail, advice)
    return Finding("disk", "ok", detail)


def look_at_databases(settings: Settings, *, repair: bool) -> Iterator[Finding]:
    """Check every database of the home: is it sound, of a known version, and unchanged?

    A journal on a server may be long, so its entries are read only for a repair.
    """
    if repair and settings.database is not None:
        for table, opened in ((ENTRIES, Journal(settings.database)), (ANSWERS, RunStore(settings.database))):
            with closing(opened):
                check = table.check(opened.database.stream(table.query))
            detail = f"{check.total:,} {table.rows} on the server are as they were stored"
            good = Finding(table.file.removesuffix(".db"), "ok", detail)
            yield _edited(table, check, settings, repair=True) or good
    for file in home_files(settings):
        try:
            yield _looked_at(file, settings, repair=repair)
        except (OSError, sqlite3.DatabaseError, InputError) as error:
            yield Finding(file.path.name, "wrong", str(storage_error(error, file.path) or error), REPAIR)
    ledger = open_ledger(settings)
    if ledger.path.exists():
        check = ledger.verify()
        advice = "" if check.whole else "nothing more is submitted with it; move the file elsewhere to start a new one"
        yield Finding(LEDGER_FILE, "ok" if check.whole else "wrong", str(check), advice)
    damaged = (path.name for path in settings.home.glob("*.db.damaged-*"))
    damaged_files = sorted(name for name in damaged if not name.endswith(("-wal", "-shm")))
    if damaged_files:
        detail = f"damaged files were set aside: {', '.join(damaged_files[-3:])}"
        yield Finding("", "optional", detail, "delete them if you do not need them")


def _looked_at(file: HomeFile, settings: Settings, *, repair: bool) -> Finding:
    name = file.path.name
    if faults := file_faults(file):
        detail = f"damaged: {'; '.join(faults)}"[:300]
        if repair and in_use(file.path):
            advice = f"end the processes that use it, then {REPAIR}"
            return Finding(name, "wrong", f"{detail}; a process has it open", advice)
        if repair and (done := rebuild_file(file)):
            return Finding(name, "repaired", f"was {detail}", notes=done)
        return Finding(name, "wrong", detail, restore_advice(file))
    if newer := newer_parts(file):
        advice = "pip install --upgrade foretell, or export FORETELL_HOME=FOLDER with another folder"
        return Finding(name, "wrong", f"a newer foretell wrote it: {newer[0]}", advice)
    detail = f"{file.what}: sound, {file.path.stat().st_size / 1e6:,.1f} MB"
    if file.what == "runs" and (gone := missing_runs(file)):
        detail += f", but the journal has paid replies of {gone} runs that are not here"
        advice = "foretell run SPEC with the same spec: it is the same run, and its replies are free"
        return Finding(name, "missing", detail, advice)
    table = {"journal": ENTRIES, "runs": ANSWERS}.get(file.what)
    if table is None:
        return Finding(name, "ok", detail)
    check = table.check_file(file.path)
    detail += f", {check.total:,} {table.rows}"
    detail += f"; {check.unverified:,} stored before checksums existed cannot be verified" if check.unverified else ""
    unreadable = _unreadable(file, settings, repair=repair) if table is ANSWERS else None
    edited = unreadable or _edited(table, check, settings, repair=repair)
    if repair and table is ENTRIES and not edited and not in_use(file.path) and (done := rebuild_accounts(file.path)):
        return Finding(name, "repaired", detail, notes=done)
    return edited or Finding(name, "ok", detail)


def restore_advice(file: HomeFile) -> str:
    """Return how to restore a damaged file: rebuild indexes, use a backup or SQLite's own recovery, or move it away."""
    if file.what == LIMITS:
        return REPAIR
    folder, name = shlex.quote(str(file.path.parent)), file.path.name
    recover = f"sqlite3 {name} .recover | sqlite3 recovered.db"
    exchange = f"mkdir damaged && mv {name}* damaged && mv recovered.db {name}"
    return (
        f"{REPAIR} rebuilds indexes. Otherwise restore the file from a backup, or recover what SQLite can read (its "
        f"command sqlite3 is at sqlite.org): cd {folder} && {recover} && {exchange} && {REPAIR}. Or move it away: "
        f"{file.lost}."
    )


def _edited(table: CheckedTable, check: StoredCheck, settings: Settings, *, repair: bool) -> Finding | None:
    """Return the finding about rows that were changed after they were stored."""
    if not check.wrong:
        return None
    first = table.described(check.wrong[0])
    detail = f"{len(check.wrong)} {table.rows} were changed after they were stored and are not used, e.g. {first}"
    if not repair:
        return Finding(table.file, "wrong", detail, REPAIR)
    done = tuple(set_aside(table, check.wrong, settings))
    return Finding(table.file, "repaired", detail, notes=done)


def _unreadable(file: HomeFile, settings: Settings, *, repair: bool) -> Finding | None:
    """Return the finding about rows that cannot be read although the file itself is sound."""
    wrong = unreadable_rows(file.path)
    if not wrong:
        return None
    detail = f"{', '.join(f'{len(rows)} {TABLE_NOUNS[table]}' for table, rows in wrong.items())} cannot be read"
    if not repair:
        return Finding(file.path.name, "wrong", detail, REPAIR)
    with closing(RunStore(settings.store)) as store:
        done = tuple(set_aside_rows(store, wrong, settings))
    again = _edited(ANSWERS, ANSWERS.check_file(file.path), settings, repair=True)
    notes = done + (again.notes if again else ())
    return Finding(file.path.name, "repaired", detail, notes=notes)


async def _reach(settings: Settings) -> tuple[list[Finding], float | None]:
    """Send one cheap request to every service that is set up."""
    checks, skew = await reach_services(settings, REACH_SECONDS)
    states: dict[str, FindingState] = {"ok": "ok", "failed": "wrong", "left out": "optional"}
    findings = [
        Finding(
            check.service,
            states[check.verdict],
            f"{check.what}: {check.detail}" if check.what else check.detail,
            f"foretell doctor --online --services {check.service}" if check.verdict == "failed" else "",
        )
        for check in checks
    ]
    return findings, skew


def _contact(settings: Settings) -> Finding:
    wanted = ", ".join(facts.title for facts in KNOWN_SERVICES.values() if facts.needs_contact)
    if settings.contact:
        return Finding("contact", "ok", settings.contact)
    return Finding(
        "contact",
        "missing",
        f"none: {wanted} cannot be used, and other services cannot report problems to you",
        "foretell doctor --contact you@example.org",
    )


def look_at_setup(settings: Settings) -> Iterator[Finding]:
    """Check what asking a model needs: keys, data and the database. No finding contains the value of a key."""
    yield _model_key(settings)
    yield _search_key(settings)
    yield _data(settings)
    yield _database(settings)


def _model_key(settings: Settings) -> Finding:
    if providers := [name for name in MODEL_PROVIDERS if name in settings.services]:
        return Finding("model key", "ok", ", ".join(providers))
    names = ", ".join(KEYS[name][0] for name in MODEL_PROVIDERS)
    local = "or use a model on this machine: compat:NAME@http://localhost:11434/v1"
    return Finding("model key", "missing", "none", f"set one of {names}, {local}")


def _search_key(settings: Settings) -> Finding:
    engines = [name for name in SEARCH_ENGINES if name in KEYS]
    if names := [name for name in engines if name in settings.services]:
        return Finding("search key", "ok", ", ".join(names))
    advice = f"set {KEYS[engines[0]][0]}, {KEYS[engines[1]][0]} or the key of another engine"
    return Finding("search key", "missing", "none, so only gdelt and your own documents are searched", advice)


def _data(settings: Settings) -> Finding:
    from foretell.data.datasets.forecastbench_download import pulled_rounds, rounds_cache

    advice = "foretell data pull forecastbench downloads past questions with their outcomes"
    try:
        rounds = len(pulled_rounds(rounds_cache(settings.home)))
    except (OSError, InputError) as error:
        return Finding("data", "missing", f"what was downloaded cannot be read: {error}", advice)
    corpus = ", your own documents" if settings.corpus.exists() else ""
    if rounds:
        return Finding("data", "ok", f"demo, {rounds} of the rounds of ForecastBench{corpus}")
    return Finding("data", "optional", f"the demo questions{corpus}", advice)


def _keys(settings: Settings) -> Iterator[Finding]:
    set_names = {service: [name for name in names if settings.keys.get(name)] for service, names in KEYS.items()}
    present = sorted({name for names in set_names.values() for name in names[:1]})
    missing = sorted({KEYS[service][0] for service, names in set_names.items() if not names})
    yield Finding("keys", "ok" if present else "missing", f"set: {', '.join(present) or 'none'}")
    if missing:
        yield Finding("", "optional", f"not set: {', '.join(missing)}")


def _model(settings: Settings) -> Finding:
    named = settings.keys.get("FORETELL_MODEL")
    listening = [name for name, port in LOCAL_SERVERS.items() if _listens(port)]
    local = f"; on this machine: {', '.join(listening)}" if listening else ""
    if named:
        return Finding("model", "ok", f"FORETELL_MODEL is {named}{local}")
    return Finding(
        "model",
        "missing",
        f"FORETELL_MODEL is not set{local}",
        "set it to provider:name (foretell models list), or to a model here: compat:NAME@http://localhost:11434/v1",
    )


def _listens(port: int) -> bool:
    with socket.socket() as connection:
        connection.settimeout(WAIT)
        return connection.connect_ex(("127.0.0.1", port)) == 0


def _clock(settings: Settings, skew: float | None) -> Finding:
    """Is the clock simulated, set back, or different from the clocks of services?"""
    now = datetime.now(UTC)
    advice = "set this machine's clock (timedatectl set-ntp true): forecasts are stamped with it"
    if settings.clock:
        detail = f"FORETELL_CLOCK is {settings.clock}, a simulated time"
        return Finding("clock", "wrong", detail, "unset FORETELL_CLOCK for live questions")
    facts = max(date.fromisoformat(known_service.date) for known_service in KNOWN_SERVICES.values())
    if now.date() < facts:
        return Finding("clock", "wrong", f"{now:%Y-%m-%d %H:%M} UTC is in the past", advice)
    # A part of an example was created with a simulated clock.
    newest = None if settings.is_example else _newest_stored(settings)
    if newest is not None and newest > now + AHEAD:
        detail = f"{now:%Y-%m-%d %H:%M} UTC, before a stored time, {newest:%Y-%m-%d %H:%M}: the clock was set back"
        return Finding("clock", "wrong", detail, advice)
    if skew is not None and abs(skew) > SKEW_SECONDS:
        way = "ahead of" if skew > 0 else "behind"
        detail = f"{timedelta(seconds=round(abs(skew)))} {way} the clocks of services"
        return Finding("clock", "wrong", detail, advice)
    agrees = "" if skew is None else ", as services have it"
    return Finding("clock", "ok", f"{now:%Y-%m-%d %H:%M:%S} UTC by this machine{agrees}")


def _newest_stored(settings: Settings) -> datetime | None:
    """Return the latest time stored in the home: of a run, or of the last request to a service."""
    times: list[datetime] = []
    for name, table, column in (("runs.db", "run", "created"), ("services.db", "limit_clock", "wall")):
        with suppress(sqlite3.DatabaseError, ValueError, TypeError):
            value = newest_value(settings.home / name, table, column)
            times.append(datetime.fromtimestamp(value, UTC) if isinstance(value, float) else instant(value))
    return max(times, default=None)


def _database(settings: Settings) -> Finding:
    if not settings.database:
        detail = "runs are stored in the home; FORETELL_DATABASE_URL would share them between machines"
        return Finding("PostgreSQL", "optional", detail)
    try:
        import psycopg
    except ImportError:
        return Finding(
            "PostgreSQL",
            "wrong",
            "FORETELL_DATABASE_URL is set, but psycopg is not installed",
            "pip install 'foretell[cluster]'",
        )
    try:
        with psycopg.connect(settings.database, connect_timeout=5) as db:
            number = db.info.server_version // 10_000
    except psycopg.Error as error:
        problem = " ".join(str(error).split())[:200]
        advice = "start the server, or correct FORETELL_DATABASE_URL"
        return Finding("PostgreSQL", "wrong", f"does not answer: {problem}", advice)
    return Finding("PostgreSQL", "ok", f"version {number} answers")


async def look_at_sandbox() -> Finding:
    """Try the sandbox of notebooks; takes about a second."""
    from foretell.tools.notebook.limits import KernelLimits
    from foretell.tools.notebook.sandbox import SandboxUnavailable
    from foretell.tools.notebook.sandbox_check import check_sandbox

    try:
        await check_sandbox(KernelLimits())
    except (SandboxUnavailable, OSError) as error:
        advice = "apt install bubblewrap, or the like; only agents with a notebook need it"
        return Finding("sandbox", "missing", str(error), advice)
    return Finding("sandbox", "ok", "bubblewrap works; agents may write Python")


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
            yield Finding(f"extra {extra}", "optional", detail, f"pip install 'foretell[{extra}]'")
        else:
            yield Finding(f"extra {extra}", "ok", use)


def _installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True
