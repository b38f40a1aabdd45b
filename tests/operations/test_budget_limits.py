"""Budgets of tournaments and arenas: never exceeded, and complete answers if they suffice."""

import asyncio
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from click.testing import CliRunner

from fakes.background import Background
from fakes.billing import MODEL, BillingModels
from fakes.markets import FakeMetaculus
from fakes.samples import SampleMetaculusQuestion, metaculus_post_body
from foretell.cli.main import cli
from foretell.operations.practice import practice_environment
from foretell.operations.requests.tournaments import TournamentRunRequest
from foretell.operations.tournament import enter
from foretell.plugins import names
from foretell.practice.forecastbench import serve_rounds
from foretell.practice.markets.metaculus import MetaculusCatalogue, MetaculusInbox
from foretell.practice.models.scripts import arena_script
from foretell.practice.server import PracticeServer
from foretell.practice.services import ServiceOptions, all_services, data_services
from foretell.questions.errors import InputError
from foretell.runs.settings import load_settings
from foretell.tournaments.question_visit import TournamentResult
from foretell.tournaments.round_visit import RoundResult

NOW = datetime(2026, 11, 15, 10, tzinfo=UTC)
CERTIFICATES = ssl.create_default_context()


@contextmanager
def served() -> Iterator[dict[str, str]]:
    """Yield the addresses of all sandbox services, which run on their own event loop."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    services = all_services(ServiceOptions(now=NOW))
    try:
        yield asyncio.run_coroutine_threadsafe(services.__aenter__(), loop).result(30)
        asyncio.run_coroutine_threadsafe(services.__aexit__(None, None, None), loop).result(30)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


class Spending(NamedTuple):
    """What an interface reports about one tournament run."""

    complete: bool
    spent: float
    unknown: float
    text: str


class World:
    """One provider that keeps its own bill, and sites with questions."""

    def __init__(self, home: Path, stack: ExitStack) -> None:
        self.home, self.stack, self.environment = home, stack, dict[str, str]()
        self.models = BillingModels()

    def begin(self, name: str, **how: Any) -> None:
        """Start again with another provider."""
        home = self.home / name
        home.mkdir()
        (home / "clock").write_text(NOW.isoformat())
        provider = self.stack.enter_context(Background(lambda: BillingModels(script=arena_script, **how)))
        self.models = provider.server
        self.environment = {
            "FORETELL_HOME": str(home / "home"),
            "FORETELL_CLOCK": f"file:{home / 'clock'}",
            "FORETELL_OPENAI_URL": f"{provider.url}/v1",
            "OPENAI_API_KEY": "k",
        }

    def metaculus(self, budget: float, model: str = MODEL) -> Spending:
        times = {"opens": "2026-11-01T00:00:00Z", "closes": "2026-12-15T00:00:00Z", "resolves": "2026-12-20T00:00:00Z"}
        questions = [SampleMetaculusQuestion(id=n + 1, title=f"Will {n} win?", **times) for n in range(10)]
        posts = [metaculus_post_body(100 + question.id, question.title, question) for question in questions]
        fake = FakeMetaculus({}, token="t").having(MetaculusCatalogue(posts)).taking(MetaculusInbox(now=lambda: NOW))
        site = self.stack.enter_context(Background(fake.server))
        where = {"FORETELL_METACULUS_URL": f"{site.url}/api", "METACULUS_TOKEN": "t"}
        changes = {"tournament.budget": budget}
        request = TournamentRunRequest.read({"tournament": "metaculus:cup", "model": model, "set": changes})
        done = asyncio.run(enter(request, load_settings({**self.environment, **where})))
        assert isinstance(done, TournamentResult)
        return Spending(sum(row.sent for row in done.forecasts) == 10, done.billed_in_all, done.unknown, str(done))

    def forecastbench(self, budget: float, model: str = MODEL) -> Spending:
        def rounds() -> PracticeServer:
            server = PracticeServer()
            serve_rounds(server, "/forecastbench", NOW)
            return server

        site = self.stack.enter_context(Background(rounds))
        others = {*names("series"), *names("markets"), "wikipedia", "wayback"} - {"csv"}
        where = {f"FORETELL_{name.upper()}_URL": f"{site.url}/nothing" for name in others}
        where["FORETELL_FORECASTBENCH_URL"] = f"{site.url}/forecastbench"
        # Agents have to read it before they answer.
        dbnomics = self.stack.enter_context(Background(lambda: data_services(NOW, "")["dbnomics"].server()))
        where["FORETELL_DBNOMICS_URL"] = dbnomics.url
        values = {"tournament": "forecastbench", "sandbox": True, "model": model, "budget": budget}
        request = TournamentRunRequest.read({**values, "set": {"tournament.past_rounds": 1}})
        done = asyncio.run(enter(request, load_settings({**self.environment, **where})))
        assert isinstance(done, RoundResult)
        assert done.answered == 13  # model_free answers the rest.
        assert bool(done.problems) == (done.exit_code == 3)
        return Spending(
            done.by_agents == 13 and not done.problems, done.billed_in_all, done.unknown, str(done.problems)
        )

    def arena(self, budget: float, model: str = MODEL) -> Spending:
        where = {**practice_environment(self.stack.enter_context(served()), Path()), **self.environment}
        entry = {"forecaster": "context", "model": model, "trials": 2, "budget": {"run": budget}}
        file = Path(self.environment["FORETELL_HOME"]).parent / "arena.yaml"
        file.write_text(yaml.safe_dump({"name": "a", "entries": {"one": entry}}))

        def run_command(*words: str) -> str:
            result = CliRunner(env=where).invoke(cli, ["arena", *words, str(file.parent)])
            # 3: a forecast failed for lack of money.
            if result.exception is not None and result.exit_code != 3:
                raise result.exception
            return result.stdout

        run_command("run", "--once", "--stage", "collect", "--stage", "context")
        text = run_command("run", "--once", "--stage", "forecast")
        entry = json.loads(run_command("show", "--json"))["entries"]["one"]
        money = entry["money"]
        return Spending(not entry["open"] and entry["forecasts"] > 0, money["billed"], money["unknown"], text)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    # Nothing here is encrypted, and reading the certificates for every client takes long.
    monkeypatch.setattr(ssl, "create_default_context", lambda *_, **__: CERTIFICATES)
    with ExitStack() as stack:
        yield World(tmp_path, stack)


@pytest.mark.parametrize(
    "interface", [World.metaculus, World.forecastbench, World.arena], ids=lambda interface: interface.__name__
)
def test_budgets_hold_in_every_interface(world: World, interface: Callable[..., Spending]) -> None:
    world.begin("unlimited")
    whole = interface(world, 50.0)
    assert whole.complete, whole.text
    assert whole.spent == pytest.approx(world.models.bill)
    # The budget is just sufficient, and the provider is sometimes busy. The margin covers the last call, for which more
    # is reserved than it costs, because a budget is never exceeded.
    enough = 1.05 * whole.spent
    world.begin("just enough", faults={"429": 0.1, "500": 0.05})
    assert interface(world, enough).complete
    assert world.models.bill <= enough
    # Replies cost more than the budget, and some are cut off.
    world.begin("too long", wants=40_000, faults={"cut": 0.5})
    result = interface(world, enough / 2)
    assert not result.complete
    assert 0 < world.models.bill <= enough / 2 + world.models.longest
    assert world.models.bill <= result.spent + result.unknown + 1e-6
    again = interface(world, enough / 2)
    assert (again.spent, again.unknown) == (pytest.approx(result.spent), pytest.approx(result.unknown))
    # Too little for a single reply: nothing is sent, and no answer of a model is reported.
    world.begin("nothing")
    none = interface(world, 0.0001)
    assert (none.complete, none.spent, world.models.bill) == (False, 0.0, 0.0)
    assert "the budget of the" in none.text
    with pytest.raises(InputError, match="needs a known price"):
        interface(world, 1.0, "openai:nobody-knows-it")
