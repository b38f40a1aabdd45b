"""How much of a budget is used, and how much is billed, for every way of spending money.

Every command runs in its own processes against a provider that bills by its own count. There is always more work
than money. The columns are dollars billed by the provider, divided by the budget: with one process and honest usage in
the replies, which is the share of a budget that can be used; with three processes at once; without usage in the
replies, although each has thousands of hidden tokens; and with replies that are refused or cut off. Above 1, a budget
was overspent.

    python benchmarks/budget_use.py [--way "run in batches"]
"""

import argparse
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from fakes.postgres import LocalPostgres, binaries
from money.ways import BY_NAME, WAYS, Site, Way


class Column(NamedTuple):
    """Number of processes, and the behaviour of the provider."""

    processes: int = 1
    provider: Mapping[str, Any] = {}


COLUMNS = {
    "used": Column(),
    "3 processes": Column(processes=3),
    "no usage": Column(provider={"usage": "missing"}),
    "faults": Column(provider={"faults": {"429": 0.15, "500": 0.1, "cut": 0.25}, "seed": 5}),
}


def billed(way: Way, column: Column, database: str) -> float:
    """Return the dollars that the provider billed, divided by the budget."""
    with tempfile.TemporaryDirectory() as folder, Site(Path(folder), database=database, **column.provider) as site:
        way.spend(site, processes=column.processes)
        return site.bill().dollars / way.budget


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--way", choices=[way.name for way in WAYS], action="append", help="only this one")
    options = parser.parse_args()
    chosen = [BY_NAME[name] for name in options.way] if options.way else WAYS
    ratios: list[list[float]] = []
    print("  ".join([f"{'billed / budget':26}", *(f"{name:>11}" for name in COLUMNS)]))
    with ExitStack() as stack:
        server: LocalPostgres | None = None
        for way in chosen:
            if way.shared and binaries() is None:
                print(f"{way.name:26}  PostgreSQL is not installed")
                continue
            if way.shared and server is None:
                server = stack.enter_context(LocalPostgres(safe=False))
            row: list[float] = []
            for place, column in enumerate(COLUMNS.values()):
                database = server.create(f"budget{len(ratios)}_{place}") if way.shared and server else ""
                row.append(billed(way, column, database))
            ratios.append(row)
            print("  ".join([f"{way.name:26}", *(f"{ratio:11.4f}" for ratio in row)]), flush=True)
    most, least = max(max(row) for row in ratios), min(row[0] for row in ratios)
    verdict = "as promised" if most <= 1 + 1e-9 and least >= 0.9 else "NOT as promised"
    print(f"{verdict}: at most {most:.4f} of a budget is billed, and at least {least:.4f} can be used")


if __name__ == "__main__":
    main()
