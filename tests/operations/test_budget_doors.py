"""The contract of a budget through the doors of tournaments and arenas: never overspent, complete where it suffices."""

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
from foretell.cli import cli
from foretell.operations import RoundResult, TournamentResult, TournamentRunRequest, enter, practice_environment
from foretell.plugins import names
from foretell.practice import PracticeServer, ServiceOptions, all_services, serve_rounds
from foretell.practice.markets import MetaculusCatalogue, MetaculusInbox
from foretell.practice.models import arena_script
from foretell.questions import InputError
from foretell.runs import load_settings

NOW = datetime(2026, 11, 15, 10, tzinfo=UTC)
CERTIFICATES = ssl.create_default_context()


@contextmanager
def served() -> Iterator[dict[str, str]]:
    """The addresses of all practice services, which run on a loop of their own."""
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


class Visited(NamedTuple):
    """What a door says of a visit."""

    complete: bool
    spent: float
    unknown: float
    text: str


class World:
    """One provider that keeps its own bill, and the sites that ask questions."""

    def __init__(self, home: Path, stack: ExitStack) -> None:
        self.home, self.stack, self.environment = home, stack, dict[str, str]()
        self.models = BillingModels()

    def begin(self, name: str, **how: Any) -> None:
        """Start anew, with another provider."""
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

    def metaculus(self, budget: float, model: str = MODEL) -> Visited:
        times = {"opens": "2026-11-01T00:00:00Z", "closes": "2026-12-15T00:00:00Z", "resolves": "2026-12-20T00:00:00Z"}
        asked = [SampleMetaculusQuestion(id=n + 1, title=f"Will {n} win?", **times) for n in range(10)]
        posts = [metaculus_post_body(100 + one.id, one.title, one) for one in asked]
        fake = FakeMetaculus({}, token="t").having(MetaculusCatalogue(posts)).taking(MetaculusInbox(now=lambda: NOW))
        site = self.stack.enter_context(Background(fake.server))
        where = {"FORETELL_METACULUS_URL": f"{site.url}/api", "METACULUS_TOKEN": "t"}
        changes = {"tournament.budget": budget}
        request = TournamentRunRequest.read({"tournament": "metaculus:cup", "model": model, "set": changes})
        done = asyncio.run(enter(request, load_settings({**self.environment, **where})))
        assert isinstance(done, TournamentResult)
        return Visited(sum(row.sent for row in done.forecasts) == 10, done.billed_in_all, done.unknown, str(done))

    def forecastbench(self, budget: float, model: str = MODEL) -> Visited:
        def rounds() -> PracticeServer:
            server = PracticeServer()
            serve_rounds(server, "/forecastbench", NOW)
            return server

        site = self.stack.enter_context(Background(rounds))
        others = {*names("series"), *names("markets"), "wikipedia", "wayback"} - {"csv"}
        where = {f"FORETELL_{name.upper()}_URL": f"{site.url}/nothing" for name in others}
        where["FORETELL_FORECASTBENCH_URL"] = f"{site.url}/forecastbench"
        given = {"tournament": "forecastbench", "sandbox": True, "model": model, "budget": budget}
        request = TournamentRunRequest.read({**given, "set": {"tournament.past_rounds": 1}})
        done = asyncio.run(enter(request, load_settings({**self.environment, **where})))
        assert isinstance(done, RoundResult)
        assert done.answered == 13  # The stack stands for the rest.
        assert bool(done.problems) == (done.exit_code == 3)
        return Visited(done.by_agents == 13 and not done.problems, done.billed_in_all, done.unknown, str(done.problems))

    def arena(self, budget: float, model: str = MODEL) -> Visited:
        where = {**practice_environment(self.stack.enter_context(served()), Path()), **self.environment}
        entry = {"forecaster": "context", "model": model, "trials": 2, "budget": {"run": budget}}
        file = Path(self.environment["FORETELL_HOME"]).parent / "arena.yaml"
        file.write_text(yaml.safe_dump({"name": "a", "entries": {"one": entry}}))

        def told(*words: str) -> str:
            found = CliRunner(env=where).invoke(cli, ["arena", *words, str(file.parent)])
            if found.exception is not None:
                raise found.exception
            return found.stdout

        told("run", "--once", "--stage", "collect", "--stage", "context")
        text = told("run", "--once", "--stage", "forecast")
        entry = json.loads(told("show", "--json"))["entries"]["one"]
        money = entry["money"]
        return Visited(not entry["open"] and entry["forecasts"] > 0, money["billed"], money["unknown"], text)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    # Nothing here is encrypted, and reading the certificates anew for every client takes long.
    monkeypatch.setattr(ssl, "create_default_context", lambda *_, **__: CERTIFICATES)
    with ExitStack() as stack:
        yield World(tmp_path, stack)


@pytest.mark.parametrize("door", [World.metaculus, World.forecastbench, World.arena], ids=lambda door: door.__name__)
def test_the_contract_holds_in_every_door(world: World, door: Callable[..., Visited]) -> None:
    world.begin("unlimited")
    whole = door(world, 50.0)
    assert whole.complete, whole.text
    assert whole.spent == pytest.approx(world.models.bill)
    # Nearly every cent is needed, and the provider is busy now and then. The rest is what the last call is reserved
    # too high: its input at the cautious estimate, because a budget is never exceeded.
    enough = 1.05 * whole.spent
    world.begin("just enough", faults={"429": 0.1, "500": 0.05})
    assert door(world, enough).complete
    assert world.models.bill <= enough
    # Replies longer than the money, some of them cut off on the way.
    world.begin("too long", wants=40_000, faults={"cut": 0.5})
    found = door(world, enough / 2)
    assert not found.complete
    assert 0 < world.models.bill <= enough / 2 + world.models.longest
    assert world.models.bill <= found.spent + found.unknown + 1e-6
    again = door(world, enough / 2)
    assert (again.spent, again.unknown) == (pytest.approx(found.spent), pytest.approx(found.unknown))
    # Less than a single reply: nothing is sent, and nobody claims that a model has answered.
    world.begin("nothing")
    none = door(world, 0.0001)
    assert (none.complete, none.spent, world.models.bill) == (False, 0.0, 0.0)
    assert "the budget of the" in none.text
    with pytest.raises(InputError, match="needs a known price"):
        door(world, 1.0, "openai:nobody-knows-it")
