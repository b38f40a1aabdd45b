"""Question sets by name: what `foretell backtest` and the demo can be pointed at."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foretell.questions.problems import InputError
from foretell.questions.question import SeriesRef
from foretell.sources.datasets.question_set import QuestionSet, union
from foretell.sources.series import SeriesSource

if TYPE_CHECKING:
    from foretell.sources.series_from.packaged import Packaged

NAMES = ("demo", "forecastbench")


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """A question set with the series that some of its questions are about."""

    questions: QuestionSet
    history: QuestionSet
    """Where base rates are counted; each question sees only the part that was known before its date."""
    series: SeriesSource | None = None

    @cached_property
    def resources(self) -> Mapping[str, Callable[[], Any]]:
        """What forecasters may learn from, each made when the first of them asks for it."""
        from foretell.arena import history

        asked, answered = self.history.questions, self.history.resolutions
        return {
            "rates": cache(lambda: history.base_rates(asked, answered)),
            "past": cache(lambda: history.past(asked, answered)),
            "bank": cache(lambda: history.past_questions(asked, answered)),
        }


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
        return _tables(Path(name), rounds)
    if Path(name).exists():
        from foretell.sources.datasets.arena_files import read_arena_file
        from foretell.sources.datasets.files import read_questions

        found = read_arena_file(name) or read_questions(name, asked_at=datetime.now(UTC))
        return Benchmark(questions=found, history=found)
    raise InputError(f"{name!r} is neither a file nor one of {', '.join(NAMES)}")


def _tournament(name: str, *, live: bool) -> Benchmark:
    from foretell.app.settings import load_settings
    from foretell.app.tournament import Tournament, open_questions

    tournament = Tournament.read(name)
    if not live:
        raise InputError(f"{name} lists what is open now", column="questions", hint="say mode: live")
    found = open_questions(tournament, load_settings(), datetime.now(UTC).replace(microsecond=0))
    return Benchmark(questions=found, history=found)


def _forecastbench(rounds: Sequence[str], folder: Path | None) -> Benchmark:
    from foretell.sources.datasets.cache import Cache, cache_home
    from foretell.sources.datasets.pull import pulled_rounds, read_pulled

    cache = Cache(folder or cache_home() / "forecastbench")
    here = pulled_rounds(cache)
    missing = [day for day in rounds if day not in here]
    if missing or not here:
        wanted = f"--round {missing[0]}" if missing else "--latest"
        raise InputError(f"no such round in {cache.root}", hint=f"foretell data pull forecastbench {wanted}")
    history = union("forecastbench", [read_pulled(cache, day) for day in here])
    chosen = set(rounds or here)
    questions = history.only(q for q in history.questions if q.due.date().isoformat() in chosen)
    return Benchmark(questions=questions, history=history)


def _tables(folder: Path, rounds: Sequence[str]) -> Benchmark:
    from foretell.sources.datasets.tables import read_question_tables

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
class Family:
    """How often the demo asks about some of the packaged series, and how far ahead."""

    every_days: int
    """More than the longest horizon, so that no two rounds look at the same stretch."""
    horizons: tuple[int, ...]


DEMO = {
    "elnino": Family(every_days=400, horizons=(30, 90, 180, 365)),
    "co2": Family(every_days=400, horizons=(7, 30, 90, 180, 365)),
    "macro": Family(every_days=400, horizons=(90, 180, 365)),
    "sunspots": Family(every_days=1200, horizons=(365, 1095)),
    "nile": Family(every_days=1200, horizons=(365, 1095)),
}
BURN_IN = 0.4
"""Share of each series that is history before the first question."""


def demo_benchmark() -> Benchmark:
    """Real series that ship inside statsmodels, turned into questions of ForecastBench's form."""
    from foretell.sources.series_from.packaged import Packaged

    source = Packaged()
    found = union("demo", [_demo_questions(source, id) for id in source.ids()])
    return Benchmark(questions=found, history=found, series=source)


def _demo_questions(source: "Packaged", id: str) -> QuestionSet:
    from foretell.sources.datasets.from_series import Asking, Subject, due_dates, questions_from

    series, name = source.series(id), id.partition(".")[0]
    family = DEMO[name]
    first, last = series.days[int(BURN_IN * len(series))].astype(date), series.days[-1].astype(date)
    subject = Subject(series=series, ref=SeriesRef(provider=name, id=id), title=source.title(id), source=name)
    return questions_from(subject, Asking(dues=due_dates(first, last, family.every_days), horizons=family.horizons))
