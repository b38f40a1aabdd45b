"""Question sets by name, as used by `foretell backtest`, `foretell run` and the demo."""

from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foretell.data.datasets.dataset import Dataset, DatasetRequest
from foretell.data.datasets.question_set import AskedKey, LeakyQuestions, QuestionSet, SetFilter, asked_key
from foretell.data.service import ServiceConfig
from foretell.forecasters.prompt.prediction_context import PredictionContext, stored_context
from foretell.frozen import frozen
from foretell.plugins import load
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.questions.field_checks import check_arguments
from foretell.questions.question import Question
from foretell.runs import event_loop
from foretell.runs.event_loop import run_sync
from foretell.runs.listings import open_listing
from foretell.runs.set_names import FALLBACK_FORMAT, find_set, folders_of
from foretell.runs.settings import load_settings
from foretell.runs.spec import RunSpec, spec_from_json
from foretell.runs.store import RunStore
from foretell.tools.post_cutoff_text import post_cutoff_passages, split_leaky

if TYPE_CHECKING:
    from foretell.forecasters.base_rates.past import Past


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


@frozen
class Benchmark(Dataset):
    """A data set with past questions that forecasters may learn from."""

    own: bool = False
    """Whether users wrote these questions themselves. Their series are then also read from the web."""

    def __repr__(self) -> str:
        return repr(self.questions).replace(type(self.questions).__name__, type(self).__name__, 1)

    @cached_property
    def contexts(self) -> SetContexts:
        """What was gathered for the questions beforehand."""
        return SetContexts(self.questions)

    @cached_property
    def past(self) -> "Past":
        """Past questions that forecasters may learn from. Each question sees only what was known before its date."""
        from foretell.runs.past import past_of

        return past_of(self.history.questions, self.history.resolutions)


@frozen
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


@check_arguments
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
        name: The set. The error for an unknown one lists the possibilities.
        wanted: Which part of it.
        rounds: Due dates of the wanted rounds, besides those of `wanted`; empty for all.
        folder: Folder of downloaded files, instead of the default.
        live: Whether it is for a live run. A market's current listing cannot be used in a backtest.
        now: The time at which questions without their own time are asked.
        folders: Folders in which to look for a file, in order.

    Returns:
        A `Benchmark` with `questions` (a `QuestionSet` with their `resolutions`), `past` questions and `series`.

    Raises:
        InputError: If there is no such set, or it cannot be fetched.

    >>> open_benchmark("demo").questions.questions[0].source
    'elnino'
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
        from foretell.data.datasets.forecastbench_download import pulled_rounds, rounds_cache
        from foretell.runs.due_prices import keep_due_prices

        cache = rounds_cache()
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


def typed_questions(questions: Iterable[Question]) -> Benchmark:
    """Return typed questions as a question set; they exist only in the request and in the store."""
    question_set = QuestionSet(name="asked", questions=tuple(questions))
    return Benchmark(questions=question_set, history=question_set, own=True)


def stored_questions(store: RunStore, spec: RunSpec) -> Benchmark | None:
    """Return all questions of a typed run; None for a run with a question set."""
    questions = store.questions(spec.id) if spec.questions.typed else []
    return typed_questions(questions) if questions else None
