"""One question, answered: what the command line, assistants and Python programs share."""

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypedDict, Unpack

from foretell.app import loop
from foretell.app.asking import Asked, benchmark_of, question_of, spec_of
from foretell.app.combining import combining_of
from foretell.app.outside import outside_forecast
from foretell.app.running import Prepared, Watch, execute, prepare
from foretell.app.settings import Settings, load_settings
from foretell.arena.results import Combining, combined
from foretell.arena.store import Store
from foretell.arena.waiting import waited
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.problems import InputError
from foretell.questions.question import Question

if TYPE_CHECKING:
    from foretell.arena.spec import RunSpec


@dataclass(frozen=True, kw_only=True)
class Research:
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

    def spec(self, asked: Asked) -> "RunSpec":
        """The run that answers a question so."""
        spec = spec_of(
            asked, self.model, search=self.search, trials=self.trials, budget=self.budget, variant=self.variant
        )
        return replace(spec, aggregate="judged") if self.combine == "judged" else spec


def usual_search() -> tuple[str, ...]:
    """The engines named in FORETELL_SEARCH."""
    return tuple(filter(None, os.environ.get("FORETELL_SEARCH", "").split(",")))


def asked_now(asked: Asked) -> Question:
    """The question as of its date, or of this second."""
    return question_of(asked, datetime.now(UTC).replace(microsecond=0))


def without_model(asked: Asked, settings: Settings) -> Forecast:
    """The outside view: nothing is read, nobody is asked, nothing is paid."""
    question = asked_now(asked)
    return outside_forecast(question, question.as_of_in("backtest" if asked.as_of else "live"), settings)


def prepared_for(asked: Asked, research: Research) -> Prepared:
    """The run of one question, ready to start."""
    return prepare(research.spec(asked), benchmark_of(asked_now(asked)))


async def researched(
    prepared: Prepared, settings: Settings, how: Combining | None = None, *, watch: Watch | None = None
) -> Forecast:
    """Run it and put the trials together. Asked again, it finds every reply it had and pays for none twice."""
    await execute(prepared, settings, watch=watch)
    # The same words asked earlier today belong to the same run, with an answer of their own.
    now = prepared.questions[0].as_of.at
    with closing(Store(settings.store)) as store:
        answers = [answer for answer in store.answers(prepared.spec.id) if answer.as_of.at == now]
    found = combined(answers, prepared.questions, how)
    if not found:
        failures = [answer.error for answer in answers if isinstance(answer, Failure)]
        raise InputError(f"no trial gave an answer: {failures[0] if failures else 'nothing was run'}")
    return found[0]


class Details(TypedDict, total=False):
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
    **details: Unpack[Details],
) -> Forecast:
    """A probability with its reasons; researched by `model`, or the outside view where no model is named.

    Without a model nothing is read and nothing is paid. Keys come from the environment; `search` names engines, and
    where it is not given those of FORETELL_SEARCH are asked.

    >>> forecast = ask("Will the bank cut its rate?", by="2027-03-31", price=0.4)
    >>> forecast.p
    {'yes': 0.4}
    """
    if unknown := details.keys() - Details.__annotations__:
        raise TypeError(f"ask() has no option {min(unknown)!r}; there are {', '.join(Details.__annotations__)}")
    settings = settings or load_settings()
    asked = Asked(
        text=question,
        by=details.get("by"),
        as_of=details.get("as_of"),
        options=tuple(details.get("options", ())),
        criteria=details.get("criteria", ""),
        price=details.get("price"),
    )
    if model is None:
        return without_model(asked, settings)
    research = Research(
        model=model,
        search=usual_search() if search is None else tuple(search),
        trials=details.get("trials", 1),
        budget=details.get("budget"),
        variant=details.get("variant", "full"),
        combine=details.get("combine", "default"),
    )
    prepared = prepared_for(asked, research)
    return waited(researched(prepared, settings, combining_of(research.combine)), loop.run)
