"""Write a study of your own: a function of tables that returns sentences and tables.

The class of its options makes `foretell study extremes` from it once a package announces it; see docs/plugins.md.
"""

import foretell
from foretell import plugins
from foretell.report.study import column, table
from foretell.types import DataInputs, StudyResult, TableOptions


def extremes(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """How often is a forecaster almost certain, and how often is it wrong then?"""
    rows = {}
    for name, examples in inputs.data(options).tables.items():
        p, outcome = examples.rows.trials.mean(axis=0), examples.outcome
        certain = (p < 0.1) | (p > 0.9)
        wrong = certain & (abs(p - outcome) > 0.5)
        rows[name] = (int(certain.sum()), int(wrong.sum()))
    return StudyResult(
        name="extremes",
        title="Almost certain and wrong",
        sentences=tuple(f"{name} was almost certain {n} times, wrong {bad} times." for name, (n, bad) in rows.items()),
        tables=(table("Below 10 % or above 90 %", "Forecaster", [column("Certain"), column("Wrong")], rows),),
    )


plugins.register("studies", "extremes", extremes)
result = foretell.study(
    "extremes",
    forecasts=[
        {"forecaster": name, "question": f"q{n}", "p": p, "trial": 0}
        for name, p in (("bold", 0.95), ("careful", 0.8))
        for n in range(20)
    ],
    outcomes=[{"question": f"q{n}", "outcome": int(n % 5 > 0)} for n in range(20)],
)
print(result)
