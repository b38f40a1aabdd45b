"""The audit of a run as a study: how much of its score could be leakage?"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from foretell.data.datasets.question_set import QuestionSet
from foretell.forecasters.agent.settings import VARIANTS
from foretell.models.names import ModelName
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question
from foretell.questions.trace import ModelCalled
from foretell.report.study import StudyResult
from foretell.request import setting
from foretell.runs.combine import combine_trials, combining_by_name
from foretell.runs.question_sets import questions_of_run
from foretell.runs.runtime import models_of_run
from foretell.runs.spec import RunSpec
from foretell.runs.store import RunStore
from foretell.scoring.long_tables import outcome_rows
from foretell.studies.audit.auditor import Auditor
from foretell.studies.audit.leakage import AuditArm, estimate_leakage, leak_exposure
from foretell.studies.audit.material import AuditScope, MaterialAudit, audit_material
from foretell.studies.audit.memory import AgentNote, MemoryAudit, agent_notes, audit_memory, training_cutoff_notes
from foretell.studies.audit.passages import MaterialOrigin, QuestionKey, TrialTrace, collect_passages, trial_traces
from foretell.studies.audit.report import AuditReport, audit_result
from foretell.studies.inputs import StudyOptions, StudyProgress, StudyServices
from foretell.studies.stored_runs import StoredRun, find_stored_run


class AuditOptions(StudyOptions):
    """The run, who audits it, and the runs that turn leaks into score units."""

    run: str = setting(help="The run to audit.", argument=True, metavar="RUN")
    auditor: str | None = setting(None, "The second reader (default: the auditor of the run's spec).", metavar="MODEL")
    sample: int | None = setting(None, "Judge only N texts; larger samples contain it.", metavar="N", ge=1)
    closed_book: str | None = setting(
        None, "The same questions without tools, for the estimate in score units.", metavar="RUN"
    )
    unfenced: str | None = setting(
        None, "The same questions with the fence off (clairvoyant), likewise.", metavar="RUN"
    )
    budget: float | None = setting(None, "What is left when it is spent stays open.", metavar="DOLLARS", gt=0)
    outcomes: Path | None = setting(
        None,
        "Table of outcomes (question, target, outcome), where the questions bring none.",
        flag="-o/--outcomes",
        metavar="FILE",
    )
    same: bool = setting(False, "Allow the model that filtered the run to audit it.")


async def study(inputs: StudyServices, options: AuditOptions) -> StudyResult:
    """How much of a run's score could be leakage?

    A second model reads what the run was shown and what was withheld, and the report counts what the fence got wrong.
    It also searches the agent's reasoning for events after the cutoff that no source told it. Given a run without tools
    and one without a fence, it says how much of the score undetected leaks can be worth at most:

      foretell study audit RUN --auditor openrouter:x-ai/grok-4.1-fast --closed-book RUN2 --unfenced RUN3

    Verdicts are journalled: a text is paid for once, and the same audit again costs nothing.
    """
    with inputs.store() as store:
        run = _run_with_model(store, options.run)
        name = chosen_auditor(run.spec, options.auditor, same=options.same)
        questions, notes = _questions(store, run)
        arms = _arms(store, run, options, questions)
        settings = models_of_run(run.spec).with_model("auditor", name).setting("auditor")
        inputs.check_models([name])
        async with inputs.model("audit", name, options.budget) as models:
            origin = MaterialOrigin(journal=models.journal, engine="+".join(run.spec.search), mode=run.spec.mode)
            record = read_audit_record(store, run.id, questions.questions, origin)
            auditor = Auditor(model=models.model, name=name, journal=models.journal, settings=settings)
            material, memory = await audit_record(record, auditor, sample=options.sample, progress=models.progress)
            cost = models.cost
    # An auditor that answered nothing has found nothing: a report would look like a clean bill.
    rulings = [one.ruling for one in material.findings if one.by == "auditor"]
    if rulings and not any(ruling.answered for ruling in rulings):
        raise InputError(f"{name} gave no usable verdict on {len(rulings)} texts", hint=rulings[0].reason)
    leakage = None
    if len(arms) > 1:
        outcomes = options.outcomes or outcome_rows(questions.questions, questions.resolutions)
        leakage = estimate_leakage(arms, questions.questions, outcomes, leak_exposure(material))
    report = AuditReport(
        run=run.id,
        auditor=name,
        filter=models_of_run(run.spec).name("filter"),
        material=material,
        memory=memory,
        leakage=leakage,
        notes=(*notes, *_caveats(run.spec, name)),
    )
    return replace(audit_result(report), cost=cost)


def _run_with_model(store: RunStore, start: str) -> StoredRun:
    run = find_stored_run(store, start)
    if "agent" not in run.spec.models:
        raise InputError(f"run {run.id} asked no model: it saw nothing that could leak")
    return run


def chosen_auditor(spec: RunSpec, given: str | None, *, same: bool) -> str:
    """The model that audits a run: named, of the spec, and not the one whose decisions it judges."""
    if spec.mode == "live":
        raise InputError("a live run has no future to leak", hint="audit a backtest")
    name = given or spec.models.get("auditor")
    if name is None:
        raise InputError("no auditor is named", hint="give --auditor MODEL, another model than the run's filter")
    if bare_name(name) == bare_name(models_of_run(spec).name("filter")) and not same:
        raise InputError(
            f"{name} was the filter of this run: it would repeat its own mistakes",
            hint="choose another model for --auditor, or pass --same to do it anyway",
        )
    return name


def bare_name(model: str) -> str:
    """A model's own name, whoever serves it.

    >>> bare_name("openrouter:google/Gemini-3-Flash") == bare_name("google:gemini-3-flash")
    True
    """
    read = ModelName.read(model)
    return model if read.provider in ("local", "scripted") else read.name.rpartition("/")[2].lower()


def _questions(store: RunStore, run: StoredRun) -> tuple[QuestionSet, tuple[str, ...]]:
    """The questions of the run with their outcomes; where the set cannot be opened, only those that were stored."""
    try:
        return questions_of_run(store, run.id), ()
    except InputError as error:
        note = f"The question set cannot be opened, so that outcomes are not known: {error}"
        return QuestionSet(name=run.spec.questions.dataset, questions=tuple(store.questions(run.id))), (note,)


def _arms(
    store: RunStore, run: StoredRun, options: AuditOptions, questions: QuestionSet
) -> dict[AuditArm, Sequence[Forecast]]:
    """The forecasts of the audited run and of those it is compared with."""
    arms: dict[AuditArm, StoredRun] = {"fenced": run}
    if options.closed_book:
        arms["closed-book"] = closed = _run_with_model(store, options.closed_book)
        if VARIANTS[str(closed.spec.options.get("variant", "full"))].tools:
            hint = "run it with variant: zero-shot"
            raise InputError(f"run {closed.id} had tools", column="--closed-book", hint=hint)
    if options.unfenced:
        arms["unfenced"] = unfenced = _run_with_model(store, options.unfenced)
        if not unfenced.spec.clairvoyant:
            hint = "run it with clairvoyant: true"
            raise InputError(f"run {unfenced.id} was fenced", column="--unfenced", hint=hint)
    if len(arms) > 1 and not questions.resolutions and options.outcomes is None:
        raise InputError("how the questions came out is unknown", hint="give --outcomes, a table as for foretell score")
    return {
        arm: combine_trials(store.answers(one.id), questions.questions, combining_by_name(one.spec.aggregate))
        for arm, one in arms.items()
    }


def _caveats(spec: RunSpec, auditor: str) -> list[str]:
    models = models_of_run(spec)
    caveats: list[str] = []
    if spec.clairvoyant:
        caveats.append("This run was clairvoyant: nothing was withheld from it, and it is no forecast.")
    if bare_name(auditor) == bare_name(models.name("filter")):
        caveats.append("The auditor filtered this run: what it overlooked then it overlooks again (--same).")
    if bare_name(auditor) == bare_name(models.agent):
        caveats.append("The auditor is the agent's own model: it may take what it remembers for common knowledge.")
    return caveats


@dataclass(frozen=True, kw_only=True)
class AuditRecord:
    """A stored run as an audit needs it: its trials, answers and questions, and where its tools' material is."""

    trials: Sequence[TrialTrace]
    forecasts: Sequence[Forecast]
    scope: AuditScope
    origin: MaterialOrigin

    @property
    def models(self) -> tuple[str, ...]:
        """The models whose words the forecast rests on: those that guard or judge cannot leak into it."""
        called = [event for trace in self.trials for event in trace.events if isinstance(event, ModelCalled)]
        return tuple(dict.fromkeys(one.model for one in called if one.role not in ("filter", "auditor", "judge")))


