"""What forecasters cost, for the frontier of score against money."""

from collections.abc import Sequence

from foretell.arena.intake import Source, opened
from foretell.arena.rules import Rule, enforce
from foretell.questions.problems import InputError


def read_costs(source: Source, forecasters: Sequence[str]) -> dict[str, float]:
    """Dollars per forecast by forecaster, from a table with columns forecaster and dollars."""
    import duckdb

    with duckdb.connect(":memory:") as con, opened(source, "costs", con) as table:
        table.require("forecaster", "dollars")
        number = table.number("dollars")
        bad = f"{number} is null or not isfinite({number}) or {number} < 0"
        hint = "dollars per forecast, 0 or more"
        enforce(table, [Rule(column="dollars", bad=bad, problem="{value} is not an amount of money", hint=hint)])
        rows = con.execute(f"select {table.text('forecaster')}, {number} from {table.table}").fetchall()
        unknown = [name for name, _ in rows if name not in forecasters]
        if unknown:
            raise InputError(f"no forecaster is called {unknown[0]!r}", path=table.name, column="forecaster")
    return dict(rows)
