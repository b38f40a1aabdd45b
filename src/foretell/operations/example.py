"""The example homes that `foretell demo` creates and opens, apart from your own data."""

import asyncio
import json
import os
import shutil
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from textwrap import fill
from typing import Any

from rich.console import Console

from foretell.arena.score_data import read_arena_table
from foretell.data.datasets.question_set import SetFilter
from foretell.data.files import write_atomically
from foretell.data.untrusted import rows_as_csv
from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.arithmetic.sensitivity import sensitivities
from foretell.forecasters.tree.exports import one_line
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.tree_file import read_tree_file
from foretell.forecasters.tree.what_if import apply_scenario
from foretell.frozen import frozen
from foretell.metrics.bootstrap import Interval
from foretell.number_text import bracket, percent
from foretell.operations.ask import AskResult, stored_answer
from foretell.operations.grid import run_grid
from foretell.operations.practice import CONTACT, ENGINE, practice_environment, prepare_home
from foretell.operations.requests.runs import GridRequest, RunsResolveRequest
from foretell.operations.requests.setup import DemoRequest
from foretell.operations.resolve import resolve_run
from foretell.operations.score import ScoreResult
from foretell.practice.arena_demo import CLOCK, ArenaDemoResult, ArenaSeason, arena_demo, open_simulation
from foretell.practice.example import (
    HASTY,
    RESEARCHER,
    example_script,
    example_story,
    example_tree,
    script_with_refusal,
)
from foretell.practice.models.server import Script
from foretell.practice.services import ServiceOptions, all_services
from foretell.questions.backtest import Backtest
from foretell.questions.errors import InputError
from foretell.questions.file_lock import LockHeld, locked
from foretell.questions.trace import BeliefRevised
from foretell.report.arena_report import ArenaReport, arena_headline, arena_report, below_half
from foretell.report.charts.svg import Chart
from foretell.report.charts.timelines import Trajectory, trajectory_plot
from foretell.report.document import ReportDocument
from foretell.report.html import HtmlBlock, Section
from foretell.report.leaderboard import headline, leaderboard_sections
from foretell.report.study import StudyColumn, table
from foretell.report.terminal import show_text
from foretell.report.tree_report import picture_of
from foretell.runs.question_sets import Benchmark, open_benchmark
from foretell.runs.runner import execute_run, prepare_run
from foretell.runs.settings import EXAMPLE_FILE, Settings, load_settings
from foretell.runs.spec import QuestionsSpec, RunSpec, spec_from_json
from foretell.runs.store import RunStore
from foretell.scoring.join import read_table
from foretell.scoring.long_tables import forecast_rows, outcome_rows, write_backtest
from foretell.scoring.score import ScoringOptions, score_table
from foretell.scoring.stored_scores import StoredScores

MARKER = EXAMPLE_FILE
"""Only a folder with this file, or its unfinished form, is ever replaced."""
TAG = "example"
FORECASTERS = {
    "auto": "auto: the best series model by its past",
    "knn": "knn: days like this one",
    "linear": "linear: a line through the past",
    "hybrid": "hybrid: series and base rate",
    "prior": "prior: base rates alone",
    "constant": "always 0.5",
}
"""Forecaster of the backtest → name of its run."""
ARENA, GRID = "example-month", "which forecaster"
REAL_NOTE = "A real backtest: questions about real series that come with the package, answered as of their dates."
SCRIPTED_NOTE = (
    "An example: questions, news and outcomes are made up, and the model's replies are scripted. It shows what an "
    "agent's research looks like, not how good any model is."
)
SIMULATED_NOTE = "An example: an entry of an arena on a simulated exchange, with made-up events and news."
AGENT_RUN, HASTY_RUN = "example: an agent's research", "example: one search and an answer"
Tell = Callable[[str], None]


def example_home(settings: Settings, *, arena: bool = False) -> Path:
    """Return the folder of the example, or of the simulated arena, inside the user's home."""
    return (settings.home / ("arena-demo" if arena else "example")).absolute()


def is_complete(home: Path) -> bool:
    """Whether the folder holds a complete example."""
    return Settings(home=home).is_example


@frozen
class ExampleSize:
    """The size of an example."""

    questions: int | None = None
    """Number of questions in the backtest; None for all."""
    forecasters: tuple[str, ...] = tuple(FORECASTERS)
    days: int = 30
    events_per_day: int = 2
    """Events per day in the arena."""


