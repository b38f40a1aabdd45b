"""What studies of trees read: trees from files, costs and roles from tables, or a simulated world."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from foretell.forecasters.combine.rows import Examples
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.tree_file import read_tree
from foretell.questions.errors import InputError
from foretell.scoring.table_input import ColumnRule, TableSource, check_rules, open_table, text_rules
from foretell.studies.configurations import complete_configs, study_notes, study_settings
from foretell.studies.inputs import StudyData
from foretell.studies.trees.simulation import DIRECT, SimulatedMethod, Simulation, default_methods, simulate

ROLES = ("analyzer", "grounder", "synthesizer")


@dataclass(frozen=True, kw_only=True)
class ForecastCost:
    """What one forecast of a method takes."""

    dollars: float
    seconds: float = float("nan")


def simulation_for(data: StudyData) -> Simulation | None:
    """The simulated world to use where nothing is given; None where there are tables."""
    if data.tables:
        return None
    if data.trees:
        raise InputError("there are trees, but no outcomes", hint="this study needs --run or --forecasts")
    return replace(data.simulation or Simulation(), seed=data.resampling.seed)


def given_or_simulated(data: StudyData) -> tuple[Mapping[str, Examples], tuple[str, ...], dict[str, object]]:
    """The tables that are given, with their notes and settings; else those of a simulated world."""
    simulation = simulation_for(data)
    if simulation is None:
        tables = complete_configs(data)
        return tables, study_notes(data, tables), study_settings(data, tables)
    return simulate(simulation, default_methods(), data.progress).tables, (), simulation.description


def require_simulation(data: StudyData, name: str, *, trees: bool = False) -> Simulation:
    """The simulated world of a study that makes no sense on tables; some can look at trees instead."""
    simulation = None if data.trees else simulation_for(data)
    if simulation is None:
        hint = "it needs a simulated world" + (", or trees given by --trees" if trees else "")
        raise InputError(f"the study {name} cannot look at these", hint=hint)
    return simulation


def read_trees(folder: Path) -> list[Tree]:
    """Every tree file in a folder, in the order of their names."""
    files = sorted(folder.glob("*.json"))
    if not files:
        raise InputError("there is no tree file", path=folder, hint="foretell run keeps them in trees/RUN of its home")
    return [read_tree(file) for file in files]


# Costs of the methods of a simulated world, from given prices of calls.

WORKERS = 20
"""Leaves that are grounded at the same time."""


@dataclass(frozen=True, kw_only=True)
class CallPrices:
    """What one grounding and one call to take apart or put together take."""

    grounding: ForecastCost
    analysis: ForecastCost
    synthesis: ForecastCost

    def cost(self, method: SimulatedMethod, *, leaves: float, parents: float, levels: float) -> ForecastCost:
        """Of one answer: leaves are grounded side by side, levels are put together one after the other."""
        if method.rule == DIRECT:
            batches = math.ceil(method.repeats / WORKERS)
            return ForecastCost(
                dollars=method.repeats * self.grounding.dollars, seconds=batches * self.grounding.seconds
            )
        unasked = method.rule in ("average", "random")
        together = ForecastCost(dollars=0.0, seconds=0.0) if unasked else self.synthesis
        dollars = self.analysis.dollars + leaves * self.grounding.dollars + parents * together.dollars
        batches = math.ceil(leaves / WORKERS)
        seconds = self.analysis.seconds + batches * self.grounding.seconds + levels * together.seconds
        return ForecastCost(dollars=method.repeats * dollars, seconds=seconds)


# Tables of costs and roles by forecaster.


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


def read_role_table(source: TableSource) -> dict[str, Mapping[str, str]]:
    """By forecaster, which model is analyzer, grounder and synthesizer."""
    import duckdb

    with duckdb.connect(":memory:") as con, open_table(source, "roles", con) as table:
        table.require("forecaster", *ROLES)
        check_rules(table, list(text_rules(table, "forecaster", *ROLES)))
        wanted = ", ".join(table.text(column) for column in ("forecaster", *ROLES))
        rows = con.execute(f"select {wanted} from {table.table}").fetchall()
    return {name: dict(zip(ROLES, models, strict=True)) for name, *models in rows}
