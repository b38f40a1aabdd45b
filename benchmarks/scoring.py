"""Scoring a Parquet file of a million forecasts: ours (with intervals) against pandas groupby-apply (without)."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

from foretell.arena.joining import read_table
from foretell.arena.scoring import Scoring, score_table
from foretell.evaluate.bootstrap import Resampling

FORECASTERS, QUESTIONS = 50, 20_000


def make(folder: Path) -> tuple[Path, Path]:
    f, o = folder / "forecasts.parquet", folder / "outcomes.parquet"
    duckdb.execute("select setseed(0.5)")
    duckdb.execute(
        f"copy (select 'q' || i as question, 'yes' as target, (random() < 0.4)::int as outcome, "
        f"case when i % 2 = 0 then 'market' else 'dataset' end as kind, 's' || i % 9 as source "
        f"from range({QUESTIONS}) t(i)) to '{o}'"
    )
    duckdb.execute(
        f"copy (select 'model ' || m as forecaster, 'q' || i as question, 'yes' as target, random() as p "
        f"from range({FORECASTERS}) a(m), range({QUESTIONS}) b(i)) to '{f}'"
    )
    return f, o


def timed(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def pandas_way(f: Path, o: Path) -> object:
    """What a notebook does: join, then one function per forecaster and kind."""
    import numpy as np
    import pandas as pd

    forecasts = pd.DataFrame(duckdb.execute(f"select * from '{f}'").fetchnumpy())
    outcomes = pd.DataFrame(duckdb.execute(f"select * from '{o}'").fetchnumpy())
    joined = forecasts.merge(outcomes, on=["question", "target"], validate="many_to_one")

    def metrics(rows: pd.DataFrame) -> pd.Series:
        p, y = rows["p"].to_numpy(), rows["outcome"].to_numpy()
        said = np.clip(np.where(y == 1, p, 1 - p), 0.001, 1)
        brier = np.mean((p - y) ** 2)
        bins = rows.groupby(np.minimum((p * 10).astype(int), 9)).apply(lambda b: abs(b["p"].sum() - b["outcome"].sum()))
        return pd.Series(
            {
                "brier": brier,
                "bi": 100 * (1 - np.sqrt(brier)),
                "log": np.log(said).mean(),
                "ece": bins.sum() / len(rows),
            }
        )

    return joined.groupby(["forecaster", "kind", "source"])[["p", "outcome"]].apply(metrics)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        f, o = make(Path(name))
        by = ("kind", "source")
        table_time = timed(lambda: read_table(f, o))
        table = read_table(f, o)
        points = timed(lambda: score_table(table, Scoring(by=by, anchors=False, resampling=Resampling(draws=2))))
        board = timed(lambda: score_table(table, Scoring(by=by, resampling=Resampling(draws=1000))))
        peer = timed(lambda: pandas_way(f, o))
    rows = FORECASTERS * QUESTIONS
    print(f"{rows:,} rows, {FORECASTERS} forecasters, 18 groups")
    print(
        f"read, check, join and score:           {peer / (table_time + points):5.1f} × faster than pandas groupby-apply"
    )
    print(
        f"the same with intervals (1,000 draws): {peer / (table_time + board):5.1f} × faster than pandas without them"
    )


if __name__ == "__main__":
    main()