@frozen
class ExampleAnswer:
    """One answer of the scripted agent, and its steps."""

    answer: AskResult
    path: tuple[float, ...]
    """The estimate of the first trial after each step."""
    price: float
    outcome: int


@frozen
class Example:
    """Everything that was created."""

    home: Path
    benchmark: Benchmark
    backtest: Backtest
    agent: ExampleAnswer
    tree: Tree
    slow: float
    """The tree's answer under its first scenario."""
    scenario: str
    arena: ArenaReport


# An example uses the settings and services of practice, and none of the user's data.


@asynccontextmanager
async def example_settings(home: Path, script: Script = example_script) -> AsyncGenerator[Settings]:
    """Yield the settings of an example while its services are running."""
    options = ServiceOptions(now=datetime.now(UTC), script=script, pages=example_story().pages)
    async with all_services(options) as addresses:
        environment = practice_environment(addresses, home)
        keys = {name: value for name, value in environment.items() if value}
        yield Settings(home=home, keys=keys, addresses=addresses, contact=CONTACT)


@contextmanager
def serving_example(home: Path) -> Generator[Settings]:
    """Yield the settings of an example while its services run in a thread, for programs without an event loop."""
    ready, stop, opened = threading.Event(), asyncio.Event(), list[Settings]()
    loops: list[asyncio.AbstractEventLoop] = []
    problems: list[BaseException] = []

    async def main() -> None:
        loops.append(asyncio.get_running_loop())
        async with example_settings(home) as settings:
            opened.append(settings)
            ready.set()
            await stop.wait()

    def work() -> None:
        try:
            asyncio.run(main())
        except BaseException as problem:  # Raised again in the waiting thread.
            problems.append(problem)
        finally:
            ready.set()

    thread = threading.Thread(target=work, name="example services", daemon=True)
    thread.start()
    ready.wait()
    if problems:
        raise problems[0]
    try:
        yield opened[0]
    finally:
        loops[0].call_soon_threadsafe(stop.set)
        thread.join(10)


# Creating the example.


@contextmanager
def _creating(home: Path, note: str) -> Generator[None]:
    """Empty the folder, replacing an earlier example, and mark it as complete at the end."""
    unfinished = home / f"{MARKER}.part"
    with ExitStack() as held:
        try:
            held.enter_context(locked(home.with_name(f"{home.name}.lock"), wait=False))
            if home.exists() and any(home.iterdir()):
                if not is_complete(home) and not unfinished.is_file():
                    hint = "move it away"
                    raise InputError("this folder contains something other than an example", path=home, hint=hint)
                shutil.rmtree(home)
            home.mkdir(parents=True, exist_ok=True)
            unfinished.touch()
        except LockHeld:
            raise InputError("another process is creating this example", path=home, hint="wait for it") from None
        except OSError as error:
            problem = error.strerror or "cannot be written"
            raise InputError(problem, path=home, hint="set FORETELL_HOME to a folder of yours") from None
        yield
        marker = {"made": datetime.now(UTC).isoformat(timespec="seconds"), "note": note}
        write_atomically(home / MARKER, json.dumps(marker).encode())
        unfinished.unlink()


async def make_example(home: Path, size: ExampleSize | None = None, tell: Tell = lambda _: None) -> Example:
    """Create an example home, replacing an earlier one; a folder with anything else in it is refused."""
    size = size or ExampleSize()
    with _creating(home, SCRIPTED_NOTE):
        prepare_home(home)
        async with example_settings(home, script_with_refusal) as settings:
            tell("1 of 4: a backtest on real series …")
            benchmark = open_benchmark("demo", wanted=SetFilter(limit=size.questions))
            backtest = await _backtest(settings, benchmark, size)
            await _grid(settings, size)
            tell("2 of 4: an agent's research, scripted …")
            agent = await _agent(settings)
            tell("3 of 4: a tree of claims …")
            tree, slow, scenario = _tree(home)
            tell("4 of 4: a month of an arena on a simulated exchange …")
            arena = await _arena(home, size)
            with closing(RunStore(settings.store)) as store:
                StoredScores(store).of(store.runs())  # Computed now, so that the first page loads fast.
    return Example(
        home=home,
        benchmark=benchmark,
        backtest=backtest,
        agent=agent,
        tree=tree,
        slow=slow,
        scenario=scenario,
        arena=arena,
    )


