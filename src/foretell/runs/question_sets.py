"""Question sets by name, as used by `foretell backtest`, `foretell run` and the demo."""

import json
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qs, urlsplit

from foretell.data.datasets.dataset import Dataset, DatasetRequest, FileFormat
from foretell.data.datasets.question_files import READERS, default_id
from foretell.data.datasets.question_set import AskedKey, LeakyQuestions, QuestionSet, SetFilter, asked_key
from foretell.data.files import write_atomically
from foretell.data.http import SourceError
from foretell.data.markets.listing import EventListing, ListingFilter
from foretell.data.markets.market import Market
from foretell.data.service import ServiceConfig
from foretell.data.untrusted import for_file_name
from foretell.forecasters.prompt.prediction_context import PredictionContext, stored_context
from foretell.patterns import pattern
from foretell.plugins import Names, exists, load, names
from foretell.questions.as_of import AsOf
from foretell.questions.codec import from_dict, to_json
from foretell.questions.errors import InputError
from foretell.questions.question import Question
from foretell.runs import event_loop
from foretell.runs.event_loop import run_sync
from foretell.runs.settings import Settings, load_settings
from foretell.runs.spec import RunSpec, spec_from_json
from foretell.runs.store import RunStore
from foretell.tools.post_cutoff_text import post_cutoff_passages, split_leaky

if TYPE_CHECKING:
    from foretell.forecasters.base_rates.past import Past

DATASETS = Names("datasets")
MAX_FILES = 50
"""Maximum number of files in a folder suggested as question sets."""
FALLBACK_FORMAT = "questions"
"""The format of a file that no other format recognises."""


class SetContexts:
    """The contexts that a question set has for its questions, each made when it is first needed."""

    def __init__(self, question_set: QuestionSet) -> None:
        self._set = question_set
        self._contexts: dict[AskedKey, PredictionContext] = {}

    def get(self, question: Question) -> PredictionContext | None:
        """Return the context of a question; None if the set has none."""
        key = asked_key(question)
        if key not in self._contexts and key in self._set.contexts:
            self._contexts[key] = stored_context(question, self._set.contexts[key])
        return self._contexts.get(key)

    async def of(self, question: Question, as_of: AsOf) -> PredictionContext | None:
        """Return the context of a question as of its date."""
        return self.get(question)


@dataclass(frozen=True, kw_only=True)
class Benchmark(Dataset):
    """A data set with past questions that forecasters may learn from."""

    own: bool = False
    """Whether users wrote these questions themselves. Their series are then also read from the web."""

    @cached_property
    def contexts(self) -> SetContexts:
        """What was gathered for the questions beforehand."""
        return SetContexts(self.questions)

    @cached_property
    def past(self) -> "Past":
        """Past questions that forecasters may learn from. Each question sees only what was known before its date."""
        from foretell.runs.past import past_of

        return past_of(self.history.questions, self.history.resolutions)


@dataclass(frozen=True, kw_only=True)
class AskedQuestions:
    """The questions of a backtest, and where they come from."""

    questions: tuple[Question, ...]
    dataset: str | None
    """The name of their set or file; None for a list."""
    wanted: SetFilter
    """Which part of the set was chosen."""
    benchmark: Benchmark | None
    """Past questions and series that belong to them, if they have no name."""
    past: "Past | None"
    """Past questions to learn from instead."""


def open_benchmark(  # noqa: PLR0913 - ways to choose questions
    name: str,
    *,
    wanted: SetFilter | None = None,
    rounds: Sequence[str] = (),
    folder: Path | None = None,
    live: bool = False,
    now: datetime | None = None,
    folders: Sequence[Path] = (Path(),),
) -> Benchmark:
    """Open a question set by name: a file, a data set (`NAME` or `NAME:ARGUMENT`), or a market's current listing.

    Args:
        name: The set; `set_names` lists the possibilities.
        wanted: Which part of it.
        rounds: Due dates of the wanted rounds, besides those of `wanted`; empty for all.
        folder: Folder of downloaded files, instead of the default.
        live: Whether it is for a live run. A market's current listing cannot be used in a backtest.
        now: The time at which questions without their own time are asked.
        folders: Folders in which to look for a file, in order.
    """
    wanted = wanted or SetFilter()
    set_name = find_set(name, folders)
    asked_at = now or datetime.now(UTC)
    if set_name.kind == "markets":
        if not live:
            hint = "use mode: live, or save it with foretell data show --out FILE and use the file"
            raise InputError(f"{name} lists what is known today, which a backtest must not see", hint=hint)
        if wanted.rounds or rounds:
            raise InputError(f"{name} has no rounds", column="rounds")
        questions = open_listing(set_name, wanted, load_settings(), asked_at.replace(microsecond=0))
        return Benchmark(questions=questions, history=questions, grows=True)
    request = DatasetRequest(
        argument=set_name.argument,
        rounds=(*wanted.rounds, *rounds),
        folder=folder,
        live=live,
        now=asked_at,
        # Nothing is downloaded into a folder that the user chose.
        online=None if folder is not None else lambda work: run_sync(_online(set_name.name, work), event_loop.run),
    )
    opened: Dataset | QuestionSet = load("datasets", set_name.name)(request)
    if isinstance(opened, QuestionSet):
        opened = Dataset.alone(opened)
    all_questions = opened.questions.questions
    chosen = chosen_questions(all_questions, wanted, name)
    questions = opened.questions if len(chosen) == len(all_questions) else opened.questions.only(chosen)
    if not live:
        questions = with_early_texts(questions, wanted.leaky_questions)
    own = set_name.name == FALLBACK_FORMAT
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


