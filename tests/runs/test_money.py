"""Billed, reused, unknown and reserved costs are separate everywhere and survive a kill."""

import asyncio
import json
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from fakes.models import BackgroundModels
from foretell import ask, run
from foretell.cli.main import cli
from foretell.models.budget import Budget, BudgetedModel
from foretell.models.journal import Journal
from foretell.models.ledger import Money
from foretell.models.model import BudgetExceeded, Reply, ReplyLost, Request, TokenCount, UserMessage
from foretell.models.prices import PriceList
from foretell.models.token_price import TokenPrice
from foretell.number_text import dollars
from foretell.questions.errors import InputError
from foretell.questions.forecast import Cost, Failure, Forecast
from foretell.questions.question import Question, Target
from foretell.questions.trace import EmitEvent
from foretell.runs.executor import HOPELESS_AFTER, Executor, RunProgress
from foretell.runs.runtime import run_budget
from foretell.runs.settings import Settings
from foretell.runs.spec import BudgetSpec, QuestionsSpec, RunSpec
from foretell.runs.store import RunStore, RunTrial
from foretell.runs.trial_queue import RunFollower, TrialQueue

PRICE = TokenPrice(input=10, output=100)
QUESTIONS = [
    Question(id=f"q{n}", source="own", text="?", due="2026-01-01", targets=(Target(id="yes"),)) for n in range(12)
]
TRIALS = [RunTrial(run="r", question=question, trial=0) for question in QUESTIONS]
SPEC = RunSpec(
    questions=QuestionsSpec(dataset="demo"), models={"agent": "openai:gpt-5.6-sol"}, budget=BudgetSpec(run=0.5)
)
CHILD = """
import asyncio, sys
from pathlib import Path
from foretell.models.budget import Budget
from foretell.models.journal import Journal
from foretell.models.model import ModelSettings, Request, UserMessage
from foretell.models.prices import PriceList
from foretell.models.token_price import TokenPrice
from foretell.models.router import ModelRouter

async def main(url, path, run):
    name = f"compat:m@{url}/v1"
    prices = PriceList({name: TokenPrice(input=10, output=100)})
    async with ModelRouter({}, journal=Journal(path), prices=prices) as router:
        model = router.within(Budget("question", within=Budget("run", dollars=10.0, run=run)))
        settings = ModelSettings(max_tokens=1000)
        asked = [Request(model=name, messages=(UserMessage(text=f"q {n}"),), settings=settings) for n in range(3)]
        await asyncio.gather(*map(model.complete, asked))

asyncio.run(main(*sys.argv[1:]))
"""


def test_cost_of_calls_of_a_killed_process_is_unknown(tmp_path: Path):
    path = tmp_path / "journal.db"
    with BackgroundModels(latency=30.0) as fake:
        child = subprocess.Popen([sys.executable, "-c", CHILD, fake.url, str(path), SPEC.id])
        try:
            until = time.monotonic() + 60
            while fake.stats()["arrived"] < 3:
                assert time.monotonic() < until
                time.sleep(0.02)
            with closing(Journal(path)) as journal:  # It is alive, and its calls are open.
                assert journal.ledger.money(SPEC.id) == Money(reserved=pytest.approx(0.3, rel=0.01))
                assert journal.ledger.lost_calls() == 0
        finally:
            child.kill()
            child.wait()
    with closing(Journal(path)) as journal:
        assert journal.ledger.money(SPEC.id) == Money(unknown=pytest.approx(0.3, rel=0.01))
        assert journal.ledger.lost_calls(SPEC.id) == 3
        assert journal.ledger.money("another") == Money()
        budget = run_budget(SPEC, journal, Settings(home=tmp_path))
        with pytest.raises(BudgetExceeded, match=r"allows 0\.5 dollars: 0 billed, 0\.3\d* unknown, 0\.1\d* left"):
            budget.spend(Cost(dollars=0.25))
        budget.spend(Cost(dollars=0.15))


