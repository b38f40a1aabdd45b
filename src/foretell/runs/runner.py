"""From a run spec to its answers: questions, runtime, forecaster, executor, store."""

import json
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from foretell.data.datasets.question_set import AskedKey, asked_key, excluded_note, wording
from foretell.data.search.own_engine import own_engine
from foretell.data.series.series import SeriesSource
from foretell.data.service import load_with_key
from foretell.data.untrusted import question_for_prompt
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.combine.panel import ReasonsPanel
from foretell.forecasters.forecaster import CannotForecast, Forecaster, NoSeries, make_forecaster
from foretell.forecasters.forecaster import asks_models as forecaster_asks_models
from foretell.forecasters.prompt.prediction_context import PredictionContext
from foretell.frozen import frozen
from foretell.models.budget import Budget
from foretell.models.journal import Journal
from foretell.models.names import ModelName, check_knowledge_cutoff, default_efforts
from foretell.models.prices import tier_factor
from foretell.models.router import ModelRouter
from foretell.own_objects import is_own
from foretell.plugins import load
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question, SeriesRef
from foretell.questions.trace import EmitEvent
from foretell.runs.claims import ClaimTable
from foretell.runs.contexts import check_views, context_rows, contexts_of, contexts_of_set, run_digest
from foretell.runs.estimates import ESTIMATOR, estimates_without_model, needs_estimate
from foretell.runs.executor import AnswerTrial, Executor, RunProgress, WatchEvents
from foretell.runs.outcomes import RunOutcomes
from foretell.runs.past import keep_past
from foretell.runs.question_sets import LEAKY_QUESTIONS_HINT, Benchmark, open_benchmark
from foretell.runs.runtime import (
    SLOW_TIERS,
    PlainRuntime,
    Runtime,
    TreeOutput,
    forecaster_name,
    forecaster_options,
    live_questions,
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
from foretell.runs.spec import AUTO, DERIVED_SETTINGS, RunSpec, current_names, spec_from_json
from foretell.runs.store import RunStore, RunTrial, TrialKey, panel_trials, trials_of
from foretell.runs.trial_evidence import EvidenceOfTrials
from foretell.tools.own_tool import own_tools

WatchProgress = Callable[[RunProgress], None]


@frozen
class PreparedRun:
    """A run that is ready to start or continue."""

    spec: RunSpec
    benchmark: Benchmark
    questions: tuple[Question, ...]
    contexts: Mapping[AskedKey, PredictionContext] = field(default_factory=dict[AskedKey, PredictionContext])
    """What the question set gathered for the questions, if the forecaster reads it."""
    stored_past: Past | None = None
    """The past with which a stored run began; None for that of the question set."""
    warnings: tuple[str, ...] = ()
    """Warnings that models may already know about the questions."""
    notes: tuple[str, ...] = ()
    """Notes on questions that were left out, and on other runs of the same spec."""
    now: datetime | None = None
    """The time at which questions without their own time are asked."""
    only: Set[TrialKey] | None = None
    """The trials to run; all by default."""

    @property
    def past(self) -> Past:
        """Past questions that the run may learn from."""
        return self.benchmark.past if self.stored_past is None else self.stored_past

    def run_trials(self) -> list[RunTrial]:
        """The trials to run, first trials first."""
        return self._chosen(trials_of(self.spec.id, self.questions, self.spec.trials))

    def panel_trials(self) -> list[RunTrial]:
        """The extra trials to run last, in which a panel reads the others' reasons."""
        return self._chosen(panel_trials(self.spec.id, self.questions, self.spec.trials))

    def _chosen(self, trials: Iterable[RunTrial]) -> list[RunTrial]:
        return [trial for trial in trials if self.only is None or trial.key in self.only]

    @property
    def notices(self) -> tuple[str, ...]:
        """Notes about money before anything is sent."""
        return money_notices(self.spec) if asks_models(self.spec) else ()


def prepare_run(
    spec: RunSpec, benchmark: Benchmark | None = None, *, folders: Sequence[Path] = (Path(),)
) -> PreparedRun:
    """Open the questions and check them against the models' knowledge cutoffs.

    The returned spec contains the digest of its questions, which is part of the run's id. Sets that grow, such as the
    open questions of a tournament, have no digest, and their run is identified by name. Files are looked for in
    `folders`, in order; a `benchmark` is used instead of opening the questions by name.
    """
    wanted, now = spec.questions, datetime.now(UTC)
    if live_questions(spec) is not None:
        hint = "mode: backtest asks its questions again, as of the times when they were asked"
        raise InputError(f"{wanted.dataset} is answered by its own entries", column="mode", hint=hint)
    opened = benchmark or open_benchmark(
        wanted.dataset, wanted=wanted, live=spec.mode == "live", now=now, folders=folders
    )
    questions = opened.questions.questions[: spec.questions.limit]
    contexts = contexts_of_set(spec, opened, questions)
    view_notes = check_views(spec, questions, contexts)
    if benchmark is None and not opened.grows:
        digest = run_digest(spec, questions, contexts, now)
        if wanted.digest and wanted.digest != digest:
            problem = f"{wanted.dataset} has other questions than the spec"
            raise InputError(problem, column="questions.digest", hint=f"their digest is {digest}")
        spec = spec.with_digest(digest)
    benchmark = opened
    excluded = len(opened.questions.excluded)
    spec = replace(spec, questions=replace(spec.questions, excluded=excluded))
    warnings: dict[str, int] = {}
    if spec.mode == "backtest":
        for question in questions:
            for model in dict.fromkeys(spec.models.values()):
                knowledge_cutoff = check_knowledge_cutoff(model, question.opens_at or question.due, strict=spec.strict)
                if knowledge_cutoff is not None:
                    warnings[knowledge_cutoff.text] = warnings.get(knowledge_cutoff.text, 0) + 1
    shown = tuple(f"{text} ({n} questions)" if n > 1 else text for text, n in list(warnings.items())[:5])
    notes = (f"{excluded_note(excluded)} ({LEAKY_QUESTIONS_HINT})",) if excluded else ()
    return PreparedRun(
        spec=spec,
        benchmark=benchmark,
        questions=questions,
        contexts=contexts,
        warnings=shown,
        notes=(*notes, *view_notes),
        now=now,
    )


def begin_run(
    store: RunStore, spec: RunSpec, now: datetime, services: Sequence[str] = (), *, again: bool = False, **more: Any
) -> RunSpec:
    """Store a run and return its spec with the settings that were chosen for its models when it was first made.

    With `again` nothing is chosen, and the run is recomputed as it was. See `RunStore.begin` for `more`.
    """
    known = store.run(spec.id)
    if known is not None:
        spec = replace(spec, efforts=known.spec.get("efforts", {}), marked=known.spec.get("marked", False))
    elif "agent" in spec.models and not again:
        spec = replace(spec, marked=True)
        spec = spec if spec.efforts else replace(spec, efforts=default_efforts(models_of_run(spec)))
    began = now.isoformat(timespec="milliseconds")  # Runs are listed by it.
    store.begin(spec.id, spec.to_json(), began, services=services, folder=Path.cwd(), **more)
    return spec


async def execute_run(
    prepared: PreparedRun,
    settings: Settings,
    *,
    watch: WatchProgress | None = None,
    on_event: WatchEvents | None = None,
    journal: Journal | None = None,
    trees: TreeOutput | None = None,
) -> RunProgress:
    """Run the trials without a forecast. After a crash it resumes without paying twice.

    The journal is closed at the end, even if it was passed in.
    """
    with closing(RunStore(settings.store)) as store:
        concurrency = prepared.spec.concurrency
        again = journal is not None and journal.mode == "replay"
        spec = begin_run(store, prepared.spec, datetime.now(UTC), settings.services, again=again)
        store.keep_questions(spec.id, prepared.questions)
        store.keep_contexts(spec.id, context_rows(prepared.contexts.values()))
        RunOutcomes(store).keep(spec.id, prepared.questions, prepared.benchmark.questions.resolutions)
        prepared = replace(prepared, spec=spec)
        if asks_models(spec):
            prepared = replace(prepared, stored_past=keep_past(store, spec.id, prepared.past))
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
                        past=lambda: prepared.past,
                        series=series_of_run(prepared, on_demand),
                        concurrency=concurrency,
                        trees=trees,
                        budget=executor.budget,
                    ) as answer,
                ):
                    if on_demand is series_of_run(prepared, on_demand) and settings.network and not again:
                        await _fetch_values(prepared, store, on_demand, watch)
                    if asks_models(spec) and not again:
                        await keep_estimates(store, prepared, on_demand)
                    progress = await executor.run(prepared.run_trials(), answer)
                    if asks_models(spec) and has_panel(spec) and not progress.early:
                        progress += await executor.run(prepared.panel_trials(), answer)
                    if progress.stopped:
                        store.label(spec.id, problem=progress.stopped)
                    return replace(progress, unread=on_demand.unread)
        except Exception as error:
            # Shown on the run's page and in the list of runs.
            problem = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
            with suppress(Exception):  # The store may be what failed.
                store.label(spec.id, problem=problem)
            raise


