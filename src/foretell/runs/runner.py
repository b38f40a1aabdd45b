"""From a run spec to its answers: questions, runtime, forecaster, executor, store."""

import json
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence, Set
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from foretell.data.datasets.question_set import quarantine_note, questions_digest, wording
from foretell.data.series.series import SeriesSource
from foretell.data.service import load_with_key
from foretell.data.untrusted import question_for_prompt
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.combine.aggregate import ReasonsPanel
from foretell.forecasters.forecaster import CannotForecast, Forecaster, NoSeries, make_forecaster
from foretell.forecasters.forecaster import asks_models as forecaster_asks_models
from foretell.forecasters.prompt.forecaster import PromptForecaster
from foretell.forecasters.prompt.prediction_context import QuestionOnly
from foretell.models.budget import Budget
from foretell.models.journal import Journal
from foretell.models.names import ModelName, check_knowledge_cutoff, default_efforts
from foretell.models.prices import tier_factor
from foretell.models.router import ModelRouter
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.questions.trace import EmitEvent
from foretell.runs.claims import ClaimTable
from foretell.runs.executor import AnswerCell, Executor, RunProgress, WatchEvents
from foretell.runs.outcomes import RunOutcomes, rates_of
from foretell.runs.question_sets import LATE_TEXT_HINT, Benchmark, open_benchmark
from foretell.runs.runtime import (
    SLOW_TIERS,
    PlainRuntime,
    Runtime,
    TreeOutput,
    contexts_of,
    forecaster_name,
    forecaster_options,
    models_of_run,
    open_runtime,
    patience_of,
    refuse_unpriced,
    run_budget,
    shown_context,
    under_rules,
    unpriced_models,
)
from foretell.runs.services import SeriesOnDemand
from foretell.runs.settings import Settings
from foretell.runs.spec import AUTO, FOUND_OUT, RunSpec, spec_from_json
from foretell.runs.store import CellKey, RunCell, RunStore, cells_of, panel_cells

WatchProgress = Callable[[RunProgress], None]


@dataclass(frozen=True, kw_only=True)
class PreparedRun:
    """A run that is ready to start or continue."""

    spec: RunSpec
    benchmark: Benchmark
    questions: tuple[Question, ...]
    warnings: tuple[str, ...] = ()
    """What the models may already know about the questions."""
    notes: tuple[str, ...] = ()
    """What was left out of it, and its relation to other runs of the same spec."""
    now: datetime | None = None
    """The moment at which questions without their own moment are asked."""
    only: Set[CellKey] | None = None
    """The cells to run; all by default."""

    def cells(self) -> list[RunCell]:
        """The trials to run, first trials first."""
        return self._chosen(cells_of(self.spec.id, self.questions, self.spec.trials))

    def panel_cells(self) -> list[RunCell]:
        """The cells to run after the trials, in which a panel reads their reasons."""
        return self._chosen(panel_cells(self.spec.id, self.questions, self.spec.trials))

    def _chosen(self, cells: Iterable[RunCell]) -> list[RunCell]:
        return [cell for cell in cells if self.only is None or cell.key in self.only]

    @property
    def notices(self) -> tuple[str, ...]:
        """Notes about money before anything is sent."""
        return money_notices(self.spec) if asks_models(self.spec) else ()


