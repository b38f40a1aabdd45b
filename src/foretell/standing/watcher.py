"""What watching needs: the clock, the sources, the models, and what follows a look."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import field
from datetime import datetime
from typing import Any, Protocol

from foretell.data.untrusted import for_log
from foretell.forecasters.forecaster import CannotForecast, Context, Models
from foretell.frozen import frozen
from foretell.models.budget import Budget
from foretell.models.journal import Journal
from foretell.number_text import percent, plural
from foretell.questions.as_of import AsOf, Clock
from foretell.questions.forecast import Numeric
from foretell.runs.claims import ClaimTable
from foretell.runs.runtime import open_runtime
from foretell.runs.settings import Settings
from foretell.runs.spec import RunSpec, spec_from_json
from foretell.standing.look import LookSources, Sighting
from foretell.standing.record import (
    Look,
    NewEvidence,
    OutcomeProposal,
    QuestionRecord,
    StandingBelief,
    StandingQuestion,
)
from foretell.standing.settings import SECTION
from foretell.standing.store import StandingStore

log = logging.getLogger(__name__)


@frozen
class FirstAnswer:
    """The answer to a question when it is opened: the fields of its first `StandingBelief` that it decides."""

    p: Mapping[str, float]
    own: Mapping[str, float] = field(default_factory=dict[str, float])
    """Before the price was counted and bounds were applied; empty if that is the same."""
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    rationale: str = ""
    base_rates: Mapping[str, float] = field(default_factory=dict[str, float])
    distribution: Numeric | None = None
    evidence: tuple[NewEvidence, ...] = ()
    run: str = ""
    billed: float = 0.0


@frozen
class LookReport:
    """A look that was just stored, for those who show it."""

    standing: StandingQuestion
    look: Look
    belief: StandingBelief | None
    """None if nothing changed."""
    previous: StandingBelief | None
    next_look: datetime | None

    def __str__(self) -> str:
        at = f"{self.look.at:%Y-%m-%d %H:%M}"
        if self.belief is None:
            changed = "unchanged" if self.previous is None else f"stays at {_in_words(self.previous.p)}"
        elif self.previous is None:
            changed = _in_words(self.belief.p)
        else:
            changed = f"{_in_words(self.previous.p)} → {_in_words(self.belief.p)}"
        shown = [f"price {_in_words(self.look.prices)}"] if self.look.prices else []
        shown += [] if self.look.value is None else [f"value {self.look.value:g}"]
        shown += [plural(len(self.look.news), "new text")] if self.look.news else []
        seen = ", ".join(shown)
        spent = f" (${self.look.billed:.4f})" if self.look.billed else ""
        then = "" if self.next_look is None else f" Next look {self.next_look:%Y-%m-%d %H:%M}."
        return for_log(
            f"{at} {self.standing.id}: {changed}{spent}{f' [{seen}]' if seen else ''}. {self.look.why}{then}"
        )


def _in_words(p: Mapping[str, float]) -> str:
    if list(p) == ["yes"]:
        return percent(p["yes"])
    return ", ".join(f"{target[:30]} {percent(value)}" for target, value in list(p.items())[:4])


class AskFirst(Protocol):
    """Answers a question when it is opened, and answers it again without a model."""

    async def first(self, standing: StandingQuestion, sighting: Sighting, budget: Budget) -> FirstAnswer:
        """Return the first answer, within the budget. Raises `NoAnswer` or `InputError` if there is none."""
        ...


OpenModels = Callable[[StandingQuestion, datetime, Budget], AbstractAsyncContextManager[Context]]
Propose = Callable[[QuestionRecord, datetime, Budget], Awaitable[OutcomeProposal | None]]
"""Proposes the outcome of a question that has closed; None if there is nothing new to propose."""
MakeCoherent = Callable[[StandingQuestion, StandingBelief], Awaitable[Mapping[str, float]]]
"""Returns the probabilities made to agree with related questions; empty if nothing changes."""
Notify = Callable[[LookReport], Awaitable[None]]
"""Sends notices about a look. It may be called again for the same look, and sends none twice."""


@frozen
class Watcher:
    """Everything that watching needs."""

    settings: Settings
    store: StandingStore
    journal: Journal
    clock: Clock
    sources: LookSources
    asker: AskFirst
    models: OpenModels
    propose: Propose | None = None
    coherent: MakeCoherent | None = None
    notify: Notify | None = None
    deliver: Callable[[], Coroutine[Any, Any, None]] | None = None
    """Sends the notices that wait to be sent, beside the looks."""
    learn: Callable[[QuestionRecord], object] | None = None
    """Called with the record of a question whose proposed outcome was confirmed by itself."""
    tell: Callable[[LookReport], None] = lambda report: None
    warn: Callable[[str], None] = log.warning
    failed: Callable[[str], None] = log.warning
    """Called with a line on a look that failed as a whole; it is tried again later."""
    claims: ClaimTable = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "claims", ClaimTable(self.store.db))


def run_settings(standing: StandingQuestion) -> RunSpec | None:
    """Return the settings of the runs of a question; None if it names no model."""
    settings = {name: value for name, value in standing.settings.items() if name != SECTION}
    return spec_from_json(settings) if settings.get("models", {}).get("agent") else None


def public_models(settings: Settings, journal: Journal) -> OpenModels:
    """Return a function that opens the models of a question, behind the journal, limits and a budget."""

    @asynccontextmanager
    async def opened(standing: StandingQuestion, at: datetime, budget: Budget) -> AsyncGenerator[Context]:
        spec = run_settings(standing)
        if spec is None:
            raise CannotForecast("no model is named")
        async with open_runtime(spec, settings, journal, budget=budget) as runtime:
            models = Models(roles=runtime.models, model=runtime.router.within(budget), prices=runtime.router.prices)
            yield Context(as_of=AsOf(at=at, mode="live"), models=models, budget=budget, seed=spec.seed)

    return opened
