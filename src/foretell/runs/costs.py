"""What runs have cost."""

from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from foretell.models.journal import Journal
from foretell.models.ledger import Money
from foretell.questions.errors import NoAnswer
from foretell.questions.forecast import Cost
from foretell.runs.settings import Settings
from foretell.runs.store import RunStore

UNPAID_NOTE = "No model was called because the budget is too small: this is only the initial estimate."


def money_of(store: RunStore, settings: Settings, runs: Sequence[str]) -> dict[str, Money]:
    """Return the cost of runs: what they were billed according to the ledger, and what they reused."""
    ledger: dict[str, Money] = {}
    if runs and (settings.database or Path(settings.journal).is_file()):
        with closing(Journal(settings.journal)) as journal:
            ledger = journal.ledger.money_of(runs)
    return {run: money_of_run(store.cost(run), ledger.get(run)) for run in runs}


def money_of_run(cost: Cost, ledger: Money | None) -> Money:
    """Return the cost of a run by its account; without one, because the journal is elsewhere, by its stored calls."""
    own = Money(billed=round(cost.dollars, 9), reused=cost.reused)
    return own if ledger is None else replace(ledger, reused=cost.reused)


def answer_money(usage: Cost, paid: Money | None) -> Money:
    """Return the cost of an answer: what was billed now, and what cached replies cost originally."""
    if paid is None:
        return Money(billed=usage.dollars, reused=usage.reused)
    return replace(paid, reused=max(0.0, round(usage.worth - paid.billed, 9)))


def cost_text(usage: Cost, money: Money) -> str:
    """Return the cost of an answer in one line."""
    unpriced = f" and {usage.unpriced} calls of unknown price" if usage.unpriced else ""
    counted = f"; {usage.uncounted} without a credible token count are charged at the most" if usage.uncounted else ""
    return f"{usage.calls} model calls, {usage.tokens:,} tokens, {money}{unpriced}{counted}"


@contextmanager
def cost_in_errors(money: Money) -> Generator[None]:
    """Add the cost to the error if a question gets no answer."""
    try:
        yield
    except NoAnswer as error:
        raise NoAnswer(f"{error.problem} ({money})", path=error.path, column=error.column, hint=error.hint) from None
