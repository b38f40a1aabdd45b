"""The stored texts of `foretell audit --filter`, and the errors of the rules on them.

`python -m tests.tools.adversarial.measure` generates and stores the texts and updates the table in the report.
`--wrong` lists the errors of the rules on the wordings for tuning.
"""

import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from tests.tools.adversarial.cases import all_cases
from tests.tools.adversarial.dates_written import PROSE

from foretell.studies.audit.leaks import ADDRESS, PROSE_MARK, RULES, TITLE, LeakCase, audit_filters, leak_cases

ROOT = Path(__file__).parents[3]
STORED = ROOT / "src" / "foretell" / "studies" / "audit" / "leak_cases.jsonl"
PAGE = ROOT / "benchmarks" / "reports" / "leakage.md"
BEGIN, END = "<!-- generated leaks: begin -->", "<!-- generated leaks: end -->"


def to_lines(cases: Sequence[LeakCase], prose: str) -> Iterator[str]:
    """The lines in which the texts are stored."""
    yield json.dumps({"prose": prose})
    for case in cases:
        row = {"kind": case.kind, "wording": case.wording, "part": case.part, "leak": case.leak}
        row |= {} if case.dated else {"dated": False}
        row |= {} if case.title == TITLE else {"title": case.title}
        row |= {} if case.url == ADDRESS else {"url": case.url}
        yield json.dumps({**row, "text": case.text.replace(prose, PROSE_MARK)}, ensure_ascii=False)


def table() -> str:
    """The tables of the study as Markdown, without a model."""
    result = asyncio.run(audit_filters(cast("Any", None), [RULES], None))
    lines = [result.text, ""]
    for section in result.tables:
        lines += [f"| {section.row_header} | " + " | ".join(column.label for column in section.columns) + " |"]
        lines += ["|---|---|" + "---:|" * (len(section.columns) - 1)]
        lines += [f"| {row.name} | " + " | ".join(map(str, row.values)) + " |" for row in section.rows] + [""]
    return "\n".join(lines).strip()


def wrong(cases: list[LeakCase]) -> list[LeakCase]:
    """The errors of the rules on the wordings for tuning."""
    return [case for case in cases if case.part == "tuned" and case.dated and case.refused_by_rules() != case.leak]


def main() -> None:
    STORED.write_text("\n".join(to_lines(all_cases(), PROSE)) + "\n", encoding="utf-8")
    if "--wrong" in sys.argv:
        for case in wrong(leak_cases()):
            print("drop" if case.leak else "keep", case.kind, repr(case.wording), case.text[:100], case.url, sep=" | ")
        return
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
