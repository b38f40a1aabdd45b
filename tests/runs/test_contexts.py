"""Contexts of a question set reach runs, backtests and studies unchanged; a view of what is not there is refused."""

import asyncio
import csv
import json
import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import foretell
from foretell.api import replay
from foretell.arena.store import ArenaStore
from foretell.cli.main import cli
from foretell.data.datasets.question_set import asked_key, questions_digest
from foretell.forecasters.forecaster import Context
from foretell.forecasters.prompt.builder import ContextBuild
from foretell.forecasters.prompt.prediction_context import PredictionContext, RankedSource
from foretell.forecasters.prompt.rendering import VIEWS, readable, render
from foretell.models.model import Request
from foretell.models.providers.function import model_name
from foretell.operations.run import RunResult
from foretell.operations.studies import MachineServices
from foretell.questions.as_of import AsOf, instant
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, Snapshot, Target
from foretell.questions.resolution import Resolution
from foretell.runs.contexts import stored_contexts
from foretell.runs.grid import read_grid
from foretell.runs.question_sets import open_benchmark
from foretell.runs.runner import execute_run, prepare_run
from foretell.runs.settings import load_settings
from foretell.runs.spec import spec_from_mapping
from foretell.runs.store import RunStore
from foretell.runs.stored_runs import resume

NOTES = "The harbour pilots report calm water and a light wind from the south."


def article(n: int) -> dict[str, Any]:
    return {"ranking": n, "title": f"Report {n}", "url": f"https://news.example/{n}", "summary": f"{NOTES} ({n})"}


def event(ticker: str, sources: int = 2, **more: Any) -> dict[str, str]:
    quote = {"yes_bid": 58, "yes_ask": 60, "no_ask": 42, "last_price": 59, "volume": 10}
    return {
        "event_ticker": ticker,
        "title": f"Which boat wins race {ticker}?",
        "category": "Sports",
        "markets": repr(["Red", "Blue"]),
        "close_time": "2025-06-27 19:00:00+00:00",
        "market_outcome": repr({"Red": 1, "Blue": 0}),
        "sources": repr([article(n) for n in range(1, sources + 1)]),
        "market_info": repr({"Red": quote, "Blue": quote}),
        "snapshot_time": "2025-06-26 17:01:39.572199+00:00",
        **more,
    }


