"""Recall and false drops of the rules on generated texts.

`python -m tests.tools.adversarial.measure` prints the table, `--write` renews it in the docs, `--wrong` lists what the
rules get wrong on the wordings they may be tuned on.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.tools.adversarial.cases import CUTOFF, PlantedText, all_cases
from tests.tools.doubles import question

from foretell.tools.rules import FenceRules
from foretell.tools.tool import Refusal

PAGE = Path(__file__).parents[3] / "docs" / "fence.md"
BEGIN, END = "<!-- generated leaks: begin -->", "<!-- generated leaks: end -->"


def stopped(case: PlantedText) -> bool:
    """Whether the rules alone refuse a text."""
    rules = FenceRules(as_of=CUTOFF, question=question())
    return isinstance(rules.admit(case.item, "web_search"), Refusal)


def share(cases: Sequence[PlantedText]) -> str:
    """How many of the cases are stopped."""
    return f"{sum(map(stopped, cases))} of {len(cases)}" if cases else "–"


def halves(cases: Sequence[PlantedText]) -> str:
    """How many are stopped of the wordings that rules were tuned on, and of the others."""
    return " | ".join(share([case for case in cases if case.tuned is tuned]) for tuned in (True, False))


def table(cases: Sequence[PlantedText]) -> str:
    """Recall on leaks and false drops on clean texts, by kind, on both halves of the wordings."""
    lines = ["| kind | must be | stopped, wordings tuned on | stopped, other wordings |", "|---|---|---:|---:|"]
    for kind in dict.fromkeys(case.kind for case in cases):
        chosen = [case for case in cases if case.kind == kind]
        lines.append(f"| {kind} | {'dropped' if chosen[0].must == 'drop' else 'kept'} | {halves(chosen)} |")
    for must, name in (("drop", "**all leaks**"), ("keep", "**all clean**")):
        lines.append(f"| {name} | | {halves([case for case in cases if case.must == must])} |")
    return "\n".join(lines)


def main() -> None:
    cases = all_cases()
    if "--write" in sys.argv:
        page = PAGE.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{table(cases)}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    if "--wrong" in sys.argv:
        for case in cases:
            if case.tuned and stopped(case) != (case.must == "drop"):
                print(
                    case.must,
                    case.kind,
                    repr(case.wording),
                    repr(case.item.text[:100]),
                    case.item.url,
                    case.item.title,
                    sep=" | ",
                )
    print(table(cases))


if __name__ == "__main__":
    main()
