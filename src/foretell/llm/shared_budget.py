"""The budget of a run that many processes work at: each draws a little at a time, all together never more than it."""

from foretell.llm.cost import Budget, Spend
from foretell.llm.database.port import Database, Statements

PORTION = 0.02
"""Of the whole budget: how much is drawn at once, so that not every call asks the database."""
_READ = "SELECT dollars FROM drawn WHERE run = ?"
_WRITE = "INSERT INTO drawn VALUES (?, ?) ON CONFLICT (run) DO UPDATE SET dollars = excluded.dollars"


class SharedBudget(Budget):
    """Allows what was drawn, and draws more where that is not enough.

    What a killed process had drawn and not spent is lost to the run: it may end early, and never costs more.
    """

    def __init__(self, name: str, database: Database, run: str, *, dollars: float) -> None:
        super().__init__(name, dollars=0.0)
        self._database = database
        self._run = run
        self._whole = dollars

    def _check(self, estimate: Spend) -> None:
        short = self.spent.dollars + self._aside[0] + estimate.dollars - (self.dollars or 0.0)
        if short > 0:
            self.dollars = (self.dollars or 0.0) + self._draw(max(short, PORTION * self._whole))
        super()._check(estimate)

    def give_back(self) -> None:
        """What was drawn and not spent."""
        if self.dollars:
            self._draw(self.spent.dollars - self.dollars)
            self.dollars = self.spent.dollars

    def _draw(self, wanted: float) -> float:
        def draw(statements: Statements) -> float:
            rows = statements.read(_READ, (self._run,))
            drawn = rows[0][0] if rows else 0.0
            got = min(wanted, max(0.0, self._whole - drawn))
            statements.write(_WRITE, (self._run, drawn + got))
            return got

        return self._database.together(draw, alone=f"budget/{self._run}")