async def _fetch_values(
    prepared: PreparedRun, store: RunStore, series: SeriesOnDemand, watch: WatchProgress | None
) -> None:
    """Fetch what the open trials will read, all at once; what fails is reported by those who need it."""
    spec, done = prepared.spec, store.finished(prepared.spec.id)
    trials = [trial for trial in prepared.run_trials() if trial.key[1:] not in done]
    estimated = asks_models(spec)
    wanted = [
        (ref, as_of)
        for question in {trial.key[1:3]: trial.question for trial in trials}.values()
        for as_of in [question.as_of_in(spec.mode)]
        for ref in (
            *_series_read(forecaster_name(spec), question, as_of),
            *(_series_read(ESTIMATOR, question, as_of) if estimated and needs_estimate(question) else ()),
        )
    ]

    def show(fetched: int, total: int) -> None:
        if watch is not None:
            watch(RunProgress(total=len(trials), fetched=fetched, wanted=total))

    await series.fetch_all(wanted, show)


SeriesRead = Callable[[Question, AsOf], Iterable[SeriesRef]]
"""Returns the series that a forecaster reads for a question; a forecaster's class may have it as `series_read`."""


def _series_read(forecaster: str, question: Question, as_of: AsOf) -> Iterable[SeriesRef]:
    read: SeriesRead = getattr(load("forecasters", forecaster), "series_read", series_asked)
    return read(question, as_of)


