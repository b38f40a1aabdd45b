"""Question sets by name: what `foretell backtest`, `foretell run` and the demo can be pointed at."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foretell.data.atomic_file import write_atomically
from foretell.data.datasets.dataset import Dataset, DatasetRequest, FileFormat
from foretell.data.datasets.question_set import QuestionSet, asked_key
from foretell.data.http import SourceError
from foretell.data.markets.listing import EventListing, ListingFilter
from foretell.plugins import Names, exists, load
from foretell.questions.as_of import AsOf
from foretell.questions.codec import from_dict, to_json
from foretell.questions.errors import InputError
from foretell.questions.question import Question
from foretell.runs import event_loop
from foretell.runs.backtest import run_sync
from foretell.runs.settings import Settings, load_settings
from foretell.runs.spec import spec_from_json
from foretell.runs.store import RunStore

if TYPE_CHECKING:
    from foretell.forecasters.base_rates.past import Past

DATASETS = Names("datasets")
FALLBACK_FORMAT = "questions"
"""How a file is read that no other format recognises."""


@dataclass(frozen=True, kw_only=True)
class Benchmark(Dataset):
    """A data set with what forecasters may learn from its past."""

    @cached_property
    def past(self) -> "Past":
        """What forecasters may learn from; each question is shown only what was known before its date."""
        from foretell.runs.past import past_of

        return past_of(self.history.questions, self.history.resolutions)


def open_benchmark(
    name: str,
    *,
    rounds: Sequence[str] = (),
    folder: Path | None = None,
    live: bool = False,
    now: datetime | None = None,
    folders: Sequence[Path] = (Path(),),
) -> Benchmark:
    """A data set by name (`NAME` or `NAME:ARGUMENT`), or a file or folder whose format is recognised.

    Args:
        name: The set.
        rounds: Due dates of the rounds wanted; all of them where none is named.
        folder: Where downloaded files are, instead of the usual place.
        live: Whether it is for a live run, whose questions are open now.
        now: The moment at which questions that state none are asked.
        folders: Where a file is sought, in this order.
    """
    dataset, colon, argument = name.partition(":")
    if not exists("datasets", dataset) or (not colon and _is_format(dataset) and Path(name).exists()):
        argument = found_in(name, folders)
        dataset = _format_of(argument)
    elif argument and _is_format(dataset):
        argument = found_in(argument, folders)
    moment = {} if now is None else {"now": now}
    request = DatasetRequest(argument=argument, rounds=tuple(rounds), folder=folder, live=live, **moment)
    opened: Dataset | QuestionSet = load("datasets", dataset)(request)
    if isinstance(opened, QuestionSet):
        opened = Dataset.alone(opened)
    return Benchmark(**{one.name: getattr(opened, one.name) for one in fields(Dataset)})


def found_in(name: str, folders: Sequence[Path]) -> str:
    """The path of a file in the first of the folders that has it; as it is written where none has."""
    return next((str(folder / name) for folder in folders if (folder / name).exists()), name)


def questions_of_run(store: RunStore, run: str) -> QuestionSet:
    """What a run asked, with the outcomes that its question set tells by now.

    A file is sought in the folder that the run was started in. One that has come to hold other questions tells nothing
    about this run, and is refused.
    """
    row = store.run(run)
    assert row is not None
    spec, asked = spec_from_json(row.spec), store.questions(run)
    wanted = spec.questions
    if wanted.typed:
        return QuestionSet(name=wanted.dataset, questions=tuple(asked))
    found = open_benchmark(wanted.dataset, rounds=wanted.rounds, folders=folders_of(row.folder)).questions
    if not asked:
        return found.only(found.questions[: wanted.limit])
    known = {asked_key(question): question for question in found.questions}
    if found.resolutions:
        for question in asked:
            same = known.get(asked_key(question))
            if same is None or (same.text, same.targets) != (question.text, question.targets):
                problem = f"run {run} asked {question.id!r}, and {wanted.dataset} no longer holds it in those words"
                raise InputError(problem, hint="put the file back that it was run on, or give a table of outcomes")
    return replace(found.only(asked), questions=tuple(asked))


def folders_of(started_in: str) -> tuple[Path, ...]:
    """Where the files of a stored run are sought: where it was started, then here."""
    return (Path(started_in), Path()) if started_in else (Path(),)


def _is_format(name: str) -> bool:
    return isinstance(load("datasets", name), FileFormat)


def _format_of(name: str) -> str:
    """The first format that recognises a file."""
    path = Path(name)
    if not path.exists():
        raise InputError(f"{name!r} is neither a file nor one of {', '.join(DATASETS)}")
    for dataset in DATASETS:
        plugin = load("datasets", dataset)
        if dataset != FALLBACK_FORMAT and isinstance(plugin, FileFormat) and plugin.recognises(path):
            return dataset
    return FALLBACK_FORMAT


# Open questions of a Metaculus tournament, each kept as it was when this machine first saw it.
#
# A question that is seen again is the same question, to the second: what was answered is not asked anew, and a run that
# was killed finds its replies. With `again`, a question is taken as new after so many days.

TOURNAMENT_PREFIX = "metaculus:"
TOURNAMENT_HINT = "write metaculus:TOURNAMENT, such as metaculus:minibench, or metaculus:TOURNAMENT,again=7"
MAX_QUESTIONS = 1_000
_SLUG = re.compile(r"[A-Za-z0-9_-]{1,80}")


@dataclass(frozen=True, kw_only=True)
class Tournament:
    """A tournament by its slug or number.

    >>> Tournament.read("metaculus:minibench,again=7")
    Tournament(slug='minibench', again=7.0)
    """

    slug: str
    again: float | None = None
    """Days after which a question is asked anew; None asks every question once."""

    @classmethod
    def read(cls, name: str) -> "Tournament":
        """From the name of a question set."""
        slug, *options = name.removeprefix(TOURNAMENT_PREFIX).split(",")
        if not _SLUG.fullmatch(slug):
            raise InputError(f"{slug!r} is not the name of a tournament", column="questions", hint=TOURNAMENT_HINT)
        again: float | None = None
        for option in options:
            key, _, value = option.partition("=")
            try:
                again = float(value)
            except ValueError:
                again = 0.0
            if key.strip() != "again" or again <= 0:
                raise InputError(f"cannot use {option!r}", column="questions", hint=TOURNAMENT_HINT)
        return cls(slug=slug, again=again)


def metaculus_tournament(request: DatasetRequest) -> Dataset:
    """What is open now in a tournament, `metaculus:TOURNAMENT`."""
    name = f"{TOURNAMENT_PREFIX}{request.argument}"
    tournament = Tournament.read(name)
    if not request.live:
        raise InputError(f"{name} lists what is open now", column="questions", hint="say mode: live")
    found = open_questions(tournament, load_settings(), request.now.replace(microsecond=0))
    return Dataset(questions=found, history=found, grows=True)


def open_questions(tournament: Tournament, settings: Settings, now: datetime) -> QuestionSet:
    """What is open now, in the platform's order; what was seen before as it was then."""
    listed, notes = run_sync(_listed(tournament, settings, now), event_loop.run)
    path = settings.home / "tournaments" / f"{tournament.slug}.json"
    known = _stored(path)
    chosen: list[Question] = []
    for question in listed:
        seen = known.get(question.id, question)
        again = tournament.again is not None and now - seen.due >= timedelta(days=tournament.again)
        chosen.append(question if again else seen)
    rows = [json.loads(to_json(one)) for one in (known | {one.id: one for one in chosen}).values()]
    write_atomically(path, json.dumps(rows, ensure_ascii=False, indent=0).encode())
    return QuestionSet(name=tournament.slug, questions=tuple(chosen), notes=notes)


