"""Shared fixtures: the real data directory, a PostgreSQL, and a refusal to talk to anything but this machine."""

import logging
import os
import random
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from fakes.postgres import LocalPostgres, binaries
from foretell.questions.file_lock import locked

collect_ignore = ["example_plugin"]
"""A package of its own, which tests install where they use it."""
LONG = {
    "e2e",
    "golden",
    "notebook",
    "web",
    "test_container.py",
    "test_docs.py",
    "test_examples.py",
    "test_tournament.py",
}
"""Folders and files that take long."""
LOOPBACK = {"127.0.0.1", "::1", "localhost"}
LOGGERS = [logging.getLogger(name) for name in ("", "foretell")]

# How long an example takes says something of the machine and nothing of the code.
settings.register_profile("foretell", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("foretell")

# A shell starts background jobs with interrupts ignored, and children inherit that. A handler of ours is reset to the
# default in every child, so that a test can interrupt a command wherever the suite was started.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With FORETELL_TEST_ORDER=SEED, files and the tests within each come in a random order."""
    # Long files first, so that at the end no worker is left with one while the others wait.
    items.sort(key=lambda item: LONG.isdisjoint(item.path.parts))
    seed = os.environ.get("FORETELL_TEST_ORDER")
    if seed:
        chance = random.Random(seed)
        places = {path: chance.random() for path in dict.fromkeys(item.path for item in items)}
        ranks = {item: chance.random() for item in items}
        items.sort(key=lambda item: (places[item.path], ranks[item]))


@pytest.fixture(autouse=True)
def fresh_logging() -> Iterator[None]:
    """Every test finds loggers as a new process has them: libraries silence some for good when they are imported."""
    before = [(logger.level, logger.disabled, logger.propagate) for logger in LOGGERS]
    new = (logging.NOTSET, False, True)
    if LOGGERS[0].manager.disable or any(was != new for was in before[1:]):
        for logger in LOGGERS[1:]:
            logger.level, logger.disabled, logger.propagate = new
        logging.disable(logging.NOTSET)  # Which also forgets what every logger remembers of its level.
    yield
    for logger, (level, disabled, propagate) in zip(LOGGERS, before, strict=True):
        if (logger.level, logger.disabled, logger.propagate) != (level, disabled, propagate):
            logger.disabled, logger.propagate = disabled, propagate
            logger.setLevel(level)


@pytest.fixture(scope="session", autouse=True)
def data_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A home that is not the user's, for tests that name none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data_home")))
        yield


@pytest.fixture
def fixed_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A clock that stands still, and the minute that it shows in footers."""
    (tmp_path / "clock").write_text("2026-07-01T09:30:00Z", encoding="utf-8")
    monkeypatch.setenv("FORETELL_CLOCK", f"file:{tmp_path / 'clock'}")
    return "2026-07-01 09:30 UTC"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The directory of real data (ForecastBench rounds, BLF tables, …), or a skip that says where to put it."""
    root = Path(os.environ.get("FORETELL_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not (root / "tables").is_dir():
        pytest.skip(f"real data not found at {root}: set FORETELL_DATA to the directory that holds tables/")
    return root


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[LocalPostgres]:
    """A real PostgreSQL, started when the first test asks for it; a skip where it or its libraries are missing."""
    for library in ("psycopg", "dbos"):
        if find_spec(library) is None:
            pytest.skip(f"{library} is not installed: pip install 'foretell[cluster]'")
    if binaries() is None:
        pytest.skip("PostgreSQL is not installed: initdb and pg_ctl were not found")
    with LocalPostgres(safe=False) as server:
        yield server


@dataclass(frozen=True, kw_only=True)
class MadeExample:
    """The small example home that the tests share, and what making it printed. Whoever changes it takes a copy."""

    home: Path
    stdout: str
    page: Path
    tables: Path


@pytest.fixture(scope="session")
def made_example(tmp_path_factory: pytest.TempPathFactory) -> MadeExample:
    """`foretell demo`, once for all workers: few questions, few days of arena, and all else as a user has it."""
    pytest.importorskip("statsmodels")
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "example"
    made = MadeExample(home=root / "home" / "example", stdout="", page=root / "demo.html", tables=root / "tables")
    said = root / "stdout.txt"
    with locked(root / "lock"):
        if not said.exists():
            said.write_text(_make_example(made), encoding="utf-8")
    return replace(made, stdout=said.read_text(encoding="utf-8"))


def _make_example(made: MadeExample) -> str:
    from click.testing import CliRunner

    from foretell.cli.main import cli
    from foretell.practice.arena_demo import ArenaSeason

    words = ["demo", "--questions", "40", "--out", str(made.page), "--out", str(made.tables)]
    with ThreadPoolExecutor(1) as aside, pytest.MonkeyPatch.context() as patch:
        # A browser of another fixture may have a loop in this thread.
        patch.setattr("foretell.operations.example.SEASON", ArenaSeason(days=4))
        runner = CliRunner(env={"FORETELL_HOME": str(made.home.parent)})
        result = aside.submit(runner.invoke, cli, words, catch_exceptions=False).result()
    assert result.exit_code == 0, result.output
    return result.stdout


_DATABASES = count(1)


@pytest.fixture
def postgres(postgres_server: LocalPostgres) -> str:
    """The address of an empty database."""
    return postgres_server.create(f"test{next(_DATABASES)}")


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where to keep things: a file first, a PostgreSQL database then."""
    return tmp_path / "kept.db" if request.param == "sqlite" else request.getfixturevalue("postgres")


@pytest.fixture(autouse=True)
def _only_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that reaches for the network fails instead of passing by luck."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: object) -> None:
        host = address[0] if isinstance(address, tuple) else None
        if self.family != socket.AF_UNIX and host not in LOOPBACK:
            raise AssertionError(f"a test tried to reach {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
    # Asked without a model, public markets are looked at, and models that no table knows are tried first. Tests that
    # want that say so.
    monkeypatch.setattr("foretell.runs.settings.DEFAULTS", {"network": False, "check_models": False})


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    """Where every real part must be present (FORETELL_REQUIRE_ALL), a skip is a failure."""
    report = yield
    if report.skipped and os.environ.get("FORETELL_REQUIRE_ALL") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped although FORETELL_REQUIRE_ALL is set: {report.longrepr}"
    return report
