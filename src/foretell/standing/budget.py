"""The money of a standing question: each look counts in the question's account and in the account of its day."""

from datetime import datetime

from foretell.models.budget import Budget
from foretell.models.ledger import Account, Ledger
from foretell.runs.settings import Settings
from foretell.standing.record import StandingQuestion
from foretell.standing.settings import watch_keys


def day_account(at: datetime) -> str:
    """Return the id of the account of all watched questions on a day."""
    return f"watched on {at.date().isoformat()}"


def question_account(standing: StandingQuestion) -> str:
    """Return the id of the account of a question over its whole life."""
    return f"watched {standing.id} since {standing.opened_at.isoformat(timespec='seconds')}"


def unopened_budget(standing: StandingQuestion, settings: Settings, id: str) -> Budget:
    """Return the budget with this account for a run, which has a ledger of its own on the same database."""
    life = question_account(standing)
    question = Budget("question", dollars=watch_keys(standing.settings).budget, within=settings.budget, id=life)
    return Budget("look", within=question, id=id, run=life)


def look_budget(standing: StandingQuestion, at: datetime, settings: Settings, ledger: Ledger) -> Budget:
    """Return the budget of the looks at a question on a day.

    It is within the budget of the question, which is within that of the settings, and at the same time within the
    budget of the day. What a question has used on earlier days does not count in the day's account.
    """
    day = day_account(at)
    look = unopened_budget(standing, settings, f"{question_account(standing)} on {at.date().isoformat()}")
    look.use(ledger)
    ledger.open(Account(day, "day", watch_keys(standing.settings).day_budget))
    look.open()
    ledger.enclose([look.id], day)
    return look
