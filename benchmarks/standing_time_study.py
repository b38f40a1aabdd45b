"""Whether time alone improves a forecast, if nothing happens: reports/standing.md.

Market questions of ForecastBench whose deadline is in their text and over. The first price is kept until the question
resolves, or changed by time alone. Needs the data in the folder FORETELL_DATA.

    PYTHONPATH=. python benchmarks/standing_time_study.py
"""

import os
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from tests.standing.quarter import verdict

from foretell.forecasters.series.typed_question import asked_span
from foretell.questions.as_of import end_of_day
from foretell.questions.question import Question, Target
from foretell.standing.time_left import after_time, has_to_happen

DATA = Path(os.environ.get("FORETELL_DATA") or Path(__file__).parents[2] / "shared" / "data")
SOURCES = "('infer', 'manifold', 'metaculus', 'polymarket')"
LAST_DAY = date(2026, 1, 20)
"""Questions with a later deadline are left out: of those, only what happened early is resolved."""
SHORTEST, FEWEST = 7, 3
"""Days from the first price to the deadline, and days that are scored, at least."""


def on_prices() -> dict[bool, np.ndarray[Any, Any]]:
    """Return scores of the first price, of it after time alone, of each day's price, and the outcome, by the rule."""
    tables = duckdb.connect()

    def read(columns: str, table: str, where: str = "") -> list[Any]:
        query = f"select {columns} from '{DATA}/tables/{table}.parquet' where source in {SOURCES} {where}"
        return tables.execute(query).fetchall()

    outcomes = {(source, id): (day, came) for source, id, day, came in read(
        "source, question_id, resolution_date, outcome", "resolutions", "and resolved and outcome in (0, 1)"
    )}  # fmt: skip
    prices: dict[tuple[str, str], dict[date, float]] = {}
    for source, id, day, price in read("source, question_id, date, price", "market_price_history", "order by date"):
        prices.setdefault((source, id), {})[date.fromisoformat(day)] = price
    rows: dict[bool, list[tuple[float, ...]]] = {True: [], False: []}
    first = "source, question_id, any_value(question), min(forecast_due_date)"
    for source, id, text, due in read(first, "questions", "group by 1, 2"):
        key, asked_on = (source, id), date.fromisoformat(due)
        line = text.partition("\n")[0]
        span = asked_span(line, asked_on, None)
        if key not in outcomes or key not in prices or span is None or span.last > LAST_DAY:
            continue
        seen = prices[key]
        start = max((day for day in seen if day <= asked_on), default=min(seen))
        day, came = outcomes[key]
        if (span.last - start).days < SHORTEST:
            continue
        ends = min(span.last + timedelta(days=1), date.fromisoformat(day))
        open_days = [start + timedelta(days=n) for n in range(1, (ends - start).days)]
        if len(open_days) < FEWEST:
            continue
        question = Question(id="q", source="asked", text=line, due=due, targets=(Target(id="yes"),))
        made, deadline, price = _at(start), end_of_day(span.last), seen[start]
        scores: list[tuple[float, float, float]] = []
        for at in open_days:
            price = seen.get(at, price)
            aged = after_time({"yes": seen[start]}, made, _at(at), deadline)["yes"]
            scores.append(((seen[start] - came) ** 2, (aged - came) ** 2, (price - came) ** 2))
        rows[has_to_happen(question)].append((*np.mean(scores, axis=0), came, seen[start]))
    return {applies: np.array(found) for applies, found in rows.items()}


def _at(day: date) -> datetime:
    return end_of_day(day) - timedelta(hours=12)


def as_priced(rows: np.ndarray[Any, Any]) -> str:
    """Return the gain if outcomes are weighted so that they come true as often as the first prices say."""
    random = np.random.default_rng(0)

    def gain(sample: np.ndarray[Any, Any]) -> float:
        came, p = sample[:, 3], sample[:, 4].mean()
        yes = came.mean()
        weight = np.where(came == 1, p / yes, (1 - p) / (1 - yes)) if 0 < yes < 1 else np.ones(len(came))
        return float(np.average(sample[:, 0] - sample[:, 1], weights=weight))

    low, high = np.quantile([gain(rows[random.integers(0, len(rows), len(rows))]) for _ in range(4000)], (0.025, 0.975))
    return f"{gain(rows):.4f} [{low:.4f}, {high:.4f}]"


def main() -> None:
    """Print all figures."""
    for applies, rows in on_prices().items():
        mean = rows.mean(axis=0)
        print(f"{'has to happen' if applies else 'anything else'}: {len(rows)} questions, {mean[3]:.1%} came true")
        print(f"  first price {mean[0]:.4f}, by time {mean[1]:.4f}, price of the day {mean[2]:.4f}")
        print(f"  {verdict(rows[:, 1].tolist(), rows[:, 0].tolist(), ('by time', 'first price')).sentence}")
        print(f"  gain if outcomes are weighted as the prices say: {as_priced(rows)}")


if __name__ == "__main__":
    main()
