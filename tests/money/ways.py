"""Every way of spending money, as commands in real processes against a provider that keeps its own bill.

A new way of spending is one more line of `WAYS`.
"""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, Self

import yaml

from fakes.background import Background
from fakes.billing import Bill, BillingProcess
from fakes.markets import FakeKalshi, FakeMetaculus
from fakes.processes import ForkedCommand
from fakes.samples import SampleMetaculusQuestion, metaculus_post_body
from foretell.models.token_price import read_price
from foretell.practice.markets.kalshi import KalshiCatalogue, SampleKalshiEvent, SampleKalshiMarket, kalshi_event_body
from foretell.practice.markets.metaculus import MetaculusCatalogue, MetaculusInbox

NOBODY_KNOWS = "openai:nobody-knows-it-"
"""The beginning of the names of models whose prices are in no table."""
PRICE = "2.5/10"
"""Dollars per million tokens read and written: as billed by the provider and as configured in every command."""
SCRIPT = "foretell.practice.models.scripts:arena_script"
WANTS = 4000
"""Tokens of a reply; all but the few that can be seen are reasoning."""
RESPONSES, CHAT, MESSAGES = "openai:planner-8", "mistral:planner-8", "anthropic:planner-8"
"""Models by the format in which they are asked. Their prices are in no table. They break a claim into eight."""
TOLERANCE, ROUNDED = 1e-9, 1e-8
"""Dollars by which a bill may exceed a budget, for sums of floats; and by which figures in results may be rounded."""
NOW = datetime(2026, 11, 15, 10, tzinfo=UTC)
PATIENCE = 120.0
INHERITED = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR")
QUICK = {
    "foretell.models.providers.batches:GATHER_SECONDS": 0.05,
    "foretell.models.providers.batches:FIRST_POLL": 0.05,
    "foretell.models.providers.batches:FIRST_WAIT": 0.05,
}
"""Pauses of minutes at a real provider's batches."""


class Figures(NamedTuple):
    """The four figures of money in a result, in dollars."""

    billed: float
    """What this command was billed for."""
    reused: float
    """What replies from the journal cost originally."""
    unknown: float
    """The most that lost replies may have cost."""
    reserved: float
    """The most that calls in progress can cost."""


def figures(result: Any) -> Figures:
    """The four figures in a result that was read from JSON: those of the outermost object that has all of them."""
    layer: list[Any] = [result]
    while layer:
        for node in layer:
            if isinstance(node, dict) and node.keys() >= set(Figures._fields):
                return Figures(*(float(node[name]) for name in Figures._fields))
        layer = [part for node in layer for part in _parts(node)]
    raise AssertionError(f"no object with {', '.join(Figures._fields)} in {str(result)[:200]}")


