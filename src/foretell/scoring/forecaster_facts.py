"""Facts about forecasters from a table of forecasts: their factors, and the cost of a forecast."""

from collections.abc import Mapping
from dataclasses import field

from foretell.data.datasets.question_set import EXCLUDED
from foretell.data.files import open_duckdb
from foretell.frozen import frozen
from foretell.scoring.columns import ROLES, assign_roles
from foretell.scoring.join import NEEDED_COLUMNS, log_tables
from foretell.scoring.role_columns import ColumnNames
from foretell.scoring.table import ForecastCost
from foretell.scoring.table_input import ColumnRule, InputTable, TableSource, check_rules, open_table

COST_COLUMNS = {"dollars": "an amount of money", "seconds": "a time"}


@frozen
class ForecasterFacts:
    """Factors and costs, by forecaster."""

    factors: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    """Level of every factor; a factor whose column is empty does not apply and is absent."""
    costs: Mapping[str, ForecastCost] = field(default_factory=dict[str, ForecastCost])


def read_forecaster_facts(forecasts: TableSource, columns: ColumnNames | None = None) -> ForecasterFacts:
    """Read the factors and mean costs of the forecasters of a table.

    A factor is a column without a role that has one value for each forecaster. If some factor has a level that
    several forecasters share, columns that differ for every forecaster are left out, because they are only names.

    >>> rows = [{"forecaster": "a", "question": q, "p": 0.5, "rule": "linear", "dollars": 0.2} for q in ("q1", "q2")]
    >>> facts = read_forecaster_facts(rows)
    >>> facts.factors, facts.costs["a"].dollars
    ({'a': {'rule': 'linear'}}, 0.2)
    """
    source, _ = log_tables(forecasts, None)
    with open_duckdb() as con, open_table(source, "forecasts", con) as opened:
        table = assign_roles(opened, NEEDED_COLUMNS, columns)
        return ForecasterFacts(factors=_factors(table), costs=_costs(table))


def _factors(table: InputTable) -> dict[str, dict[str, str]]:
    not_factors = {*ROLES, *COST_COLUMNS, EXCLUDED}
    names = [column for column in table.columns if column not in not_factors]
    if not names or table.wide or "forecaster" in table.assumed:
        return {}
    parts = [f"max({table.text(name)}), count(distinct coalesce({table.text(name)}, ''))" for name in names]
    selected = ", ".join([table.text("forecaster"), "count(*)", *parts])
    rows = table.con.execute(f"select {selected} from {table.table} group by 1 order by min(_row)").fetchall()
    levels: dict[str, dict[str, str | None]] = {}
    for place, name in enumerate(names):
        values = {forecaster: values_of[2 * place] for forecaster, _, *values_of in rows}
        if all(values_of[2 * place + 1] == 1 for _, _, *values_of in rows) and any(count > 1 for _, count, *_ in rows):
            levels[name] = values
    distinct = {name: len({level for level in values.values() if level is not None}) for name, values in levels.items()}
    if any(1 < count < len(rows) for count in distinct.values()):
        levels = {name: values for name, values in levels.items() if distinct[name] < len(rows)}
    return {
        forecaster: {name: str(level) for name, values in levels.items() if (level := values[forecaster]) is not None}
        for forecaster, *_ in rows
    }


def _costs(table: InputTable) -> dict[str, ForecastCost]:
    if "dollars" not in table.types:
        return {}
    rules: list[ColumnRule] = []
    for column in (column for column in COST_COLUMNS if column in table.types):
        number, text = table.number(column), table.text(column)
        bad = f"{text} is not null and ({number} is null or not isfinite({number}) or {number} < 0)"
        problem, hint = f"{{value}} is not {COST_COLUMNS[column]}", f"{column} per forecast, 0 or more"
        rules.append(ColumnRule(column=column, bad=bad, problem=problem, hint=hint))
    check_rules(table, rules)
    seconds = f"coalesce(avg({table.number('seconds')}), 'nan')" if "seconds" in table.types else "'nan'::double"
    query = (
        f"select {table.text('forecaster')}, avg({table.number('dollars')}), {seconds} from {table.table} group by 1"
    )
    rows = table.con.execute(query).fetchall()
    return {name: ForecastCost(dollars=dollars, seconds=time) for name, dollars, time in rows if dollars is not None}
