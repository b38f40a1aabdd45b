"""Question sets by name, as used by `foretell backtest`, `foretell run` and the demo."""

import json
import re
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qs, urlsplit

from foretell.data.datasets.question_files import READERS, default_id
from foretell.data.datasets.question_set import (
    Dataset,
    DatasetRequest,
    FileFormat,
    LateText,
    QuestionSet,
    SetFilter,
    asked_key,
)
from foretell.data.files import write_atomically
from foretell.data.http import SourceError
from foretell.data.markets.listing import EventListing, ListingFilter
from foretell.data.markets.market import Market
from foretell.data.service import ServiceConfig
from foretell.data.untrusted import for_file_name
from foretell.plugins import Names, exists, load, names
from foretell.questions.as_of import AsOf
from foretell.questions.codec import from_dict, to_json
from foretell.questions.errors import InputError
from foretell.questions.question import Question
from foretell.runs import event_loop
from foretell.runs.event_loop import run_sync
from foretell.runs.settings import Settings, load_settings
from foretell.runs.spec import spec_from_json
from foretell.runs.store import RunStore
from foretell.tools.late_text import late_passages, split_late

if TYPE_CHECKING:
    from foretell.forecasters.base_rates.past import Past

DATASETS = Names("datasets")
MAX_FILES = 50
"""Maximum number of files in a folder suggested as question sets."""
FALLBACK_FORMAT = "questions"
"""The format of a file that no other format recognises."""


@dataclass(frozen=True, kw_only=True)
class Benchmark(Dataset):
    """A data set with what forecasters may learn from its past."""

    own: bool = False
    """Whether users wrote these questions themselves: the series they name are then also read from the web."""

    @cached_property
    def past(self) -> "Past":
        """What forecasters may learn from; each question sees only what was known before its date."""
        from foretell.runs.outcomes import past_of

        return past_of(self.history.questions, self.history.resolutions)


def open_benchmark(  # noqa: PLR0913 - what a set may be asked for
    name: str,
    *,
    wanted: SetFilter | None = None,
    rounds: Sequence[str] = (),
    folder: Path | None = None,
    live: bool = False,
    now: datetime | None = None,
    folders: Sequence[Path] = (Path(),),
) -> Benchmark:
    """A question set by name: a file, a data set (`NAME` or `NAME:ARGUMENT`), or what a market lists now.

    Args:
        name: The set; `set_names` lists the possibilities.
        wanted: Which part of it.
        rounds: Due dates of the rounds wanted, besides those of `wanted`; all if none is given.
        folder: Folder of downloaded files, instead of the default.
        live: Whether it is for a live run. A market's current listing cannot be used in a backtest.
        now: The moment at which questions without their own moment are asked.
        folders: Folders in which to look for a file, in order.
    """
    wanted = wanted or SetFilter()
    found = find_set(name, folders)
    moment = now or datetime.now(UTC)
    if found.kind == "markets":
        if not live:
            hint = "say mode: live, or save it with foretell data show --out FILE and ask the file"
            raise InputError(f"{name} lists what is known today, which a backtest must not see", hint=hint)
        if wanted.rounds or rounds:
            raise InputError(f"{name} has no rounds", column="rounds")
        questions = open_listing(found, wanted, load_settings(), moment.replace(microsecond=0))
        return Benchmark(questions=questions, history=questions, grows=True)
    request = DatasetRequest(
        argument=found.argument,
        rounds=(*wanted.rounds, *rounds),
        folder=folder,
        live=live,
        now=moment,
        # A folder of somebody's own holds what they put there.
        online=None if folder is not None else lambda work: run_sync(_online(found.name, work), event_loop.run),
    )
    opened: Dataset | QuestionSet = load("datasets", found.name)(request)
    if isinstance(opened, QuestionSet):
        opened = Dataset.alone(opened)
    every = opened.questions.questions
    chosen = chosen_questions(every, wanted, name)
    questions = opened.questions if len(chosen) == len(every) else opened.questions.only(chosen)
    if not live:
        questions = with_early_texts(questions, wanted.late_text)
    own = found.name == FALLBACK_FORMAT
    return Benchmark(questions=questions, history=opened.history, series=opened.series, grows=opened.grows, own=own)


