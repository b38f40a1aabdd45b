"""What runs have cost."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from foretell.models.journal import Journal
from foretell.models.ledger import Money
from foretell.runs.settings import Settings
from foretell.runs.store import RunStore


def money_of(store: RunStore, settings: Settings, runs: Sequence[str]) -> dict[str, Money]:
    """Return the cost of runs: what they were billed according to the ledger, and what they reused."""
    ledger: dict[str, Money] = {}
    if runs and (settings.database or Path(settings.journal).is_file()):
        with closing(Journal(settings.journal)) as journal:
            ledger = journal.ledger.money_of(runs)
    return {run: money_of_run(store, run, ledger.get(run)) for run in runs}


def money_of_run(store: RunStore, run: str, ledger: Money | None) -> Money:
    """Return the cost of a run. Without an account, because the journal is elsewhere, only its stored calls count."""
    reused = store.reused(run)
    if ledger is not None:
        return replace(ledger, reused=reused)
    return Money(billed=round(store.worth(run) - reused, 9), reused=reused)