async def _run(settings: Settings, spec: RunSpec, name: str, note: str) -> RunSpec:
    """Execute a run, and name it."""
    prepared = prepare_run(spec)
    await execute_run(prepared, settings)
    with closing(RunStore(settings.store)) as store:
        store.label(prepared.spec.id, name=name, note=note, tags=[TAG])
    return prepared.spec


async def _backtest(settings: Settings, benchmark: Benchmark, size: ExampleSize) -> Backtest:
    """Run every forecaster that needs no model, and collect their answers."""
    wanted = QuestionsSpec(dataset="demo", limit=size.questions)
    specs = [
        await _run(settings, RunSpec(questions=wanted, forecaster=name), FORECASTERS[name], REAL_NOTE)
        for name in size.forecasters
    ]
    with closing(RunStore(settings.store)) as store:
        answers = [answer for spec in specs for answer in store.answers(spec.id)]
        questions = benchmark.questions.questions[: size.questions]
    # In the order of a backtest, so that the draws and all numbers are the same.
    place = {(question.id, question.as_of_in("backtest").at): n for n, question in enumerate(questions)}
    answers.sort(key=lambda answer: place[answer.question_id, answer.as_of.at])
    return Backtest(questions=tuple(questions), answers=tuple(answers))


async def _grid(settings: Settings, size: ExampleSize) -> None:
    """Run an experiment over the same forecasters. It reuses the runs of the backtest."""
    questions = {"dataset": "demo"} if size.questions is None else {"dataset": "demo", "limit": size.questions}
    grid = {"name": GRID, "base": {"questions": questions}, "factors": {"forecaster": list(size.forecasters)}}
    file = settings.home / "grid.yaml"
    write_atomically(file, json.dumps(grid, indent=1).encode())  # JSON is YAML.
    await run_grid(GridRequest(grid=file), settings)


async def _agent(settings: Settings) -> ExampleAnswer:
    """Two scripted agents on the same made-up questions; one of them has a failed trial to retry."""
    story, file, outcomes = example_story(), settings.home / "questions.jsonl", settings.home / "outcomes.csv"
    lines = (json.dumps(question, ensure_ascii=False) for question in story.questions)
    write_atomically(file, "\n".join([*lines, ""]).encode())
    rows = [{"question": id, "target": "yes", "outcome": outcome} for id, outcome in story.outcomes.items()]
    write_atomically(outcomes, rows_as_csv(rows).encode())
    specs: list[RunSpec] = []
    for model, trials, name in ((HASTY, 1, HASTY_RUN), (RESEARCHER, 3, AGENT_RUN)):
        full = f"openai:{model}"
        spec = RunSpec(
            questions=QuestionsSpec(dataset=str(file)),
            models={"agent": full},
            search=(ENGINE,),
            trials=trials,
            prices={full: "0/0"},
        )
        specs.append(await _run(settings, spec, name, SCRIPTED_NOTE))
        await resolve_run(RunsResolveRequest(run=specs[-1].id, outcomes=outcomes), settings)
    return _answer(settings, specs[-1])


def _answer(settings: Settings, spec: RunSpec) -> ExampleAnswer:
    with closing(RunStore(settings.store)) as store:
        row = store.run(spec.id)
        assert row is not None
        story = example_story()
        question = next(stored for stored in store.questions(spec.id) if stored.id == story.questions[0]["id"])
        events = [event for _, key, event in store.events(spec.id, question.id) if key.trial == 0]
        answer = stored_answer(store, spec_from_json(row.spec), question)
    target = question.targets[0]
    return ExampleAnswer(
        answer=answer,
        path=tuple(event.p[target.id] for event in events if isinstance(event, BeliefRevised)),
        price=story.questions[0]["price"],
        outcome=story.outcomes[question.id],
    )


def _tree(home: Path) -> tuple[Tree, float, str]:
    path = home / "trees" / "grid_batteries.json"
    write_atomically(path, example_tree().encode())
    file = read_tree_file(path)
    tree, scenario = evaluated(file.tree), next(iter(file.scenarios.values()))
    changed = apply_scenario(tree, scenario)
    assert changed.p is not None
    return tree, changed.p, scenario.text or scenario.name


