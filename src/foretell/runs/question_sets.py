"""Question sets by name: what `foretell backtest` and the demo can be pointed at."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from foretell.data.atomic_file import write_atomically
from foretell.data.datasets.question_set import QuestionSet, union
from foretell.data.http import SourceError
from foretell.data.markets.listing import EventListing, ListingFilter
from foretell.data.series.series import SeriesSource
from foretell.questions.as_of import AsOf
from foretell.questions.codec import from_json, to_json
from foretell.questions.errors import InputError
from foretell.questions.question import Question, SeriesRef
from foretell.runs import event_loop
from foretell.runs.backtest import run_sync
from foretell.runs.settings import Settings

if TYPE_CHECKING:
    from foretell.data.series.local import PackagedSeries
    from foretell.forecasters.base_rates.past import Past


BUILT_IN_SETS = ("demo", "forecastbench")


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """A question set with the series that some of its questions are about."""

    questions: QuestionSet
    history: QuestionSet
    """Where base rates are counted; each question sees only the part that was known before its date."""
    series: SeriesSource | None = None

    @cached_property
    def past(self) -> "Past":
        """What forecasters may learn from; each question is shown only what was known before its date."""
        from foretell.runs.past import past_of

        return past_of(self.history.questions, self.history.resolutions)


def open_benchmark(
    name: str, *, rounds: Sequence[str] = (), folder: Path | None = None, live: bool = False
) -> Benchmark:
    """A built-in set by name, a file of questions, a folder of flat tables, or for a live run a tournament."""
    if name.startswith("metaculus:"):
        return _tournament(name, live=live)
    if name == "demo":
        return demo_benchmark()
    if name == "forecastbench":
        return _forecastbench(rounds, folder)
    if Path(name).is_dir():
        return _flat_tables(Path(name), rounds)
    if Path(name).exists():
        from foretell.data.datasets.prophet_arena import read_arena_file
        from foretell.data.datasets.question_files import read_questions

        found = read_arena_file(name) or read_questions(name, asked_at=datetime.now(UTC))
        return Benchmark(questions=found, history=found)
    raise InputError(f"{name!r} is neither a file nor one of {', '.join(BUILT_IN_SETS)}")


def _tournament(name: str, *, live: bool) -> Benchmark:
    from foretell.runs.settings import load_settings

    tournament = Tournament.read(name)
    if not live:
        raise InputError(f"{name} lists what is open now", column="questions", hint="say mode: live")
    found = open_questions(tournament, load_settings(), datetime.now(UTC).replace(microsecond=0))
    return Benchmark(questions=found, history=found)


def _forecastbench(rounds: Sequence[str], folder: Path | None) -> Benchmark:
    from foretell.data.datasets.cache import DownloadCache, cache_home
    from foretell.data.datasets.forecastbench_download import pulled_rounds, read_pulled

    cache = DownloadCache(folder or cache_home() / "forecastbench")
    here = pulled_rounds(cache)
    missing = [day for day in rounds if day not in here]
    if missing or not here:
        wanted = f"--round {missing[0]}" if missing else "--latest"
        raise InputError(f"no such round in {cache.root}", hint=f"foretell data pull forecastbench {wanted}")
    history = union("forecastbench", [read_pulled(cache, day) for day in here])
    chosen = set(rounds or here)
    questions = history.only(q for q in history.questions if q.due.date().isoformat() in chosen)
    return Benchmark(questions=questions, history=history)


def _flat_tables(folder: Path, rounds: Sequence[str]) -> Benchmark:
    from foretell.data.datasets.forecastbench_tables import read_question_tables

    history = read_question_tables(folder)
    here = {q.due.date().isoformat() for q in history.questions}
    if missing := [day for day in rounds if day not in here]:
        hint = f"there are {', '.join(sorted(here))}"
        raise InputError(f"no round of {missing[0]}", path=folder, column="--round", hint=hint)
    chosen = set(rounds or here)
    return Benchmark(
        questions=history.only(q for q in history.questions if q.due.date().isoformat() in chosen), history=history
    )


@dataclass(frozen=True, kw_only=True)
class DemoSchedule:
    """How often the demo asks about some of the packaged series, and how far ahead."""

    every_days: int
    """More than the longest horizon, so that no two rounds look at the same stretch."""
    horizons: tuple[int, ...]


DEMO = {
    "elnino": DemoSchedule(every_days=400, horizons=(30, 90, 180, 365)),
    "co2": DemoSchedule(every_days=400, horizons=(7, 30, 90, 180, 365)),
    "macro": DemoSchedule(every_days=400, horizons=(90, 180, 365)),
    "sunspots": DemoSchedule(every_days=1200, horizons=(365, 1095)),
    "nile": DemoSchedule(every_days=1200, horizons=(365, 1095)),
}
BURN_IN = 0.4
"""Share of each series that is history before the first question."""


def demo_benchmark() -> Benchmark:
    """Real series that ship inside statsmodels, turned into questions of ForecastBench's form."""
    from foretell.data.series.local import PackagedSeries

    source = PackagedSeries()
    found = union("demo", [_demo_questions(source, id) for id in source.ids()])
    return Benchmark(questions=found, history=found, series=source)


def _demo_questions(source: "PackagedSeries", id: str) -> QuestionSet:
    from foretell.data.datasets.from_series import SeriesQuestionPlan, SeriesSubject, due_dates, questions_from

    series, name = source.series(id), id.partition(".")[0]
    family = DEMO[name]
    first, last = series.days[int(BURN_IN * len(series))].astype(date), series.days[-1].astype(date)
    subject = SeriesSubject(series=series, ref=SeriesRef(provider=name, id=id), title=source.title(id), source=name)
    return questions_from(
        subject, SeriesQuestionPlan(dues=due_dates(first, last, family.every_days), horizons=family.horizons)
    )


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

    def file(self, home: Path) -> Path:
        """Where its questions are kept."""
        return home / "tournaments" / f"{self.slug}.json"

    def fresh(self, seen: Question, now: datetime) -> bool:
        """Whether a question that was seen before is asked anew."""
        return self.again is not None and now - seen.due >= timedelta(days=self.again)


def open_questions(tournament: Tournament, settings: Settings, now: datetime) -> QuestionSet:
    """What is open now, in the platform's order; what was seen before as it was then."""
    listed, notes = run_sync(_listed(tournament, settings, now), event_loop.run)
    path = tournament.file(settings.home)
    known = _stored(path)
    chosen: list[Question] = []
    for question in listed:
        seen = known.get(question.id)
        chosen.append(question if seen is None or tournament.fresh(seen, now) else seen)
    _store(path, known | {question.id: question for question in chosen})
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
    async with AsyncHttpClient() as http:
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
        rows = cast("list[Any]", json.loads(path.read_text(encoding="utf-8")))
        questions = [from_json(json.dumps(row), Question) for row in rows]
    except (ValueError, TypeError, InputError):
        raise InputError("is damaged", path=path, hint="delete it: its questions are then asked anew") from None
    return {question.id: question for question in questions}


def _store(path: Path, questions: dict[str, Question]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(to_json(question)) for question in questions.values()]
    write_atomically(path, json.dumps(rows, ensure_ascii=False, indent=0).encode())
