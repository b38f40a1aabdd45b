"""A visit to a tournament: look at the platform, forecast what is open and unanswered, send it, record what was done.

The loop is the same on all platforms. Every step can be repeated, so a visit continues after a killed one: replies come
from the journal, and what was sent is in the ledger or on the platform.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from foretell.data.http import SourceError
from foretell.frozen import frozen
from foretell.models.budget import Budget
from foretell.questions.errors import InputError
from foretell.questions.file_lock import LockHeld, locked
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.report.planning import plan_run
from foretell.report.run_plan import RunPlan
from foretell.runs.combine import combine_trials, combining_of_run
from foretell.runs.executor import RunProgress
from foretell.runs.runner import PreparedRun, WatchProgress, check_run, execute_run
from foretell.runs.runtime import prices_of
from foretell.runs.settings import Settings
from foretell.runs.spec import RunSpec
from foretell.runs.store import RunStore
from foretell.scoring.stored_scores import keep_summary
from foretell.tournaments.money import PaidResult, TournamentMoney, budget_for, most_billed_now
from foretell.tournaments.state import StoredState, tournament_folder


@frozen
class VisitOptions:
    """What a visit does, and who is told about it."""

    plan: bool = False
    """Only estimate what it would ask and cost."""
    dry_run: bool = False
    """Forecast, and send nothing."""
    sandbox: bool = False
    """Visit where it does not count."""
    limit: int | None = None
    """Maximum number of questions."""
    summary: Path | None = None
    """The file to append a summary to, as Markdown."""
    include_fallback: bool = False
    """Also send fallback forecasts."""
    accept_stale: bool = False
    """Send a round although many of its values are stale."""
    watch: WatchProgress = lambda _: None
    tell: Callable[[str], None] = lambda _: None


State = TypeVar("State", bound=StoredState)
VisitResult = TypeVar("VisitResult", bound=PaidResult)
Spec = TypeVar("Spec", bound=RunSpec | None)


@dataclass(kw_only=True)
class Visit(ABC, Generic[State, VisitResult, Spec]):
    """One visit to a tournament. The platform's own steps are in the subclasses."""

    settings: Settings
    options: VisitOptions
    spec: Spec
    """How models forecast; None without one."""
    platform: str
    slug: str
    """The name of the tournament or round, on this machine."""
    limit: float | None
    """The budget of the whole tournament, in dollars."""
    state: State = field(init=False)
    before: TournamentMoney = field(init=False)
    """What earlier visits have cost."""
    done: RunProgress = field(default_factory=lambda: RunProgress(total=0))
    """Combined progress so far of the runs that call models."""
    notes: list[str] = field(default_factory=list[str])

    @property
    def folder(self) -> Path:
        """The folder with the state of this tournament."""
        return tournament_folder(self.settings, self.platform, self.slug)

    @property
    def money(self) -> TournamentMoney:
        """What all visits to the tournament have cost."""
        return TournamentMoney.of(self.settings, f"tournament {self.folder.name}", self.state.paid_runs)

    @property
    def budget(self) -> Budget | None:
        """The budget of this visit, within that of the tournament."""
        return (
            self.settings.budget if self.spec is None else budget_for(self.limit, self.spec, self.settings, self.before)
        )

    async def alone(self) -> VisitResult:
        """Take part, unless another process is already working on this tournament."""
        try:
            with locked(self.folder / "lock", wait=False):
                return await self.take()
        except LockHeld:
            self.notes.append("another process is working on this tournament; nothing was done")
            return self.result()
        except SourceError as error:
            problem = f"{self.platform} could not be reached or gave an unexpected answer: {error}"
            raise InputError(problem, hint="nothing more was sent; the next run continues") from None

    async def take(self) -> VisitResult:
        """Look, forecast, send, and record what was done."""
        self.state = self.read_state()
        self.before = self.money
        if self.spec is not None:
            check_run(self.spec, replace(self.settings, budget=self.budget))
        questions = await self.look()
        if self.options.plan:
            return self.result(plan=self.planned(questions), **self.before.since(self.before))
        self._refuse_unlimited(questions)
        for batch in self.batches(questions):
            await self.send(await self.forecast(batch))
        return self.record(self.money.since(self.before, self.done.money.reused))

    def _refuse_unlimited(self, questions: Sequence[Question]) -> None:
        """Require a budget if money may be spent."""
        if self.spec is None or not questions or most_billed_now(self.limit, self.spec, self.before) is not None:
            return
        if all(map(prices_of(self.spec).free, self.spec.models.values())):
            return
        hint = "add --budget, or --model none; --plan only shows the cost"
        raise InputError(f"this may cost money: {self.planned(questions)}", column="--budget", hint=hint)

    @abstractmethod
    def read_state(self) -> State:
        """Return the state of earlier visits."""

    @abstractmethod
    async def look(self) -> Sequence[Question]:
        """Return the questions to forecast now."""

    @abstractmethod
    def planned(self, questions: Sequence[Question]) -> RunPlan:
        """Return what the visit would ask and cost."""

    @abstractmethod
    def batches(self, questions: Sequence[Question]) -> Iterable[Sequence[Question]]:
        """Return the questions in groups: each is forecast and sent before the next."""

    @abstractmethod
    async def forecast(self, questions: Sequence[Question]) -> Sequence[Forecast]:
        """Return the forecasts that can be sent."""

    @abstractmethod
    async def send(self, forecasts: Sequence[Forecast]) -> None:
        """Send the forecasts, or only prepare that in a dry run."""

    @abstractmethod
    def record(self, money: dict[str, float]) -> VisitResult:
        """Store and return what was done."""

    @abstractmethod
    def result(self, **fields: Any) -> VisitResult:
        """Return the result so far, with these fields."""

    def plan_of(self, prepared: PreparedRun) -> RunPlan:
        """Return the plan of a run, within the budget of this visit."""
        most = None if self.spec is None else most_billed_now(self.limit, self.spec, self.before)
        return replace(plan_run(prepared, self.settings), most=most)

    async def execute(self, prepared: PreparedRun, watch: WatchProgress) -> RunProgress:
        """Run the trials within the budget, and note what could not be read."""
        done = await execute_run(prepared, replace(self.settings, budget=self.budget), watch=watch)
        await asyncio.to_thread(keep_summary, self.settings.store, prepared.spec.id)
        self.notes += [note for note in done.unread if note not in self.notes]
        return done

    def combined(
        self, spec: RunSpec, questions: Sequence[Question]
    ) -> tuple[dict[str, Forecast], list[Forecast | Failure]]:
        """Return the combined forecast of each question, and all answers."""
        with closing(RunStore(self.settings.store)) as store:
            answers = list(store.answers(spec.id))
            how = replace(combining_of_run(store, spec), fallback=self.options.include_fallback)
        forecasts = combine_trials(answers, questions, how)
        return {forecast.question_id: forecast for forecast in forecasts}, answers

    def summarize(self, text: str) -> None:
        """Append to the summary, if there is one."""
        if self.options.summary is not None:
            with self.options.summary.open("a", encoding="utf-8") as file:
                file.write(text)


def why_unusable(answer: Forecast | Failure) -> str:
    """Return why an answer cannot be sent."""
    return answer.error if isinstance(answer, Failure) else f"fallback forecast: {answer.problem}"
