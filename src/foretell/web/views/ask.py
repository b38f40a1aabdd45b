"""Asking: what a person may fill in, what this machine can do with it, and the answer without any model."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from foretell.models.router import ModelRouter
from foretell.operations.ask import (
    TypedQuestion,
    outside_forecast,
    question_from_text,
    reference_class,
    run_spec_for,
    single_question_set,
)
from foretell.questions.errors import InputError
from foretell.questions.question import Question
from foretell.runs.runner import PreparedRun, check_options, prepare_run
from foretell.runs.services import SEARCH_ENGINES
from foretell.runs.settings import KEYS, Settings
from foretell.runs.spec import RunSpec
from foretell.web.views.home import MODEL_PROVIDERS
from foretell.web.views.question import QuestionTextView, question_text

SIMILAR_SHOWN = 10
ShortText = Annotated[str, Field(max_length=200)]


class QuestionForm(BaseModel):
    """What is asked."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    text: Annotated[str, Field(min_length=1, max_length=5000, description="The question, as a sentence.")]
    by: Annotated[str | None, Field(max_length=40, description="When it will be known, e.g. 2026-12-24.")] = None
    as_of: Annotated[str | None, Field(max_length=40, description="Ask as if it were that day.")] = None
    options: Annotated[list[ShortText], Field(max_length=50, description="Exclusive outcomes, if not yes or no.")] = []
    criteria: Annotated[str, Field(max_length=20_000, description="How exactly it resolves.")] = ""
    price: Annotated[float | None, Field(ge=0, le=1, description="What a market says now.")] = None

    @field_validator("options")
    @classmethod
    def _distinct(cls, given: list[str]) -> list[str]:
        kept = [option.strip() for option in given if option.strip()]
        if len(set(kept)) < len(kept):
            raise ValueError("an outcome is named twice")
        return kept

    def asked(self) -> TypedQuestion:
        """As the command line would have it."""
        return TypedQuestion(
            text=self.text,
            by=self.by or None,
            as_of=self.as_of or None,
            options=tuple(self.options),
            criteria=self.criteria,
            price=self.price,
        )


class AskForm(QuestionForm):
    """A question to be researched, and by whom."""

    model: Annotated[str, Field(min_length=1, max_length=300, description="provider:name of the agent.")]
    search: Annotated[list[ShortText], Field(max_length=10, description="Engines, in the order they are asked.")] = []
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
class SimilarQuestionView:
    """A past question like the one asked, and how it ended."""

    text: str
    url: str
    known_on: str
    outcome: int
    similarity: float


@dataclass(frozen=True, kw_only=True)
class OutsideAnswer:
    """The answer without any model: how questions like it ended."""

    question: QuestionTextView
    p: dict[str, float]
    rationale: str
    reference: tuple[SimilarQuestionView, ...]
    """The most similar past questions, where rounds were pulled to this machine."""


@dataclass(frozen=True, kw_only=True)
class StartedRun:
    """A run that was started."""

    run: str
    question: str
    due: str
    warnings: tuple[str, ...]


def ask_view(settings: Settings, model: str, search: tuple[str, ...]) -> AskView:
    """What keys and corpora allow."""
    providers = tuple(name for name in MODEL_PROVIDERS if name in settings.services)
    usable = {"gdelt", *(("local",) if settings.corpus.exists() else ()), *settings.services}
    return AskView(
        providers=providers,
        missing=tuple(KEYS[name][0] for name in MODEL_PROVIDERS if name not in providers),
        engines=tuple(engine for engine in SEARCH_ENGINES if engine in usable),
        model=model,
        search=search,
    )


def outside_answer(wording: QuestionForm, settings: Settings) -> OutsideAnswer:
    """Nothing is read, nobody is asked, nothing is kept."""
    question = _question_of_form(wording)
    as_of = question.as_of_in("backtest" if wording.as_of else "live")
    forecast = outside_forecast(question, as_of, settings)
    found = reference_class(question, as_of, settings)
    return OutsideAnswer(
        question=question_text(question),
        p=dict(forecast.p),
        rationale=forecast.rationale,
        reference=tuple(
            SimilarQuestionView(
                text=member.text,
                url=member.url,
                known_on=member.known_on.isoformat(),
                outcome=member.outcome,
                similarity=member.similarity,
            )
            for member in (found.members[:SIMILAR_SHOWN] if found else ())
        ),
    )


def prepare_ask(wish: AskForm, settings: Settings) -> PreparedRun:
    """The run that answers it, checked as far as it can be before anything is spent."""
    question = _question_of_form(wish)
    spec: RunSpec = run_spec_for(
        wish.asked(),
        wish.model,
        search=tuple(wish.search),
        trials=wish.trials,
        budget=wish.budget,
        variant=wish.variant,
    )
    spec = replace(spec, aggregate=wish.aggregate)
    check_options(spec)
    ModelRouter(settings.keys).check([wish.model])
    unknown = [engine for engine in wish.search if engine not in SEARCH_ENGINES]
    if unknown:
        raise InputError(f"there is no search engine {unknown[0]!r}", column="search", hint=", ".join(SEARCH_ENGINES))
    return prepare_run(spec, single_question_set(question))


def _question_of_form(wording: QuestionForm) -> Question:
    return question_from_text(wording.asked(), datetime.now(UTC).replace(microsecond=0))
