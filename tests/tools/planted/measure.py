"""Measure the leakage filter on planted cases. `python -m tests.tools.planted.measure --write` updates the report."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.tools.doubles import Broken, keeps_all
from tests.tools.planted.address_cases import address_cases
from tests.tools.planted.case import Case, Outcome
from tests.tools.planted.content_cases import content_cases
from tests.tools.planted.data_cases import data_cases
from tests.tools.planted.dated_cases import dated_cases
from tests.tools.planted.stand_in import stand_in

PAGE = Path(__file__).parents[3] / "benchmarks" / "reports" / "leakage.md"
BEGIN, END = "<!-- planted: begin -->", "<!-- planted: end -->"
HEAD = (
    "| kind | leaks | stopped by rules | stopped with stand-in | clean | wrongly stopped by rules | with stand-in |",
    "|---|---:|---:|---:|---:|---:|---:|",
)


def all_cases() -> tuple[Case, ...]:
    return (*dated_cases(), *data_cases(), *address_cases(), *content_cases())


_OUTCOMES: dict[tuple[str, Callable[[], Any]], Outcome] = {}


def outcome(case: Case, model: Callable[[], Any]) -> Outcome:
    """Return the cached outcome of a case with this content filter."""
    key = (case.id, model)
    if key not in _OUTCOMES:
        _OUTCOMES[key] = case.run(model())
    return _OUTCOMES[key]


@dataclass(frozen=True, kw_only=True)
class Row:
    kind: str
    leaks: int
    by_rules: int
    by_all: int
    clean: int
    false_by_rules: int
    false_by_all: int

    def line(self) -> str:
        counts = (self.leaks, self.by_rules, self.by_all, self.clean, self.false_by_rules, self.false_by_all)
        return f"| {self.kind} | " + " | ".join(map(str, counts)) + " |"


def rows(cases: Sequence[Case]) -> list[Row]:
    kinds = dict.fromkeys(case.kind for case in cases)
    return [_row(kind, [case for case in cases if case.kind == kind]) for kind in kinds]


def _row(kind: str, cases: Sequence[Case]) -> Row:
    leaks = [case for case in cases if case.must == "drop"]
    clean = [case for case in cases if case.must == "keep"]
    return Row(
        kind=kind,
        leaks=len(leaks),
        by_rules=_stopped(leaks, keeps_all),
        by_all=_stopped(leaks, stand_in),
        clean=len(clean),
        false_by_rules=_stopped(clean, keeps_all),
        false_by_all=_stopped(clean, stand_in),
    )


def _stopped(cases: Sequence[Case], model: Callable[[], Any]) -> int:
    return sum(not outcome(case, model).admitted for case in cases)


def table(cases: Sequence[Case]) -> str:
    rows_ = rows(cases)
    total = Row(
        kind="**all**",
        **{name: sum(getattr(row, name) for row in rows_) for name in Row.__dataclass_fields__ if name != "kind"},
    )
    by_rule = [case for case in cases if case.must == "drop" and case.by != "content"]
    let_through = len(by_rule) - _stopped(by_rule, keeps_all)
    reached = [case for case in cases if case.must == "drop" and case.by == "content"]
    failing = sum(outcome(case, Broken).admitted for case in cases if case.by != "data")
    share = total.by_all / total.leaks
    wrong = total.false_by_all / total.clean
    return "\n".join(
        (
            *HEAD,
            *(row.line() for row in rows_),
            total.line(),
            "",
            f"- {len(cases)} cases: {total.leaks} leaks, {total.clean} clean.",
            f"- Leaks that a date, a number or an address decides: {len(by_rule)}, of which the rules let "
            f"{let_through} through, even beside a filter that says KEEP to everything.",
            f"- Leaks that only reading decides: {len(reached)}, of which the stand-in stops "
            f"{_stopped(reached, stand_in)}.",
            f"- Whole leakage filter with the stand-in: recall {share:.1%}, false drops {wrong:.1%}.",
            f"- With a filter that fails, {failing} texts are admitted.",
        )
    )


def replace_table(page: str, table_text: str) -> str:
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{table_text}\n{END}{rest.split(END)[1]}"


def main() -> None:
    text = table(all_cases())
    if "--write" in sys.argv:
        PAGE.write_text(replace_table(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