def read_audit_record(store: RunStore, run: str, questions: Iterable[Question], origin: MaterialOrigin) -> AuditRecord:
    """Read a run from its store. Only questions that were worked on count, found in the set or not."""
    known: Mapping[QuestionKey, Question] = {(one.id, one.due.isoformat()): one for one in questions}
    trials = list(trial_traces(store.events(run), known))
    forecasts = [answer for answer in store.answers(run) if isinstance(answer, Forecast)]
    worked_on = {trace.asked: trace.question for trace in trials}
    return AuditRecord(
        trials=trials, forecasts=forecasts, scope=AuditScope(questions=worked_on, mode=origin.mode), origin=origin
    )


async def audit_record(
    record: AuditRecord, auditor: Auditor, *, sample: int | None = None, progress: StudyProgress | None = None
) -> tuple[MaterialAudit, MemoryAudit]:
    """What the fence got wrong, and what the models remembered."""
    seen = await collect_passages(record.trials, record.origin)
    material = await audit_material(seen, record.scope, auditor, sample=sample, progress=progress)
    by_trial = {(one.question_id, one.as_of.at, one.trial): one for one in record.forecasts}
    notes: list[AgentNote] = []
    missing = 0
    for trace in record.trials:
        forecast = by_trial.get((trace.key.question, record.scope.as_of(trace.asked).at, trace.key.trial))
        found, lost = agent_notes(trace, forecast, record.origin.journal)
        notes += found
        missing += lost
    memory = await audit_memory(notes, seen.passages, record.scope, auditor, progress)
    cutoffs = training_cutoff_notes(record.models, record.scope)
    return material, replace(memory, replies_missing=missing, cutoffs=cutoffs)
