"""What is set up on this machine, what is missing, and what to do about each."""

import json
import os
import platform
import re
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from importlib.metadata import PackageNotFoundError, distribution, requires, version
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from foretell.data.atomic_file import write_atomically
from foretell.data.known_services import KNOWN_SERVICES
from foretell.data.pace import PaceStore
from foretell.operations.requests import DoctorRequest
from foretell.operations.result import Result
from foretell.runs.settings import KEYS, SETTINGS_FILE, Settings, load_settings, read_contact

FindingState = Literal["ok", "missing", "optional", "wrong"]
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


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    what: str
    state: FindingState
    detail: str
    advice: str = ""
    """What to do, where there is something to do."""


@dataclass(frozen=True, kw_only=True)
class DoctorResult(Result):
    """All findings, in the order of their weight."""

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong; what is merely missing can be done without."""
        return all(finding.state != "wrong" for finding in self.findings)

    def rows(self) -> list[dict[str, Any]]:
        """One row for each finding."""
        return [asdict(finding) for finding in self.findings]

    def __str__(self) -> str:
        marks = {"ok": "ok", "missing": "--", "optional": "  ", "wrong": "!!"}
        lines: list[str] = []
        for one in self.findings:
            lines.append(f"{marks[one.state]:2} {one.what:14} {one.detail}")
            lines += [f"{'':18}{one.advice}"] if one.advice else []
        return "\n".join(lines)


async def doctor(request: DoctorRequest, settings: Settings | None = None) -> DoctorResult:
    """Look at everything; with a contact, keep that first."""
    if request.contact is not None:
        settings = settings or load_settings()
        keep_contact(settings.home, read_contact(request.contact))
    settings = load_settings() if request.contact is not None else settings or load_settings()
    findings = [
        _python(),
        *_home(settings),
        _contact(settings),
        *_keys(settings),
        _model(settings),
        _clock(settings),
        _database(settings),
        await _sandbox(),
        *_extras(),
        _browser(),
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
    detail = f"Python {platform.python_version()}, foretell {version('foretell')}, {platform.system()}"
    return Finding(what="Python", state="ok", detail=detail)


def _home(settings: Settings) -> Iterator[Finding]:
    home = settings.home
    probe = home / f".doctor-{uuid4().hex}"
    try:
        home.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        advice = "set FORETELL_HOME to a folder that can be written to"
        yield Finding(
            what="home", state="wrong", detail=f"{home} cannot be written to: {error.strerror}", advice=advice
        )
        return
    yield Finding(what="home", state="ok", detail=str(home))
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
    yield Finding(what="keys", state=state, detail=f"set: {', '.join(present) or 'none'}")
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


def _clock(settings: Settings) -> Finding:
    now = datetime.now(UTC)
    if settings.clock:
        detail = f"FORETELL_CLOCK is {settings.clock}: a simulation's time"
        return Finding(what="clock", state="wrong", detail=detail, advice="unset FORETELL_CLOCK for live questions")
    facts = max(date.fromisoformat(one.date) for one in KNOWN_SERVICES.values())
    if now.date() < facts:
        advice = "set this machine's clock: forecasts are stamped with it, and paces go by it"
        return Finding(what="clock", state="wrong", detail=f"{now:%Y-%m-%d %H:%M} UTC lies in the past", advice=advice)
    return Finding(what="clock", state="ok", detail=f"{now:%Y-%m-%d %H:%M:%S} UTC by this machine")


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
        return Finding(what="sandbox", state="missing", detail=str(error), advice="only agents with a notebook need it")
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
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    found = next((path for name in names if (path := shutil.which(name))), os.environ.get("CHROMIUM", ""))
    detail = found or "not found; only the tests of foretell's own pages use it"
    return Finding(what="chromium", state="ok" if found else "optional", detail=detail)
