"""All checks, and the Markdown table of them."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from conformance.recordings import Check, names

HERE = Path(__file__).parent
NO_SERVICES = {"__init__", "recordings", "table", "test_conformance", "test_mutated", "reading"}
HEAD = """# Conformance of the services

Each row is a claim about one outside service. Every test run checks it against recorded responses of the real service,
its official specification, or its official client. `foretell doctor --online --services` sends live requests.

| Service | What is checked | Recordings |
|---|---|---|
"""


def all_checks() -> list[Check]:
    """The checks of every service, in the order of the files."""
    modules = sorted(file.stem for file in HERE.glob("*.py") if file.stem not in NO_SERVICES)
    return [check for module in modules for check in import_module(f"conformance.{module}").CHECKS]


def unread(checks: list[Check]) -> Mapping[str, list[str]]:
    """Recordings that no check reads, by service."""
    read = {(check.service, file) for check in checks for file in check.files}
    services = sorted({check.service for check in checks})
    missing = {service: [name for name in names(service) if (service, name) not in read] for service in services}
    return {service: files for service, files in missing.items() if files}


def table(checks: list[Check]) -> str:
    """Return the table as Markdown."""
    rows = [f"| {check.service} | {check.what} | {len(check.files) or '–'} |" for check in checks]
    return HEAD + "\n".join(rows) + "\n"
