"""`foretell submit`: hand forecasts in where others judge them."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foretell.runs import event_loop
from foretell.runs.spec import COMBINE_HELP

if TYPE_CHECKING:
    from foretell.forecasters.base_rates.rates import Rates
    from foretell.operations.submit import SubmissionForecasts, SubmitRequest
    from foretell.questions.forecast import Failure, Forecast
    from foretell.questions.question import Question
    from foretell.runs.settings import Settings
    from foretell.runs.spec import RunSpec
    from foretell.submit.ledger import LedgerEntry, SubmissionLedger
    from foretell.submit.sending import ItemResult
    from foretell.submit.submission import SubmissionItem, SubmissionPlan, Submitter


# `foretell export`: a run's forecasts in the format of a benchmark.


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
@click.option("--combine", help=f"{COMBINE_HELP} Default: the run's own rule.")
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
    from foretell.cli.options import write_json
    from foretell.runs.combine import combine_trials, combining_by_name
    from foretell.runs.settings import load_settings
    from foretell.submit.forecastbench import ForecastBenchTeam, build_submission, check_submission, require_coverage

    sender = ForecastBenchTeam(
        organization=organization, model=model, model_organization=model_organization, number=number
    )
    settings = load_settings()
    spec, answers = _run_answers(settings, run)
    day = _round(answers, day)
    questions = _questions(settings, day)
    of_round = [answer for answer in answers if _round_day(answer) == day]
    how = combining_by_name(combine or spec.aggregate, _rates(settings))
    body = build_submission(combine_trials(of_round, questions, how), questions, sender, reasoning=reasoning)
    coverages = check_submission(body, questions)
    if not incomplete:
        require_coverage(coverages)
    for coverage in coverages:
        click.echo(str(coverage), err=True)
    path = out / sender.file_name(day)
    write_json(body, path)
    click.echo(f"Wrote {path}")


def _run_answers(settings: "Settings", start: str) -> "tuple[RunSpec, list[Forecast | Failure]]":
    """The run whose id begins so, with all its answers."""
    from foretell.questions.errors import InputError
    from foretell.runs.spec import spec_from_json
    from foretell.runs.store import RunStore, find_run

    store = RunStore(settings.store)
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


def _round_day(answer: "Forecast | Failure") -> str:
    return answer.as_of.at.date().isoformat()


def _round(answers: "Sequence[Forecast | Failure]", wanted: str | None) -> str:
    """The round that is meant: the only one of the run, or the one that was named."""
    from foretell.questions.errors import InputError

    days = sorted({_round_day(answer) for answer in answers})
    if wanted is None and len(days) > 1:
        raise InputError(f"the run asked {len(days)} rounds: {', '.join(days)}", hint="name one with --round DATE")
    if wanted is not None and wanted not in days:
        raise InputError(f"the run did not ask {wanted}", column="--round", hint=f"it asked {', '.join(days)}")
    return wanted or days[0]


def _rates(settings: "Settings") -> "Rates | None":
    """Base rates from the pulled rounds; each question sees only what was known before its date."""
    from foretell.runs.question_sets import open_benchmark

    return open_benchmark("forecastbench", folder=settings.home / "forecastbench").past.rates


def _questions(settings: "Settings", day: str) -> "Sequence[Question]":
    """The whole question set, also where the run asked only a part of it."""
    from foretell.data.datasets.cache import DownloadCache
    from foretell.data.datasets.forecastbench_download import read_pulled

    return read_pulled(DownloadCache(settings.home / "forecastbench"), day).questions


# `foretell ledger`: what was handed in, and proof that the record was not changed.

LEDGER_OPTION = click.option(
    "--file", "path", type=click.Path(path_type=Path, dir_okay=False), help="Another ledger (default: this machine's)."
)


@click.group()
def ledger() -> None:
    """What was handed in, when, and with which content: a chain in which no link can be changed unseen."""


@ledger.command()
@LEDGER_OPTION
@click.option("--head", "noted", metavar="NUMBER:HASH", help="A head that you noted: nothing up to it may be missing.")
def verify(path: Path | None, noted: str | None) -> None:
    """Check every entry; name the first that was changed, removed or put elsewhere.

    Entries cut off at the end leave a good chain behind: only a head noted elsewhere shows that they are gone.
    """
    from foretell.questions.errors import InputError
    from foretell.submit.ledger import LedgerHead

    try:
        head = None if noted is None else LedgerHead.read(noted)
    except ValueError as error:
        raise InputError(str(error), column="--head") from None
    verdict = _ledger(path).verify(head)
    click.echo(str(verdict))
    if not verdict.whole:
        sys.exit(1)


@ledger.command()
@LEDGER_OPTION
def head(path: Path | None) -> None:
    """Print the last entry's number and hash: note it elsewhere, and the whole ledger is pinned down."""
    from foretell.questions.errors import InputError

    found = _ledger(path).head()
    if found is None:
        raise InputError("the ledger is empty", hint="foretell submit writes it")
    click.echo(str(found))


