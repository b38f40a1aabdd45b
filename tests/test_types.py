"""A strict type checker accepts the examples of the documentation and rejects mistakes in calls."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from test_docs import PAGES, ROOT, examples

pytest.importorskip("pyright", reason="the type checker")

CORRECT = """
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Unpack
import foretell
from foretell import Agent, AsOf, Forecast, Question, Target
from foretell.types import (
    AgentOptions, AskParameters, AskResult, Backtest, Context, Finding, ForecastTable, GridList, GridResult,
    HistoryResult, Interval, Proposition, RecordResult, ReplayResult, RoundResult, RunParameters, RunPlan, RunResult,
    ScenarioComparison, Score, Scoreboard, SearchHit, SharpenedQuestion, SourceItem, StudyData, StudyResult,
    SubmissionFile, SubmitResult, Tool, ToolMaterial, ToolSpec, ToolUsed, TournamentResult, TraceEvent, Tree,
    TreeResult, WatchResult,
)

def guess(question: Question) -> float:
    return 0.5

async def looks(question: Question, context: Context) -> dict[str, float]:
    return {"yes": 0.4}

class Half:
    def forecast(self, question: Question) -> float:
        return 0.5

async def model(prompt: str) -> dict[str, object]:
    return {"probability": 0.4}

def rainy_days(town: str, as_of: AsOf, days: int = 30) -> list[SourceItem]:
    return [SourceItem(title=town, text=f"12 of {days} days", published=as_of.at)]

async def wind(town: str) -> str:
    return "calm"

class Almanac:
    spec = ToolSpec(name="almanac", description="Look it up.", parameters={"type": "object", "properties": {}})

    async def use(self, arguments: Mapping[str, object], as_of: AsOf) -> ToolMaterial:
        return ToolMaterial(heading="Almanac:", items=())

almanac: Tool = Almanac()

async def find(query: str, as_of: AsOf) -> list[SearchHit]:
    return [SearchHit(url="https://a.example", title=query, snippet="", published=as_of.at)]

class Library:
    filters_dates = True

    def search(self, query: str, as_of: AsOf, limit: int) -> list[dict[str, str]]:
        return [{"url": "https://a.example", "title": query}]

snow = Question(id="snow", source="own", text="Will it snow?", due="2026-01-10", targets=[Target(id="yes")])
answer: AskResult = foretell.ask("Will it rain?", closes=date(2027, 1, 1), range=(0, 100), model=model)
plan: RunPlan = foretell.ask("Will it rain?", plan=True)
watched: WatchResult = foretell.ask(watch=True, once=True)
sharp: SharpenedQuestion = foretell.ask("Will it rain?", model=model, sharpen="propose")
record: RecordResult = foretell.record()
history: HistoryResult = foretell.record("rain", confirm="yes")
agent = Agent(model=model, search=("brave",), options=AgentOptions(steps=3), models={"filter": "openai:NAME"})
handy = Agent(model, tools=[rainy_days, wind, almanac], search=["brave", find, Library()], name="handy")
other: Agent = replace(handy, trials=3)
found: AskResult = foretell.ask("Will it rain?", model=model, search=[find, Library()])
ran: RunResult = foretell.run({"questions": "demo"}, agent=agent)
grown: TreeResult = foretell.grow_tree("It rains.", agent=handy, grounder="agent")
foretell.update_tree(grown.tree, ["P1"], agent=handy)
crossed: GridResult = foretell.grid("grid.yaml", agent=handy, set={"trials": 3})
listed: GridList = foretell.grid()
sent: SubmitResult = foretell.submit_forecasts("autumn", to="metaculus", dry_run=True)
file: SubmissionFile = foretell.submit_forecasts("autumn", to="forecastbench", out=Path("file.json"))
visit: TournamentResult = foretell.enter_tournament("metaculus:minibench", model=model, limit=3)
day: RoundResult = foretell.enter_tournament("forecastbench", plan=True)
either: TournamentResult | RoundResult = foretell.enter_tournament("metaculus:climate", model=model)
same: ReplayResult = foretell.replay("autumn")
noise: StudyResult = foretell.study("tree-noise", worlds=2, bootstrap={"draws": 100}, progress=print)
both: Backtest = foretell.backtest([agent, "knn", guess], "demo", limit=10)
read: ForecastTable = foretell.read_table(both, trials="separate", columns={"p": "prob"})
board: Scoreboard = foretell.score([], by="source", metrics=("peer",))
sure = Forecast(question_id="snow", forecaster="me", as_of=snow.as_of, p={"yes": 0.5})
done: Backtest = foretell.backtest([guess, looks, Half(), "knn"], [snow], progress=lambda done, of: None)

def planned(plan: bool, **parameters: Unpack[RunParameters]) -> RunResult | RunPlan:
    return foretell.run("run.yaml", plan=plan, **parameters)

def colour(says: Finding) -> str:
    return "green" if says == "better" else "grey"

def watch(trial: int, event: TraceEvent) -> None:
    if isinstance(event, ToolUsed):
        print(trial, event.tool)

def tabled(data: StudyData) -> StudyResult:
    return StudyResult(name="sizes", title="Sizes", sentences=(f"{len(data.tables)} forecasters.",))

def best(scores: Sequence[Score]) -> Interval:
    return max(scores, key=lambda score: score.n).metrics["brier"]

watched_by: AskResult = foretell.ask("Will it rain?", progress=watch, model=model)
sizes: StudyResult = foretell.study(tabled, forecasts=[])
print(best(board.scores), [colour(verdict.says) for verdict in board.verdicts])
tree: Tree = Tree(root="P0", nodes={"P0": Proposition(id="P0", claim="It rains.", p=0.5)})
changed: ScenarioComparison = foretell.what_if(tree, set={"P0": 0.2})