async def _arena(home: Path, size: ExampleSize) -> ArenaReport:
    season = ArenaSeason(days=size.days, events_per_day=size.events_per_day)
    async with open_simulation(season, home, ARENA, oracle=False) as run:
        async for _ in run.days():
            pass
        for entry, spec in run.arena.entries():
            # They have pages under the arena, and would clutter the list of runs.
            name = f"{ARENA}: {entry.name}"
            run.arena.store.label(spec.id, name=name, note=SIMULATED_NOTE, tags=[TAG, "arena"], archived=True)
        return arena_report(read_arena_table(run.arena.store.database, run.arena.name))


# The command `foretell demo`.


@frozen
class DemoResult(ScoreResult):
    """The leaderboard of the backtest, and the rest of the example."""

    example: Example
    days: int
    """Days of the arena."""

    def to_dict(self) -> Any:
        """Return the leaderboard's data, the answers of the other parts, and where everything is."""
        example = self.example
        return super().to_dict() | {
            "home": str(example.home),
            "agent": {
                "p": dict(example.agent.answer.p),
                "price": example.agent.price,
                "outcome": example.agent.outcome,
            },
            "tree": {"p": example.tree.nodes[example.tree.root].p, example.scenario: example.slow},
            "arena": example.arena.to_dict(),
            "open": OPEN_WITH,
        }

    def print(self, console: Console) -> None:
        """Four parts on one screen, and the command that opens them."""
        for number, part in enumerate(self.parts(), 1):
            show_text(console, f"{number}  {part.title}{part.scope}\n")
            for sentence in part.sentences:
                show_text(console, fill(sentence, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT) + "\n")
            show_text(console, "".join(f"{INDENT}{line}\n" for line in part.score_lines()) + "\n")
        show_text(console, f"Open all of it:  {OPEN_WITH}\n")

    def to_html(self) -> str:
        """Return the four parts as a page, and the backtest in detail."""
        return self._document().to_html()

    def to_markdown(self) -> str:
        """Return the four parts as Markdown, and the backtest in detail."""
        return self._document().to_markdown()

    def _document(self) -> ReportDocument:
        parts = [part.section(number) for number, part in enumerate(self.parts(charts=True), 1)]
        details = [
            (anchor, f"Backtest: {title[:1].lower()}{title[1:]}", blocks)
            for anchor, title, blocks in leaderboard_sections(self.board, self.table)
        ]
        lead = (
            "A backtest on real series, and three examples with made-up data: an agent's research, a tree of claims, "
            f"and an arena. Open all of it: {OPEN_WITH}"
        )
        return ReportDocument(
            title="What foretell does", lead=lead, sections=[*parts, *details], settings=self.board.settings
        )

    def write_folder(self, path: Path) -> list[Path]:
        """Write the forecasts and outcomes of the backtest as tables into a folder."""
        example = self.example
        return list(write_backtest(example.backtest, example.benchmark.questions.resolutions, path).values())

    def parts(self, *, charts: bool = False) -> tuple["DemoPart", ...]:
        """Return the four parts, for every form of the result; charts are drawn only if requested."""
        example, questions = self.example, self.example.backtest.questions
        targets, series = (
            sum(len(question.targets) for question in questions),
            len({question.id for question in questions}),
        )
        agent, root = example.agent, example.tree.nodes[example.tree.root]
        path, p = " → ".join(map(percent, agent.path)), agent.answer.p["yes"]
        most = max(sensitivities(example.tree), key=lambda input: abs(input.slope))
        scores = {
            row.name: bi for row in self.board.sections()[0].rows if (bi := row.metric("brier_index")) is not None
        }
        study = example.arena.study()
        place = next(n for n, column in enumerate(study.tables[0].columns) if column.label == "Brier")
        briers = {row.name: row.values[place] for row in study.tables[0].rows}
        return (
            DemoPart(
                title="Backtest",
                scope=f": {len(questions)} questions ({targets:,} targets) about {series} real series",
                sentences=(headline(self.board),),
                scores=scores,
                metric="Brier index",
                caption="Brier index (100 is perfect, 50 knows nothing) and its 95 % interval",
            ),
            DemoPart(
                title="Agent",
                scope=" (example: made-up news, scripted replies)",
                sentences=(
                    agent.answer.question.text,
                    f"{path} in its first trial, {percent(p)} of three trials.",
                    f"The market said {percent(agent.price)} and the answer was {'yes' if agent.outcome else 'no'}: "
                    f"Brier score {(p - agent.outcome) ** 2:.3f}, market {(agent.price - agent.outcome) ** 2:.3f}.",
                ),
                chart=_path_chart(agent, p) if charts else None,
            ),
            DemoPart(
                title="Tree",
                scope=" (example: made up)",
                sentences=(
                    one_line(root.claim),
                    f"{percent(root.p)} from {len(example.tree.nodes)} claims. Matters most: {one_line(most.claim)}",
                    f"What if: {example.scenario} Then {percent(example.slow)}.",
                ),
                chart=picture_of(example.tree) if charts else None,
            ),
            DemoPart(
                title="Arena",
                scope=f" (example: {self.days} days on a simulated exchange, made-up news)",
                sentences=tuple(
                    filter(None, (f"{arena_headline(example.arena.view)}.", below_half(example.arena.view)))
                ),
                scores={name: brier for name, brier in briers.items() if isinstance(brier, Interval)},
                metric="Brier score",
                decimals=3,
                caption="Brier score (0 is perfect, 0.25 knows nothing) and its 95 % interval",
            ),
        )


