"""Studies that ask models: behind the same journal, limits and budget as runs, so that the same study again is free."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from foretell.data.datasets.question_set import OutcomeKey
from foretell.data.datasets.rows import csv_rows
from foretell.forecasters.agent.answer_format import thresholds_of
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.forecaster import Context, make_forecaster
from foretell.forecasters.prompt.prediction_context import from_articles
from foretell.metrics.bootstrap import Resampling
from foretell.models.budget import Budget, BudgetWaitingModel, PendingCalls
from foretell.models.journal import Journal
from foretell.models.model import Model
from foretell.models.names import ModelName
from foretell.models.router import api_key_for
from foretell.questions.errors import InputError
from foretell.questions.question import Question
from foretell.report.study import StudyProgress, StudyResult
from foretell.runs.executor import RunProgress
from foretell.runs.question_sets import open_benchmark
from foretell.runs.runner import WatchProgress, prepare_run
from foretell.runs.runtime import Runtime, forecaster_options, open_runtime
from foretell.runs.settings import Settings
from foretell.runs.spec import BudgetSpec, QuestionsSpec, RunSpec, read_spec
from foretell.studies.recall import PastEvent

if TYPE_CHECKING:
    from foretell.studies.consistency import OutcomeStructure
    from foretell.studies.reasoning import ReasoningCase
    from foretell.studies.rubric import Rating


T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class StudyBudget:
    """What a study may spend, and who is told how it goes."""

    settings: Settings
    watch: WatchProgress
    calls: PendingCalls = field(default_factory=PendingCalls)

    @classmethod
    def of(cls, settings: Settings, dollars: float | None, watch: WatchProgress) -> "StudyBudget":
        """A budget around everything the study asks; None is without an end."""
        if dollars is not None:
            settings = replace(settings, purse=Budget("study", dollars=dollars, within=settings.purse))
        return cls(settings=settings, watch=watch)

    def model(self, bench: Runtime) -> Model:
        """All models of a bench, within the budget."""
        return self.patient(bench.exchange.within(bench.budget))

    def context(self, bench: Runtime, question: Question) -> Context:
        """What a trial on a question leans on."""
        made = bench.context(question, 0)
        # A question with a budget of its own must not wait for others.
        return made if bench.spec.budget.question is not None else made.with_model(self.patient)

    def patient(self, model: Model) -> Model:
        """Cases are asked once each: a call waits for others before the budget is called spent."""
        return BudgetWaitingModel(model, self.calls)

    def check(self, models: Sequence[str]) -> None:
        """Refuse a missing key before the first of several models has been paid."""
        for name in models:
            api_key_for(ModelName.read(name), self.settings.keys)


@asynccontextmanager
async def open_study_runtime(spec: RunSpec, purse: StudyBudget, past: Past | None = None) -> AsyncGenerator[Runtime]:
    """Models and tools for a study, as for a run."""
    with closing(Journal(purse.settings.journal)) as journal:
        async with open_runtime(spec, purse.settings, journal, past=lambda: past or Past()) as bench:
            yield bench


def with_progress(bench: Runtime, watch: WatchProgress) -> StudyProgress:
    """Progress of cases, told with what was spent so far."""

    def told(done: int, total: int) -> None:
        spent = bench.budget.spent
        watch(RunProgress(total=total, done=done, dollars=spent.dollars, calls=spent.calls))

    return told


def one_model(name: str, model: str) -> RunSpec:
    """The spec of a study that asks one model and has no run."""
    return RunSpec(questions=QuestionsSpec(dataset=f"study {name}"), models={"agent": model})


def with_spending(study: StudyResult, model: str, bench: Runtime) -> StudyResult:
    """The study with who was asked and what that cost."""
    spent = bench.budget.spent
    told = {"model": model, "dollars": round(spent.dollars, 6), "calls": spent.calls}
    unpriced = f"{spent.unpriced} calls have no known price: dollars leave them out"
    notes = (*study.notes, unpriced) if spent.unpriced else study.notes
    return replace(study, settings={**told, **study.settings}, notes=notes)


def refuse_if_all_failed(model: str, problems: Sequence[str], answered: int) -> None:
    """A model that answered nothing has found nothing: a table of dashes would look like a result."""
    if problems and not answered:
        raise InputError(f"{model} gave no usable answer to {len(problems)} cases", hint=problems[0][:300])


def agent_spec(file: Path | None, options: Mapping[str, Any]) -> RunSpec:
    """The run that a study of the agent looks at: that of a file, changed by options, or one made of options."""
    model, dataset = options["model"], options["questions"]
    if file is None and not (model and dataset):
        raise InputError("there is nobody to ask", hint="give the SPEC of a run, or --questions and --model")
    spec = read_spec(file) if file is not None else one_model("agent", model)
    if spec.forecaster != "agent":
        raise InputError(f"this is a study of the agent, not of {spec.forecaster}", path=file, column="forecaster")
    if dataset:
        spec = replace(spec, questions=QuestionsSpec(dataset=dataset, rounds=tuple(options["rounds"])))
    if model:
        spec = replace(spec, models={**spec.models, "agent": model})
    if options["engines"]:
        spec = replace(spec, search=tuple(options["engines"]))
    # The study has a budget of its own: that of the run is for the run.
    return replace(spec, budget=BudgetSpec(question=spec.budget.question))


def spread(questions: Sequence[T], count: int) -> list[T]:
    """So many of them at equal distances, so that the first ones of one source do not stand for all.

    >>> spread("abcdefgh", 3)
    ['a', 'c', 'f']
    """
    if len(questions) <= count:
        return list(questions)
    return [questions[i * len(questions) // count] for i in range(count)]


async def intervention(spec: RunSpec, purse: StudyBudget, *, limit: int, step: int, how: Resampling) -> StudyResult:
    """Run questions untouched and pushed; what they share is paid once."""
    from foretell.studies.habits import failure_counts
    from foretell.studies.intervention import intervention_study, try_pushes

    prepared = prepare_run(spec)
    agent = make_forecaster("agent", forecaster_options(spec)).build()
    asked = spread([one for one in prepared.questions if thresholds_of(one) is None], limit)
    if not asked:
        raise InputError("none of the questions asks for probabilities", column="questions")
    async with open_study_runtime(spec, purse, prepared.benchmark.past) as bench:
        tried = await try_pushes(
            agent, asked, lambda one: purse.context(bench, one), step=step, progress=with_progress(bench, purse.watch)
        )
        lost = failure_counts(trace for trace, _ in tried)
        if lost.total() == len(tried):
            refuse_if_all_failed(bench.models.agent, list(lost), 0)
        study = intervention_study(tried, step=step, resampling=how)
        return with_spending(study, bench.models.agent, bench)


async def smoke(spec: RunSpec, purse: StudyBudget, *, limit: int, whole: bool, how: Resampling) -> StudyResult:
    """One trial on a few questions; with `whole`, also what all of the run would cost."""
    from foretell.studies.habits import TracedTrial
    from foretell.studies.smoke import run_exam_trials, smoke_study

    prepared = prepare_run(spec)
    agent = make_forecaster("agent", forecaster_options(spec)).build()
    asked = spread(prepared.questions, limit)
    async with open_study_runtime(spec, purse, prepared.benchmark.past) as bench:
        traces = await run_exam_trials(
            agent, asked, lambda one: purse.context(bench, one), with_progress(bench, purse.watch)
        )
        seen = [TracedTrial(question=one.id, trace=trace) for one, trace in zip(asked, traces, strict=True)]
        planned = len(prepared.questions) * spec.trials if whole else None
        study = smoke_study(bench.models.agent, seen, planned=planned, resampling=how)
        return with_spending(study, bench.models.agent, bench)


async def judge_reasoning(
    cases: "Sequence[ReasoningCase]",
    model: str,
    purse: StudyBudget,
    *,
    ratings: "Sequence[Rating]" = (),
    how: Resampling,
) -> StudyResult:
    """One model marks every case; people's ratings of the same cases are held against it."""
    from foretell.studies.reasoning import ReasoningJudge, judge_study

    async with open_study_runtime(one_model("judge", model), purse) as bench:
        judge = ReasoningJudge(model=purse.model(bench), name=model)
        marked = await judge.judge(cases, with_progress(bench, purse.watch))
        refuse_if_all_failed(
            model, [one.problem for one in marked if one.problem], sum(bool(one.scores) for one in marked)
        )
        return with_spending(judge_study(marked, ratings, how), model, bench)


