"""Which packages a command loads: a measuring command loads nothing that forecasts, and nobody loads what it spares.

`LOADS` names, for every command, the packages that its modules import when they are loaded. What a request chooses
later, such as a forecaster or a platform, is loaded when it is used and is not listed.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from foretell.cli.main import PLACES
from foretell.operations.table import OPERATIONS
from test_architecture import modules

ALWAYS = (
    "cli data frozen interface number_text operations operations.requests own_objects patterns plugins python_calls "
    "questions report request"
)
"""What every command may load. A name stands for the modules directly in a package; inner packages are named apart."""
TABLES = "data.datasets forecasters.combine metrics scoring"
FITTING = f"{TABLES} forecasters.base_rates"
STORE = "models models.database runs"
STORED_RUNS = f"{STORE} data.datasets models.providers scoring"
SCORED_RUNS = f"{STORED_RUNS} {FITTING}"
SERVICES = f"{STORE} outgoing data.datasets data.markets data.search data.series data.settlements tools tools.dates"
AGENT = "forecasters forecasters.agent forecasters.base_rates forecasters.prompt forecasters.series"
PROMPTS = "forecasters forecasters.prompt"
MODELS = f"{SERVICES} {AGENT} metrics models.providers"
RUNNING = f"{MODELS} forecasters.combine"
FORECASTING = f"{RUNNING} scoring"
FILES = f"{STORE} data.datasets outgoing"
SOURCES = f"{FILES} data.markets data.series"
DATA = f"{SOURCES} forecasters.prompt scoring tools tools.dates"
TREE_FILES = "forecasters.tree models models.database runs tools.notebook"
GROWING = f"{RUNNING} forecasters.reason forecasters.tree tools.notebook"
SERVERS = "models runs"

LOADS = {
    "arena run": f"{FORECASTING} arena tournaments",
    "arena score": f"{FORECASTING} arena tournaments",
    "arena show": f"{FORECASTING} arena tournaments",
    "ask": f"{FORECASTING} forecasters.tree standing",
    "audit": f"{FORECASTING} arena forecasters.tree report.charts studies studies.audit",
    "backtest": f"{SERVICES} {PROMPTS} agent forecasters.base_rates metrics models.providers scoring",
    "calibrate apply": FITTING,
    "calibrate fit": FITTING,
    "compare": f"{TABLES} report.charts",
    "corpus add": f"{FILES} data.search",
    "corpus search": f"{FILES} data.search",
    "data build": DATA,
    "data list": SOURCES,
    "data pull": SOURCES,
    "data show": f"{DATA} forecasters models.providers tournaments",
    "demo": SERVERS,
    "doctor": f"{RUNNING} arena standing tournaments",
    "grid": FORECASTING,
    "init": f"{SOURCES} data.search data.settlements models.providers tools tournaments",
    "ledger": "metrics models models.database runs scoring tournaments",
    "mcp": SERVERS,
    "models check": RUNNING,
    "models list": STORED_RUNS,
    "practice": SERVERS,
    "record": f"{FITTING} {STORE} outgoing arena data.markets forecasters.tree report.charts standing",
    "replay": f"{RUNNING} forecasters.tree tools.notebook",
    "run": FORECASTING,
    "runs delete": STORED_RUNS,
    "runs edit": STORED_RUNS,
    "runs list": STORED_RUNS,
    "runs resolve": f"{SERVICES} forecasters.prompt scoring",
    "runs stop": STORED_RUNS,
    "score": TABLES,
    "serve": SERVERS,
    "show": f"{SCORED_RUNS} forecasters.agent forecasters.tree report.charts tools",
    "study": "",
    "submit": f"{FITTING} {STORE} outgoing data.markets data.series tournaments",
    "tournament results": f"{FITTING} {SOURCES} models.providers data.search data.settlements report.charts tools "
    "tournaments",
    "tournament run": f"{FORECASTING} forecasters.tree report.charts tournaments",
    "tree edit": GROWING,
    "tree grow": f"{GROWING} standing",
    "tree list": TREE_FILES,
    "tree log": TREE_FILES,
    "tree show": f"{TREE_FILES} metrics",
    "tree update": f"{GROWING} standing",
    "tree whatif": TREE_FILES,
    "worker": SERVERS,
}
"""Command → what its modules import when they are loaded."""


def _imported(body: Iterable[ast.stmt]) -> Iterable[str]:
    """Yield what is imported when a module is loaded: not inside functions, and not for type checkers."""
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                continue
            case ast.If() if "TYPE_CHECKING" in ast.unparse(node.test):
                yield from _imported(node.orelse)
            case ast.ImportFrom(module=str(module), names=names) if module.startswith("foretell"):
                for alias in names:
                    whole = f"{module}.{alias.name}"
                    yield whole if whole in modules() else module
            case _:
                for part in ("body", "orelse", "finalbody"):
                    yield from _imported(getattr(node, part, ()))


@cache
def loaded_with(module: str) -> frozenset[str]:
    """Return the modules that loading a module loads."""
    loaded, left = set[str](), [module]
    while left:
        name = left.pop()
        if name not in loaded:
            loaded.add(name)
            left += [name.rpartition(".")[0]] if "." in name else []
            left += _imported(modules()[name].body)
    return frozenset(loaded)


def packages(names: Iterable[str]) -> set[str]:
    """Return the packages that hold these modules, to the second level below foretell."""
    outer = {module.rpartition(".")[0] for module in modules()}
    inside = [name.split(".")[1:] for name in names if name not in outer]
    return {".".join(parts[: min(2, len(parts) - 1)]) or parts[0] for parts in inside}


def command_modules(words: str) -> frozenset[str]:
    """Return the modules of a command, of its request and of the function that answers it."""
    if words in PLACES:
        return loaded_with(PLACES[words].partition(":")[0])
    operation = OPERATIONS[words]
    homes = (f"foretell.operations.requests.{operation.request_place}", operation.answer, "foretell.cli.commands:")
    return frozenset[str]().union(*(loaded_with(home.partition(":")[0]) for home in homes))


@pytest.mark.parametrize("words", sorted({*OPERATIONS, *PLACES}))
def test_a_command_loads_only_its_packages(words: str) -> None:
    assert packages(command_modules(words)) - set(ALWAYS.split()) <= set(LOADS[words].split())


def test_every_listed_package_is_needed() -> None:
    for words, listed in LOADS.items():
        assert set(listed.split()) <= packages(command_modules(words)), words


TABLE = "forecaster,question,p,outcome\nbold,q1,0.9,1\nbold,q2,0.2,0\nshy,q1,0.6,1\nshy,q2,0.5,0\n"
COMMAND = "import sys; from foretell.cli.main import main; sys.argv = ['foretell', *{words!r}]; main()"
CALLS = {
    COMMAND.format(words=["score", "table.csv"]): f"{TABLES} report.charts",
    COMMAND.format(words=["compare", "table.csv"]): f"{TABLES} report.charts",
    COMMAND.format(words=["runs", "list"]): STORED_RUNS,
    COMMAND.format(words=["models", "list"]): f"{STORED_RUNS} outgoing",
    COMMAND.format(words=["tree", "list"]): TREE_FILES,
    COMMAND.format(words=["--help"]): "",
    "import foretell; foretell.score('table.csv')": TABLES,
}
"""A program → what it may load until it ends."""
LIST_MODULES = "import sys, atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "


def test_loading_a_command_searches_for_no_garbage_among_all_modules(tmp_path: Path) -> None:
    count = "import gc; gc.collect(); before = gc.get_stats()[2]['collections']; import atexit; "
    count += "atexit.register(lambda: print(gc.get_stats()[2]['collections'] - before, file=sys.stderr)); "
    done = subprocess.run(
        [sys.executable, "-c", "import sys; " + count + COMMAND.format(words=["runs", "list"])],
        env={**os.environ, "FORETELL_HOME": str(tmp_path / "home")}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr.split() == ["0"]


@pytest.mark.parametrize("program", CALLS)
def test_a_call_loads_only_its_packages(program: str, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(TABLE, encoding="utf-8")
    environment = {**os.environ, "FORETELL_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, "-c", LIST_MODULES + program],
        cwd=tmp_path, env=environment, capture_output=True, text=True, encoding="utf-8", check=True,
    )  # fmt: skip
    names = [name for name in done.stderr.split() if name.startswith("foretell.") and name in modules()]
    assert names
    assert packages(names) - set(ALWAYS.split()) <= set(CALLS[program].split())