async def _online(name: str, work: Callable[[ServiceConfig], Coroutine[Any, Any, None]]) -> None:
    from foretell.data.http import AsyncHttpClient, HttpLimits
    from foretell.runs.services import service_config

    settings = load_settings()
    async with AsyncHttpClient(limits=HttpLimits(attempts=3), access=settings.access) as http:
        await work(service_config(settings, http, name))
    if name == "forecastbench":
        from foretell.data.datasets.forecastbench_download import pulled_rounds
        from foretell.data.files import DownloadCache, home_folder
        from foretell.runs.due_prices import keep_due_prices

        cache = DownloadCache(home_folder() / name)
        await keep_due_prices(cache, pulled_rounds(cache)[-1:], settings)


LATE_TEXT_HINT = "--set questions.late_text=cut removes such passages, keep leaves them in"


def with_early_texts(found: QuestionSet, late_text: LateText) -> QuestionSet:
    """A set for a backtest: questions whose own text was written after they are asked are left out, or cut."""
    asked, late = split_late(found.questions, late_text)
    if late and not asked:
        raise InputError(late_text_problem(late[0]), hint=LATE_TEXT_HINT)
    return replace(found.only(asked), quarantined=tuple(late)) if late else replace(found, questions=tuple(asked))


def late_text_problem(question: Question) -> str:
    """Why a question cannot be asked as of its moment, in words."""
    day, late = question.as_of.at.date().isoformat(), late_passages(question)[0]
    return f"question {question.id!r} is asked as of {day}, but its own text was written later: {late}"


def chosen_questions(questions: Sequence[Question], wanted: SetFilter, name: str) -> list[Question]:
    """The requested questions of a set that is not a market's listing."""
    for option in ("status", "minimum_volume"):
        if getattr(wanted, option):
            problem = f"{name} holds questions, and tells neither their status nor how much they are traded"
            raise InputError(problem, column=option, hint="these options are for markets")
    (after, before), category = wanted.window, wanted.category.casefold()
    found: list[Question] = []
    for question in questions:
        ends = question.closes_at or max((at for one in question.targets if (at := one.resolves_at)), default=None)
        fits = (ends is not None or not (after or before)) and (
            not category or question.category.casefold() == category
        )
        if fits and not (ends and ((after and ends < after) or (before and ends > before))):
            found.append(question)
    return found[: wanted.limit]


# Names.


@dataclass(frozen=True, kw_only=True)
class SetName:
    """What the name of a question set refers to."""

    kind: Literal["datasets", "markets"]
    name: str
    argument: str = ""
    """The part after the colon: a file, round, event, series or tournament."""


def set_names() -> list[str]:
    """How to write the names of question sets, including those of plug-ins."""
    formats = [f"{name}:FILE" if _is_format(name) else name for name in names("datasets")]
    return ["FILE", *formats, *(f"{name}:NAME" for name in names("markets") if load("markets", name).events)]


def sets_here(folder: Path = Path()) -> list[str]:
    """Names usable as they are: question files in a folder, rounds on this machine, data sets, markets.

    A name that ends in a colon has to be completed by the user.
    """
    from foretell.data.datasets.forecastbench_download import pulled_rounds
    from foretell.data.files import DownloadCache, home_folder

    files = sorted(path.name for path in folder.glob("*") if path.suffix in READERS and path.is_file())[:MAX_FILES]
    rounds = pulled_rounds(DownloadCache(home_folder() / "forecastbench"))[::-1]
    whole = [name for name in names("datasets") if not _is_format(name)]
    markets = [name for name in names("markets") if load("markets", name).events]
    parts = [f"{name}:" for name in markets]
    return [*files, *whole, *(f"forecastbench:{day}" for day in rounds), *markets, *parts]


def find_set(name: str, folders: Sequence[Path] = (Path(),)) -> SetName:
    """The data set, market or file with this name; the address of a market's page leads to what it shows."""
    if name.startswith(("http://", "https://")):
        return _set_at(name)
    first, colon, argument = name.partition(":")
    first = first.replace("-", "_") if exists("markets", first.replace("-", "_")) else first
    path = Path(found_in(name, folders))
    a_file = not colon and path.exists()  # A file may be called like a format or a market.
    if exists("datasets", first) and not _is_format(first):
        return SetName(kind="datasets", name=first, argument=argument)
    if exists("datasets", first) and not a_file:
        file = found_in(argument, folders)
        if argument and Path(file).exists():
            return SetName(kind="datasets", name=first, argument=file)
        looks_so = load("datasets", first).known(argument) or Path(argument).suffix in READERS
        if looks_so or not exists("markets", first):
            return SetName(kind="datasets", name=first, argument=argument)
    if exists("markets", first) and not a_file:
        return SetName(kind="markets", name=first, argument=argument)
    if not path.exists():
        near = get_close_matches(first, [*names("datasets"), *names("markets")], n=1) if colon else []
        hint = f"did you mean {near[0]}:{argument}?" if near else None
        raise InputError(f"{name!r} is neither a file nor one of {', '.join(set_names())}", hint=hint)
    return SetName(kind="datasets", name=_format_of(path), argument=str(path))


