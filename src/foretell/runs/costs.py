"""What runs have cost."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from foretell.models.journal import Journal
from foretell.models.ledger import Money
from foretell.questions.forecast import Cost
from foretell.runs.settings import Settings
from foretell.runs.store import RunStore


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