async def measure_recall(
    events: "Sequence[PastEvent]", models: Sequence[str], purse: StudyBudget, *, how: Resampling
) -> StudyResult:
    """Every event put to every model in three ways."""
    from foretell.studies.recall import RecallResult, recall_events, recall_study

    purse.check(models)
    by_model: dict[str, list[RecallResult]] = {}
    dollars, calls = 0.0, 0
    for model in models:
        async with open_study_runtime(one_model("recall", model), purse) as bench:
            progress = with_progress(bench, purse.watch)
            found = await recall_events(events, lambda one, bench=bench: purse.context(bench, one), progress=progress)
            dollars, calls = dollars + bench.budget.spent.dollars, calls + bench.budget.spent.calls
        problems = [problem for one in found for problem in one.problems]
        refuse_if_all_failed(model, problems, sum(one.memory is not None or one.without is not None for one in found))
        by_model[model] = found
    study = recall_study(by_model, how)
    told = {"models": ", ".join(models), "events": len(events), "dollars": round(dollars, 6), "calls": calls}
    return replace(study, settings={**told, **study.settings})


async def judge_structures(
    questions: Sequence[Question], model: str, purse: StudyBudget
) -> "tuple[dict[str, OutcomeStructure], dict[str, Any]]":
    """What a model finds about the outcomes of questions, by id, and what that cost."""
    from foretell.studies.consistency import StructureJudge

    async with open_study_runtime(one_model("consistency", model), purse) as bench:
        judge = StructureJudge(model=purse.model(bench), name=model)
        found = await judge.structures(questions, with_progress(bench, purse.watch))
        spent = bench.budget.spent
    told = {"judge": model, "dollars": round(spent.dollars, 6), "calls": spent.calls}
    return {one.id: structure for one, structure in zip(questions, found, strict=True)}, told