WIDTH, INDENT = 80, "   "
OPEN_WITH = "foretell demo --open"


@frozen
class DemoPart:
    """One of the four parts of the demo."""

    title: str
    scope: str
    """What it is about; follows the title."""
    sentences: tuple[str, ...]
    scores: Mapping[str, Interval] = field(default_factory=dict[str, Interval])
    """Scores by forecaster, best first."""
    metric: str = ""
    decimals: int = 1
    caption: str = ""
    """What the scores are."""
    chart: Chart | None = None

    def score_lines(self) -> list[str]:
        """Return the scores as lines of text."""
        if not self.scores:
            return []
        width = max(map(len, self.scores))
        lines = [
            f"{name:{width}} {score.estimate:6.{self.decimals}f}  {bracket(score.low, score.high, self.decimals)}"
            for name, score in self.scores.items()
        ]
        return [self.caption, *lines]

    def section(self, number: int) -> Section:
        """Return the part as a section of a page."""
        scope = self.scope.strip(" :()")
        blocks = [HtmlBlock(text=f"{scope[:1].upper()}{scope[1:]}.", style="quiet")]
        blocks += [HtmlBlock(text=sentence) for sentence in self.sentences]
        if self.scores:
            columns = (StudyColumn(label=self.metric, decimals=self.decimals),)
            rows = [(name, (score,)) for name, score in self.scores.items()]
            blocks.append(HtmlBlock(table=table(self.metric, "Forecaster", columns, rows, caption=self.caption)))
        blocks += [] if self.chart is None else [HtmlBlock(charts=[self.chart])]
        return f"part-{number}", f"{number}. {self.title}", blocks


def _path_chart(agent: ExampleAnswer, combined: float) -> Chart:
    """Draw the estimate of the first trial after each step, the combined answer and the market price."""
    trial = Trajectory(name="first trial", points=list(enumerate(agent.path)))
    return trajectory_plot([trial], "Belief after each step", combined=combined, price=agent.price)


async def demo(
    request: DemoRequest, settings: Settings | None = None, *, tell: Tell = lambda _: None
) -> DemoResult | ArenaDemoResult:
    """Create an example home, replacing an earlier one, and summarise it."""
    settings = settings or load_settings()
    home = example_home(settings, arena=request.arena)
    if request.arena:
        with _creating(home, SIMULATED_NOTE):
            return await arena_demo(SEASON, home, tell)
    example = await make_example(home, ExampleSize(questions=request.questions, days=SEASON.days), tell)
    resolutions = example.benchmark.questions.resolutions
    result = example.backtest
    scored = read_table(forecast_rows(result.forecasts, result.questions), outcome_rows(result.questions, resolutions))
    scoring = ScoringOptions(by=("source",))
    return DemoResult(
        board=score_table(scored, scoring), table=scored, scoring=scoring, example=example, days=SEASON.days
    )


SEASON = ArenaSeason()
"""The size of the simulated arenas."""


@contextmanager
def opened_demo(home: Path, *, arena: bool) -> Generator[Settings]:
    """Yield the settings to serve an example with, while its services run; none of the user's own data is visible."""
    if arena:
        yield Settings(home=home, clock=f"file:{home / CLOCK}")
        return
    with serving_example(home) as settings:
        environment = practice_environment(settings.addresses, home)
        for name, value in environment.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        yield load_settings()