LEAKY_QUESTIONS_HINT = "--set questions.leaky_questions=redact removes such passages, keep leaves them in"


def with_early_texts(question_set: QuestionSet, leaky_questions: LeakyQuestions) -> QuestionSet:
    """Return a set for a backtest. Questions whose own text was written after their date are excluded or redacted."""
    usable, leaky = split_leaky(question_set.questions, leaky_questions)
    if leaky and not usable:
        raise InputError(leaky_question_problem(leaky[0]), hint=LEAKY_QUESTIONS_HINT)
    return (
        replace(question_set.only(usable), excluded=tuple(leaky))
        if leaky
        else replace(question_set, questions=tuple(usable))
    )


def leaky_question_problem(question: Question) -> str:
    """Return why a question cannot be asked as of its date."""
    day, passage = question.as_of.at.date().isoformat(), post_cutoff_passages(question)[0]
    return f"question {question.id!r} is asked as of {day}, but its own text was written later: {passage}"


def chosen_questions(questions: Sequence[Question], wanted: SetFilter, name: str) -> list[Question]:
    """The requested questions of a set that is not a market's listing."""
    for option in ("status", "minimum_volume"):
        if getattr(wanted, option):
            problem = f"{name} has neither the status nor the volume of its questions"
            raise InputError(problem, column=option, hint="these options are for markets")
    (after, before), category = wanted.window, wanted.category.casefold()
    chosen: list[Question] = []
    for question in questions:
        ends = question.closes_at or max(
            (at for target in question.targets if (at := target.resolves_at)), default=None
        )
        fits = (ends is not None or not (after or before)) and (
            not category or question.category.casefold() == category
        )
        if fits and not (ends and ((after and ends < after) or (before and ends > before))):
            chosen.append(question)
    return chosen[: wanted.limit]


# Names.


@dataclass(frozen=True, kw_only=True)
class SetName:
    """What the name of a question set refers to."""

    kind: Literal["datasets", "markets"]
    name: str
    argument: str = ""
    """The part after the colon: a file, round, event, series or tournament."""


def set_names() -> list[str]:
    """Return the forms of the names of question sets, including those of plug-ins."""
    formats = [f"{name}:FILE" if _is_format(name) else name for name in names("datasets")]
    return ["FILE", *formats, *(f"{name}:NAME" for name in names("markets") if load("markets", name).events)]


def sets_here(folder: Path = Path()) -> list[str]:
    """Return usable names: question files in a folder, rounds on this machine, data sets and markets.

    The user has to complete a name that ends in a colon.
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
    """Return the data set, market or file with this name. The address of a market's page is a name too."""
    if name.startswith(("http://", "https://")):
        return _set_at(name)
    first, colon, argument = name.partition(":")
    first = first.replace("-", "_") if exists("markets", first.replace("-", "_")) else first
    path = Path(path_in(name, folders))
    is_file = not colon and path.exists()  # A file may have the name of a format or market.
    if exists("datasets", first) and not _is_format(first):
        return SetName(kind="datasets", name=first, argument=argument)
    if exists("datasets", first) and not is_file:
        file = path_in(argument, folders)
        if argument and Path(file).exists():
            return SetName(kind="datasets", name=first, argument=file)
        is_argument = load("datasets", first).known(argument) or Path(argument).suffix in READERS
        if is_argument or not exists("markets", first):
            return SetName(kind="datasets", name=first, argument=argument)
    if exists("markets", first) and not is_file:
        return SetName(kind="markets", name=first, argument=argument)
    if not path.exists():
        similar = get_close_matches(first, [*names("datasets"), *names("markets")], n=1) if colon else []
        hint = f"did you mean {similar[0]}:{argument}?" if similar else None
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
    raise InputError(f"{address} is not a page of a known market", hint=f"markets are {', '.join(names('markets'))}")


def is_at(host: str, site: str) -> bool:
    """Whether a host is a site or one of its subdomains.

    >>> is_at("www.metaculus.com", "metaculus.com"), is_at("notmetaculus.com", "metaculus.com")
    (True, False)
    """
    return host == site or host.endswith(f".{site}")


def path_in(name: str, folders: Sequence[Path]) -> str:
    """Return the path of a file in the first folder that has it, or the name if none has."""
    return next((str(folder / name) for folder in folders if (folder / name).exists()), name)


