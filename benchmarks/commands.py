"""The smallest call of every command, against the bare imports of the libraries that it needs.

Each call is a process of its own, in an empty home and without network; a call that needs a stored run is answered
that there is none. Calls and bare imports take turns, and the least CPU time of each counts. Prints ratios of CPU time,
because they depend less on the machine than seconds. Commands that run until they are stopped are left out, except the
import of the web application. An argument is the number of turns.
"""

import os
import resource
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import foretell

TURNS = 3
MOST_RATIO = 2.0
ROW = "{name},q{n},{p},{outcome},2026-01-0{day},2026-02-01\n"
TABLE = "forecaster,question,p,outcome,due,resolved_on\n" + "".join(
    ROW.format(name=name, n=n, p=p, outcome=n % 2, day=1 + n % 9)
    for name, p in (("a", 0.7), ("b", 0.4))
    for n in range(20)
)
TREE = Path(foretell.__file__).parent / "practice" / "example_tree.json"

PLAIN = "click pydantic.main numpy rich.console rich.table"
TABLES = f"{PLAIN} duckdb"
NETWORK = f"{PLAIN} aiohttp uvloop"
CALLS = {
    "--help": "click",
    "score t.csv": TABLES,
    "compare t.csv": TABLES,
    "calibrate fit -f t.csv --method equal": TABLES,
    "runs list": PLAIN,
    "runs stop none": PLAIN,
    "runs edit none --name a": PLAIN,
    "runs delete none": PLAIN,
    "runs resolve none": PLAIN,
    "show none": PLAIN,
    "replay none": PLAIN,
    "models list": PLAIN,
    "tree list": PLAIN,
    f"tree show {TREE}": PLAIN,
    f"tree log {TREE}": PLAIN,
    f"tree whatif {TREE}": PLAIN,
    f"tree edit {TREE} --set P1=0.5 --plan": PLAIN,
    "tree update none": PLAIN,
    "tree grow 'It rains.' --model none": PLAIN,
    "data list": PLAIN,
    "corpus search rain": PLAIN,
    "arena show none": PLAIN,
    "tournament results": PLAIN,
    "submit none": PLAIN,
    "ledger": PLAIN,
    "init run": PLAIN,
    "study": PLAIN,
    "audit none": PLAIN,
    "grid none.yaml": PLAIN,
    "run none.yaml": PLAIN,
    "backtest none.csv": PLAIN,
    "doctor": NETWORK,
    "ask 'Will it rain in London?' --closes 2027-01-01 --model none": NETWORK,
}
"""Smallest call of a command → the libraries that it needs."""
PROGRAMS = {
    "import foretell; foretell.score('t.csv')": TABLES,
    "import foretell.web.app": f"{PLAIN} fastapi jinja2",
}
"""Python programs → the libraries that they need."""


def cpu_seconds(arguments: list[str], folder: Path) -> float:
    """Run Python with these arguments and return its CPU time. Bytecode is kept, as in an installation."""
    environment = {**os.environ, "FORETELL_HOME": str(folder / "home"), "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPATH"] = str(Path(foretell.__file__).parents[1])
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print one line for each call, the highest ratio last."""
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else TURNS
    calls = {f"foretell {call}": (["-m", "foretell", *shlex.split(call)], needed) for call, needed in CALLS.items()}
    calls |= {program: (["-c", program], needed) for program, needed in PROGRAMS.items()}
    ratios: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "t.csv").write_text(TABLE, encoding="utf-8")
        (folder / "home").mkdir()
        (folder / "home" / "settings.toml").write_text("network = false\n", encoding="utf-8")
        for call, (arguments, needed) in calls.items():
            bare = ["-c", f"import {', '.join(needed.split())}"]
            pairs = [(cpu_seconds(arguments, folder), cpu_seconds(bare, folder)) for _ in range(turns + 1)][1:]
            ratios[call] = min(own for own, _ in pairs) / min(libraries for _, libraries in pairs)
    for call, ratio in sorted(ratios.items(), key=lambda item: item[1]):
        print(f"{ratio:5.2f} × the bare imports  {call.replace(str(TREE), TREE.name)}")
    print(f"{sum(ratio <= MOST_RATIO for ratio in ratios.values())} of {len(ratios)} within {MOST_RATIO} times")


if __name__ == "__main__":
    main()
