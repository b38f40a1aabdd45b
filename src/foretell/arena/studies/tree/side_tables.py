"""Small tables beside the forecasts: what each forecaster costs, and which model plays which part in it."""

from collections.abc import Mapping

from foretell.arena.intake import Source, opened
from foretell.arena.rules import Rule, enforce, text_rules
from foretell.arena.studies.tree.material import ROLES, Cost


def read_cost_table(source: Source) -> dict[str, Cost]:
    """Dollars and, where the column is there, seconds per forecast by forecaster.

    >>> read_cost_table([{"forecaster": "a", "dollars": 0.2}])["a"].dollars
    0.2
    """
    import duckdb

    with duckdb.connect(":memory:") as con, opened(source, "costs", con) as table:
        table.require("forecaster", "dollars")
        rules = list(text_rules(table, "forecaster"))
        for column, what in (("dollars", "an amount of money"), ("seconds", "a time")):
            if column in table.types:
                number = table.number(column)
                bad = f"{number} is null or not isfinite({number}) or {number} < 0"
                hint = f"{column} per forecast, 0 or more"
                rules.append(Rule(column=column, bad=bad, problem=f"{{value}} is not {what}", hint=hint))
        enforce(table, rules)
        seconds = table.number("seconds") if "seconds" in table.types else "'nan'::double"
        query = f"select {table.text('forecaster')}, {table.number('dollars')}, {seconds} from {table.table}"
        rows = con.execute(query).fetchall()
    return {name: Cost(dollars=dollars, seconds=time) for name, dollars, time in rows}


def read_cast_table(source: Source) -> dict[str, Mapping[str, str]]:
    """By forecaster, which model is analyzer, grounder and synthesizer."""
    import duckdb

    with duckdb.connect(":memory:") as con, opened(source, "casts", con) as table:
        table.require("forecaster", *ROLES)
        enforce(table, list(text_rules(table, "forecaster", *ROLES)))
        wanted = ", ".join(table.text(column) for column in ("forecaster", *ROLES))
        rows = con.execute(f"select {wanted} from {table.table}").fetchall()
    return {name: dict(zip(ROLES, models, strict=True)) for name, *models in rows}
