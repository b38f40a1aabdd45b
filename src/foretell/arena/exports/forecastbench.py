"""A run's forecasts as a ForecastBench submission: one file for one round, checked against the round's questions."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from foretell.questions.forecast import Forecast
from foretell.questions.problems import InputError
from foretell.questions.question import Kind, Question, Target
from foretell.sources.datasets.forecastbench.rounds import question_file

NEEDED_PERCENT = 95
"""Of the market forecasts and of the data-set forecasts; a submission with less is not ranked."""
MOST_FILES = 3
NAMED = 20
"""How many missing questions an error names."""
KINDS: tuple[Kind, ...] = ("market", "dataset")

Key = tuple[str, str, str | None]
"""Source, id and resolution date as published: what one row of a submission answers."""


@dataclass(frozen=True, kw_only=True)
class Sender:
    """Who hands a submission in, and under which name.

    >>> Sender(organization="Example A.I.", model="full", number=2).file_name("2026-08-02")
    '2026-08-02.Example AI.2.json'
    """

    organization: str
    model: str
    model_organization: str = ""
    """Who made the model; empty: the organization itself."""
    number: int = 1
    """A team may hand in three files for a round."""

    def __post_init__(self) -> None:
        if not self.model.strip():
            raise InputError("the model has no name", column="--model")
        if not self._stem or any(mark in self.organization for mark in "/\\\0"):
            problem = f"{self.organization!r} cannot stand in a file name"
            raise InputError(problem, column="--organization", hint="write a name of letters, without slashes")
        if not 1 <= self.number <= MOST_FILES:
            raise InputError(f"{self.number} is not 1 to {MOST_FILES}", column="--number")

    @property
    def _stem(self) -> str:
        return self.organization.replace(".", "").strip()

    def file_name(self, day: str) -> str:
        """What the file must be called: due date, organization without dots, number."""
        return f"{day}.{self._stem}.{self.number}.json"


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """How much of what is asked of one kind is answered.

    >>> print(Coverage(kind="dataset", asked=40, missing={"fred/DAAA": 3}))
    dataset forecasts: 37 of 40 (92.5 %); missing: fred/DAAA (3 dates)
    """

    kind: Kind
    asked: int
    missing: Mapping[str, int]
    """Question ids with the number of rows that are not there."""

    @property
    def given(self) -> int:
        """Rows that are there."""
        return self.asked - sum(self.missing.values())

    @property
    def enough(self) -> bool:
        """Whether the benchmark ranks it."""
        return 100 * self.given >= NEEDED_PERCENT * self.asked

    def __str__(self) -> str:
        """For people, in one line."""
        share = 100 * self.given / self.asked if self.asked else 100.0
        told = f"{self.kind} forecasts: {self.given} of {self.asked} ({share:.1f} %)"
        if not self.missing:
            return told
        names = [f"{id} ({n} dates)" if n > 1 else id for id, n in list(self.missing.items())[:NAMED]]
        rest = len(self.missing) - len(names)
        return f"{told}; missing: {', '.join(names)}" + (f" and {rest} more questions" if rest else "")


def build_submission(
    forecasts: Iterable[Forecast], questions: Sequence[Question], sender: Sender, *, reasoning: bool = False
) -> dict[str, Any]:
    """The content of the file, in the order of the question set; what was not forecast has no row.

    `questions` is the whole set of one round. A forecast of anything else is an `InputError`.
    """
    by_question = _by_question(forecasts, questions)
    rows = [
        _row(question, target, forecast, reasoning=reasoning)
        for question in questions
        if (forecast := by_question.get(question.id)) is not None
        for target in question.targets
        if target.id in forecast.p
    ]
    return {
        "organization": sender.organization,
        "model": sender.model,
        "model_organization": sender.model_organization or sender.organization,
        "question_set": question_file(round_of(questions)).rpartition("/")[2],
        "forecasts": rows,
    }


def round_of(questions: Sequence[Question]) -> str:
    """The due date of a question set, which must be of one round."""
    days = {question.due.date().isoformat() for question in questions}
    if len(days) != 1:
        raise ValueError(f"questions must be those of one round, got {sorted(days) or 'none'}")
    return days.pop()


def check_submission(body: Mapping[str, Any], questions: Sequence[Question]) -> tuple[Coverage, ...]:
    """What of the question set is covered, by kind; a row the benchmark would refuse is an `InputError` that names it.

    The rows are read as they stand, so that a file from elsewhere can be checked as well.
    """
    asked = {key: question for question in questions for key in _keys(question)}
    given: set[Key] = set()
    for number, row in enumerate(body["forecasts"], start=1):
        key = (row.get("source"), row.get("id"), row.get("resolution_date"))
        if problem := _problem(key, row.get("forecast"), asked, given):
            told = " ".join(str(part) for part in key if part is not None)
            raise InputError(f"{told}: {problem}", row=number, column="forecasts")
        given.add(key)
    return tuple(_coverage(kind, questions, given) for kind in KINDS)


def insist(coverages: Iterable[Coverage]) -> None:
    """Refuse what would not be ranked, and say what is missing."""
    short = [str(coverage) for coverage in coverages if not coverage.enough]
    if short:
        problem = f"{NEEDED_PERCENT} % of each kind are needed to be ranked; {'; '.join(short)}"
        raise InputError(problem, hint="start the run again to fill the gaps, or write it as it is with --incomplete")


def _by_question(forecasts: Iterable[Forecast], questions: Sequence[Question]) -> dict[str, Forecast]:
    targets = {question.id: {target.id for target in question.targets} for question in questions}
    found: dict[str, Forecast] = {}
    for forecast in forecasts:
        stray = sorted(set(forecast.p) - targets.get(forecast.question_id, set()))
        if stray:
            problem = f"{forecast.question_id} {stray[0]} was forecast, but is not in the question set"
            raise InputError(problem, hint="is this the version of the round that was asked?")
        if found.setdefault(forecast.question_id, forecast) is not forecast:
            raise ValueError(f"forecasts hold {forecast.question_id} twice; combine the trials first")
    return found


def _row(question: Question, target: Target, forecast: Forecast, *, reasoning: bool) -> dict[str, Any]:
    source, id, day = _key(question, target)
    said = forecast.rationale if reasoning and forecast.rationale else None
    return {"id": id, "source": source, "forecast": forecast.p[target.id], "resolution_date": day, "reasoning": said}


def _key(question: Question, target: Target) -> Key:
    own = question.id.removeprefix(f"{question.source}/")
    return question.source, own, None if question.kind == "market" else target.id


def _keys(question: Question) -> Iterator[Key]:
    return (_key(question, target) for target in question.targets)


def _problem(key: tuple[Any, Any, Any], p: Any, asked: Mapping[Key, Question], given: set[Key]) -> str:
    if not isinstance(key[1], str) or key not in asked:
        return "is not asked in this round"
    if key in given:
        return "is forecast twice"
    if isinstance(p, bool) or not isinstance(p, int | float) or not isfinite(p) or not 0 <= p <= 1:
        return f"{p!r} is not a probability in [0, 1]"
    return ""


def _coverage(kind: Kind, questions: Sequence[Question], given: set[Key]) -> Coverage:
    of_kind = [question for question in questions if question.kind == kind]
    missing = Counter(question.id for question in of_kind for key in _keys(question) if key not in given)
    return Coverage(kind=kind, asked=sum(len(question.targets) for question in of_kind), missing=dict(missing))