# Past events for studies of memory: questions whose outcomes are known, with what was published about them.


def past_events(
    dataset: str, *, rounds: Sequence[str] = (), outcomes: Path | None = None, limit: int | None = None
) -> list[PastEvent]:
    """Events with a known outcome, the last asking of each; `outcomes` tells those that the set does not."""
    found = open_benchmark(dataset, rounds=rounds).questions
    told = read_outcomes(outcomes) if outcomes is not None else {}
    known: dict[str, tuple[Question, dict[str, int]]] = {}
    resolved = found.outcomes()
    for question in found.questions:
        if truth := _truth(question, resolved) | _articles_about(question, told):
            known[question.id] = question, truth
    if not known:
        hint = "give --outcomes, a table of question, target and outcome"
        raise InputError("none of the questions has a known outcome", column="--questions", hint=hint)
    return [
        PastEvent(context=from_articles(question, found.contexts.get((question.id, question.due), ())), truth=truth)
        for question, truth in spread(list(known.values()), limit or len(known))
    ]


def read_outcomes(path: Path) -> dict[tuple[str, str], int]:
    """How targets came out, 0 or 1, from a CSV file with question, outcome and, where there are several, target."""
    found: dict[tuple[str, str], int] = {}
    for row in csv_rows(path):
        text = row.text("outcome")
        if text and text not in ("0", "1", "0.0", "1.0"):
            raise row.problem("outcome", f"{text[:40]!r} is neither 0 nor 1")
        if text:
            found[row.need("question"), row.text("target")] = int(float(text))
    return found


def _truth(question: Question, outcomes: Mapping[OutcomeKey, int]) -> dict[str, int]:
    """As the set has it: for each asking, or once for all."""
    truth: dict[str, int] = {}
    for target in question.targets:
        for due in (None, question.due):
            if (key := (question.id, due, target.id)) in outcomes:
                truth[target.id] = outcomes[key]
    return truth


def _articles_about(question: Question, told: Mapping[tuple[str, str], int]) -> dict[str, int]:
    """As a table has it; a question with one target needs none named."""
    named = {target.id: told[question.id, target.id] for target in question.targets if (question.id, target.id) in told}
    if not named and len(question.targets) == 1 and (question.id, "") in told:
        return {question.targets[0].id: told[question.id, ""]}
    return named