def series_asked(question: Question, as_of: AsOf) -> Iterable[SeriesRef]:
    """Return the series that decides a question, if there is one."""
    return () if question.series is None else (question.series,)


def series_of_run(prepared: PreparedRun, on_demand: SeriesOnDemand) -> SeriesSource | None:
    """Return where the forecasters of a run read series that need no tool.

    A backtest of published rounds uses only their own series, which are the same on every machine.
    """
    live = prepared.benchmark.own or prepared.spec.mode == "live"
    return prepared.benchmark.series or (on_demand if live else None)


async def keep_estimates(store: RunStore, prepared: PreparedRun, on_demand: SeriesOnDemand) -> None:
    """Store the estimates without a model, with which answers are combined wherever the run is shown."""
    run, series = prepared.spec.id, series_of_run(prepared, on_demand)
    known = await store.aside(store.rates, run)
    rows = await estimates_without_model(prepared.questions, prepared.spec.mode, prepared.past, series, known)
    await store.aside(store.keep_rates, run, rows)


def asks_models(spec: RunSpec) -> bool:
    """Return whether the trials of a run ask models. Such trials are shared between machines."""
    return forecaster_asks_models(forecaster_name(spec), spec.models)


def check_options(spec: RunSpec) -> None:
    """Check the roles and options of a run. Raises `InputError` if they are wrong on any machine."""
    # Options first, because a misspelt option may be why a model seems to be missing.
    forecaster = make_forecaster(forecaster_name(spec), forecaster_options(spec))
    if asks_models(spec):
        models_of_run(spec)
    if spec.sampling.get("tier") == "batch" and forecaster_name(spec) == "tree":
        hint = "sampling.tier=flex costs half too and takes minutes"
        raise InputError(
            "a tree makes too many requests to wait a day for each reply", column="sampling.tier", hint=hint
        )
    shown_context(forecaster, spec)


def check_run(spec: RunSpec, settings: Settings) -> None:
    """Check a run that asks models, before anything is stored. Raises `InputError` if it cannot run on this machine."""
    if not asks_models(spec):
        return
    check_options(spec)
    deep = spec.options.get("deep_model")
    ModelRouter(settings.keys).check([*models_of_run(spec).names(), *([deep] if isinstance(deep, str) else [])])
    refuse_unpriced(spec, settings.budget)
    for engine in spec.search:
        try:
            own_engine(engine) if is_own(engine) else load_with_key("search_engines", engine, settings.key(engine))
        except InputError as error:
            raise error.at(column="search") from None
    own_tools(spec.tools, backtest=spec.mode == "backtest" and spec.leakage_filter)


SLOW_WORDS = {
    "flex": "a reply may take a quarter of an hour",
    "batch": "replies come together, within a day; trials that run at the same time make one batch",
}


def money_notices(spec: RunSpec) -> tuple[str, ...]:
    """Return notices about models with unknown prices, and about what a service tier saves or could save."""
    notices = [
        f"no price is known for {name}, so the cost is unknown: --set prices.{name}=0.5/2 states it in "
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
            f"the service tier {slow} halves the price of {', '.join(models)}"
            for slow, models in cheaper.items()
            if models
        ]
        notices.append(f"a backtest can wait: {'; '.join(halved)}")
    return tuple(notices)