def prepare_run(
    spec: RunSpec, benchmark: Benchmark | None = None, *, folders: Sequence[Path] = (Path(),)
) -> PreparedRun:
    """Open the questions and check that the models cannot have read about them.

    The returned spec contains the digest of its questions, which is part of the run's identity. Sets that grow, such as
    the open questions of a tournament, have no digest: their run is identified by their name.

    Args:
        spec: What to run.
        benchmark: The questions, if they should not be opened by name.
        folders: Folders in which to look for a question file, in order.
    """
    asked, now = spec.questions, datetime.now(UTC)
    opened = benchmark or open_benchmark(
        asked.dataset, wanted=asked, live=spec.mode == "live", now=now, folders=folders
    )
    questions = opened.questions.questions[: spec.questions.limit]
    if benchmark is None and not opened.grows:
        digest = questions_digest(questions, now)
        if asked.digest and asked.digest != digest:
            problem = f"{asked.dataset} holds other questions than the spec says"
            raise InputError(problem, column="questions.digest", hint=f"their digest is {digest}")
        spec = spec.with_digest(digest)
    benchmark = opened
    late = len(opened.questions.quarantined)
    spec = replace(spec, questions=replace(spec.questions, quarantined=late))
    warnings: dict[str, int] = {}
    if spec.mode == "backtest":
        for question in questions:
            for model in dict.fromkeys(spec.models.values()):
                found = check_knowledge_cutoff(model, question.opens_at or question.due, strict=spec.strict)
                if found is not None:
                    warnings[found.text] = warnings.get(found.text, 0) + 1
    message = tuple(f"{text} ({n} questions)" if n > 1 else text for text, n in list(warnings.items())[:5])
    notes = (f"{quarantine_note(late)} ({LATE_TEXT_HINT})",) if late else ()
    return PreparedRun(spec=spec, benchmark=benchmark, questions=questions, warnings=message, notes=notes, now=now)


def begin_run(
    store: RunStore, spec: RunSpec, now: datetime, services: Sequence[str] = (), *, again: bool = False, **more: Any
) -> RunSpec:
    """Store a run and return it with the settings chosen for its models when it was first made.

    With `again` nothing is chosen: the run is recomputed as it was. See `RunStore.begin` for `more`.
    """
    known = store.run(spec.id)
    if known is not None:
        spec = replace(spec, efforts=known.spec.get("efforts", {}), marked=known.spec.get("marked", False))
    elif "agent" in spec.models and not again:
        spec = replace(spec, marked=True)
        spec = spec if spec.efforts else replace(spec, efforts=default_efforts(models_of_run(spec)))
    began = now.isoformat(timespec="milliseconds")  # Runs are listed by it, the newest first.
    store.begin(spec.id, spec.to_json(), began, services=services, folder=Path.cwd(), **more)
    return spec


async def execute_run(  # noqa: PLR0913 - who watches, and where things go
    prepared: PreparedRun,
    settings: Settings,
    *,
    watch: WatchProgress | None = None,
    on_event: WatchEvents | None = None,
    journal: Journal | None = None,
    concurrency: int | None = None,
    trees: TreeOutput | None = None,
) -> RunProgress:
    """Run the cells without a forecast. After a crash it continues where it was, without paying twice.

    The journal is closed at the end, even one that was passed in.
    """
    concurrency = concurrency or prepared.spec.concurrency
    store = RunStore(settings.store)
    again = journal is not None and journal.mode == "replay"
    spec = begin_run(store, prepared.spec, datetime.now(UTC), settings.services, again=again)
    store.keep_questions(spec.id, prepared.questions)
    RunOutcomes(store).keep(spec.id, prepared.questions, prepared.benchmark.questions.resolutions)
    if asks_models(spec) and (unpriced := [one for one in prepared.questions if one.kind != "market"]):
        # Its answers are combined with these base rates, wherever the run is shown.
        store.keep_rates(spec.id, rates_of(unpriced, prepared.benchmark.past.rates, spec.mode))
    prepared = replace(prepared, spec=spec)
    executor = Executor(store, concurrency=concurrency, watch=watch, on_event=on_event)
    try:
        async with ClaimTable(store.database).claim(f"run {spec.id}", ""), AsyncExitStack() as stack:
            if journal is not None or asks_models(spec):
                journal = stack.enter_context(closing(journal or Journal(settings.journal)))
                executor.budget = run_budget(spec, journal, settings)
                executor.unknown_before = journal.ledger.money(spec.id).unknown
            async with (
                SeriesOnDemand(settings) as on_demand,
                open_answers(
                    spec,
                    settings,
                    journal,
                    store,
                    past=lambda: prepared.benchmark.past,
                    # A backtest of published rounds is answered from what comes with them, the same on every machine.
                    series=prepared.benchmark.series
                    or (on_demand if prepared.benchmark.own or spec.mode == "live" else None),
                    concurrency=concurrency,
                    trees=trees,
                    budget=executor.budget,
                ) as answer,
            ):
                progress = await executor.run(prepared.cells(), answer)
                if asks_models(spec) and has_panel(spec) and not progress.early:
                    progress += await executor.run(prepared.panel_cells(), answer)
                if progress.stopped:
                    store.label(spec.id, problem=progress.stopped)
                return replace(progress, unread=tuple(on_demand.unread.values()))
    except Exception as error:
        # Whatever ended the run is what its page and the list of runs say of it.
        told = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
        with suppress(Exception):  # Where nothing can be written, the error itself says so.
            store.label(spec.id, problem=told)
        raise
    finally:
        store.close()