class Loses:
    """A model with a known price whose first replies are lost."""

    price = PRICE

    def __init__(self, lost: int, *, until: asyncio.Event | None = None) -> None:
        self.lost = lost
        self.until = until

    async def complete(self, request: Request) -> Reply:
        if self.until is None:
            await asyncio.sleep(0.05)
        else:
            await asyncio.wait_for(self.until.wait(), 60)
        self.lost -= 1
        if self.lost >= 0:
            raise ReplyLost("the connection broke")
        return Reply(text="yes", tokens=TokenCount(input=100, output=10))


def test_progress_separates_billed_reused_unknown_and_reserved(tmp_path: Path):
    seen: list[tuple[float, float]] = []
    event = asyncio.Event()

    def watch(now: RunProgress) -> None:
        seen.append((now.money.reserved, now.money.unknown))
        if now.money.reserved > 0:
            event.set()

    budget = Budget("run", dollars=5.0)
    # Each call ends after its reservation was reported.
    model = BudgetedModel(Loses(1, until=event), PriceList({"openai:m": PRICE}), budget)

    async def answer(trial: RunTrial, emit: EmitEvent) -> Forecast:
        request = Request(model="openai:m", messages=(UserMessage(text=trial.question.id),))
        await model.complete(request)
        return Forecast(question_id=trial.question.id, forecaster="t", as_of=trial.question.as_of, p={"yes": 0.5})

    with closing(RunStore(tmp_path / "runs.db")) as store:
        executor = Executor(store, concurrency=2, watch=watch)
        executor.budget = budget
        progress = asyncio.run(executor.run(TRIALS[:5], answer))
    assert any(reserved > 0 for reserved, _ in seen)
    assert (progress.failed, progress.money.reserved) == (1, pytest.approx(0.0))
    assert progress.money.unknown == budget.unknown.dollars > 0
    assert seen[-1] == (progress.money.reserved, progress.money.unknown)


def test_resumed_run_remembers_unknown_costs(tmp_path: Path):
    settings, words = Settings(home=tmp_path), "Will it rain?"
    options = {"as_of": "2026-01-01", "settings": settings, "budget": 2.0}
    model = Loses(10**6)
    with pytest.raises(InputError, match="the trial failed, so there is no answer"):
        ask(words, model=model, **options)
    runner = CliRunner(env={"FORETELL_HOME": str(tmp_path)})
    (row,) = json.loads(runner.invoke(cli, ["runs", "--json"]).stdout)["runs"]
    assert row["unknown"] > 0
    assert (row["billed"], row["reused"], row["reserved"], row["failed"]) == (0.0, 0.0, 0.0, 1)
    narrow = CliRunner(env={"FORETELL_HOME": str(tmp_path), "COLUMNS": "80"}).invoke(cli, ["runs"]).stdout
    assert max(map(len, narrow.splitlines())) <= 80
    assert f"({dollars(row['unknown'])} unknown)" in " ".join(narrow.split())
    assert all(name in narrow for name in (row["run"], "billed", "reason"))
    assert "…" not in narrow
    shown = runner.invoke(cli, ["show", row["run"]]).stdout
    assert "1 failed, 0 fallback: $0 billed" in shown


def test_resumed_run_stays_within_its_budget(tmp_path: Path):
    settings = Settings(home=tmp_path, check_models=False)
    usual = {"due": "2026-01-01", "source": "own", "targets": [{"id": "yes"}]}
    rows = [{**usual, "id": f"own/{n}", "text": f"Will {n} win?"} for n in range(16)]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with BackgroundModels() as fake:
        name = f"compat:m@{fake.url}/v1"
        spec = {"models": {"agent": name}, "search": [], "options": {"variant": "zero-shot"}}
        money = {"prices": {name: "100/1000"}, "sampling": {"max_tokens": 300}, "budget": {"run": 0.4}}
        ends = [run({**spec, **money, "questions": str(tmp_path / "questions.jsonl")}, settings=settings)]
        for _ in range(3):  # Trials without money stay open, and the cost of the others is spent.
            ends.append(run({**spec, **money, "questions": str(tmp_path / "questions.jsonl")}, settings=settings))
    with closing(Journal(settings.journal)) as journal:
        assert 0.1 < journal.spent()[name].dollars <= 0.4
    assert ends[0].progress.failed == ends[-1].progress.failed > 0


