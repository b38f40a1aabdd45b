"""Studies that ask models: behind the same journal, limits and budget as runs, so that the same study again is free."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from foretell.app.on_context import own_options
from foretell.app.running import AGENT, Prepared, Watch, build_agent, prepare
from foretell.app.settings import Settings
from foretell.app.workbench import Workbench, workbench
from foretell.arena.executor import Progress as RunProgress
from foretell.arena.spec import BudgetSpec, QuestionsSpec, RunSpec, read_spec
from foretell.arena.study import Progress, Study
from foretell.evaluate.bootstrap import Resampling
from foretell.forecasters.agent.context import AgentContext
from foretell.forecasters.agent.numeric import thresholds_of
from foretell.forecasters.priors import Rates
from foretell.llm.cost import Budget
from foretell.llm.journal import Journal
from foretell.llm.model import Model
from foretell.llm.names import ModelName
from foretell.llm.opening import key_for
from foretell.llm.patience import CallsUnderWay, Patient
from foretell.questions.problems import InputError
from foretell.questions.question import Question

if TYPE_CHECKING:
    from foretell.arena.studies.judge import Case
    from foretell.arena.studies.ratings import Rating
    from foretell.arena.studies.recall import Past
    from foretell.arena.studies.structure import Structure

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Purse:
    """What a study may spend, and who is told how it goes."""

    settings: Settings
    watch: Watch
    calls: CallsUnderWay = field(default_factory=CallsUnderWay)

    @classmethod
    def of(cls, settings: Settings, dollars: float | None, watch: Watch) -> "Purse":
        """A budget around everything the study asks; None is without an end."""
        if dollars is not None:
            settings = replace(settings, purse=Budget("study", dollars=dollars, within=settings.purse))
        return cls(settings=settings, watch=watch)

    def model(self, bench: Workbench) -> Model:
        """All models of a bench, within the budget."""
        return self.patient(bench.exchange.within(bench.budget))

    def context(self, bench: Workbench, question: Question) -> AgentContext:
        """What a trial on a question leans on."""
        made = bench.context(question, 0)
        # A question with a budget of its own must not wait for others.
        return made if bench.spec.budget.question is not None else replace(made, model=self.patient(made.model))

    def patient(self, model: Model) -> Model:
        """Cases are asked once each: a call waits for others before the budget is called spent."""
        return Patient(model, self.calls)

    def check(self, models: Sequence[str]) -> None:
        """Refuse a missing key before the first of several models has been paid."""
        for name in models:
            key_for(ModelName.read(name), self.settings.keys)


@asynccontextmanager
async def study_bench(spec: RunSpec, purse: Purse, rates: Rates | None = None) -> AsyncGenerator[Workbench]:
    """Models and tools for a study, as for a run."""
    with closing(Journal(purse.settings.journal)) as journal:
        async with workbench(spec, purse.settings, journal, rates=rates) as bench:
            yield bench


def telling(bench: Workbench, watch: Watch) -> Progress:
    """Progress of cases, told with what was spent so far."""

    def told(done: int, total: int) -> None:
        spent = bench.budget.spent
        watch(RunProgress(total=total, done=done, dollars=spent.dollars, calls=spent.calls))

    return told


def one_model(name: str, model: str) -> RunSpec:
    """The spec of a study that asks one model and has no run."""
    return RunSpec(questions=QuestionsSpec(dataset=f"study {name}"), models={"agent": model})


def with_spending(study: Study, model: str, bench: Workbench) -> Study:
    """The study with who was asked and what that cost."""
    spent = bench.budget.spent
    told = {"model": model, "dollars": round(spent.dollars, 6), "calls": spent.calls}
    unpriced = f"{spent.unpriced} calls have no known price: dollars leave them out"
    notes = (*study.notes, unpriced) if spent.unpriced else study.notes
    return replace(study, settings={**told, **study.settings}, notes=notes)


def refuse_silence(model: str, problems: Sequence[str], answered: int) -> None:
    """A model that answered nothing has found nothing: a table of dashes would look like a result."""
    if problems and not answered:
        raise InputError(f"{model} gave no usable answer to {len(problems)} cases", hint=problems[0][:300])


def agent_spec(file: Path | None, options: Mapping[str, Any]) -> RunSpec:
    """The run that a study of the agent looks at: that of a file, changed by options, or one made of options."""
    model, dataset = options["model"], options["questions"]
    if file is None and not (model and dataset):
        raise InputError("there is nobody to ask", hint="give the SPEC of a run, or --questions and --model")
    spec = read_spec(file) if file is not None else one_model("agent", model)
    if spec.forecaster != AGENT:
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


async def intervention(spec: RunSpec, purse: Purse, *, limit: int, step: int, how: Resampling) -> Study:
    """Run questions untouched and pushed; what they share is paid once."""
    from foretell.arena.studies.intervention import try_pushes
    from foretell.arena.studies.intervention_report import intervention_study
    from foretell.arena.studies.trajectory import errors

    prepared = prepare(spec)
    agent = build_agent(own_options(spec.options))
    asked = spread([one for one in prepared.questions if thresholds_of(one) is None], limit)
    if not asked:
        raise InputError("none of the questions asks for probabilities", column="questions")
    async with study_bench(spec, purse, _rates(prepared)) as bench:
        tried = await try_pushes(
            agent, asked, lambda one: purse.context(bench, one), step=step, progress=telling(bench, purse.watch)
        )
        lost = errors(trace for trace, _ in tried)
        if lost.total() == len(tried):
            refuse_silence(bench.models.agent, list(lost), 0)
        study = intervention_study(tried, step=step, resampling=how)
        return with_spending(study, bench.models.agent, bench)


async def smoke(spec: RunSpec, purse: Purse, *, limit: int, whole: bool, how: Resampling) -> Study:
    """One trial on a few questions; with `whole`, also what all of the run would cost."""
    from foretell.arena.studies.habits_report import Traced
    from foretell.arena.studies.smoke import trials
    from foretell.arena.studies.smoke_report import smoke_study

    prepared = prepare(spec)
    agent = build_agent(own_options(spec.options))
    asked = spread(prepared.questions, limit)
    async with study_bench(spec, purse, _rates(prepared)) as bench:
        traces = await trials(agent, asked, lambda one: purse.context(bench, one), telling(bench, purse.watch))
        seen = [Traced(question=one.id, trace=trace) for one, trace in zip(asked, traces, strict=True)]
        planned = len(prepared.questions) * spec.trials if whole else None
        study = smoke_study(bench.models.agent, seen, planned=planned, resampling=how)
        return with_spending(study, bench.models.agent, bench)


def _rates(prepared: Prepared) -> Rates:
    return prepared.benchmark.resources["rates"]()


async def judged(
    cases: "Sequence[Case]", model: str, purse: Purse, *, ratings: "Sequence[Rating]" = (), how: Resampling
) -> Study:
    """One model marks every case; people's ratings of the same cases are held against it."""
    from foretell.arena.studies.judge import ReasoningJudge
    from foretell.arena.studies.judge_report import judge_study

    async with study_bench(one_model("judge", model), purse) as bench:
        judge = ReasoningJudge(model=purse.model(bench), name=model)
        marked = await judge.judge(cases, telling(bench, purse.watch))
        refuse_silence(model, [one.problem for one in marked if one.problem], sum(bool(one.scores) for one in marked))
        return with_spending(judge_study(marked, ratings, how), model, bench)


