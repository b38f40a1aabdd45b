"""foretell audit: how much of a run could be leakage."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foretell.app import loop
from foretell.app.commands.options import FILE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from foretell.app.settings import Settings
    from foretell.arena.spec import RunSpec
    from foretell.arena.store import Store
    from foretell.arena.studies.audit_report import AuditReport
    from foretell.arena.studies.auditor import Ruling
    from foretell.arena.studies.leakage import Arm
    from foretell.questions.forecast import Forecast
    from foretell.sources.datasets.question_set import QuestionSet


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
@click.option("--outcomes", "-o", type=FILE, help="question, target, outcome: where the questions bring none.")
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
    from foretell.app.commands.output import write_json
    from foretell.app.settings import load_settings
    from foretell.arena.store import Store

    settings = load_settings()
    with closing(Store(settings.store)) as store:
        report = loop.run(_report(store, settings, run, options))
    if json_path is not None:
        write_json(report.to_dict(), json_path)
    if str(json_path) != "-":
        from rich.console import Console

        from foretell.arena.studies.audit_report import print_audit

        print_audit(report, Console())


async def _report(store: "Store", settings: "Settings", run: str, options: "Mapping[str, Any]") -> "AuditReport":
    from foretell.app.commands.backtest import progress_bar
    from foretell.app.workbench import cast_of
    from foretell.arena.long_tables import outcome_rows
    from foretell.arena.studies.audit_report import AuditReport
    from foretell.arena.studies.auditor import Auditor
    from foretell.arena.studies.leakage import exposure_of, leakage
    from foretell.arena.studies.record import audit_record, record_of
    from foretell.arena.studies.sightings import Origin
    from foretell.llm.cost import Budget
    from foretell.llm.journal import Journal
    from foretell.llm.opening import Exchange

    run, spec = _spec_of(store, run)
    name = chosen_auditor(spec, options["auditor"], same=options["same"])
    asked, notes = _questions(spec)
    arms = _arms(store, (run, spec), options, asked)
    outcomes = options["outcomes"] or outcome_rows(asked.questions, asked.resolutions)
    budget = Budget("audit", dollars=options["budget"])
    sampling = cast_of(spec).with_model("auditor", name).setting("auditor")
    with closing(Journal(settings.journal)) as journal:
        origin = Origin(journal=journal, engine="+".join(spec.search), mode=spec.mode)
        record = record_of(store, run, asked.questions, origin)
        async with Exchange(settings.keys, journal=journal, addresses=settings.addresses) as exchange:
            exchange.check([name])
            auditor = Auditor(model=exchange.within(budget), name=name, journal=journal, settings=sampling)
            with progress_bar("auditing") as progress:
                material, memory = await audit_record(record, auditor, sample=options["sample"], progress=progress)
    _refuse_silence(name, [one.ruling for one in material.findings if one.by == "auditor"])
    return AuditReport(
        run=run,
        auditor=name,
        filter=cast_of(spec).name("filter"),
        material=material,
        memory=memory,
        leakage=leakage(arms, asked.questions, outcomes, exposure_of(material)) if len(arms) > 1 else None,
        spend=budget.spent,
        notes=(*notes, *_caveats(spec, name)),
    )


def _refuse_silence(name: str, rulings: "Sequence[Ruling]") -> None:
    """An auditor that answered nothing has found nothing: a report would look like a clean bill."""
    from foretell.questions.problems import InputError

    if rulings and not any(ruling.answered for ruling in rulings):
        raise InputError(f"{name} gave no usable verdict on {len(rulings)} texts", hint=rulings[0].reason)


def _spec_of(store: "Store", start: str) -> tuple[str, "RunSpec"]:
    from foretell.app.commands.show import find_run
    from foretell.arena.spec import spec_from_json
    from foretell.questions.problems import InputError

    run = find_run(store, start)
    spec = spec_from_json(next(row.spec for row in store.runs() if row.id == run))
    if "agent" not in spec.models:
        raise InputError(f"run {run} asked no model: it saw nothing that could leak")
    return run, spec


def chosen_auditor(spec: "RunSpec", given: str | None, *, same: bool) -> str:
    """The model that audits a run: named, of the spec, and not the one whose decisions it judges."""
    from foretell.app.workbench import cast_of
    from foretell.questions.problems import InputError

    if spec.mode == "live":
        raise InputError("a live run has no future to leak", hint="audit a backtest")
    name = given or spec.models.get("auditor")
    if name is None:
        raise InputError("no auditor is named", hint="give --auditor MODEL, another model than the run's filter")
    if bare_name(name) == bare_name(cast_of(spec).name("filter")) and not same:
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
    from foretell.llm.names import ModelName

    read = ModelName.read(model)
    return model if read.provider in ("local", "scripted") else read.name.rpartition("/")[2].lower()


def _questions(spec: "RunSpec") -> tuple["QuestionSet", tuple[str, ...]]:
    """The questions of the run with their outcomes; without them the audit knows only ids and dates."""
    from foretell.app.datasets import open_benchmark
    from foretell.questions.problems import InputError
    from foretell.sources.datasets.question_set import QuestionSet

    try:
        found = open_benchmark(spec.questions.dataset, rounds=spec.questions.rounds).questions
    except InputError as error:
        told = f"The questions cannot be opened, so texts were judged without them: {error}"
        return QuestionSet(name=spec.questions.dataset), (told,)
    return found.only(found.questions[: spec.questions.limit]), ()


def _arms(
    store: "Store", run: tuple[str, "RunSpec"], options: "Mapping[str, Any]", asked: "QuestionSet"
) -> dict["Arm", "Sequence[Forecast]"]:
    from foretell.app.combining import combining_of
    from foretell.arena.results import combined
    from foretell.forecasters.agent.variants import VARIANTS
    from foretell.questions.problems import InputError

    found: dict[Arm, tuple[str, RunSpec]] = {"fenced": run}
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
        arm: combined(store.answers(id), asked.questions, combining_of(spec.aggregate))
        for arm, (id, spec) in found.items()
    }


def _caveats(spec: "RunSpec", auditor: str) -> list[str]:
    from foretell.app.workbench import cast_of

    cast = cast_of(spec)
    told: list[str] = []
    if spec.clairvoyant:
        told.append("This run was clairvoyant: nothing was withheld from it, and it is no forecast.")
    if bare_name(auditor) == bare_name(cast.name("filter")):
        told.append("The auditor filtered this run: what it overlooked then it overlooks again (--same).")
    if bare_name(auditor) == bare_name(cast.agent):
        told.append("The auditor is the agent's own model: it may take what it remembers for common knowledge.")
    return told