@ledger.command()
@LEDGER_OPTION
@click.option("--platform", help="Only this platform.")
@click.option("--question", help="Only questions whose name begins so.")
@click.option("--last", type=click.IntRange(1), metavar="N", help="Only the last so many.")
@click.option("--json", "as_json", is_flag=True, help="Print whole entries as JSON lines.")
def show(path: Path | None, platform: str | None, question: str | None, last: int | None, as_json: bool) -> None:
    """List entries: what was meant to be sent, and what became of it."""
    found = [
        entry
        for entry in _ledger(path).entries()
        if platform in (None, entry.platform) and entry.question.startswith(question or "")
    ]
    for entry in found[-last:] if last else found:
        click.echo(json.dumps(asdict(entry), ensure_ascii=False) if as_json else _line(entry))


def _ledger(path: Path | None) -> "SubmissionLedger":
    from foretell.operations.submit import open_ledger
    from foretell.questions.errors import InputError
    from foretell.runs.settings import load_settings
    from foretell.submit.ledger import SubmissionLedger

    if path is None:
        return open_ledger(load_settings())
    if not path.is_file():
        raise InputError("no such file", path=path)
    return SubmissionLedger(path)


def _line(entry: "LedgerEntry") -> str:
    told = f"{entry.number:5} {entry.at[:19]} {entry.platform} {entry.account} {entry.question} {entry.part}"
    if entry.kind == "intention":
        return f"{told}: to send {_short(entry.content)} [{entry.digest[:12]}]"
    return f"{told}: {entry.kind} of entry {entry.content['intention']}: {entry.content['how']}"


def _short(content: object, width: int = 60) -> str:
    text = json.dumps(content, ensure_ascii=False)
    return text if len(text) <= width else text[: width - 1] + "…"


PLATFORMS = ("forecastbench", "metaculus", "prophet-arena")
FOLDER = click.Path(path_type=Path, file_okay=False)
FAILED = ("refused", "failed", "unknown")


@click.command()
@click.argument("what", metavar="RUN|FILE")
@click.option("--to", required=True, type=click.Choice(PLATFORMS), help="Where to.")
@click.option("--dry-run", is_flag=True, help="Print exactly what would be sent, and send nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--comment",
    type=click.Choice(["private", "public"]),
    is_flag=False,
    flag_value="private",
    help="Send the reasons along: on Metaculus as a comment, private unless you say public.",
)
@click.option("--clip", is_flag=True, help="Move probabilities that are not taken to the nearest that are.")
@click.option("--question", "only", multiple=True, metavar="ID", help="Only this question; repeat for several.")
@click.option("--as", "named", metavar="POST", help="Metaculus: the post that the run's only question answers.")
@click.option("--combine", help=f"{COMBINE_HELP} Default: the run's own rule.")
@click.option("--again", is_flag=True, help="Send also what was sent before with the same content.")
@click.option("--agent", default="", help="Prophet Arena: your agent's name there.")
@click.option("--window", help="Prophet Arena: the round of the event (default: the open one).")
@click.option("--organization", default="", help="ForecastBench: your team, as registered.")
@click.option("--model", default="", help="ForecastBench: the name to show on the board.")
@click.option("--model-organization", default="", help="ForecastBench: who made the model.")
@click.option("--number", type=click.IntRange(1, 3), default=1, help="ForecastBench: which of three files this is.")
@click.option("--round", "day", metavar="DATE", help="ForecastBench: due date, where there are several.")
@click.option("--reasoning", is_flag=True, help="ForecastBench: put the reasons into the file.")
@click.option("--incomplete", is_flag=True, help="ForecastBench: although too much is missing to be ranked.")
@click.option(
    "--out", "folder", type=click.Path(path_type=Path, file_okay=False), default=Path(), help="ForecastBench: folder."
)
def submit(
    what: str,
    to: str,
    dry_run: bool,
    yes: bool,
    only: tuple[str, ...],
    combine: str | None,
    again: bool,
    day: str | None,
    **options: Any,
) -> None:
    """Hand in the forecasts of RUN, or of a FILE of forecasts.

    What was handed in before with the same content is not sent again. Every forecast is noted in a ledger
    (foretell ledger) before it leaves and when the platform has taken it. Look first, then send:

      foretell submit RUN --to metaculus --comment --dry-run

      foretell submit RUN --to metaculus --comment --yes

    Keys: METACULUS_TOKEN, ARENA_API_KEY. ForecastBench gets a file, which you upload to your team's folder.
    """
    from foretell.data.http import SourceError
    from foretell.operations.submit import SubmitRequest, forecasts_of_round, forecasts_to_submit
    from foretell.questions.errors import InputError
    from foretell.runs.settings import clock_of, load_settings

    settings = load_settings()
    found = forecasts_to_submit(settings, what, combine=combine, at=clock_of(settings)())
    found = found.only(only) if only else found
    found = forecasts_of_round(settings, found, day) if to == "forecastbench" else found
    order = SubmitRequest.of(to, options)
    try:
        good = event_loop.run(_submitted(order, settings, found, again=again, dry_run=dry_run, sure=yes))
    except SourceError as error:
        raise InputError(f"{to} could not be reached as it should: {error}", hint="nothing more was sent") from None
    if not good:
        sys.exit(1)


