"""How much of a run could be leakage: a second model reads what the run was shown and refused."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from foretell.operations.requests import AuditRequest
from foretell.operations.result import Result
from foretell.questions.errors import InputError
from foretell.runs import event_loop

if TYPE_CHECKING:
    from rich.console import Console

    from foretell.data.datasets.question_set import QuestionSet
    from foretell.questions.forecast import Forecast
    from foretell.runs.backtest import BacktestProgress
    from foretell.runs.settings import Settings
    from foretell.runs.spec import RunSpec
    from foretell.runs.store import RunStore
    from foretell.studies.audit.auditor import AuditRuling
    from foretell.studies.audit.leakage import AuditArm
    from foretell.studies.audit.report import AuditReport


@dataclass(frozen=True, kw_only=True)
class AuditResult(Result):
    """The report of an audit."""

    report: "AuditReport"

    def to_dict(self) -> Any:
        """The report's own data."""
        return self.report.to_dict()

    def print(self, console: "Console") -> None:
        """Tables of what the fence got right and wrong, and what it may be worth."""
        from foretell.studies.audit.report import print_audit

        print_audit(self.report, console)


def audit(request: AuditRequest, progress: "BacktestProgress | None" = None) -> AuditResult:
    """Let a second model judge what a run was shown and refused."""
    from foretell.runs.settings import load_settings
    from foretell.runs.store import RunStore

    settings = load_settings()
    with closing(RunStore(settings.store)) as store:
        return AuditResult(report=event_loop.run(_audit_report(store, settings, request, progress)))


async def _audit_report(
    store: "RunStore", settings: "Settings", request: AuditRequest, progress: "BacktestProgress | None"
) -> "AuditReport":
    from foretell.models.budget import Budget
    from foretell.models.journal import Journal
    from foretell.models.router import ModelRouter
    from foretell.runs.runtime import models_of_run
    from foretell.scoring.long_tables import outcome_rows
    from foretell.studies.audit.auditor import Auditor
    from foretell.studies.audit.leakage import estimate_leakage, leak_exposure
    from foretell.studies.audit.passages import MaterialOrigin
    from foretell.studies.audit.report import AuditReport, audit_record, read_audit_record

    run, spec = _spec_of(store, request.run)
    name = chosen_auditor(spec, request.auditor, same=request.same)
    questions, notes = _questions(spec)
    arms = _arms(store, (run, spec), request, questions)
    outcomes = request.outcomes or outcome_rows(questions.questions, questions.resolutions)
    budget = Budget("audit", dollars=request.budget)
    sampling = models_of_run(spec).with_model("auditor", name).setting("auditor")
    with closing(Journal(settings.journal)) as journal:
        origin = MaterialOrigin(journal=journal, engine="+".join(spec.search), mode=spec.mode)
        record = read_audit_record(store, run, questions.questions, origin)
        async with ModelRouter(settings.keys, journal=journal, addresses=settings.addresses) as router:
            router.check([name])
            auditor = Auditor(model=router.within(budget), name=name, journal=journal, settings=sampling)
            more = {} if progress is None else {"progress": progress}
            material, memory = await audit_record(record, auditor, sample=request.sample, **more)
    _refuse_silence(name, [one.ruling for one in material.findings if one.by == "auditor"])
    return AuditReport(
        run=run,
        auditor=name,
        filter=models_of_run(spec).name("filter"),
        material=material,
        memory=memory,
        leakage=estimate_leakage(arms, questions.questions, outcomes, leak_exposure(material))
        if len(arms) > 1
        else None,
        spend=budget.spent,
        notes=(*notes, *_caveats(spec, name)),
    )


def _refuse_silence(name: str, rulings: Sequence["AuditRuling"]) -> None:
    """An auditor that answered nothing has found nothing: a report would look like a clean bill."""
    if rulings and not any(ruling.answered for ruling in rulings):
        raise InputError(f"{name} gave no usable verdict on {len(rulings)} texts", hint=rulings[0].reason)


def _spec_of(store: "RunStore", start: str) -> tuple[str, "RunSpec"]:
    from foretell.runs.spec import spec_from_json
    from foretell.runs.store import find_run

    run = find_run(store, start)
    spec = spec_from_json(next(row.spec for row in store.runs() if row.id == run))
    if "agent" not in spec.models:
        raise InputError(f"run {run} asked no model: it saw nothing that could leak")
    return run, spec


def chosen_auditor(spec: "RunSpec", given: str | None, *, same: bool) -> str:
    """The model that audits a run: named, of the spec, and not the one whose decisions it judges."""
    from foretell.runs.runtime import models_of_run

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
    from foretell.models.names import ModelName

    read = ModelName.read(model)
    return model if read.provider in ("local", "scripted") else read.name.rpartition("/")[2].lower()


def _questions(spec: "RunSpec") -> tuple["QuestionSet", tuple[str, ...]]:
    """The questions of the run with their outcomes; without them the audit knows only ids and dates."""
    from foretell.data.datasets.question_set import QuestionSet
    from foretell.runs.question_sets import open_benchmark

    try:
        found = open_benchmark(spec.questions.dataset, rounds=spec.questions.rounds).questions
    except InputError as error:
        note = f"The questions cannot be opened, so texts were judged without them: {error}"
        return QuestionSet(name=spec.questions.dataset), (note,)
    return found.only(found.questions[: spec.questions.limit]), ()


def _arms(
    store: "RunStore", run: tuple[str, "RunSpec"], request: AuditRequest, questions: "QuestionSet"
) -> dict["AuditArm", Sequence["Forecast"]]:
    from foretell.forecasters.agent.settings import VARIANTS
    from foretell.runs.combine import combine_trials, combining_by_name

    found: dict[AuditArm, tuple[str, RunSpec]] = {"fenced": run}
    if request.closed_book:
        found["closed-book"] = book = _spec_of(store, request.closed_book)
        if VARIANTS[str(book[1].options.get("variant", "full"))].tools:
            raise InputError(f"run {book[0]} had tools", column="--closed-book", hint="run it with variant: zero-shot")
    if request.unfenced:
        found["unfenced"] = open_ = _spec_of(store, request.unfenced)
        if not open_[1].clairvoyant:
            raise InputError(f"run {open_[0]} was fenced", column="--unfenced", hint="run it with clairvoyant: true")
    if len(found) > 1 and not questions.resolutions and request.outcomes is None:
        raise InputError("how the questions came out is unknown", hint="give --outcomes, a table as for foretell score")
    return {
        arm: combine_trials(store.answers(id), questions.questions, combining_by_name(spec.aggregate))
        for arm, (id, spec) in found.items()
    }


def _caveats(spec: "RunSpec", auditor: str) -> list[str]:
    from foretell.runs.runtime import models_of_run

    models = models_of_run(spec)
    caveats: list[str] = []
    if spec.clairvoyant:
        caveats.append("This run was clairvoyant: nothing was withheld from it, and it is no forecast.")
    if bare_name(auditor) == bare_name(models.name("filter")):
        caveats.append("The auditor filtered this run: what it overlooked then it overlooks again (--same).")
    if bare_name(auditor) == bare_name(models.agent):
        caveats.append("The auditor is the agent's own model: it may take what it remembers for common knowledge.")
    return caveats
