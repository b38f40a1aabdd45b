"""One question, answered: what the command line, assistants and Python programs share."""

import hashlib
import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from foretell.data.datasets.cache import DownloadCache
from foretell.data.datasets.forecastbench_download import pulled_rounds, read_pulled
from foretell.data.datasets.question_set import QuestionSet, union
from foretell.forecasters.base_rates.baselines import CrowdForecaster
from foretell.forecasters.base_rates.outside_view import OutsideView
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.base_rates.reference_class import ReferenceClass
from foretell.forecasters.forecaster import CannotForecast, Context
from foretell.questions.as_of import AsOf, instant
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question, Snapshot, Target
from foretell.runs import event_loop
from foretell.runs.backtest import run_sync
from foretell.runs.combine import CombinationSettings, combine_trials, combining_by_name
from foretell.runs.past import past_of
from foretell.runs.question_sets import Benchmark
from foretell.runs.runner import PreparedRun, WatchProgress, execute_run, prepare_run
from foretell.runs.settings import Settings, load_settings
from foretell.runs.spec import BudgetSpec, QuestionsSpec, RunSpec
from foretell.runs.store import RunStore

if TYPE_CHECKING:
    from foretell.runs.spec import RunSpec


# One question from the command line, as a run of its own.

TYPED_PREFIX = "asked "
"""Begins the name of a set that is one question typed at the command line."""


@dataclass(frozen=True, kw_only=True)
class TypedQuestion:
    """What a person typed."""

    text: str
    by: str | None = None
    as_of: str | None = None
    options: tuple[str, ...] = ()
    criteria: str = ""
    price: float | None = None


def question_from_text(asked: TypedQuestion, now: datetime) -> Question:
    """The question, asked now or as of a past date."""
    if not asked.text.strip():
        raise InputError("the question is empty")
    due = _moment(asked.as_of, "--as-of") or now
    by = _moment(asked.by, "--by")
    if by is not None and by <= due:
        raise InputError(f"{asked.by} is not after the day of asking", column="--by", hint="name a later day")
    snapshot = None if asked.price is None else Snapshot(at=due, last_price=asked.price)
    if asked.options:
        targets = tuple(Target(id=option, label=option, resolves_at=by) for option in asked.options)
    else:
        targets = (Target(id="yes", resolves_at=by, snapshot=snapshot),)
    digest = hashlib.sha256(asked.text.encode()).hexdigest()[:10]
    return Question(
        id=f"asked/{digest}",
        source="asked",
        text=asked.text,
        criteria=asked.criteria,
        due=due,
        opens_at=due,
        closes_at=by,
        targets=targets,
        exclusive=len(asked.options) > 1,
    )


def _moment(text: str | None, option: str) -> datetime | None:
    if text is None:
        return None
    try:
        return instant(text)
    except ValueError as error:
        raise InputError(str(error), column=option) from None


def run_spec_for(
    asked: TypedQuestion,
    model: str,
    *,
    search: tuple[str, ...],
    trials: int,
    budget: float | None,
    variant: str = "full",
) -> RunSpec:
    """The run that answers the question."""
    words = hashlib.sha256(repr((asked, datetime.now(UTC).date() if asked.as_of is None else "")).encode()).hexdigest()
    return RunSpec(
        questions=QuestionsSpec(dataset=f"{TYPED_PREFIX}{words[:10]}"),
        options={"variant": variant},
        models={"agent": model},
        search=search,
        trials=trials,
        mode="live" if asked.as_of is None else "backtest",
        budget=BudgetSpec(run=budget),
    )


def single_question_set(question: Question) -> Benchmark:
    """The question alone."""
    found = QuestionSet(name="asked", questions=(question,))
    return Benchmark(questions=found, history=found)


# What can be said of a question without any model: the crowd's price, or how questions like it ended.


def outside_forecast(question: Question, as_of: AsOf, settings: Settings) -> Forecast:
    """The price where one was given, else the outside view, with the reference class among the pulled rounds."""
    priced = all(target.snapshot is not None for target in question.targets)
    forecaster = CrowdForecaster() if priced else OutsideView()
    try:
        past = Past() if priced else _pulled_rounds(settings.home)
        return run_sync(forecaster.forecast(question, Context(as_of=as_of, past=past)), event_loop.run)
    except CannotForecast as reason:
        hint = "foretell data pull forecastbench brings rounds to learn from, or give --model"
        raise InputError(str(reason), hint=hint) from None


def reference_class(question: Question, as_of: AsOf, settings: Settings) -> ReferenceClass | None:
    """The most similar questions among the pulled rounds; None where none were pulled."""
    past = _pulled_rounds(settings.home)
    return ReferenceClass.of(question, past.table, as_of) if past else None


