"""What a visit to a tournament may cost, and what it did cost."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from foretell.frozen import frozen
from foretell.models.budget import Budget
from foretell.models.journal import Journal
from foretell.models.ledger import Account, Money
from foretell.number_text import dollars
from foretell.report.result import Result
from foretell.report.run_plan import RunPlan
from foretell.runs.settings import Settings
from foretell.runs.spec import RunSpec


@frozen
class TournamentMoney:
    """What all runs of a tournament cost, including killed ones."""

    account: str
    """The tournament's account in the ledger."""
    total: Money

    @classmethod
    def of(cls, settings: Settings, account: str, runs: Sequence[str]) -> "TournamentMoney":
        """According to the ledger. `runs` are the tournament's, which may have begun before it had an account."""
        if not runs or not (settings.database or Path(settings.journal).is_file()):
            return cls(account=account, total=Money())
        with closing(Journal(settings.journal)) as journal:
            journal.ledger.open(Account(account, "tournament"))
            journal.ledger.enclose(runs, account)
            return cls(account=account, total=journal.ledger.money(account))

    def since(self, before: "TournamentMoney", reused: float = 0.0) -> dict[str, float]:
        """Return the fields of a result: what was billed since then and in all, and what is unknown and reserved."""
        billed = round(self.total.billed - before.total.billed, 9)
        money = replace(self.total, billed=billed, reused=reused)
        return money.to_dict() | {"billed_in_all": round(self.total.billed, 9)}


@frozen
class PaidResult(Result):
    """What a tournament run cost."""

    lines = "forecasts"
    notes: tuple[str, ...] = ()
    billed: float = 0.0
    reused: float = 0.0
    unknown: float = 0.0
    """What lost replies may have cost, in all runs."""
    reserved: float = 0.0
    billed_in_all: float = 0.0
    """Billed in all runs of the tournament."""
    plan: RunPlan | None = None
    """The plan, if only that was requested."""

    @property
    def money_text(self) -> str:
        """The cost as text: billed now and in total, and what is unknown."""
        now = Money(billed=self.billed, reused=self.reused, unknown=self.unknown, reserved=self.reserved)
        return f"{now}; {dollars(self.billed_in_all)} billed in all"


def budget_for(limit: float | None, spec: RunSpec, settings: Settings, before: TournamentMoney) -> Budget:
    """Return the budget of a tournament run: its own limit, within that of the whole tournament."""
    around = Budget("tournament", dollars=limit, within=settings.budget, id=before.account)
    return around if spec.budget.run is None else Budget("tournament run", dollars=spec.budget.run, within=around)


def most_billed_now(limit: float | None, spec: RunSpec, before: TournamentMoney) -> float | None:
    """Return the most that may be billed in this tournament run; None without a limit."""
    limits = [] if limit is None else [max(0.0, limit - before.total.used)]
    return min([*limits, *([] if spec.budget.run is None else [spec.budget.run])], default=None)