def _set_at(address: str) -> SetName:
    parts = urlsplit(address)
    for name in names("markets"):
        market: Market = load("markets", name)
        if market.id_in_address is not None and any(is_at(parts.hostname or "", host) for host in market.hosts):
            id = market.id_in_address([step for step in parts.path.split("/") if step], parse_qs(parts.query))
            if id:
                return SetName(kind="markets", name=name, argument=id)
    raise InputError(
        f"{address} is not a page of a market that is known", hint=f"markets are {', '.join(names('markets'))}"
    )


def is_at(host: str, site: str) -> bool:
    """Whether a host is a site or one of its subdomains.

    >>> is_at("www.metaculus.com", "metaculus.com"), is_at("notmetaculus.com", "metaculus.com")
    (True, False)
    """
    return host == site or host.endswith(f".{site}")


def found_in(name: str, folders: Sequence[Path]) -> str:
    """The path of a file in the first folder that has it; unchanged if none has."""
    return next((str(folder / name) for folder in folders if (folder / name).exists()), name)


def questions_of_run(store: RunStore, run: str) -> QuestionSet:
    """What a run asked, with the outcomes that its question set knows by now.

    A file is looked up in the folder in which the run was started. If it now holds other questions, it says nothing
    about this run and is refused.
    """
    row = store.run(run)
    assert row is not None
    spec, asked = spec_from_json(row.spec), store.questions(run)
    wanted = spec.questions
    if wanted.typed:
        return QuestionSet(name=wanted.dataset, questions=tuple(asked))
    if asked and find_set(wanted.dataset, folders_of(row.folder)).kind == "markets":
        return QuestionSet(name=wanted.dataset, questions=tuple(asked))
    # A run of an older version asked everything: what it asked is found, and what is too late is told apart below.
    every = replace(wanted, late_text="cut" if wanted.late_text == "cut" else "keep")
    found = open_benchmark(wanted.dataset, wanted=every, folders=folders_of(row.folder)).questions
    if spec.mode == "backtest" and wanted.late_text == "quarantine":
        found = replace(found, quarantined=tuple(one for one in found.questions if late_passages(one)))
    if not asked:
        return found
    known = {asked_key(question): question for question in found.questions}
    if found.resolutions:
        for question in asked:
            same = known.get(asked_key(question))
            if same is None or (same.text, same.targets) != (question.text, question.targets):
                problem = f"run {run} asked {question.id!r}, and {wanted.dataset} no longer holds it in those words"
                raise InputError(problem, hint="put the file back that it was run on, or give a table of outcomes")
    return replace(found.only(asked), questions=tuple(asked))


def folders_of(started_in: str) -> tuple[Path, ...]:
    """Folders in which to look for a stored run's files: where it was started, then here."""
    return (Path(started_in), Path()) if started_in else (Path(),)


def _is_format(name: str) -> bool:
    return isinstance(load("datasets", name), FileFormat)


def _format_of(path: Path) -> str:
    """The first format that recognises a file."""
    for dataset in DATASETS:
        plugin = load("datasets", dataset)
        if dataset != FALLBACK_FORMAT and isinstance(plugin, FileFormat) and plugin.recognises(path):
            return dataset
    return FALLBACK_FORMAT


# What a market lists now, each question kept as it was when this machine first saw it.
#
# A question that is seen again is the same question, to the second: what was answered is not asked anew, and a run that
# was killed finds its replies. With `again`, a question is taken as new after so many days.

MAX_QUESTIONS = 1_000
TOURNAMENT_PREFIX = "metaculus:"
TOURNAMENT_HINT = "write metaculus:TOURNAMENT, such as metaculus:minibench, or metaculus:TOURNAMENT,again=7"
_SLUG = re.compile(r"[A-Za-z0-9_-]{1,80}")