def asks_models(spec: RunSpec) -> bool:
    """Whether its cells take long and cost money; such cells are shared between machines."""
    return forecaster_asks_models(forecaster_name(spec), spec.models)


def check_options(spec: RunSpec) -> None:
    """Raise errors in the roles and options of a run that any machine would find."""
    # Options first: a misspelt name is the cause where a model or forecaster seems to be missing.
    made = make_forecaster(forecaster_name(spec), forecaster_options(spec))
    if asks_models(spec):
        models_of_run(spec)
    if spec.sampling.get("tier") == "batch" and forecaster_name(spec) == "tree":
        hint = "sampling.tier=flex costs half too and takes minutes"
        raise InputError("a tree asks too often to wait a day for each reply", column="sampling.tier", hint=hint)
    shown_context(made, spec, QuestionOnly())


def check_run(spec: RunSpec, settings: Settings) -> None:
    """Raise errors that this machine would find in a run that asks models, before anything is stored."""
    if not asks_models(spec):
        return
    check_options(spec)
    deep = spec.options.get("deep_model")
    ModelRouter(settings.keys).check([*models_of_run(spec).names(), *([deep] if isinstance(deep, str) else [])])
    refuse_unpriced(spec, settings.budget)
    for engine in spec.search:
        try:
            load_with_key("search_engines", engine, settings.key(engine))
        except InputError as error:
            raise error.at(column="search") from None


SLOW_WORDS = {
    "flex": "a reply may take a quarter of an hour",
    "batch": "replies come together, within a day; cells that run at the same time make one batch",
}


def money_notices(spec: RunSpec) -> tuple[str, ...]:
    """Models with unknown prices, and what the run's service tier saves or could save."""
    notices = [
        f"no price is known for {name}, so nobody can say what this will cost: --set prices.{name}=0.5/2 states it in "
        "dollars per million tokens read/written"
        for name in unpriced_models(spec)
    ]
    names = [name for name in models_of_run(spec).names() if not ModelName.read(name).free]
    tier = spec.sampling.get("tier")
    cheaper = {slow: [name for name in names if tier_factor(name, slow) < 1] for slow in SLOW_TIERS}
    if tier in cheaper:
        for name in names:
            has_it = f"costs half; {SLOW_WORDS[tier]}" if name in cheaper[tier] else "has no such tier"
            notices.append(f"service tier {tier}: {name} {has_it}")
    elif tier is None and spec.mode == "backtest" and not spec.questions.typed and any(cheaper.values()):
        halved = [
            f"the service tier {slow} halves the price of {', '.join(found)}"
            for slow, found in cheaper.items()
            if found
        ]
        notices.append(f"a backtest can wait: {'; '.join(halved)}")
    return tuple(notices)


def has_panel(spec: RunSpec) -> bool:
    """Whether a model reads the trials' reasons in an extra cell per question."""
    return spec.combine == "judged" and spec.trials > 1


@asynccontextmanager
async def open_answers(  # noqa: PLR0913 - everything a run may need
    spec: RunSpec,
    settings: Settings,
    journal: Journal | None,
    store: RunStore,
    *,
    past: Callable[[], Past] = Past,
    series: SeriesSource | None = None,
    concurrency: int = 50,
    trees: TreeOutput | None = None,
    budget: Budget | None = None,
) -> AsyncGenerator[AnswerCell]:
    """Answers the cells of a run, with this concurrency; the cell after the trials belongs to the panel."""
    made = make_forecaster(forecaster_name(spec), forecaster_options(spec))
    contexts = contexts_of(spec, store)
    async with AsyncExitStack() as stack:
        if journal is None or not asks_models(spec):
            plain = PlainRuntime(spec=spec, past=past, series=series or NoSeries(), contexts=contexts)
            answer = plain.answers(shown_context(forecaster_of(made, plain), spec, contexts))
        else:
            limits = replace(patience_of(spec), at_once=max(64, concurrency))
            limits = made.limits(limits) if hasattr(made, "limits") else limits
            opened = await stack.enter_async_context(
                open_runtime(spec, settings, journal, past=past, limits=limits, budget=budget)
            )
            runtime = replace(opened, contexts=contexts, trees=trees or TreeOutput())
            if hasattr(made, "open"):
                forecaster, runtime = await stack.enter_async_context(made.open(runtime))
            else:
                forecaster = forecaster_of(made, runtime)
            answer = runtime.answers(shown_context(forecaster, spec, contexts))
            answer = _with_panel(answer, store, runtime) if has_panel(spec) else answer
        yield under_rules(answer, spec, settings, store)