def _parts(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


class Done(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    stdout: str
    stderr: str

    @property
    def figures(self) -> Figures:
        """The four figures of its result. A refused command prints none, because it has spent nothing."""
        return figures(json.loads(self.stdout)) if self.stdout else Figures(0.0, 0.0, 0.0, 0.0)


class Site:
    """A folder with input files, a home in it, and a provider that keeps its own bill."""

    def __init__(self, folder: Path, *, database: str = "", **how: Any) -> None:
        """`how` are settings of the provider; the runs and the journal are in the database if one is given."""
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._stack = ExitStack()
        usual = {"wants": WANTS, "price": read_price(PRICE)}
        self.provider = self._stack.enter_context(BillingProcess(SCRIPT, **{**usual, **how}))
        (folder / "clock").write_text(NOW.isoformat())
        self.set("check_models = false", "network = false", 'contact = "us@example.org"')
        url = self.provider.url
        self.environment = {
            **{name: os.environ[name] for name in INHERITED if name in os.environ},
            # A proxy that does not exist, so that requests to other machines fail.
            **{"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"},
            **{"OPENAI_API_KEY": "k", "MISTRAL_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "METACULUS_TOKEN": "t"},
            "FORETELL_OPENAI_URL": f"{url}/v1",
            "FORETELL_MISTRAL_URL": f"{url}/v1",
            "FORETELL_ANTHROPIC_URL": url,
            "FORETELL_HOME": str(folder / "home"),
            "FORETELL_CLOCK": f"file:{folder / 'clock'}",
            "COLUMNS": "200",
            **({"FORETELL_DATABASE_URL": database} if database else {}),
        }
        self._children: list[ForkedCommand] = []

    def set(self, *lines: str) -> None:
        """Add lines to settings.toml in the home."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        with (home / "settings.toml").open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End everything that still runs."""
        for child in self._children:
            if child.poll() is None:
                child.kill()
                child.wait(PATIENCE)
        self._stack.close()

    def bill(self) -> Bill:
        """What the provider has billed for so far."""
        return self.provider.bill()

    def totals(self) -> Figures:
        """The four figures of everything that was ever run here, added up."""
        rows = json.loads(self.tell("runs", "--json").stdout)["runs"]
        return Figures(*map(sum, zip(*map(figures, rows), strict=True)))

    def serve(self, variable: str, make: Callable[[], Any], path: str = "") -> None:
        """Let a service listen until the site is closed, at an address that an environment variable names."""
        service = self._stack.enter_context(Background(make))
        self.environment[variable] = f"{service.url}{path}"

    def write(self, name: str, content: Mapping[str, Any]) -> None:
        """Write a YAML file."""
        (self.folder / name).write_text(yaml.safe_dump(dict(content)), encoding="utf-8")

    def start(self, command: Sequence[str], *, watched: bool = True) -> ForkedCommand:
        """Start a command in its own process; unless watched, its output is discarded."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} if watched else {}
        child = ForkedCommand(command, cwd=self.folder, env=self.environment, constants=QUICK, **pipes)
        self._children.append(child)
        return child

    def ended(self, child: ForkedCommand) -> Done:
        """Wait for a command, and check that it printed nothing that users should not see."""
        stdout, stderr = child.communicate(PATIENCE)
        assert "Traceback" not in stderr, stderr
        return Done(child.wait(PATIENCE), stdout, stderr)

    def tell(self, *command: str) -> Done:
        """Run a command to its end."""
        return self.ended(self.start(command))


@dataclass(frozen=True, kw_only=True)
class Way:
    """A way of spending money."""

    name: str
    budget: float
    """Dollars; there is work for at least twice as many."""
    prepare: Callable[[Site, float], Sequence[str]]
    """Writes what the command reads, with this budget, and returns the command, which prints JSON."""
    shared: bool = False
    """Whether runs and journal are in PostgreSQL instead of files."""
    by_workers: bool = False
    """Whether the processes that spend are workers, and the command only waits for them."""
    ends: tuple[int, ...] = (0, 3)
    """Exit codes of a command that was not stopped from outside. A part of the answers may be missing."""

    def __str__(self) -> str:
        return self.name

    def spend(self, site: Site, budget: float | None = None, processes: int = 1) -> list[Done]:
        """Let processes spend at the same time until all have ended; return their results."""
        command = self.prepare(site, self.budget if budget is None else budget)
        return self.carry_out(site, command, processes)

    def carry_out(self, site: Site, command: Sequence[str], processes: int = 1) -> list[Done]:
        """Do the same with a command that was prepared before."""
        workers = [site.start(WORKER, watched=False) for _ in range(processes if self.by_workers else 0)]
        begun = [site.start(command) for _ in range(1 if self.by_workers else processes)]
        done = [site.ended(child) for child in begun]
        for worker in workers:
            worker.send_signal(signal.SIGTERM)
            worker.wait(PATIENCE)
        for result in done:
            assert result.code in self.ends, result.stderr
        return done


WORKER = ("worker", "--concurrency", "4")


# The input files of each command.


def run_spec(site: Site, budget: Mapping[str, float] | None, **fields: Any) -> dict[str, Any]:
    """The spec of a run whose trials cost one call each, with more questions than the budget can pay for."""
    model = fields.pop("model", RESPONSES)
    count = fields.pop("count", 80)
    usual = {
        "background": fields.pop("background", ""),
        "due": "2026-01-01",
        "source": "own",
        "targets": [{"id": "yes"}],
    }
    rows = [{**usual, "id": f"own/{n}", "text": f"Will number {n} win?"} for n in range(count)]
    (site.folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    spec: dict[str, Any] = {
        "questions": str(site.folder / "questions.jsonl"),
        "models": {"agent": model},
        "prices": {model: PRICE},
        "search": [],
        "options": {"variant": "zero-shot"},
        "mode": "backtest",
    }
    return {**spec, **fields, **({"budget": dict(budget)} if budget else {})}


def _run(*options: str, **fields: Any) -> Callable[[Site, float], Sequence[str]]:
    def prepare(site: Site, budget: float) -> Sequence[str]:
        site.write("run.yaml", run_spec(site, {"run": budget}, **fields))
        return ("run", "run.yaml", "--json", *options)

    return prepare


def _question_budgets(site: Site, budget: float) -> Sequence[str]:
    count = 3
    spec = run_spec(site, {"question": budget / count}, count=count, forecaster="tree")
    site.write("run.yaml", {**spec, "options": {"grounder": "plain", "leaves": 6}})
    return ("run", "run.yaml", "--json")


def _ask(site: Site, budget: float) -> Sequence[str]:
    how = ("--as-of", "2026-01-01", "--set", "options.variant=zero-shot", "--trials", "50", "--search", "none")
    return ("ask", "Will it rain?", "--closes", "2026-12-31", *how, *_priced("--budget", str(budget)))


def _tree(site: Site, budget: float) -> Sequence[str]:
    how = ("--as-of", "2026-01-01", "--search", "none", "--grounder", "plain", "--leaves", "12")
    how = (*how, "--set", "options.rounds=2")
    return ("tree", "grow", "The bridge opens by 31 December 2026.", *how, *_priced("--budget", str(budget)))


def _priced(*limit: str) -> Sequence[str]:
    return ("--model", RESPONSES, "--set", f"prices.agent={PRICE}", *limit, "--json")


def _grid(site: Site, budget: float) -> Sequence[str]:
    base = run_spec(site, None, count=30)
    site.write("grid.yaml", {"name": "g", "base": base, "factors": {"seed": [1, 2, 3]}, "budget": budget})
    return ("grid", "grid.yaml", "--json")


def _arena(whole: bool) -> Callable[[Site, float], Sequence[str]]:
    def prepare(site: Site, budget: float) -> Sequence[str]:
        entry = {"model": RESPONSES, "prices": {RESPONSES: PRICE}, "trials": 10}
        if whole:
            # Trials count up from the seed: with distant seeds, no two entries send the same request.
            entries = {f"entry{n}": {**entry, "seed": 1000 * n} for n in (1, 2)}
        else:
            entries = {"market": "market", "entry": {**entry, "budget": {"run": budget}}}
        spec = {"name": "a", "entries": entries, "select": {"volume": 1}, **({"budget": budget} if whole else {})}
        site.write("arena.yaml", spec)
        if "FORETELL_KALSHI_URL" not in site.environment:
            site.serve("FORETELL_KALSHI_URL", FakeKalshi({}).having(_exchange()).server)
            done = site.tell("arena", "run", "--once", "--stage", "collect", "--stage", "context")
            assert done.code == 0, done.stderr
        return ("arena", "run", "--once", "--stage", "forecast", "--json")

    return prepare


def _exchange() -> KalshiCatalogue:
    quotes: dict[str, Any] = {"bid": 0.4, "ask": 0.44, "volume": 500, "closes": (NOW + timedelta(days=9)).isoformat()}
    events = [
        SampleKalshiEvent(
            ticker=f"KX{n}-26NOV",
            series=f"KX{n}",
            title=f"Is number {n} approved?",
            markets=(SampleKalshiMarket(ticker=f"KX{n}-26NOV-Y", label="Yes", **quotes),),
        )
        for n in range(6)
    ]
    return KalshiCatalogue([kalshi_event_body(event) for event in events])


def _tournament(site: Site, budget: float) -> Sequence[str]:
    if "FORETELL_METACULUS_URL" not in site.environment:
        times: dict[str, Any] = {
            "opens": "2026-11-01T00:00:00Z",
            "closes": "2026-12-15T00:00:00Z",
            "resolves": "2026-12-20T00:00:00Z",
        }
        questions = [SampleMetaculusQuestion(id=n + 1, title=f"Will {n} win?", **times) for n in range(10)]
        posts = [metaculus_post_body(100 + question.id, question.title, question) for question in questions]
        platform = FakeMetaculus({}, token="t").having(MetaculusCatalogue(posts))
        site.serve("FORETELL_METACULUS_URL", platform.taking(MetaculusInbox(now=lambda: NOW)).server, "/api")
    return ("tournament", "run", "metaculus:cup", "--trials", "6", *_priced("--set", f"tournament.budget={budget}"))


LONG = "3141592653589793 " * 500
"""Eight thousand bytes with few bytes per token."""
_SHORT = {"max_tokens": 5000}
"""Limits replies, so that a batch holds several long calls."""

WAYS = (
    Way(name="run", budget=0.5, prepare=_run()),
    Way(name="run in chat format", budget=0.5, prepare=_run(model=CHAT)),
    Way(name="run in messages format", budget=0.5, prepare=_run(model=MESSAGES)),
    Way(name="run with question budgets", budget=0.45, prepare=_question_budgets),
    Way(name="run in batches", budget=0.3, prepare=_run("--set", "sampling.tier=batch", sampling=_SHORT)),
    Way(name="ask", budget=0.3, prepare=_ask, ends=(0, 1, 2, 3)),
    Way(name="tree", budget=0.3, prepare=_tree, ends=(0, 1, 2, 3)),
    Way(name="grid", budget=0.4, prepare=_grid),
    Way(name="arena entry", budget=0.4, prepare=_arena(whole=False)),
    Way(name="arena", budget=0.4, prepare=_arena(whole=True)),
    Way(name="tournament", budget=0.4, prepare=_tournament, ends=(0, 1, 2, 3)),
    Way(name="run on PostgreSQL", budget=0.5, prepare=_run("--where", "here"), shared=True),
    Way(name="workers", budget=0.5, prepare=_run("--where", "workers"), shared=True, by_workers=True),
)
"""Ways of spending that all tests use."""
SPECIAL = (
    Way(name="impatient run", budget=0.8, prepare=_run(sampling={"reply_seconds": 0.4, "max_tokens": 5000})),
    Way(name="run on long texts", budget=0.1, prepare=_run(background=LONG, sampling={"max_tokens": 64})),
)
"""Ways of spending for single kinds of misbehaviour of a provider."""
BY_NAME = {way.name: way for way in (*WAYS, *SPECIAL)}