def rain(town: str, **parameters: Unpack[AskParameters]) -> AskResult:
    return foretell.ask(f"Will it rain in {town}?", **parameters)

async def main() -> None:
    planned: RunPlan = await foretell.aask("Will it rain?", plan=True)
    waited: AskResult = await foretell.aask("Will it rain?", agent=agent)
    later: Backtest = await foretell.abacktest(guess, "demo")
    print(planned, waited, later)
"""
MISTAKES = """
foretell.score([], bogus=3)
foretell.score([], baselines="no")
foretell.score([], trials="median")
foretell.score([], missing="half")
foretell.score()
foretell.compare([], None, "a")
foretell.compare([], None, "a", "b", reference="c")
foretell.ask()
foretell.ask("Will it rain?", modle="none")
foretell.ask("Will it rain?", closes=3)
foretell.ask("Will it rain?", effort="much")
foretell.ask("Will it rain?", budget="1 dollar")
foretell.ask("Will it rain?", options=3)
foretell.ask("Will it rain?", agent="openai:NAME")
foretell.ask("Will it rain?", "2027-01-01")
foretell.ask("Will it rain?", plan=True).p
foretell.ask("Will it rain?", once=True)
foretell.aask("Will it rain?", trails=3)
foretell.aask("Will it rain?", plan=True, trials="3")
rain("Oslo", modle="none")
foretell.record(confirm="yes")
foretell.record("rain", state="closed")
foretell.study("trials", sektion="rules")
foretell.study("tree-noise", worlds="2")
foretell.study()
foretell.grid("grid.yaml", agent="openai:NAME")
foretell.grid("grid.yaml", budget="1 dollar")
foretell.update_tree("bank.json", agent="openai:NAME")
foretell.update_tree("bank.json", claim="P1")
foretell.grid(plan=True)
foretell.grid("grid.yaml").grids
foretell.submit_forecasts("autumn")
foretell.submit_forecasts("autumn", to="metaculus").path
foretell.enter_tournament("metaculus:minibench", trails=3)
foretell.enter_tournament("forecastbench").skipped
foretell.read_table([], reading=None)
foretell.run()
foretell.run("run.yaml", pilot="3")
foretell.run("run.yaml", where="there")
foretell.grow_tree("It rains.", leaves="10")
foretell.what_if("bank.json", sd=0.1)
foretell.what_if("bank.json", sett={"P1": 0.2})
foretell.edit_tree("bank.json", remove=1)
foretell.list_runs(sort="size")
foretell.stop_run("a", "b")
foretell.backtest(guess)
foretell.backtest(guess, [3])
foretell.backtest(lambda: 0.5, "demo")
foretell.backtest(guess, "demo", progres=print)
Question(id="snow", source="own", text="Will it snow?")
Question(id="snow", source="own", text="Will it snow?", due=3)
Target(id="yes", resolves="2026-01-10")
Agent()
Agent(model="openai:NAME", options={"steps": 3})
Agent("openai:NAME", "brave")
Agent("openai:NAME", tools=rainy_days)
Agent("openai:NAME", tools=["rainy_days"])
Agent("openai:NAME", tool=[rainy_days])
Agent("openai:NAME", search=[3])
Agent("openai:NAME", models={"filters": "openai:NAME"})
foretell.run({"questions": "demo"}, agent="openai:NAME")
foretell.grow_tree("It rains.", agent=model)
foretell.backtest(agent, "demo", limit="10")
foretell.ask("Will it rain?", search=find)
Forecast(question_id="snow", forecaster="me", p=0.5)
foretell.delete_runs("a", yes="sure")
foretell.enter_tournament()
"""
RULES = {
    "typeCheckingMode": "strict",
    "pythonVersion": "3.11",
    # What pandas and NumPy return is only partially known.
    **dict.fromkeys(
        ("reportMissingTypeStubs", "reportUnknownMemberType", "reportUnknownVariableType", "reportUnknownArgumentType"),
        False,
    ),
}


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, str]]:
    """File → the first error in each line, counted from 1."""
    folder = tmp_path_factory.mktemp("typed")
    for page in PAGES:
        text = "\n".join(text for language, text in examples(page) if language == "python")
        (folder / f"page_{page.stem}.py").write_text(text, encoding="utf-8")
    (folder / "correct.py").write_text(CORRECT, encoding="utf-8")
    (folder / "mistakes.py").write_text(f"{CORRECT.strip()}\n{MISTAKES.strip()}\n", encoding="utf-8")
    settings = {"include": ["."], "extraPaths": [str(ROOT / "src")], **RULES}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable],
        cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    found: dict[str, dict[int, str]] = {}
    for problem in json.loads(done.stdout)["generalDiagnostics"]:
        if problem["severity"] == "error":
            place = found.setdefault(Path(problem["file"]).name, {})
            place.setdefault(problem["range"]["start"]["line"] + 1, problem["message"])
    return found


def test_examples_and_correct_calls_are_accepted(errors: dict[str, dict[int, str]]) -> None:
    assert {name: found for name, found in errors.items() if name != "mistakes.py"} == {}


def test_mistakes_are_rejected(errors: dict[str, dict[int, str]]) -> None:
    first = len(CORRECT.strip().splitlines()) + 1
    planted = dict(enumerate(MISTAKES.strip().splitlines(), start=first))
    assert len(planted) >= 30
    assert [text for line, text in planted.items() if line not in errors["mistakes.py"]] == []
    assert errors["mistakes.py"].keys() <= planted.keys()
