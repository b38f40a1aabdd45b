"""Billed, reused, unknown and reserved: told apart in every place, and known again after a kill."""

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
from foretell.cli import cli
from foretell.models import (
    Budget,
    BudgetedModel,
    BudgetExceeded,
    Journal,
    PriceList,
    Reply,
    ReplyLost,
    Request,
    TokenCount,
    TokenPrice,
    UserMessage,
)
from foretell.models.ledger import Money
from foretell.questions import Cost, EmitEvent, Failure, Forecast, InputError, Question, Target
from foretell.runs import (
    BudgetSpec,
    CellQueue,
    Executor,
    QuestionsSpec,
    RunCell,
    RunFollower,
    RunProgress,
    RunSpec,
    RunStore,
    Settings,
)
from foretell.runs.executor import HOPELESS_AFTER
from foretell.runs.runtime import run_budget

PRICE = TokenPrice(input=10, output=100)
QUESTIONS = [
    Question(id=f"q{n}", source="own", text="?", due="2026-01-01", targets=(Target(id="yes"),)) for n in range(12)
]
CELLS = [RunCell(run="r", question=question, trial=0) for question in QUESTIONS]
SPEC = RunSpec(
    questions=QuestionsSpec(dataset="demo"), models={"agent": "openai:gpt-5.6-sol"}, budget=BudgetSpec(run=0.5)
)
CHILD = """
import asyncio, sys
from pathlib import Path
from foretell.models import Budget
from foretell.models import Journal
from foretell.models import ModelSettings, Request, UserMessage
from foretell.models import PriceList, TokenPrice
from foretell.models import ModelRouter

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


def test_what_a_killed_process_had_sent_is_unknown_to_the_next(tmp_path: Path):
    path = tmp_path / "journal.db"
    with BackgroundModels(latency=30.0) as fake:
        child = subprocess.Popen([sys.executable, "-c", CHILD, fake.url, str(path), SPEC.id])
        try:
            until = time.monotonic() + 60
            while fake.stats()["arrived"] < 3:
                assert time.monotonic() < until
                time.sleep(0.02)
            with closing(Journal(path)) as journal:  # It is alive: its calls are open.
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
    """A model of known price that loses its first replies on the way."""

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


def test_progress_tells_the_figures_apart(tmp_path: Path):
    seen: list[tuple[float, float]] = []
    told = asyncio.Event()

    def watch(now: RunProgress) -> None:
        seen.append((now.money.reserved, now.money.unknown))
        if now.money.reserved > 0:
            told.set()

    budget = Budget("run", dollars=5.0)
    # No call ends before somebody was told what is reserved for it.
    model = BudgetedModel(Loses(1, until=told), PriceList({"openai:m": PRICE}), budget)

    async def answer(cell: RunCell, emit: EmitEvent) -> Forecast:
        request = Request(model="openai:m", messages=(UserMessage(text=cell.question.id),))
        await model.complete(request)
        return Forecast(question_id=cell.question.id, forecaster="t", as_of=cell.question.as_of, p={"yes": 0.5})

    with closing(RunStore(tmp_path / "runs.db")) as store:
        executor = Executor(store, concurrency=2, watch=watch)
        executor.budget = budget
        progress = asyncio.run(executor.run(CELLS[:5], answer))
    assert any(reserved > 0 for reserved, _ in seen)
    assert (progress.failed, progress.money.reserved) == (1, pytest.approx(0.0))
    assert progress.money.unknown == budget.unknown.dollars > 0
    assert seen[-1] == (progress.money.reserved, progress.money.unknown)


def test_a_run_that_goes_on_remembers_what_is_unknown(tmp_path: Path):
    settings, words = Settings(home=tmp_path), "Will it rain?"
    asked = {"as_of": "2026-01-01", "settings": settings, "budget": 2.0}
    model = Loses(10**6)
    with pytest.raises(InputError, match="no trial gave an answer"):
        ask(words, model=model, **asked)
    runner = CliRunner(env={"FORETELL_HOME": str(tmp_path)})
    (row,) = json.loads(runner.invoke(cli, ["runs", "--json"]).stdout)["runs"]
    assert row["unknown"] > 0
    assert (row["billed"], row["reused"], row["reserved"], row["failed"]) == (0.0, 0.0, 0.0, 1)
    narrow = CliRunner(env={"FORETELL_HOME": str(tmp_path), "COLUMNS": "80"}).invoke(cli, ["runs"]).stdout
    assert max(map(len, narrow.splitlines())) <= 80
    assert f"(${row['unknown']:.2f} unknown)" in " ".join(narrow.split())
    assert all(name in narrow for name in (row["run"], "$ billed", "agent"))
    assert "…" not in narrow
    shown = runner.invoke(cli, ["show", row["run"]]).stdout
    assert "1 failed, 0 degraded: $0.0000 billed" in shown


def test_a_run_that_goes_on_spends_no_more_than_it_was_allowed(tmp_path: Path):
    settings = Settings(home=tmp_path, check_models=False)
    usual = {"due": "2026-01-01", "source": "own", "targets": [{"id": "yes"}]}
    rows = [{**usual, "id": f"own/{n}", "text": f"Will {n} win?"} for n in range(16)]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with BackgroundModels() as fake:
        name = f"compat:m@{fake.url}/v1"
        spec = {"models": {"agent": name}, "search": [], "options": {"variant": "zero-shot"}}
        money = {"prices": {name: "100/1000"}, "sampling": {"max_tokens": 300}, "budget": {"run": 0.4}}
        ends = [run({**spec, **money, "questions": str(tmp_path / "questions.jsonl")}, settings=settings)]
        for _ in range(3):  # Cells that found no money are open; what the others cost is spent.
            ends.append(run({**spec, **money, "questions": str(tmp_path / "questions.jsonl")}, settings=settings))
    with closing(Journal(settings.journal)) as journal:
        assert 0.1 < journal.spent()[name].dollars <= 0.4
    assert ends[0].progress.failed == ends[-1].progress.failed > 0


# The worker path.


def test_a_hopeless_run_is_given_up_by_whoever_follows_it(postgres: str):
    async def answer(cell: RunCell, emit: EmitEvent) -> Forecast | Failure:
        common = {"question_id": cell.question.id, "forecaster": "t", "as_of": cell.question.as_of}
        if cell.question.id == "q0":
            return Forecast(p={"yes": 0.5}, ending="degraded", problem="the key is not accepted", **common)
        return Failure(error="the key is not accepted", **common)

    async def follow(store: RunStore, queue: CellQueue, journal: Journal) -> RunProgress:
        following = RunFollower(queue=queue, store=store, watch=lambda _: None, journal=journal)
        followed = asyncio.create_task(following.until_ended(CELLS))
        while len(queue.open_cells()) < len(CELLS):
            await asyncio.sleep(0.05)
        executor = Executor(store)
        for cell in CELLS[:HOPELESS_AFTER]:  # Not through the queue: what counts is what the store says.
            await executor.one(cell, answer, RunProgress(total=0))
        return await asyncio.wait_for(followed, 30)

    with (
        closing(RunStore(postgres)) as store,
        closing(Journal(postgres)) as journal,
        closing(CellQueue(postgres)) as queue,
    ):
        store.begin("r", "{}", "2026-01-01")
        store.keep_questions("r", QUESTIONS)
        found = asyncio.run(follow(store, queue, journal))
        assert queue.open_cells() == []
        row = store.run("r")
        assert store.worth("r") == 0.0
    assert "the key is not accepted" in found.stopped
    assert (found.failed, found.degraded) == (HOPELESS_AFTER - 1, 1)
    assert row is not None
    assert (row.done, row.failed, row.degraded) == (1, HOPELESS_AFTER - 1, 1)


# Prices that nobody knows.

UNKNOWN = "openrouter:nobody/knows-this-model"


def test_an_unknown_price_is_asked_for_before_anything_is_stored(tmp_path: Path):
    settings = Settings(home=tmp_path / "home", keys={"OPENROUTER_API_KEY": "k"})
    with pytest.raises(InputError, match="knows-this-model is not known") as caught:
        ask("Will it rain?", model=UNKNOWN, budget=1.0, settings=settings)
    assert f"prices.{UNKNOWN}=0.5/2" in str(caught.value)
    spec = {"questions": "demo", "models": {"agent": UNKNOWN}, "budget": {"run": 1.0}}
    with pytest.raises(InputError, match=r"prices\.openrouter:nobody"):
        run(spec, settings=settings)
    assert not (tmp_path / "home").exists()


def test_a_stated_price_is_used_and_is_part_of_the_run(tmp_path: Path):
    from foretell.operations import AskRequest, prepare_ask
    from foretell.runs import prices_of

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