def forecaster_of(made: Any, runtime: PlainRuntime) -> Forecaster:
    """The forecaster that a registered entry makes from its options, with the run's contexts."""
    if hasattr(made, "build"):
        return made.build()
    return replace(made, contexts=runtime.contexts) if isinstance(made, PromptForecaster) else made


def _with_panel(trial: AnswerCell, store: RunStore, runtime: Runtime) -> AnswerCell:
    """Trials, and an extra cell per question in which a model reads what they wrote."""
    panel = ReasonsPanel()

    async def answer(cell: RunCell, emit: EmitEvent) -> Forecast | Failure:
        if cell.trial < runtime.spec.trials:
            return await trial(cell, emit)
        answers = await store.aside(store.answers_to, cell.key)
        forecasts = [a for a in answers if isinstance(a, Forecast) and a.trial < cell.trial]
        question = question_for_prompt(cell.question) if runtime.spec.marked else cell.question
        context = runtime.context(question, cell.trial, emit)
        try:
            return await panel.judge(question, forecasts, context)
        except CannotForecast as reason:
            return Failure(
                question_id=cell.question.id,
                forecaster=panel.name,
                as_of=context.as_of,
                trial=cell.trial,
                error=str(reason),
            )

    return answer


# Whether a stored run asked these questions: which run a spec goes on with, adds to, or leaves alone.

NAMED = 3
"""Maximum number of questions named in a message."""


@dataclass(frozen=True, kw_only=True)
class QuestionMatch:
    """Compares current questions with those that a run asked."""

    run: str
    spec: RunSpec
    questions: tuple[Question, ...]
    """The current questions; one asked "now" and asked before keeps its moment."""
    edited: tuple[str, ...] = ()
    """Ids of questions whose wording has changed."""
    added: tuple[str, ...] = ()
    """Ids of questions that the run did not ask."""
    missing: tuple[str, ...] = ()
    """Ids of questions that only the run asked."""

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return not (self.edited or self.added or self.missing)

    @property
    def shared(self) -> int:
        """How many questions both have."""
        return len(self.questions) - len(self.added)


def match_questions(stored: Sequence[Question], prepared: PreparedRun, run: str, spec: RunSpec) -> QuestionMatch:
    """Compare a run's questions with the current ones."""
    known: dict[str, dict[datetime, Question]] = {}
    for question in stored:
        known.setdefault(question.id, {})[question.due] = question
    again = prepared.spec.questions.again
    chosen: list[Question] = []
    edited: list[str] = []
    added: list[str] = []
    for question in prepared.questions:
        versions = known.get(question.id, {})
        undated = question.due == prepared.now
        before = versions.get(max(versions)) if undated and versions else versions.get(question.due)
        taken = before
        if before is None:
            added.append(question.id)
        elif wording(before, before.due if undated else None) != wording(
            _known_as(question, before), prepared.now if undated else None
        ):
            edited.append(question.id)
        elif undated and again is not None and question.due - before.due >= timedelta(days=again):
            taken = question
        chosen.append(taken or question)
        for due in list(versions) if undated else [question.due]:
            versions.pop(due, None)
    return QuestionMatch(
        run=run,
        spec=spec,
        questions=tuple(chosen),
        edited=tuple(edited),
        added=tuple(added),
        missing=tuple(id for id, versions in known.items() if versions),
    )


def _known_as(question: Question, before: Question) -> Question:
    """The question as stored by a run made before its deciding series was known."""
    return replace(question, series=None) if before.series is None else question


