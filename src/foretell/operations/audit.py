"""Audit a run for leakage, or a model as the leakage filter: what `foretell audit` and `foretell.audit(...)` call."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

from foretell.data.datasets.question_set import QuestionSet
from foretell.forecasters.agent.settings import VARIANTS
from foretell.forecasters.prompt.rendering import BOTH
from foretell.models.names import ModelName
from foretell.operations.requests.audit import AuditRequest
from foretell.operations.studies import MachineServices, contexts_of_run
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.report.study_result import StudyResult
from foretell.runs.combine import combine_trials, combining_by_name
from foretell.runs.contexts import named_view
from foretell.runs.question_sets import questions_of_run
from foretell.runs.runner import WatchProgress
from foretell.runs.runtime import models_of_run
from foretell.runs.settings import Settings, load_settings
from foretell.runs.spec import RunSpec
from foretell.runs.store import RunStore
from foretell.scoring.long_tables import outcome_rows
from foretell.studies.audit.auditor import Auditor
from foretell.studies.audit.leakage import AuditArm, estimate_leakage, leak_exposure
from foretell.studies.audit.leaks import RULES, audit_filters
from foretell.studies.audit.passages import MaterialOrigin
from foretell.studies.audit.report import AuditReport, audit_record, audit_result, read_audit_record
from foretell.studies.stored_runs import StoredRun, find_stored_run


async def audit(
    request: AuditRequest, settings: Settings | None = None, *, watch: WatchProgress = lambda progress: None
) -> StudyResult:
    """Return the report of the audit of a run, or of models as the leakage filter."""
    services = MachineServices(settings=settings or load_settings(), watch=watch)
    if request.run is None:
        services.check_models([name for name in request.filter if name != RULES])
        return await audit_filters(
            lambda name: services.model("audit", name, request.budget), request.filter, request.sample
        )
    return await _audit_run(request, request.run, services)


async def _audit_run(request: AuditRequest, start: str, services: MachineServices) -> StudyResult:
    with closing(RunStore(services.settings.store)) as store:
        run = _run_with_model(store, start)
        name = chosen_auditor(run.spec, request.auditor, same=request.allow_same_model)
        questions, notes = _questions(store, run)
        arms = _arms(store, run, request, questions)
        settings = models_of_run(run.spec).with_model("auditor", name).setting("auditor")
        services.check_models([name])
        async with services.model("audit", name, request.budget) as models:
            origin = MaterialOrigin(journal=models.journal, engine="+".join(run.spec.search), mode=run.spec.mode)
            find, view = contexts_of_run(store, run), named_view(run.spec) or BOTH
            record = read_audit_record(store, run.id, questions.questions, origin, find, view)
            auditor = Auditor(model=models.model, name=name, journal=models.journal, settings=settings)
            material, memory = await audit_record(record, auditor, sample=request.sample, progress=models.progress)
            cost = models.cost
    # Without any verdict, a report would look as if there were no leak.
    rulings = [finding.ruling for finding in material.findings if finding.by == "auditor"]
    if rulings and not any(ruling.answered for ruling in rulings):
        raise InputError(f"{name} gave no usable verdict on {len(rulings)} texts", hint=rulings[0].reason)
    leakage = None
    if len(arms) > 1:
        outcomes = request.outcomes or outcome_rows(questions.questions, questions.resolutions)
        leakage = estimate_leakage(arms, questions.questions, outcomes, leak_exposure(material), request.bootstrap)
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
        raise InputError(f"run {run.id} used no model, so nothing could leak")
    return run


def chosen_auditor(spec: RunSpec, requested: str | None, *, same: bool) -> str:
    """Return the model that audits a run; the one that filtered the run is refused unless `same` allows it."""
    if spec.mode == "live":
        raise InputError("a live run has no future to leak", hint="audit a backtest")
    name = requested or spec.models.get("auditor")
    if name is None:
        raise InputError("no auditor is named", hint="give --auditor MODEL, another model than the run's filter")
    if bare_name(name) == bare_name(models_of_run(spec).name("filter")) and not same:
        raise InputError(
            f"{name} was the filter of this run: it would repeat its own mistakes",
            hint="choose another model for --auditor, or pass --allow-same-model to do it anyway",
        )
    return name


def bare_name(model: str) -> str:
    """Return a model's name without its provider.

    >>> bare_name("openrouter:google/Gemini-3-Flash") == bare_name("google:gemini-3-flash")
    True
    """
    read = ModelName.read(model)
    return model if read.provider in ("local", "scripted") else read.name.rpartition("/")[2].lower()


def _questions(store: RunStore, run: StoredRun) -> tuple[QuestionSet, tuple[str, ...]]:
    """Return the questions of the run with their outcomes; without them if the question set cannot be opened."""
    try:
        return questions_of_run(store, run.id), ()
    except InputError as error:
        note = f"The question set cannot be opened, so that outcomes are not known: {error}"
        return QuestionSet(name=run.spec.questions.dataset, questions=tuple(store.questions(run.id))), (note,)


def _arms(
    store: RunStore, run: StoredRun, request: AuditRequest, questions: QuestionSet
) -> dict[AuditArm, Sequence[Forecast]]:
    """Return the forecasts of the audited run and of those it is compared with."""
    arms: dict[AuditArm, StoredRun] = {"this run": run}
    if request.no_tools:
        arms["no tools"] = without = _run_with_model(store, request.no_tools)
        if VARIANTS[str(without.spec.options.get("variant", "full"))].tools:
            hint = "run it with variant: zero-shot"
            raise InputError(f"run {without.id} had tools", column="--no-tools", hint=hint)
    if request.no_filter:
        arms["no filter"] = unfiltered = _run_with_model(store, request.no_filter)
        if unfiltered.spec.leakage_filter:
            hint = "run it with leakage_filter: false"
            raise InputError(f"run {unfiltered.id} had the leakage filter", column="--no-filter", hint=hint)
    if len(arms) > 1 and not questions.resolutions and request.outcomes is None:
        raise InputError(
            "the outcomes of the questions are unknown", hint="give --outcomes, a table as for foretell score"
        )
    return {
        arm: combine_trials(store.answers(arm_run.id), questions.questions, combining_by_name(arm_run.spec.combine))
        for arm, arm_run in arms.items()
    }


def _caveats(spec: RunSpec, auditor: str) -> list[str]:
    models = models_of_run(spec)
    caveats: list[str] = []
    if not spec.leakage_filter:
        caveats.append(
            "This run had no leakage filter: nothing was withheld, so its results are an upper bound and not forecasts."
        )
    if bare_name(auditor) == bare_name(models.name("filter")):
        caveats.append("The auditor was also the filter of this run, so it may overlook the same leaks again.")
    if bare_name(auditor) == bare_name(models.agent):
        caveats.append("The auditor is the agent's own model: it may mistake what it remembers for common knowledge.")
    return caveats