@dataclass(frozen=True, kw_only=True)
class Tournament:
    """A tournament by its slug or number.

    >>> Tournament.read("metaculus:minibench,again=7")
    Tournament(slug='minibench', again=7.0)
    """

    slug: str
    again: float | None = None
    """Days after which a question is asked again; None asks every question once."""

    @classmethod
    def read(cls, name: str) -> "Tournament":
        """Parse the name of a question set."""
        slug, again = split_again(name.removeprefix(TOURNAMENT_PREFIX))
        if not _SLUG.fullmatch(slug):
            raise InputError(f"{slug!r} is not the name of a tournament", column="questions", hint=TOURNAMENT_HINT)
        return cls(slug=slug, again=again)


def split_again(argument: str) -> tuple[str, float | None]:
    """Split a name from the number of days after which questions are asked again.

    >>> split_again("KXFED,again=7"), split_again("KXFED")
    (('KXFED', 7.0), ('KXFED', None))
    """
    name, *options = argument.split(",")
    again: float | None = None
    for option in options:
        key, _, value = option.partition("=")
        try:
            again = float(value)
        except ValueError:
            again = 0.0
        if key.strip() != "again" or again <= 0:
            raise InputError(f"cannot use {option!r}", column="questions", hint=TOURNAMENT_HINT)
    return name, again


def open_listing(named: SetName, wanted: SetFilter, settings: Settings, now: datetime) -> QuestionSet:
    """What a market lists now, in its order; questions seen before are returned as they were then."""
    listed, notes = run_sync(list_questions(named, wanted, settings, now), event_loop.run)
    name, again = split_again(named.argument)
    days = wanted.again or again
    path = settings.home / "listings" / named.name / f"{_file_name(name)}.json"
    before = (
        settings.home / "tournaments" / f"{for_file_name(name)}.json"
    )  # Where older versions kept what they saw of tournaments.
    old = before if named.name == "metaculus" and not path.exists() else path
    known = _stored(old)
    chosen: list[Question] = []
    for question in listed:
        seen = known.get(question.id, question)
        anew = days is not None and now - seen.due >= timedelta(days=days)
        chosen.append(question if anew else seen)
    rows = [json.loads(to_json(one)) for one in (known | {one.id: one for one in chosen}).values()]
    write_atomically(path, json.dumps(rows, ensure_ascii=False, indent=0).encode())
    return QuestionSet(name=f"{named.name}:{name}" if name else named.name, questions=tuple(chosen), notes=notes)


def _file_name(name: str) -> str:
    """A name turned into a valid file name on any system.

    >>> _file_name("minibench"), _file_name("")
    ('minibench', 'everything')
    """
    if not name:
        return "everything"
    return name if _SLUG.fullmatch(name) else f"{default_id(name)}"


async def list_questions(
    named: SetName, wanted: SetFilter, settings: Settings, now: datetime
) -> tuple[list[Question], tuple[str, ...]]:
    """What a market lists now under a name, and what was left out, with the reason."""
    from foretell.data.http import AsyncHttpClient
    from foretell.runs.services import open_markets

    name, _ = split_again(named.argument)
    full = f"{named.name}:{name}" if name else named.name
    after, before = wanted.window
    asked = ListingFilter(
        as_of=AsOf(at=now, mode="live"),
        closes_after=after,
        closes_before=before,
        category=wanted.category,
        minimum_volume=wanted.minimum_volume,
        status=wanted.status or "open",
        limit=wanted.limit or MAX_QUESTIONS,
    )
    async with AsyncHttpClient(access=settings.access) as http:
        source = open_markets(settings, http, [full]).events.get(full)
        if source is None:
            raise InputError(f"{named.name} lists no events", hint="it only tells prices")
        listing: EventListing = source.events(asked)
        try:
            found = [event.question for event in await listing.all()]
        except SourceError as error:
            raise InputError(str(error) if error.url == full else f"{full} could not be read: {error}") from None
        return found, listing.ledger.notes()


def _stored(path: Path) -> dict[str, Question]:
    if not path.is_file():
        return {}
    try:
        questions = [from_dict(row, Question) for row in json.loads(path.read_text(encoding="utf-8"))]
    except (ValueError, TypeError, InputError):
        raise InputError("is damaged", path=path, hint="delete it: its questions are then asked anew") from None
    return {question.id: question for question in questions}