# The worker path.


def test_follower_gives_up_a_hopeless_run(postgres: str):
    async def answer(trial: RunTrial, emit: EmitEvent) -> Forecast | Failure:
        common = {"question_id": trial.question.id, "forecaster": "t", "as_of": trial.question.as_of}
        if trial.question.id == "q0":
            return Forecast(p={"yes": 0.5}, ending="fallback", problem="the key is not accepted", **common)
        return Failure(error="the key is not accepted", **common)

    async def follow(store: RunStore, queue: TrialQueue, journal: Journal) -> RunProgress:
        following = RunFollower(queue=queue, store=store, watch=lambda _: None, journal=journal)
        followed = asyncio.create_task(following.until_ended(TRIALS))
        while len(queue.open_trials()) < len(TRIALS):
            await asyncio.sleep(0.05)
        executor = Executor(store)
        for trial in TRIALS[:HOPELESS_AFTER]:  # Not through the queue, because the follower reads the store.
            await executor.answer_trial(trial, answer, RunProgress(total=0))
        return await asyncio.wait_for(followed, 30)

    with (
        closing(RunStore(postgres)) as store,
        closing(Journal(postgres)) as journal,
        closing(TrialQueue(postgres)) as queue,
    ):
        store.begin("r", "{}", "2026-01-01")
        store.keep_questions("r", QUESTIONS)
        progress = asyncio.run(follow(store, queue, journal))
        assert queue.open_trials() == []
        row = store.run("r")
        assert store.cost("r").worth == 0.0
    assert "the key is not accepted" in progress.stopped
    assert (progress.failed, progress.fallback) == (HOPELESS_AFTER - 1, 1)
    assert row is not None
    assert (row.done, row.failed, row.fallback) == (1, HOPELESS_AFTER - 1, 1)


# Unknown prices.

UNKNOWN = "openrouter:nobody/knows-this-model"


def test_budget_with_an_unknown_price_is_rejected_before_anything_is_stored(tmp_path: Path):
    settings = Settings(home=tmp_path / "home", keys={"OPENROUTER_API_KEY": "k"})
    with pytest.raises(InputError, match="knows-this-model is unknown") as caught:
        ask("Will it rain?", model=UNKNOWN, budget=1.0, settings=settings)
    assert f'set={{"prices.{UNKNOWN}": "0.5/2"}}' in str(caught.value)
    spec = {"questions": "demo", "models": {"agent": UNKNOWN}, "budget": {"run": 1.0}}
    with pytest.raises(InputError, match=r"prices\.openrouter:nobody"):
        run(spec, settings=settings)
    assert not (tmp_path / "home").exists()


def test_a_stated_price_is_used_and_is_part_of_the_run(tmp_path: Path):
    from foretell.operations.ask import prepare_ask
    from foretell.operations.requests.asking import AskRequest
    from foretell.runs.runtime import prices_of

    settings = Settings(home=tmp_path, keys={"OPENROUTER_API_KEY": "k"})
    request = AskRequest(question="Will it rain?", model=UNKNOWN, budget=1.0, set={"prices.agent": "0.5/2"})
    spec = prepare_ask(request, settings).spec
    assert prices_of(spec).of(UNKNOWN) == TokenPrice(input=0.5, output=2.0)
    assert json.loads(spec.to_json())["prices"] == {UNKNOWN: "0.5/2"}
    assert "prices" not in json.loads(SPEC.to_json())
    with pytest.raises(InputError, match="is not a price"):
        prepare_ask(AskRequest(question="?", model=UNKNOWN, set={"prices.agent": "cheap"}), settings)
    with pytest.raises(InputError, match="is not a price"):
        run({"questions": "demo", "models": {"agent": UNKNOWN}, "prices": {UNKNOWN: "1/-2"}}, settings=settings)