def has_panel(spec: RunSpec) -> bool:
    """Return whether a model reads the trials' reasons in an extra trial per question."""
    return spec.combine == "judged" and spec.trials > 1


@asynccontextmanager
async def open_answers(  # noqa: PLR0913 - the parts of a run
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
) -> AsyncGenerator[AnswerTrial]:
    """Open a function that answers the trials of a run. The trial after the others is the panel's."""
    options = make_forecaster(forecaster_name(spec), forecaster_options(spec))
    async with AsyncExitStack() as stack:
        if journal is None or not asks_models(spec):
            plain = PlainRuntime(spec=spec, past=past, series=series or NoSeries())
            plain = replace(plain, contexts=contexts_of(spec, store, plain))
            answer = plain.answers(shown_context(forecaster_of(options), spec))
        else:
            limits = replace(patience_of(spec), at_once=max(64, concurrency))
            limits = options.limits(limits) if hasattr(options, "limits") else limits
            opened = await stack.enter_async_context(
                open_runtime(spec, settings, journal, past=past, limits=limits, budget=budget)
            )
            runtime = replace(
                opened,
                contexts=contexts_of(spec, store, opened),
                trees=trees or TreeOutput(),
                evidence=EvidenceOfTrials(run=spec.id, store=store, journal=journal, trials=spec.trials),
            )
            if hasattr(options, "open"):
                forecaster, runtime = await stack.enter_async_context(options.open(runtime))
            else:
                forecaster = forecaster_of(options)
            answer = runtime.answers(shown_context(forecaster, spec))
            answer = _with_panel(answer, store, runtime) if has_panel(spec) else answer
        yield under_rules(answer, spec, settings, store)


def forecaster_of(options: Any) -> Forecaster:
    """Return the forecaster for its options."""
    return options.build() if hasattr(options, "build") else options


def _with_panel(answer_trial: AnswerTrial, store: RunStore, runtime: Runtime) -> AnswerTrial:
    """Add an extra trial per question in which a model reads the reasons of the others."""
    panel = ReasonsPanel()

    async def answer(run_trial: RunTrial, emit: EmitEvent) -> Forecast | Failure:
        if run_trial.trial < runtime.spec.trials:
            return await answer_trial(run_trial, emit)
        answers = await store.aside(store.answers_to, run_trial.key)
        forecasts = [answer for answer in answers if isinstance(answer, Forecast) and answer.trial < run_trial.trial]
        question = question_for_prompt(run_trial.question) if runtime.spec.marked else run_trial.question
        context = runtime.context(question, run_trial.trial, emit)
        try:
            return await panel.judge(question, forecasts, context)
        except CannotForecast as reason:
            return Failure(
                question_id=run_trial.question.id,
                forecaster=panel.name,
                as_of=context.as_of,
                trial=run_trial.trial,
                error=str(reason),
            )

    return answer


# Which stored run has the same questions as a spec, and is continued or extended.

NAMED = 3
"""Maximum number of questions named in a message."""


@frozen
class QuestionMatch:
    """Compares current questions with those that a run asked."""

    run: str
    spec: RunSpec
    questions: tuple[Question, ...]
    """The current questions. A question without its own time keeps the time at which it was first asked."""
    edited: tuple[str, ...] = ()
    """Ids of questions whose wording or context has changed."""
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


def match_questions(
    stored: Sequence[Question], prepared: PreparedRun, run: str, spec: RunSpec, contexts: Mapping[AskedKey, str]
) -> QuestionMatch:
    """Compare a run's questions with the current ones, and the digests of its contexts with theirs."""
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
        used = before
        if before is None:
            added.append(question.id)
        elif _edited(question, before, prepared, contexts.get(asked_key(before))):
            edited.append(question.id)
        elif undated and again is not None and question.due - before.due >= timedelta(days=again):
            used = question
        chosen.append(used or question)
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


def _edited(question: Question, before: Question, prepared: PreparedRun, digest: str | None) -> bool:
    """Whether a question has another wording than in a run, or another context than the one with that digest."""
    context = prepared.contexts.get(asked_key(question))
    if context is not None and context.digest != digest:
        return True
    undated = question.due == prepared.now
    asked = wording(_known_as(question, before), prepared.now if undated else None)
    return wording(before, before.due if undated else None) != asked


