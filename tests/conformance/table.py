"""All checks, and the table they make."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from conformance.recordings import Check, names

TABLE = Path(__file__).parents[2] / "docs/conformance.md"
HERE = Path(__file__).parent
NO_SERVICES = {"__init__", "recordings", "table", "write_table", "test_conformance", "test_mutated", "reading"}
HEAD = """# Conformance of the services

Each row is a claim about one outside service. Every test run checks it against recorded responses of the real service,
its official specification, or its official client. `foretell services check` sends live requests.

`python tests/conformance/write_table.py` generates this page; `tests/conformance/test_conformance.py` checks it.

| Service | What is checked | Recordings | Verdict |
|---|---|---|---|
"""


def all_checks() -> list[Check]:
    """The checks of every service, in the order of the files."""
    modules = sorted(file.stem for file in HERE.glob("*.py") if file.stem not in NO_SERVICES)
    return [check for module in modules for check in import_module(f"conformance.{module}").CHECKS]


def unread(checks: list[Check]) -> Mapping[str, list[str]]:
    """Recordings that no check reads, by service."""
    read = {(check.service, file) for check in checks for file in check.files}
    services = sorted({check.service for check in checks})
    missing = {one: [name for name in names(one) if (one, name) not in read] for one in services}
    return {service: files for service, files in missing.items() if files}


def table(checks: list[Check], verdicts: Mapping[str, str] | None = None) -> str:
    """The table as Markdown; without verdicts as it stands in the docs, where every claim holds."""
    rows = [
        f"| {one.service} | {one.what} | {len(one.files) or '–'} | {(verdicts or {}).get(one.name, 'holds')} |"
        for one in checks
    ]
    return HEAD + "\n".join(rows) + "\n"


def claims(text: str) -> list[list[str]]:
    """The rows of a table without the number of recordings, which depends on how many are at hand."""
    cells = [[cell.strip() for cell in line.split("|")] for line in text.splitlines() if line.startswith("|")]
    return [[*row[:3], *row[4:]] for row in cells]