async def recalled(events: "Sequence[Past]", models: Sequence[str], purse: Purse, *, how: Resampling) -> Study:
    """Every event put to every model in three ways."""
    from foretell.arena.studies.recall import Remembered, recall_events
    from foretell.arena.studies.recall_report import recall_study

    purse.check(models)
    by_model: dict[str, list[Remembered]] = {}
    dollars, calls = 0.0, 0
    for model in models:
        async with study_bench(one_model("recall", model), purse) as bench:
            progress = telling(bench, purse.watch)
            found = await recall_events(events, lambda one, bench=bench: purse.context(bench, one), progress=progress)
            dollars, calls = dollars + bench.budget.spent.dollars, calls + bench.budget.spent.calls
        problems = [problem for one in found for problem in one.problems]
        refuse_silence(model, problems, sum(one.memory is not None or one.without is not None for one in found))
        by_model[model] = found
    study = recall_study(by_model, how)
    told = {"models": ", ".join(models), "events": len(events), "dollars": round(dollars, 6), "calls": calls}
    return replace(study, settings={**told, **study.settings})


async def judged_structures(
    questions: Sequence[Question], model: str, purse: Purse
) -> "tuple[dict[str, Structure], dict[str, Any]]":
    """What a model finds about the outcomes of questions, by id, and what that cost."""
    from foretell.arena.studies.structure_judge import StructureJudge

    async with study_bench(one_model("consistency", model), purse) as bench:
        judge = StructureJudge(model=purse.model(bench), name=model)
        found = await judge.structures(questions, telling(bench, purse.watch))
        spent = bench.budget.spent
    told = {"judge": model, "dollars": round(spent.dollars, 6), "calls": spent.calls}
    return {one.id: structure for one, structure in zip(questions, found, strict=True)}, told