class Prompts:
    """A model that records what it is asked and answers every outcome with 0.5."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def complete(self, request: Request) -> dict[str, Any]:
        self.requests.append(request)
        fields = request.schema["properties"] if request.schema else {}
        if "queries" in fields:
            return {"queries": ["harbour wind"]}
        if "ranking" in fields:
            return {"ranking": ["s1", "s2"]}
        if "summary" in fields:
            return {"title": "Summarised", "summary": "One. Two. Three."}
        if "answers" in fields:
            names = fields["answers"]["properties"]
            confident = "confidence" in str(request.schema)
            vote: Any = {"answer": "yes", "confidence": 0.7} if confident else "yes"
            return {"rationale": "A guess.", "answers": dict.fromkeys(names, vote)}
        if "probabilities" not in fields:
            ids = re.findall(r'"id": ?"([^"]+)"', request.messages[-1].text)
            return {"verdicts": [{"id": id, "verdict": "KEEP", "reason": "old"} for id in ids]}
        names = fields["probabilities"]["properties"]
        return {"rationale": "A guess.", "probabilities": dict.fromkeys(names, 0.5)}

    def texts(self) -> list[str]:
        return [request.messages[1].text for request in self.requests]


@pytest.fixture
def prompts() -> Prompts:
    return Prompts()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("FORETELL_DATABASE_URL", raising=False)
    return tmp_path


def write(*rows: dict[str, str], file: str = "events.csv") -> str:
    with Path(file).open("w", newline="") as out:
        table = csv.DictWriter(out, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return file


def spec_of(prompts: Prompts, questions: Any, **more: Any) -> dict[str, Any]:
    models = {"agent": model_name(prompts, "recorder")}
    return {"questions": questions, "forecaster": "prompt", "models": models, **more}


def run(prompts: Prompts, questions: Any, **more: Any) -> RunResult:
    result = foretell.run(spec_of(prompts, questions, **more))
    assert isinstance(result, RunResult)
    return result


def command(*words: str) -> None:
    result = CliRunner().invoke(cli, list(words))
    assert result.exit_code == 0, result.output


def forecasts(result: RunResult) -> list[Forecast]:
    with closing(RunStore(load_settings().store)) as store:
        return [answer for answer in store.answers(result.run) if isinstance(answer, Forecast)]


def contexts_in(name: str) -> list[PredictionContext]:
    benchmark = open_benchmark(name)
    contexts = [benchmark.contexts.get(question) for question in benchmark.questions.questions]
    return [context for context in contexts if context is not None]


@pytest.mark.parametrize("view", VIEWS)
def test_a_run_shows_the_published_sources(place: Path, prompts: Prompts, view: str) -> None:
    result = run(prompts, write(event("A"), event("B", sources=1)), options={"view": view})
    shown = contexts_in("events.csv")
    assert [len(context.sources) for context in shown] == [2, 1]
    assert sorted(prompts.texts()) == sorted(render(readable(context), VIEWS[view]) for context in shown)
    assert {forecast.trace for forecast in forecasts(result)} == {f"context {context.digest}" for context in shown}
    assert any(NOTES in text for text in prompts.texts()) == VIEWS[view].sources
    # The judge of reasons reads the very same contexts, and a replay asks nothing.
    cases = MachineServices(settings=load_settings(), watch=lambda progress: None).cases([result.run], None)
    assert {case.context.digest for case in cases} == {context.digest for context in shown}
    asked = len(prompts.requests)
    assert replay(result.run).same
    assert len(prompts.requests) == asked


def test_other_forecasters_and_functions_get_the_same_sources(place: Path, prompts: Prompts) -> None:
    dataset = write(event("A"))
    (context,) = contexts_in(dataset)

    async def count(question: Question, context: Context) -> dict[str, float]:
        gathered.append(await context.gathered(question))
        return {target.id: 0.5 for target in question.targets}

    gathered: list[PredictionContext] = []
    foretell.backtest(count, dataset)
    assert gathered == [context]
    options = {"variant": "zero-shot", "context": {"view": "sources", "tools": False}}
    run(prompts, dataset, forecaster="agent", options=options)
    assert any(source.summary in text for source in context.sources for text in prompts.texts())


def test_a_changed_source_makes_another_run_and_a_stored_run_keeps_its_own(place: Path, prompts: Prompts) -> None:
    first = run(prompts, write(event("A")))
    assert run(prompts, "events.csv").progress.skipped == 1
    other = run(prompts, write(event("A", sources=1)))
    assert other.run != first.run
    assert "another wording or context" in other.notes[0]
    with closing(RunStore(load_settings().store)) as store:
        (stored,) = resume(store, first.run, load_settings()).contexts.values()
        assert len(stored.sources) == 2
        store.remove(first.run)
        assert stored_contexts(store, first.run) == []
        assert [len(context.sources) for context in stored_contexts(store, other.run)] == [1]


def test_a_run_of_a_version_without_sources_is_not_continued(place: Path, prompts: Prompts) -> None:
    prepared = prepare_run(spec_from_mapping(spec_of(prompts, write(event("A")))))
    assert prepared.spec.questions.digest.endswith("+sources")
    old = prepared.spec.with_digest(questions_digest(prepared.questions))
    with closing(RunStore(load_settings().store)) as store:
        store.begin(old.id, old.to_json(), "2026-01-01T00:00:00.000+00:00")
        store.keep_questions(old.id, prepared.questions)
    assert run(prompts, "events.csv").run == prepared.spec.id != old.id


def test_a_view_of_what_no_question_has_is_refused(place: Path, prompts: Prompts) -> None:
    Path("plain.csv").write_text("id,text,due,by,price\nrain,Will it rain?,2026-01-05,2026-01-10,\n")
    for view in ("sources", "both", "market"):
        with pytest.raises(InputError, match=f"the view '{view}' cannot be shown") as error:
            run(prompts, "plain.csv", options={"view": view})
        assert error.value.column == "options.view"
    with pytest.raises(InputError, match="there is no source for question rain") as error:
        run(prompts, "plain.csv", forecaster="agent", options={"context": {"view": "sources"}})
    assert error.value.column == "options.context.view"
    assert "name search engines" in (error.value.hint or "")
    assert prompts.requests == []
    assert run(prompts, "plain.csv").progress.done == 1, "without a named view, what there is is shown"


def test_questions_that_lack_a_part_of_the_view_fail_with_the_reason(place: Path, prompts: Prompts) -> None:
    result = run(prompts, write(event("A"), event("B", sources=0)), options={"view": "both"})
    assert (result.progress.done, result.progress.failed) == (2, 1)
    assert "cannot be shown for 1 question, which will fail" in result.notes[0]
    with closing(RunStore(load_settings().store)) as store:
        ((_, problem),) = store.failures(result.run)
    assert problem == "the view 'both' cannot be shown: there is no source for question prophet_arena/B"


def test_a_saved_folder_has_the_same_contexts(place: Path, prompts: Prompts) -> None:
    first = run(prompts, write(event("A"), event("B")))
    command("data", "show", "events.csv", "--out", "saved")
    assert (Path("saved/contexts.jsonl").read_text().splitlines()) == [c.to_json() for c in contexts_in("events.csv")]
    assert [c.canonical for c in contexts_in("saved")] == [c.canonical for c in contexts_in("events.csv")]
    saved = run(prompts, "saved")
    assert {forecast.trace for forecast in forecasts(saved)} == {forecast.trace for forecast in forecasts(first)}
    line = json.loads(Path("saved/contexts.jsonl").read_text().splitlines()[0])
    line["question"]["id"] = "other"
    Path("saved/contexts.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(InputError, match="'other' is not asked at"):
        open_benchmark("saved")


def test_the_search_engines_of_a_run_gather_sources(place: Path, prompts: Prompts) -> None:
    text = f"Harbour wind and race news of 2025-06-20. {NOTES} The red boat is faster than the blue boat this year."
    Path("note.jsonl").write_text(
        json.dumps({"title": "Harbour wind", "text": text, "published": "2025-06-20", "url": "https://own.example/1"})
    )
    command("corpus", "add", "note.jsonl")
    Path("own.csv").write_text("id,text,due,by\nwind,Will the harbour wind turn?,2025-06-26,2025-07-10\n")
    result = run(prompts, "own.csv", search=["local"], options={"view": "sources"})
    with closing(RunStore(load_settings().store)) as store:
        assert store.failures(result.run) == []
    (forecast,) = forecasts(result)
    with closing(RunStore(load_settings().store)) as store:
        (context,) = stored_contexts(store, result.run)
    assert [source.url for source in context.sources] == ["https://own.example/1"]
    assert forecast.trace == f"context {context.digest}"
    assert render(readable(context), VIEWS["sources"]) in prompts.texts()
    plan = foretell.run(spec_of(prompts, "own.csv", search=["local"]), plan=True, prompts=True)
    assert "# Sources" in str(plan)


GRIDS = Path(__file__).parents[2] / "examples" / "grids"


@pytest.mark.parametrize("path", sorted(GRIDS.glob("prophet_*.yaml")), ids=lambda path: path.stem)
def test_the_ablations_of_prophet_arena_run_offline(place: Path, prompts: Prompts, path: Path) -> None:
    factors = read_grid(path)
    name = model_name(prompts, "recorder")
    runs = [run for run in factors.runs() if run.factors["model"] == "openai:practice"]
    for grid_run in runs:
        prepared = prepare_run(replace(grid_run.spec, models={"agent": name}), folders=(path.parent,))
        progress = asyncio.run(execute_run(prepared, load_settings()))
        assert (progress.failed, progress.done) == (0, len(prepared.questions))
    shown = contexts_in(str(GRIDS / "prophet_events.jsonl"))
    assert all(context.sources for context in shown)
    views = {run.factors.get("view", "both") for run in runs}
    wanted = {
        render(readable(context), VIEWS[view])
        for context in shown
        for view in views
        if not grid_run.spec.questions.category or context.question.category == grid_run.spec.questions.category
    }
    assert set(prompts.texts()) == wanted


BOAT = Question(
    id="kalshi/BOAT",
    source="kalshi",
    text="Who wins?",
    due=instant("2026-01-05T10:00:00Z"),
    targets=(
        Target(id="red", snapshot=Snapshot(at=instant("2026-01-05T09:59:00Z"), last_price=0.4)),
        Target(id="blue", snapshot=Snapshot(at=instant("2026-01-05T09:59:00Z"), last_price=0.6)),
    ),
    exclusivity="exactly one",
    closes_at=instant("2026-01-20T20:00:00Z"),
)


def test_an_arena_feeds_runs_with_the_contexts_it_kept(place: Path, prompts: Prompts) -> None:
    now, later = BOAT.due, instant("2026-01-05T16:00:00Z")
    askings = [BOAT, replace(BOAT, due=later)]
    kept: list[PredictionContext] = []
    with closing(RunStore(load_settings().store)) as store:
        arena = ArenaStore(store.database, "cup")
        arena.begin("{}", now)
        for number, question in enumerate(askings):
            source = RankedSource(url="https://news.example/1", title=f"Asked {number}", summary=NOTES)
            as_of = AsOf(at=question.due, mode="live")
            kept.append(PredictionContext(question=question, as_of=as_of, sources=(source,), searcher="canned"))
            arena.keep_context(ContextBuild(context=kept[-1], found=1, dropped={}), now)
            arena.forecast_times.plan(question.id, number, question.due)
            (planned,) = [time for time in arena.forecast_times.of_event(question.id) if time.number == number]
            taken = arena.forecast_times.take(planned, question, instant("2026-01-06"), None)
            arena.forecast_times.add_context(taken.id, kept[-1].digest)
        arena.add_outcomes([Resolution(question_id=BOAT.id, target_id="red", outcome=1)], now)
    result = run(prompts, "arena:cup", options={"view": "both"})
    assert sorted(prompts.texts()) == sorted(render(readable(context)) for context in kept)
    assert {forecast.trace for forecast in forecasts(result)} == {f"context {context.digest}" for context in kept}
    assert open_benchmark("arena:cup").questions.outcomes() == {(BOAT.id, None, "red"): 1}
    with pytest.raises(InputError, match="answered by its own entries"):
        run(prompts, "arena:cup", mode="live")
    with pytest.raises(InputError, match="there is no arena 'mug'"):
        run(prompts, "arena:mug")
    command("data", "show", "arena:cup", "--out", "saved")
    saved = open_benchmark("saved")
    assert [saved.contexts.get(question) for question in saved.questions.questions] == kept
    assert len(saved.questions.outcomes()) == 2, "one for each asking"
    assert {asked_key(context.question) for context in kept} == {(BOAT.id, now), (BOAT.id, later)}


def test_the_contexts_of_a_set_are_read_as_of_their_question(place: Path) -> None:
    benchmark = open_benchmark(write(event("A")))
    (question,) = benchmark.questions.questions
    assert asyncio.run(benchmark.contexts.of(question, question.as_of)) == benchmark.contexts.get(question)
