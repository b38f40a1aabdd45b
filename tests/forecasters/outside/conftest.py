from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from foretell.forecasters.base_rates.past import Past, PastQuestions

Row = dict[str, Any]
Bank = Callable[[list[Row]], PastQuestions]
DAYS = ("due", "resolves", "price_on", "known_on")
NUMBERS = ("price", "size", "outcome")
TOWNS = ("Oslo", "Rome", "Lima")


@pytest.fixture(scope="session")
def bank_of() -> Bank:
    """Return a function that makes a bank from rows with defaults for missing columns."""

    def build(rows: list[Row]) -> PastQuestions:
        defaults: Row = {
            "text": "?",
            "source": "polymarket",
            "subtype": "market",
            "kind": "market",
            "due": "2025-01-05",
            "url": "",
        }
        full = [defaults | {"id": f"q{i}"} | row for i, row in enumerate(rows)]
        for row in full:
            if "price" in row:
                row.setdefault("price_on", row["due"])

        def column(name: str) -> np.ndarray:
            if name in DAYS:
                return np.array([row.get(name) for row in full], "M8[D]")
            if name in NUMBERS:
                return np.array([row.get(name, np.nan) for row in full], np.float64)
            return np.array([row[name] for row in full], object if name == "text" else str)

        names = ("id", "text", "source", "subtype", "kind", "url", *DAYS, *NUMBERS)
        return PastQuestions(**{name: column(name) for name in names})

    return build


@pytest.fixture(scope="session")
def parade_bank(bank_of: Bank) -> PastQuestions:
    """Rounds in which questions about a parade mostly come true and questions about a comet mostly do not."""
    rng = np.random.default_rng(3)
    rows: list[Row] = []
    for number, due in enumerate(np.arange("2025-01-05", "2025-07-01", 14, dtype="M8[D]")):
        for i in range(30):
            parade = bool(rng.random() < 0.4)
            thing = "parade" if parade else "comet"
            span = int(rng.integers(10, 120))
            end = due + np.timedelta64(span, "D")
            outcome = float(rng.random() < (0.8 if parade else 0.1))
            known = due + rng.integers(1, span).astype("m8[D]") if outcome else end + np.timedelta64(1, "D")
            row: Row = {
                "id": f"{thing}{number}/{i}",
                "text": f"Will a {thing} be seen over {TOWNS[i % 3]} by {end}?",
                "source": "metaculus" if i % 2 else "polymarket",
                "due": str(due),
                "outcome": outcome,
                "known_on": str(known),
            }
            if i % 3:
                row["price"] = 0.7 if parade else 0.15
            rows.append(row)
    return bank_of(rows)


@pytest.fixture(scope="session")
def parade_past(parade_bank: PastQuestions) -> Past:
    """The same bank as a past, which caches what was fitted for a day."""
    return Past.of_table(parade_bank)
