"""What studies of trees read: trees from files, costs from tables, or a simulated world."""

from dataclasses import dataclass, replace
from pathlib import Path

from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.tree_file import read_tree
from foretell.questions.errors import InputError
from foretell.scoring.table_input import ColumnRule, TableSource, check_rules, open_table, text_rules
from foretell.studies.inputs import StudyData
from foretell.studies.trees.world import Simulation


@dataclass(frozen=True, kw_only=True)
class ForecastCost:
    """What one forecast of a method takes."""

    dollars: float
    seconds: float = float("nan")


def require_simulation(data: StudyData, name: str, *, trees: bool = False) -> Simulation:
    """The simulated world of a study that makes no sense on tables; some can look at trees instead."""
    if data.trees or data.tables:
        hint = "it needs a simulated world" + (", or trees given by --trees" if trees else "")
        raise InputError(f"the study {name} cannot look at these", hint=hint)
    return replace(data.simulation or Simulation(), seed=data.resampling.seed)


def read_trees(folder: Path) -> list[Tree]:
    """Every tree file in a folder, in the order of their names."""
    files = sorted(folder.glob("*.json"))
    if not files:
        raise InputError("there is no tree file", path=folder, hint="foretell run keeps them in trees/RUN of its home")
    return [read_tree(file) for file in files]


def read_cost_table(source: TableSource) -> dict[str, ForecastCost]:
    """Dollars and, where the column is there, seconds per forecast by forecaster.

    >>> read_cost_table([{"forecaster": "a", "dollars": 0.2}])["a"].dollars
    0.2
    """
    import duckdb

    with duckdb.connect(":memory:") as con, open_table(source, "costs", con) as table:
        table.require("forecaster", "dollars")
        rules = list(text_rules(table, "forecaster"))
        for column, what in (("dollars", "an amount of money"), ("seconds", "a time")):
            if column in table.types:
                number = table.number(column)
                bad = f"{number} is null or not isfinite({number}) or {number} < 0"
                hint = f"{column} per forecast, 0 or more"
                rules.append(ColumnRule(column=column, bad=bad, problem=f"{{value}} is not {what}", hint=hint))
        check_rules(table, rules)
        seconds = table.number("seconds") if "seconds" in table.types else "'nan'::double"
        query = f"select {table.text('forecaster')}, {table.number('dollars')}, {seconds} from {table.table}"
        rows = con.execute(query).fetchall()
    return {name: ForecastCost(dollars=dollars, seconds=time) for name, dollars, time in rows}
