"""foretell audit: how much of a run could be leakage."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foretell.cli.options import FILE_PATH
from foretell.runs import event_loop

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from foretell.data.datasets.question_set import QuestionSet
    from foretell.questions.forecast import Forecast
    from foretell.runs.settings import Settings
    from foretell.runs.spec import RunSpec
    from foretell.runs.store import RunStore
    from foretell.studies.audit.auditor import AuditRuling
    from foretell.studies.audit.leakage import AuditArm
    from foretell.studies.audit.report import AuditReport


@click.command()
@click.argument("run")
@click.option("--auditor", metavar="MODEL", help="The second reader (default: the auditor of the run's spec).")
@click.option("--sample", type=click.IntRange(1), metavar="N", help="Judge only N texts; larger samples contain it.")
@click.option("--closed-book", metavar="RUN", help="The same questions without tools, for the estimate in score units.")
@click.option("--unfenced", metavar="RUN", help="The same questions with the fence off (clairvoyant), likewise.")
@click.option(
    "--budget",
    type=click.FloatRange(0, min_open=True),
    metavar="DOLLARS",
    help="What is left when it is spent stays open.",
)
@click.option("--outcomes", "-o", type=FILE_PATH, help="question, target, outcome: where the questions bring none.")
@click.option("--same", is_flag=True, help="Allow the model that filtered the run to audit it.")
@click.option(
    "--json",
    "json_path",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Write everything as JSON (- for stdout).",
)
def audit(run: str, json_path: Path | None, **options: Any) -> None:
    """Let a second model read what RUN was shown and refused, and count what the fence got wrong.

    Also searches the agent's reasoning for events after the cutoff that no source told it, and, given a run without
    tools and one without a fence, says how much of the score undetected leaks can be worth at most:

      foretell audit RUN --auditor openrouter:x-ai/grok-4.1-fast --closed-book RUN2 --unfenced RUN3

    Verdicts are journalled: a text is paid for once, and the same audit again costs nothing.
    """
    from foretell.cli.options import write_json
    from foretell.runs.settings import load_settings
    from foretell.runs.store import RunStore

    settings = load_settings()
    with closing(RunStore(settings.store)) as store:
        report = event_loop.run(_audit_report(store, settings, run, options))
    if json_path is not None:
        write_json(report.to_dict(), json_path)
    if str(json_path) != "-":
        from rich.console import Console

        from foretell.studies.audit.report import print_audit

        print_audit(report, Console())


async def _audit_report(
    store: "RunStore", settings: "Settings", run: str, options: "Mapping[str, Any]"
) -> "AuditReport":
    from foretell.cli.backtest import progress_bar
    from foretell.models.budget import Budget
    from foretell.models.journal import Journal
    from foretell.models.router import ModelRouter
    from foretell.runs.runtime import models_of_run
    from foretell.scoring.long_tables import outcome_rows
    from foretell.studies.audit.auditor import Auditor
    from foretell.studies.audit.leakage import estimate_leakage, leak_exposure
    from foretell.studies.audit.passages import MaterialOrigin
    from foretell.studies.audit.report import AuditReport, audit_record, read_audit_record

    run, spec = _spec_of(store, run)
    name = chosen_auditor(spec, options["auditor"], same=options["same"])
    asked, notes = _questions(spec)
    arms = _arms(store, (run, spec), options, asked)
    outcomes = options["outcomes"] or outcome_rows(asked.questions, asked.resolutions)
    budget = Budget("audit", dollars=options["budget"])
    sampling = models_of_run(spec).with_model("auditor", name).setting("auditor")
    with closing(Journal(settings.journal)) as journal:
        origin = MaterialOrigin(journal=journal, engine="+".join(spec.search), mode=spec.mode)
        record = read_audit_record(store, run, asked.questions, origin)
        async with ModelRouter(settings.keys, journal=journal, addresses=settings.addresses) as exchange:
            exchange.check([name])
            auditor = Auditor(model=exchange.within(budget), name=name, journal=journal, settings=sampling)
            with progress_bar("auditing") as progress:
                material, memory = await audit_record(record, auditor, sample=options["sample"], progress=progress)
    _refuse_silence(name, [one.ruling for one in material.findings if one.by == "auditor"])
    return AuditReport(
        run=run,
        auditor=name,
        filter=models_of_run(spec).name("filter"),
        material=material,
        memory=memory,
        leakage=estimate_leakage(arms, asked.questions, outcomes, leak_exposure(material)) if len(arms) > 1 else None,
        spend=budget.spent,
        notes=(*notes, *_caveats(spec, name)),
    )


def _refuse_silence(name: str, rulings: "Sequence[AuditRuling]") -> None:
    """An auditor that answered nothing has found nothing: a report would look like a clean bill."""
    from foretell.questions.errors import InputError

    if rulings and not any(ruling.answered for ruling in rulings):
        raise InputError(f"{name} gave no usable verdict on {len(rulings)} texts", hint=rulings[0].reason)


def _spec_of(store: "RunStore", start: str) -> tuple[str, "RunSpec"]:
    from foretell.questions.errors import InputError
    from foretell.runs.spec import spec_from_json
    from foretell.runs.store import find_run

    run = find_run(store, start)
    spec = spec_from_json(next(row.spec for row in store.runs() if row.id == run))
    if "agent" not in spec.models:
        raise InputError(f"run {run} asked no model: it saw nothing that could leak")
    return run, spec


def chosen_auditor(spec: "RunSpec", given: str | None, *, same: bool) -> str:
    """The model that audits a run: named, of the spec, and not the one whose decisions it judges."""
    from foretell.questions.errors import InputError
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
    from foretell.questions.errors import InputError
    from foretell.runs.question_sets import open_benchmark

    try:
        found = open_benchmark(spec.questions.dataset, rounds=spec.questions.rounds).questions
    except InputError as error:
        told = f"The questions cannot be opened, so texts were judged without them: {error}"
        return QuestionSet(name=spec.questions.dataset), (told,)
    return found.only(found.questions[: spec.questions.limit]), ()


def _arms(
    store: "RunStore", run: tuple[str, "RunSpec"], options: "Mapping[str, Any]", asked: "QuestionSet"
) -> dict["AuditArm", "Sequence[Forecast]"]:
    from foretell.forecasters.agent.settings import VARIANTS
    from foretell.questions.errors import InputError
    from foretell.runs.combine import combine_trials, combining_by_name

    found: dict[AuditArm, tuple[str, RunSpec]] = {"fenced": run}
    if options["closed_book"]:
        found["closed-book"] = book = _spec_of(store, options["closed_book"])
        if VARIANTS[str(book[1].options.get("variant", "full"))].tools:
            raise InputError(f"run {book[0]} had tools", column="--closed-book", hint="run it with variant: zero-shot")
    if options["unfenced"]:
        found["unfenced"] = open_ = _spec_of(store, options["unfenced"])
        if not open_[1].clairvoyant:
            raise InputError(f"run {open_[0]} was fenced", column="--unfenced", hint="run it with clairvoyant: true")
    if len(found) > 1 and not asked.resolutions and options["outcomes"] is None:
        raise InputError("how the questions came out is unknown", hint="give --outcomes, a table as for foretell score")
    return {
        arm: combine_trials(store.answers(id), asked.questions, combining_by_name(spec.aggregate))
        for arm, (id, spec) in found.items()
    }


def _caveats(spec: "RunSpec", auditor: str) -> list[str]:
    from foretell.runs.runtime import models_of_run

    cast = models_of_run(spec)
    told: list[str] = []
    if spec.clairvoyant:
        told.append("This run was clairvoyant: nothing was withheld from it, and it is no forecast.")
    if bare_name(auditor) == bare_name(cast.name("filter")):
        told.append("The auditor filtered this run: what it overlooked then it overlooks again (--same).")
    if bare_name(auditor) == bare_name(cast.agent):
        told.append("The auditor is the agent's own model: it may take what it remembers for common knowledge.")
    return told