async def _listed(tournament: Tournament, settings: Settings, now: datetime) -> tuple[list[Question], tuple[str, ...]]:
    from foretell.data.http import AsyncHttpClient
    from foretell.data.markets.metaculus import MetaculusClient, MetaculusEvents

    token = settings.key("metaculus")
    if not token:
        raise InputError("Metaculus answers nobody without a token", hint="set METACULUS_TOKEN")
    own: dict[str, Any] = {}
    if "metaculus" in settings.addresses:
        # A server of one's own need not be spared.
        own = {"host": settings.addresses["metaculus"], "per_second": 100.0, "retry_seconds": 0.1}
    async with AsyncHttpClient(access=settings.access) as http:
        events = MetaculusEvents(MetaculusClient(http=http, token=token, **own), tournaments=(tournament.slug,))
        listing: EventListing = events.events(ListingFilter(as_of=AsOf(at=now, mode="live"), limit=MAX_QUESTIONS))
        try:
            found = [event.question for event in await listing.all()]
        except SourceError as error:
            raise InputError(f"the questions of {tournament.slug} could not be read: {error}") from None
        return found, listing.ledger.notes()


def _stored(path: Path) -> dict[str, Question]:
    if not path.is_file():
        return {}
    try:
        questions = [from_dict(row, Question) for row in json.loads(path.read_text(encoding="utf-8"))]
    except (ValueError, TypeError, InputError):
        raise InputError("is damaged", path=path, hint="delete it: its questions are then asked anew") from None
    return {question.id: question for question in questions}