def _known_as(question: Question, before: Question) -> Question:
    """The question as stored by a run made before its deciding series was known."""
    return replace(question, series=None) if before.series is None else question


def runs_like(store: RunStore, prepared: PreparedRun) -> Iterator[QuestionMatch]:
    """Stored runs of the same spec, newest first, each compared with the current questions."""
    # Settings chosen when a run was made are not compared.
    wanted = current_names(json.loads(prepared.spec.with_digest("").bare().to_json()))
    same = [wanted]
    if wanted["combine"] == AUTO:
        same.append({**wanted, "combine": "logit-mean"})  # Earlier versions stored this for the same file.
    for run, stored_spec in store.specs():
        spec = current_names(stored_spec)
        spec_questions = spec.get("questions", {})
        questions = {name: value for name, value in spec_questions.items() if name not in ("digest", "excluded")}
        rest = {
            name: value for name, value in spec.items() if name not in ("questions", "concurrency", *DERIVED_SETTINGS)
        }
        if {**rest, "questions": questions} not in same:
            continue
        if spec_questions.get("digest", "").partition("+")[2] != prepared.spec.questions.digest.partition("+")[2]:
            continue  # Its questions were shown without their contexts.
        stored = store.questions(run)
        if not stored:
            # Runs of the first version stored ids only, so assume that their questions are unchanged.
            ids = {(id, due) for id, due, _ in store.ended(run)}
            stored = [question for question in prepared.questions if (question.id, question.due.isoformat()) in ids]
            stored = list(prepared.questions) if len(stored) == len(ids) else stored
        yield match_questions(stored, prepared, run, spec_from_json(spec), store.context_digests(run))


def find_run_of(store: RunStore, prepared: PreparedRun, *, extend: bool = False) -> PreparedRun:
    """Return the run that a spec continues: one with exactly these questions, or a new or extended one."""
    if not prepared.spec.questions.digest:
        return prepared  # Growing and typed question sets are identified by name.
    matches = sorted(runs_like(store, prepared), key=lambda match: match.spec.combine != prepared.spec.combine)
    # A run that began with these questions and was extended since counts too.
    began = [match for match in matches if match.run == prepared.spec.id and not match.edited and not match.added]
    own = next(iter([match for match in matches if match.same] or began), None)
    if own is not None:
        return _continued(prepared, own)
    nearest = max(matches, key=lambda match: (match.shared, -len(match.edited)), default=None)
    if extend:
        return _extended(prepared, matches, nearest)
    if nearest is None or not nearest.shared:
        return prepared
    return replace(prepared, notes=(*prepared.notes, _differs(nearest, len(prepared.questions))))


def _continued(prepared: PreparedRun, own: QuestionMatch) -> PreparedRun:
    spec = replace(own.spec, concurrency=prepared.spec.concurrency)
    return replace(prepared, spec=spec, questions=own.questions)


def _extended(prepared: PreparedRun, matches: Sequence[QuestionMatch], nearest: QuestionMatch | None) -> PreparedRun:
    fitting = [match for match in matches if match.shared and not match.edited and not match.missing]
    if fitting:
        largest = max(fitting, key=lambda match: match.shared)
        note = f"{len(largest.added)} questions are added to run {largest.run}"
        return replace(_continued(prepared, largest), notes=(*prepared.notes, note))
    if nearest is None or not nearest.shared:
        raise InputError(
            "no run of this spec asks any of these questions", column="--extend", hint="leave it out to start one"
        )
    if nearest.edited:
        problem = f"run {nearest.run} asks {_named(nearest.edited)} with another wording or context"
        hint = "restore them, give the new one its own id, or leave out --extend"
        raise InputError(problem, column="--extend", hint=hint)
    problem = f"run {nearest.run} also asks {_named(nearest.missing)}"
    raise InputError(
        problem, column="--extend", hint="an extension only adds questions: put back those that were removed"
    )


def _differs(nearest: QuestionMatch, total: int) -> str:
    """Return how the questions differ from those of the closest run."""
    if nearest.edited:
        return (
            f"{_named(nearest.edited)} has another wording or context than in run {nearest.run}, so this is another run"
        )
    if nearest.missing:
        return f"run {nearest.run} also asks {_named(nearest.missing)}, so this is another run"
    text = f"run {nearest.run} asks {nearest.shared} of these {total} questions"
    return f"{text}, and this is another run; extend that one to add the others"


def _named(ids: Sequence[str]) -> str:
    named = ", ".join(repr(id) for id in ids[:NAMED])
    return f"{named} and {len(ids) - NAMED} more" if len(ids) > NAMED else named
