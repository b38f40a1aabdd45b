import random
from contextlib import closing
from pathlib import Path

import pytest

from foretell.models.budget import Budget, SharedBudget
from foretell.models.journal import Journal
from foretell.models.model import BudgetExceeded
from foretell.questions.forecast import Cost

Place = Path | str


def test_all_together_never_spend_more(place: Place):
    rng = random.Random(0)
    journals = [Journal(place) for _ in range(3)]
    budgets = [SharedBudget("run", journal.database, "r", dollars=10.0) for journal in journals]
    spent, refused = 0.0, 0
    for _ in range(600):
        budget = Budget("question", within=rng.choice(budgets))
        estimate = Cost(calls=1, dollars=rng.uniform(0.01, 0.1))
        try:
            held = budget.set_aside(estimate)
        except BudgetExceeded:
            refused += 1
            continue
        actual = Cost(calls=1, dollars=estimate.dollars * rng.uniform(0.3, 1.0))
        budget.settle(held, actual)
        spent += actual.dollars
    assert 9.0 < spent <= 10.0
    assert refused > 0
    assert sum(budget.spent.dollars for budget in budgets) == pytest.approx(spent)
    for journal in journals:
        journal.close()


def test_what_was_not_spent_is_given_back(place: Place):
    with closing(Journal(place)) as one, closing(Journal(place)) as other:
        first = SharedBudget("run", one.database, "r", dollars=1.0)
        first.settle(first.set_aside(Cost(calls=1, dollars=0.9)), Cost(calls=1, dollars=0.25))
        second = SharedBudget("run", other.database, "r", dollars=1.0)
        with pytest.raises(BudgetExceeded):
            second.set_aside(Cost(calls=1, dollars=0.7))
        second.give_back()
        first.give_back()
        second.set_aside(Cost(calls=1, dollars=0.7))
        another_run = SharedBudget("run", other.database, "s", dollars=1.0)
        another_run.set_aside(Cost(calls=1, dollars=1.0))