def runs_like(store: RunStore, prepared: PreparedRun) -> Iterator[QuestionMatch]:
    """Stored runs of the same spec, newest first, each compared with the current questions."""
    # What was chosen for its models when a run was made is no part of what it is.
    wanted = json.loads(prepared.spec.with_digest("").bare().to_json())
    same = [wanted]
    if wanted["aggregate"] == AUTO:
        same.append({**wanted, "aggregate": "logit-mean"})  # What earlier versions stored for the same file.
    for run, written in store.specs():
        asked = written.get("questions", {})
        questions = {name: value for name, value in asked.items() if name not in ("digest", "quarantined")}
        rest = {name: value for name, value in written.items() if name not in ("questions", "concurrency", *FOUND_OUT)}
        if {**rest, "questions": questions} not in same:
            continue
        stored = store.questions(run)
        if not stored:
            # Runs of the first version kept ids only: what they asked is taken to be what is asked now.
            ids = {(id, due) for id, due, _ in store.ended(run)}
            stored = [one for one in prepared.questions if (one.id, one.due.isoformat()) in ids]
            stored = list(prepared.questions) if len(stored) == len(ids) else stored
        yield match_questions(stored, prepared, run, spec_from_json(written))


def find_run_of(store: RunStore, prepared: PreparedRun, *, extend: bool = False) -> PreparedRun:
    """The run that a spec continues: one with exactly these questions, else a new or extended one."""
    if not prepared.spec.questions.digest:
        return prepared  # What grows by itself, and what was typed, is known by its name.
    matches = sorted(runs_like(store, prepared), key=lambda one: one.spec.combine != prepared.spec.combine)
    # A run that was extended since it began with these questions is still theirs.
    began = [one for one in matches if one.run == prepared.spec.id and not one.edited and not one.added]
    own = next(iter([one for one in matches if one.same] or began), None)
    if own is not None:
        return _going_on(prepared, own)
    nearest = max(matches, key=lambda one: (one.shared, -len(one.edited)), default=None)
    if extend:
        return _extended(prepared, matches, nearest)
    if nearest is None or not nearest.shared:
        return prepared
    return replace(prepared, notes=(*prepared.notes, _differs(nearest, len(prepared.questions))))


def _going_on(prepared: PreparedRun, own: QuestionMatch) -> PreparedRun:
    spec = replace(own.spec, concurrency=prepared.spec.concurrency)
    return replace(prepared, spec=spec, questions=own.questions)


def _extended(prepared: PreparedRun, matches: Sequence[QuestionMatch], nearest: QuestionMatch | None) -> PreparedRun:
    fitting = [one for one in matches if one.shared and not one.edited and not one.missing]
    if fitting:
        largest = max(fitting, key=lambda one: one.shared)
        note = f"{len(largest.added)} questions are added to run {largest.run}"
        return replace(_going_on(prepared, largest), notes=(*prepared.notes, note))
    if nearest is None or not nearest.shared:
        raise InputError(
            "no run of this spec asks any of these questions", column="--extend", hint="leave it out to start one"
        )
    if nearest.edited:
        problem = f"run {nearest.run} asks {_named(nearest.edited)} in other words"
        hint = "a run asks a question in one wording: restore it, give the new one its own id, or leave out --extend"
        raise InputError(problem, column="--extend", hint=hint)
    problem = f"run {nearest.run} also asks {_named(nearest.missing)}"
    raise InputError(problem, column="--extend", hint="an extension only adds: put back what was taken out")


def _differs(nearest: QuestionMatch, total: int) -> str:
    """How this differs from the closest run."""
    if nearest.edited:
        return f"{_named(nearest.edited)} is worded otherwise than in run {nearest.run}, so this is another run"
    if nearest.missing:
        return f"run {nearest.run} also asks {_named(nearest.missing)}, so this is another run"
    asked = f"run {nearest.run} asks {nearest.shared} of these {total} questions"
    return f"{asked}, and this is another run; extend that one to add the others"


def _named(ids: Sequence[str]) -> str:
    named = ", ".join(repr(id) for id in ids[:NAMED])
    return f"{named} and {len(ids) - NAMED} more" if len(ids) > NAMED else named
