"""Asking: what a person may fill in, what this machine can do with it, and the answer without any model."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from foretell.app.asking import Asked, benchmark_of, question_of, spec_of
from foretell.app.equipment import ENGINES
from foretell.app.outside import outside_forecast, reference_class
from foretell.app.running import Prepared, check_options, prepare
from foretell.app.settings import KEYS, Settings
from foretell.app.web.views.home import MODELS
from foretell.app.web.views.question import QuestionText, question_text
from foretell.arena.spec import RunSpec
from foretell.llm.opening import Exchange
from foretell.questions.problems import InputError
from foretell.questions.question import Question

LISTED = 10
Short = Annotated[str, Field(max_length=200)]


class Wording(BaseModel):
    """What is asked."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    text: Annotated[str, Field(min_length=1, max_length=5000, description="The question, as a sentence.")]
    by: Annotated[str | None, Field(max_length=40, description="When it will be known, e.g. 2026-12-24.")] = None
    as_of: Annotated[str | None, Field(max_length=40, description="Ask as if it were that day.")] = None
    options: Annotated[list[Short], Field(max_length=50, description="Exclusive outcomes, if not yes or no.")] = []
    criteria: Annotated[str, Field(max_length=20_000, description="How exactly it resolves.")] = ""
    price: Annotated[float | None, Field(ge=0, le=1, description="What a market says now.")] = None

    @field_validator("options")
    @classmethod
    def _distinct(cls, given: list[str]) -> list[str]:
        kept = [option.strip() for option in given if option.strip()]
        if len(set(kept)) < len(kept):
            raise ValueError("an outcome is named twice")
        return kept

    def asked(self) -> Asked:
        """As the command line would have it."""
        return Asked(
            text=self.text,
            by=self.by or None,
            as_of=self.as_of or None,
            options=tuple(self.options),
            criteria=self.criteria,
            price=self.price,
        )


class Wish(Wording):
    """A question to be researched, and by whom."""

    model: Annotated[str, Field(min_length=1, max_length=300, description="provider:name of the agent.")]
    search: Annotated[list[Short], Field(max_length=10, description="Engines, in the order they are asked.")] = []
    trials: Annotated[int, Field(ge=1, le=50, description="Independent trials to combine.")] = 1
    budget: Annotated[float | None, Field(gt=0, le=10_000, description="Hard limit in dollars.")] = None
    variant: Literal["full", "nobelief", "zero-shot", "batch"] = "full"
    aggregate: Literal["mean", "logit-mean", "median", "trimmed", "extremised", "judged"] = "logit-mean"


@dataclass(frozen=True, kw_only=True)
class AskView:
    """What this machine can do with a question."""

    providers: tuple[str, ...]
    """Of models that there is a key for."""
    missing: tuple[str, ...]
    """Environment variables that would bring one."""
    engines: tuple[str, ...]
    """Search engines that can be used."""
    model: str
    search: tuple[str, ...]
    """What is chosen unless somebody chooses otherwise."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """A past question like the one asked, and how it ended."""

    text: str
    url: str
    known_on: str
    outcome: int
    similarity: float


@dataclass(frozen=True, kw_only=True)
class OutsideAnswer:
    """The answer without any model: how questions like it ended."""

    question: QuestionText
    p: dict[str, float]
    rationale: str
    reference: tuple[Member, ...]
    """The most similar past questions, where rounds were pulled to this machine."""


@dataclass(frozen=True, kw_only=True)
class Begun:
    """A run that was started."""

    run: str
    question: str
    due: str
    warnings: tuple[str, ...]


def ask_view(settings: Settings, model: str, search: tuple[str, ...]) -> AskView:
    """What keys and corpora allow."""
    providers = tuple(name for name in MODELS if name in settings.services)
    usable = {"gdelt", *(("local",) if settings.corpus.exists() else ()), *settings.services}
    return AskView(
        providers=providers,
        missing=tuple(KEYS[name][0] for name in MODELS if name not in providers),
        engines=tuple(engine for engine in ENGINES if engine in usable),
        model=model,
        search=search,
    )


def outside_answer(wording: Wording, settings: Settings) -> OutsideAnswer:
    """Nothing is read, nobody is asked, nothing is kept."""
    question = _question(wording)
    as_of = question.as_of_in("backtest" if wording.as_of else "live")
    forecast = outside_forecast(question, as_of, settings)
    found = reference_class(question, as_of, settings)
    return OutsideAnswer(
        question=question_text(question),
        p=dict(forecast.p),
        rationale=forecast.rationale,
        reference=tuple(
            Member(
                text=member.text,
                url=member.url,
                known_on=member.known_on.isoformat(),
                outcome=member.outcome,
                similarity=member.similarity,
            )
            for member in (found.members[:LISTED] if found else ())
        ),
    )


def prepared_wish(wish: Wish, settings: Settings) -> Prepared:
    """The run that answers it, checked as far as it can be before anything is spent."""
    question = _question(wish)
    spec: RunSpec = spec_of(
        wish.asked(),
        wish.model,
        search=tuple(wish.search),
        trials=wish.trials,
        budget=wish.budget,
        variant=wish.variant,
    )
    spec = replace(spec, aggregate=wish.aggregate)
    check_options(spec)
    Exchange(settings.keys).check([wish.model])
    unknown = [engine for engine in wish.search if engine not in ENGINES]
    if unknown:
        raise InputError(f"there is no search engine {unknown[0]!r}", column="search", hint=", ".join(ENGINES))
    return prepare(spec, benchmark_of(question))


def _question(wording: Wording) -> Question:
    return question_of(wording.asked(), datetime.now(UTC).replace(microsecond=0))
