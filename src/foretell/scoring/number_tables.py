"""Read tables of forecasts of numbers, and of their actual values."""

from collections import defaultdict

from foretell.questions.question import NumericRange
from foretell.scoring.table_input import (
    ColumnRule,
    InputTable,
    TableSource,
    check_rules,
    refuse_repeats,
    table_columns,
    text_rules,
)


def is_number_table(source: TableSource) -> bool:
    """Whether a table forecasts numbers: values by level or sample instead of p. Reads only the head.

    >>> is_number_table([{"forecaster": "A", "question": "q", "level": 0.5, "value": 3}])
    True
    >>> is_number_table([{"forecaster": "A", "question": "q", "target": "yes", "p": 0.3}])
    False
    """
    columns = table_columns(source)
    return "p" not in columns and "value" in columns and bool(set(LEVELS) & columns)


LEVELS = ("level", "quantile", "sample")
"""Columns that say which quantile or sample a row states."""


def read_ranges(outcomes: InputTable) -> dict[str, NumericRange]:
    """Return the ranges of questions that have one: range_min, range_max, and whether an end is open."""
    if not {"range_min", "range_max"} <= set(outcomes.types):
        return {}
    low, high = outcomes.number("range_min"), outcomes.number("range_max")
    bad = f"{low} is not null and {high} is not null and not {low} < {high}"
    hint = "write the lower end into range_min"
    check_rules(
        outcomes, [ColumnRule(column="range_max", bad=bad, problem="{value} is not above range_min", hint=hint)]
    )
    ends = [
        f"coalesce(lower({outcomes.text(name)}) in ('true', 'yes', '1'), false)" if name in outcomes.types else "false"
        for name in ("open_lower", "open_upper")
    ]
    columns = ", ".join([outcomes.text("question"), low, high, *ends])
    rows = outcomes.con.execute(f"select {columns} from {outcomes.table}").fetchall()
    return {
        question: NumericRange(minimum=least, maximum=most, open_lower=opens[0], open_upper=opens[1])
        for question, least, most, *opens in rows
        if least is not None and most is not None
    }


def read_values(outcomes: InputTable) -> dict[str, float | None]:
    """Return the actual value of each question; None if it is not known."""
    outcomes.require("question", "value")
    check_rules(outcomes, [*text_rules(outcomes, "question"), _finite(outcomes, "value", optional=True)])
    refuse_repeats(outcomes, {"question": outcomes.text("question")})
    query = f"select {outcomes.text('question')}, {outcomes.number('value')} from {outcomes.table}"
    return dict(outcomes.con.execute(query).fetchall())


def read_stated(forecasts: InputTable) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Return levels, or sample numbers, with their values, by forecaster and question."""
    which = next((name for name in LEVELS if name in forecasts.types), "level")
    forecasts.require("forecaster", "question", which, "value")
    number = forecasts.number(which)
    rules = [*text_rules(forecasts, "forecaster", "question"), _finite(forecasts, "value", optional=False)]
    if which != "sample":
        bad = f"{number} is null or not ({number} > 0 and {number} < 1)"
        rules.append(
            ColumnRule(column=which, bad=bad, problem="{value} is not a level", hint="0.9 for the 90 % quantile")
        )
    check_rules(forecasts, rules)
    key = {name: forecasts.text(name) for name in ("forecaster", "question", which)}
    refuse_repeats(forecasts, key)
    stated: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    columns = f"{key['forecaster']}, {key['question']}, {number}, {forecasts.number('value')}"
    for forecaster, question, at, value in forecasts.con.execute(f"select {columns} from {forecasts.table}").fetchall():
        stated[forecaster, question].append((at, value))
    return stated


def _finite(table: InputTable, column: str, *, optional: bool) -> ColumnRule:
    number = table.number(column)
    present = f"{table.text(column)} is not null and " if optional else ""
    bad = f"{present}({number} is null or not isfinite({number}))"
    return ColumnRule(column=column, bad=bad, problem="{value} is not a number", hint="write a decimal such as 12.5")