def questions_of_run(store: RunStore, run: str) -> QuestionSet:
    """Return the questions of a run, with the outcomes that its question set has now.

    A file is looked up in the folder in which the run was started. Raises `InputError` if it now has other questions.
    """
    row = store.run(run)
    assert row is not None
    spec, stored = spec_from_json(row.spec), store.questions(run)
    wanted = spec.questions
    if wanted.typed:
        return QuestionSet(name=wanted.dataset, questions=tuple(stored))
    if stored and find_set(wanted.dataset, folders_of(row.folder)).kind == "markets":
        return QuestionSet(name=wanted.dataset, questions=tuple(stored))
    # Runs of older versions asked all questions, so leaky ones are included here and marked as excluded below.
    unfiltered = replace(wanted, leaky_questions="redact" if wanted.leaky_questions == "redact" else "keep")
    questions = open_benchmark(wanted.dataset, wanted=unfiltered, folders=folders_of(row.folder)).questions
    if spec.mode == "backtest" and wanted.leaky_questions == "exclude":
        questions = replace(questions, excluded=tuple(filter(post_cutoff_passages, questions.questions)))
    if not stored:
        return questions
    known = {asked_key(question): question for question in questions.questions}
    if questions.resolutions:
        for question in stored:
            current = known.get(asked_key(question))
            if current is None or (current.text, current.targets) != (question.text, question.targets):
                problem = f"run {run} asked {question.id!r}, and {wanted.dataset} no longer has it with that wording"
                raise InputError(problem, hint="restore the file that it was run on, or give a table of outcomes")
    return replace(questions.only(stored), questions=tuple(stored))


def folders_of(started_in: str) -> tuple[Path, ...]:
    """Return the folders of a stored run's files: where it was started, then the current one."""
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


# The current listing of a market, with each question as this machine first saw it.
#
# A question that is listed again keeps its date, so that it is not asked twice and a run that was killed finds its
# replies. With `again`, a question counts as new after that many days.

MAX_QUESTIONS = 1_000
TOURNAMENT_PREFIX = "metaculus:"
TOURNAMENT_HINT = "write metaculus:TOURNAMENT, such as metaculus:minibench, or metaculus:TOURNAMENT,again=7"
_SLUG = pattern(r"[A-Za-z0-9_-]{1,80}")


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


def open_listing(set_name: SetName, wanted: SetFilter, settings: Settings, now: datetime) -> QuestionSet:
    """Return the current listing of a market, in its order. Questions seen before are returned as they were then."""
    listed, notes = run_sync(list_questions(set_name, wanted, settings, now), event_loop.run)
    name, again = split_again(set_name.argument)
    days = wanted.again or again
    path = settings.home / "listings" / set_name.name / f"{_file_name(name)}.json"
    # Older versions stored the questions of tournaments here.
    older = settings.home / "tournaments" / f"{for_file_name(name)}.json"
    known = _stored(older if set_name.name == "metaculus" and not path.exists() else path)
    chosen: list[Question] = []
    for question in listed:
        seen = known.get(question.id, question)
        is_new = days is not None and now - seen.due >= timedelta(days=days)
        chosen.append(question if is_new else seen)
    rows = [json.loads(to_json(question)) for question in (known | {new.id: new for new in chosen}).values()]
    write_atomically(path, json.dumps(rows, ensure_ascii=False, indent=0).encode())
    return QuestionSet(name=f"{set_name.name}:{name}" if name else set_name.name, questions=tuple(chosen), notes=notes)


def _file_name(name: str) -> str:
    """Return a name as a valid file name on any system.

    >>> _file_name("minibench"), _file_name("")
    ('minibench', 'everything')
    """
    if not name:
        return "everything"
    return name if _SLUG.fullmatch(name) else f"{default_id(name)}"


async def list_questions(
    set_name: SetName, wanted: SetFilter, settings: Settings, now: datetime
) -> tuple[list[Question], tuple[str, ...]]:
    """Return the questions that a market lists under a name, and notes on what was left out."""
    from foretell.data.http import AsyncHttpClient
    from foretell.runs.services import open_markets

    name, _ = split_again(set_name.argument)
    full = f"{set_name.name}:{name}" if name else set_name.name
    after, before = wanted.window
    request = ListingFilter(
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
            raise InputError(f"{set_name.name} lists no events", hint="it only has prices")
        listing: EventListing = source.events(request)
        try:
            questions = [event.question for event in await listing.all()]
        except SourceError as error:
            raise InputError(str(error) if error.url == full else f"{full} could not be read: {error}") from None
        return questions, listing.ledger.notes()


def _stored(path: Path) -> dict[str, Question]:
    if not path.is_file():
        return {}
    try:
        questions = [from_dict(row, Question) for row in json.loads(path.read_text(encoding="utf-8"))]
    except (ValueError, TypeError, InputError):
        raise InputError("is damaged", path=path, hint="delete it, and its questions are asked again") from None
    return {question.id: question for question in questions}


def typed_questions(questions: Iterable[Question]) -> Benchmark:
    """Return typed questions as a question set; they exist only in the request and in the store."""
    question_set = QuestionSet(name="asked", questions=tuple(questions))
    return Benchmark(questions=question_set, history=question_set, own=True)


def stored_questions(store: RunStore, spec: RunSpec) -> Benchmark | None:
    """Return all questions of a typed run; None for a run with a question set."""
    questions = store.questions(spec.id) if spec.questions.typed else []
    return typed_questions(questions) if questions else None