@cache
def _pulled_rounds(home: Path) -> Past:
    cache = DownloadCache(home / "forecastbench")
    found = [found for day in pulled_rounds(cache) if (found := _readable_round(cache, day))]
    everything = union("pulled", found)
    return past_of(everything.questions, everything.resolutions)


def _readable_round(cache: DownloadCache, day: str) -> QuestionSet | None:
    try:
        return read_pulled(cache, day)
    except InputError:
        return None


@dataclass(frozen=True, kw_only=True)
class ResearchOptions:
    """Who is to answer, and how hard they try."""

    model: str
    """`provider:name` of the agent."""
    search: tuple[str, ...] = ()
    """Search engines, in the order they are asked."""
    trials: int = 1
    budget: float | None = None
    """Dollars; a spent budget ends in the standing belief."""
    variant: str = "full"
    combine: str = "default"

    def spec(self, asked: TypedQuestion) -> "RunSpec":
        """The run that answers a question so."""
        spec = run_spec_for(
            asked, self.model, search=self.search, trials=self.trials, budget=self.budget, variant=self.variant
        )
        return replace(spec, aggregate="judged") if self.combine == "judged" else spec


def default_search_engines() -> tuple[str, ...]:
    """The engines named in FORETELL_SEARCH."""
    return tuple(filter(None, os.environ.get("FORETELL_SEARCH", "").split(",")))


def question_now(asked: TypedQuestion) -> Question:
    """The question as of its date, or of this second."""
    return question_from_text(asked, datetime.now(UTC).replace(microsecond=0))


def outside_view(asked: TypedQuestion, settings: Settings) -> Forecast:
    """The outside view: nothing is read, nobody is asked, nothing is paid."""
    question = question_now(asked)
    return outside_forecast(question, question.as_of_in("backtest" if asked.as_of else "live"), settings)


def prepare_question(asked: TypedQuestion, research: ResearchOptions) -> PreparedRun:
    """The run of one question, ready to start."""
    return prepare_run(research.spec(asked), single_question_set(question_now(asked)))


async def run_research(
    prepared: PreparedRun,
    settings: Settings,
    how: CombinationSettings | None = None,
    *,
    watch: WatchProgress | None = None,
) -> Forecast:
    """Run it and put the trials together. Asked again, it finds every reply it had and pays for none twice."""
    await execute_run(prepared, settings, watch=watch)
    # The same words asked earlier today belong to the same run, with an answer of their own.
    now = prepared.questions[0].as_of.at
    with closing(RunStore(settings.store)) as store:
        answers = [answer for answer in store.answers(prepared.spec.id) if answer.as_of.at == now]
    found = combine_trials(answers, prepared.questions, how)
    if not found:
        failures = [answer.error for answer in answers if isinstance(answer, Failure)]
        raise InputError(f"no trial gave an answer: {failures[0] if failures else 'nothing was run'}")
    return found[0]


class AskOptions(TypedDict, total=False):
    """What may be said about a question and its answering."""

    by: str | None
    """When it will be known, as an ISO date."""
    as_of: str | None
    """Ask as if it were that day: nothing later is seen."""
    options: Sequence[str]
    """Exclusive outcomes; without any it is yes or no."""
    criteria: str
    price: float | None
    """What a market says now."""
    trials: int
    budget: float | None
    """Dollars."""
    variant: str
    combine: str


def ask(
    question: str,
    *,
    model: str | None = None,
    search: Sequence[str] | None = None,
    settings: Settings | None = None,
    **details: Unpack[AskOptions],
) -> Forecast:
    """A probability with its reasons; researched by `model`, or the outside view where no model is named.

    Without a model nothing is read and nothing is paid. Keys come from the environment; `search` names engines, and
    where it is not given those of FORETELL_SEARCH are asked.

    >>> forecast = ask("Will the bank cut its rate?", by="2027-03-31", price=0.4)
    >>> forecast.p
    {'yes': 0.4}
    """
    if unknown := details.keys() - AskOptions.__annotations__:
        raise TypeError(f"ask() has no option {min(unknown)!r}; there are {', '.join(AskOptions.__annotations__)}")
    settings = settings or load_settings()
    asked = TypedQuestion(
        text=question,
        by=details.get("by"),
        as_of=details.get("as_of"),
        options=tuple(details.get("options", ())),
        criteria=details.get("criteria", ""),
        price=details.get("price"),
    )
    if model is None:
        return outside_view(asked, settings)
    research = ResearchOptions(
        model=model,
        search=default_search_engines() if search is None else tuple(search),
        trials=details.get("trials", 1),
        budget=details.get("budget"),
        variant=details.get("variant", "full"),
        combine=details.get("combine", "default"),
    )
    prepared = prepare_question(asked, research)
    return run_sync(run_research(prepared, settings, combining_by_name(research.combine)), event_loop.run)