async def _submitted(
    order: "SubmitRequest",
    settings: "Settings",
    found: "SubmissionForecasts",
    *,
    again: bool,
    dry_run: bool,
    sure: bool,
) -> bool:
    """Plan, show, ask and send; whether all that could be sent was."""
    from foretell.operations.submit import open_ledger, open_submitter, relevant, retry_policy
    from foretell.runs.settings import clock_of
    from foretell.submit.sending import SubmissionSender

    ledger, clock = open_ledger(settings), clock_of(settings)
    at = clock()
    found, notes = relevant(order, found, at)
    for note in notes:
        click.echo(f"note: {note}", err=True)
    async with open_submitter(order, settings, found, at) as submitter:
        submission = submitter.plan(found.forecasts, found.questions)
        sending = SubmissionSender(submitter, ledger, clock, retry_policy(order, settings, again=again))
        fresh, before = sending.preview(submission)
        _show_submission(submission, fresh, before)
        if dry_run:
            _print_requests(submitter, fresh)
            return bool(submission.ready)
        if not fresh:
            return bool(submission.ready)
        _confirm(submission, fresh, sure=sure)
        return _report_result(await sending.hand_in(submission), str(ledger.head()))


def _show_submission(submission: "SubmissionPlan", fresh: "list[SubmissionItem]", before: "list[ItemResult]") -> None:
    """What is about to happen, and what is not, for a person."""
    for item in submission.refused:
        for problem in item.problems:
            click.echo(f"not sent: {item.question} {item.part}: {problem}", err=True)
    for item in submission.ready:
        for note in item.notes:
            click.echo(f"note: {item.question}: {note}", err=True)
    for one in before:
        click.echo(f"not sent: {one}", err=True)
    counts = {part: sum(item.part == part for item in fresh) for part in ("forecast", "comment", "file")}
    told = ", ".join(f"{n} {part}{'s' if n != 1 else ''}" for part, n in counts.items() if n) or "nothing"
    click.echo(f"to {submission.platform} as {submission.account}: {told}", err=True)


def _print_requests(submitter: "Submitter", fresh: "list[SubmissionItem]") -> None:
    requests = [asdict(request) for request in submitter.requests(fresh)]
    click.echo(json.dumps(requests, ensure_ascii=False, indent=1))


def _confirm(submission: "SubmissionPlan", fresh: "list[SubmissionItem]", *, sure: bool) -> None:
    from foretell.questions.errors import InputError

    if sure:
        return
    if not sys.stdin.isatty():
        raise InputError("nobody is there to be asked", hint="say --yes to send, or --dry-run to look")
    for item in fresh:
        click.echo(f"  {item.question} {item.part}: {item.title}", err=True)
    click.confirm("Send?", abort=True, err=True)


def _report_result(handed: "list[ItemResult]", head: str) -> bool:
    for one in handed:
        click.echo(str(one))
        if one.item.part == "file" and one.fate == "sent":
            click.echo(f"Upload {one.item.title} to the folder that the benchmark gave your team.")
    click.echo(f"ledger head {head}; keep a note of it elsewhere", err=True)
    return not any(one.fate in FAILED for one in handed)
