"""`foretell export`: a run's forecasts in the format of a benchmark."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from foretell.app.commands.options import COMBINE

if TYPE_CHECKING:
    from foretell.app.settings import Settings
    from foretell.arena.spec import RunSpec
    from foretell.forecasters.priors import Rates
    from foretell.questions.forecast import Failure, Forecast
    from foretell.questions.question import Question


@click.group()
def export() -> None:
    """Write a run's forecasts in the format of a benchmark."""


@export.command()
@click.argument("run")
@click.option("--organization", required=True, help="Your team, as registered.")
@click.option("--model", required=True, help="The name to show on the board.")
@click.option("--model-organization", default="", help="Who made the model (default: the organization).")
@click.option("--number", type=click.IntRange(1, 3), default=1, show_default=True, help="Which of three files this is.")
@click.option("--round", "day", metavar="DATE", help="Due date, where the run asked several rounds.")
@click.option("--combine", help=f"{COMBINE} Default: the run's own rule.")
@click.option("--reasoning", is_flag=True, help="Put the reasons into the file.")
@click.option("--incomplete", is_flag=True, help="Write it although too much is missing to be ranked.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Folder to write to (default: here).",
)
def forecastbench(
    run: str,
    organization: str,
    model: str,
    model_organization: str,
    number: int,
    day: str | None,
    combine: str | None,
    reasoning: bool,
    incomplete: bool,
    out: Path,
) -> None:
    """Write RUN as a ForecastBench submission, checked against the round's question set.

    Trials are combined by the run's own rule, or as --combine says. The benchmark ranks a file that answers at least
    95 % of the market and 95 % of the data-set forecasts; with less, nothing is written unless you say --incomplete.
    """
    from foretell.app.combining import combining_of
    from foretell.app.commands.output import write_json
    from foretell.app.settings import load_settings
    from foretell.arena.exports.forecastbench import Sender, build_submission, check_submission, insist
    from foretell.arena.results import combined

    sender = Sender(organization=organization, model=model, model_organization=model_organization, number=number)
    settings = load_settings()
    spec, answers = _answers(settings, run)
    day = _round(answers, day)
    questions = _questions(settings, day)
    of_round = [answer for answer in answers if _day(answer) == day]
    how = combining_of(combine or spec.aggregate, _rates(settings))
    body = build_submission(combined(of_round, questions, how), questions, sender, reasoning=reasoning)
    coverages = check_submission(body, questions)
    if not incomplete:
        insist(coverages)
    for coverage in coverages:
        click.echo(str(coverage), err=True)
    path = out / sender.file_name(day)
    write_json(body, path)
    click.echo(f"Wrote {path}")


def _answers(settings: "Settings", start: str) -> "tuple[RunSpec, list[Forecast | Failure]]":
    """The run whose id begins so, with all its answers."""
    from foretell.app.commands.show import find_run
    from foretell.arena.spec import spec_from_json
    from foretell.arena.store import Store
    from foretell.questions.problems import InputError

    store = Store(settings.store)
    try:
        run = find_run(store, start)
        spec = spec_from_json(next(row.spec for row in store.runs() if row.id == run))
        answers = list(store.answers(run))
    finally:
        store.close()
    if spec.questions.dataset != "forecastbench":
        raise InputError(f"run {run} asked {spec.questions.dataset!r}, not a round of forecastbench")
    if spec.clairvoyant:
        raise InputError(f"run {run} was clairvoyant: it saw the future, so it is no forecast")
    if not answers:
        raise InputError(f"run {run} has no answers yet", hint="start it again with foretell run")
    return spec, answers


def _day(answer: "Forecast | Failure") -> str:
    return answer.as_of.at.date().isoformat()


def _round(answers: "Sequence[Forecast | Failure]", wanted: str | None) -> str:
    """The round that is meant: the only one of the run, or the one that was named."""
    from foretell.questions.problems import InputError

    days = sorted({_day(answer) for answer in answers})
    if wanted is None and len(days) > 1:
        raise InputError(f"the run asked {len(days)} rounds: {', '.join(days)}", hint="name one with --round DATE")
    if wanted is not None and wanted not in days:
        raise InputError(f"the run did not ask {wanted}", column="--round", hint=f"it asked {', '.join(days)}")
    return wanted or days[0]


def _rates(settings: "Settings") -> "Rates | None":
    """Base rates from the pulled rounds; each question sees only what was known before its date."""
    from foretell.app.datasets import open_benchmark

    return open_benchmark("forecastbench", folder=settings.home / "forecastbench").resources["rates"]()


def _questions(settings: "Settings", day: str) -> "Sequence[Question]":
    """The whole question set, also where the run asked only a part of it."""
    from foretell.sources.datasets.cache import Cache
    from foretell.sources.datasets.pull import read_pulled

    return read_pulled(Cache(settings.home / "forecastbench"), day).questions
