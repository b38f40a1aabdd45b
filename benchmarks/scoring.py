"""Scoring 600,000 forecasts with the command, against a bare DuckDB and numpy script with the same intervals.

Both read the same files, join them, and compute the standard metrics of every forecaster in every group with their
intervals, and every difference from the leader on the targets both answered: questions and days are resampled, crossed,
in 2,000 draws of at most 500 groups of clusters. Each side runs as its own process, in turns, on one BLAS thread.
Prints ratios of CPU time and megabytes, not seconds, because ratios depend less on the machine. The same number of
forecasts comes in three shapes: some forecasters, only one of very many questions, and very many of few questions.

Then a million forecasts in 18 groups, against pandas groupby-apply.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FORECASTERS, QUESTIONS, DRAWS = 50, 20_000, 200

# Part 1: a table of 600,000 forecasts, complete or with 5 % missing at random from each forecaster.

ROWS, TARGETS = 600_000, 3
SOME, ONE, MANY = 20, 1, 1000
"""Numbers of forecasters; the questions are as many as make 600,000 forecasts."""
RESAMPLES, BUNDLES, BINS = 2000, 500, 10
MOST_RATIO, MOST_MEGABYTES = 2.0, 700


def make_long(folder: Path, missing: float, kind: str, models: int) -> tuple[Path, Path]:
    asked = ROWS // TARGETS // models
    f, o = folder / f"forecasts.{kind}", folder / f"outcomes.{kind}"
    link = duckdb.connect()
    link.execute("select setseed(0.5)")
    link.execute(
        f"copy (select 'question ' || i as question, 'target ' || t as target, (random() < 0.4)::int as outcome, "
        f"'source ' || i % 9 as source, '2026-01-01'::date + (i % 100)::int as due, "
        f"'2026-03-01'::date + (i % 100 + 30 * t)::int as resolved_on, 7 * (1 + t) as horizon "
        f"from range({asked}) a(i), range({TARGETS}) b(t)) to '{o}'"
    )
    link.execute(
        f"copy (select 'model ' || m as forecaster, 'question ' || i as question, 'target ' || t as target, "
        f"random() as p from range({models}) c(m), range({asked}) a(i), range({TARGETS}) b(t) "
        f"where hash(m, i, t) % 1000 >= {round(1000 * missing)}) to '{f}'"
    )
    return f, o


class BareScript:
    """A script with only DuckDB and numpy, without checks of the input."""

    def __init__(self, f: Path, o: Path, by: tuple[str, ...]) -> None:
        link = duckdb.connect()
        link.execute(f"create table o as select *, row_number() over () - 1 as place from '{o}'")
        groups = ", ".join(["''", *(f"{name}::varchar" for name in by)])
        columns: dict[str, Any] = link.execute(
            f"select outcome::double as outcome, dense_rank() over (order by question) - 1 as question, "
            f"dense_rank() over (order by resolved_on) - 1 as day, dense_rank() over (order by source) - 1 as source, "
            f"due, resolved_on, concat_ws(' ', {groups}) as cell from o order by place"
        ).fetchnumpy()
        rows: dict[str, Any] = link.execute(
            f"select dense_rank() over (order by f.forecaster) - 1 as model, o.place, f.p from '{f}' f join o "
            "using (question, target)"
        ).fetchnumpy()
        self.question, self.day, outcome = columns["question"], columns["day"], columns["outcome"]
        p = np.full((int(rows["model"].max()) + 3, len(outcome)), np.nan)
        p[rows["model"], rows["place"]] = rows["p"]
        p[-2], p[-1] = 0.5, base_rate(columns["source"], columns["due"], columns["resolved_on"], outcome)
        self.answered = np.isfinite(p)
        self.columns = [row_columns(row, outcome) for row in p]
        cell_code = np.unique(columns["cell"], return_inverse=True)[1]
        self.groups = [
            np.arange(len(outcome)),
            *(np.flatnonzero(cell_code == c) for c in range(cell_code.max() + 1) if by),
        ]
        self.counts: dict[tuple[int, int], npt.NDArray[np.float32]] = {}

    def run(self) -> Floats:
        """Return the ends of all intervals."""
        floats: list[Floats] = []
        for group in self.groups:
            index = np.empty(len(self.columns))
            for at, members in self.together(group, range(len(index))):
                estimate = np.stack([metrics(self.columns[m][at].sum(axis=0)) for m in members])
                floats.append(interval(estimate, [metrics(sums) for sums in self.resampled(members, at, BINS + 6)]))
                index[members] = estimate[:, 1]
            best = int(index.argmax())
            others = [m for m in range(len(index)) if m != best]
            for at, members in self.together(group[self.answered[best, group]], others):
                arms = [best, *members]
                scores = np.array([brier_index(self.columns[m][at, :2].sum(axis=0)) for m in arms])
                ways = [brier_index(sums) for sums in self.resampled(arms, at, 2)]
                floats += [
                    interval(scores, ways),
                    interval(scores[1:] - scores[0], [way[:, 1:] - way[:, :1] for way in ways]),
                ]
        return np.concatenate([ends.ravel() for ends in floats])

    def together(self, group: Ints, members: Iterable[int]) -> Iterator[tuple[Ints, list[int]]]:
        """Return forecasters that answered the same targets of a group, with these targets."""
        sets: dict[bytes, list[int]] = {}
        for m in members:
            sets.setdefault(self.answered[m, group].tobytes(), []).append(m)
        for key, same in sets.items():
            yield group[np.frombuffer(key, np.bool_)], same

    def resampled(self, members: list[int], at: Ints, width: int) -> Iterator[Floats]:
        """Sums over resampled questions, days and cells."""
        table = np.hstack([self.columns[m][at, :width] for m in members])
        for way, unit in enumerate(ways_of(self.question[at], self.day[at])):
            sums = np.stack([np.bincount(unit, column) for column in table.T], axis=1)
            n = len(sums)
            if (n, way) not in self.counts:
                rng = np.random.default_rng([0, way])
                self.counts[n, way] = rng.multinomial(n, np.full(n, 1 / n), RESAMPLES).astype(np.float32)
            deviations = (sums - sums.mean(axis=0)).astype(np.float32)
            yield (self.counts[n, way] @ deviations + sums.sum(axis=0)).reshape(RESAMPLES, len(members), width)


def base_rate(source: Ints, due: npt.NDArray[Any], resolved: npt.NDArray[Any], outcome: Floats) -> Floats:
    """Share of yes among targets of the same source that had resolved before."""
    out = np.empty(len(outcome))
    for code in np.unique(source):
        rows = np.flatnonzero(source == code)
        order = rows[np.argsort(resolved[rows])]
        before = np.searchsorted(resolved[order], due[rows])
        out[rows] = (np.append(0, np.cumsum(outcome[order]))[before] + 1) / (before + 2)
    return out


def row_columns(p: Floats, outcome: Floats) -> Floats:
    """Brier score, weight, log score, baseline score, p, p² and the gaps of ten bins, by target."""
    likelihood = np.clip(np.where(outcome == 1, p, 1 - p), 0.001, None)
    gaps = np.zeros((len(p), BINS))
    gaps[np.arange(len(p)), np.minimum((np.nan_to_num(p) * BINS).astype(int), BINS - 1)] = outcome - p
    plain = [(p - outcome) ** 2, np.ones(len(p)), np.log(likelihood), 100 * (1 + np.log2(likelihood)), p, p**2]
    return np.column_stack([*plain, gaps])


def brier_index(sums: Floats) -> Floats:
    return 100 * (1 - np.sqrt(sums[..., 0] / sums[..., 1]))


def metrics(sums: Floats) -> Floats:
    n = sums[..., 1]
    constant = sums[..., 5] / n - (sums[..., 4] / n) ** 2 < 1e-9
    ece = np.where(constant, np.nan, np.abs(sums[..., 6:]).sum(axis=-1) / n)
    return np.stack([sums[..., 0] / n, brier_index(sums), sums[..., 2] / n, sums[..., 3] / n, ece], axis=-1)


def ways_of(question: Ints, day: Ints) -> Iterator[Ints]:
    """The units that are resampled: questions, days, and their cells, each merged at random into 500."""
    for labels in (question, day, question * 1000 + day):
        codes = np.unique(labels, return_inverse=True)[1]
        n = int(codes.max()) + 1
        yield codes if n <= BUNDLES else (np.random.default_rng(0).permutation(n) % BUNDLES)[codes]


def interval(estimate: Floats, ways: list[Floats]) -> Floats:
    """Percentiles of draws whose variance is that of questions and of days less that of their cells."""
    spread = [way.var(axis=0) for way in ways]
    wider, most = np.where(spread[0] >= spread[1], ways[0], ways[1]), np.maximum(spread[0], spread[1])
    with np.errstate(invalid="ignore"):
        scale = np.sqrt(np.maximum(1.0, (spread[0] + spread[1] - spread[2]) / most))
    return np.quantile(estimate + (wider - estimate) * np.where(most > 0, scale, 1.0), [0.025, 0.975], axis=0)


def process(call: list[str]) -> tuple[float, float]:
    """Return CPU seconds and peak megabytes of a Python process."""
    one_thread = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": ""}
    child = subprocess.Popen([sys.executable, *call], env=one_thread, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(call)} failed")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


CASES = (
    (SOME, "parquet", ""),
    (SOME, "parquet", "source,horizon"),
    (SOME, "csv", ""),
    (SOME, "csv", "source,horizon"),
    (ONE, "parquet", ""),
    (ONE, "csv", ""),
    (MANY, "parquet", ""),
    (MANY, "csv", ""),
)


def long_table(runs: int = 3) -> bool:
    """Print every case; return whether all hold."""
    print(f"{ROWS:,} forecasts, {RESAMPLES:,} draws, {runs} alternating runs:")
    good = True
    for missing, (models, kind, by) in product((0.0, 0.05), CASES):
        if missing and models == MANY:
            continue  # Every pair shares other targets: a thousand bootstraps on both sides, which take long.
        with tempfile.TemporaryDirectory() as name:
            f, o = map(str, make_long(Path(name), missing, kind, models))
            command = ["-m", "foretell", "score", f, "-o", o, *(("--by", by) if by else ())]
            pairs = [(process(command), process([__file__, "bare", f, o, by])) for _ in range(runs)]
        ratios = [ours[0] / bare[0] for ours, bare in pairs]
        peak, other = (max(side[1] for side in sides) for sides in zip(*pairs, strict=True))
        ratio = statistics.median(ratios)
        good = good and ratio <= MOST_RATIO and peak <= MOST_MEGABYTES
        case = f"{models} forecaster{'s' * (models > 1)}, {kind}, {missing:.0%} missing"
        case += f", by {by}" * bool(by)
        text = f"{ratio:.2f} times the bare script ({min(ratios):.2f} to {max(ratios):.2f})"
        print(f"  {case}: {text}, peak {peak:.0f} MB ({peak / other:.2f} times)", flush=True)
    return good


# Part 2: pandas.


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


def pandas_way(f: Path, o: Path, draws: int = 0) -> object:
    """Score with pandas: join, then one function per forecaster and group; intervals by resampling its rows."""
    import pandas as pd

    forecasts = pd.DataFrame(duckdb.execute(f"select * from '{f}'").fetchnumpy())
    outcomes = pd.DataFrame(duckdb.execute(f"select * from '{o}'").fetchnumpy())
    rng = np.random.default_rng(0)
    joined = forecasts.merge(outcomes, on=["question", "target"], validate="many_to_one")

    def metrics(rows: pd.DataFrame) -> pd.Series:
        p, y = rows["p"].to_numpy(), rows["outcome"].to_numpy()
        likelihood = np.clip(np.where(y == 1, p, 1 - p), 0.001, 1)
        brier = np.mean((p - y) ** 2)
        bins = rows.groupby(np.minimum((p * 10).astype(int), 9)).apply(lambda b: abs(b["p"].sum() - b["outcome"].sum()))
        metrics = {
            "brier": brier,
            "brier_index": 100 * (1 - np.sqrt(brier)),
            "log": np.log(likelihood).mean(),
            "ece": bins.sum() / len(rows),
        }
        if draws:
            drawn = [np.mean((p[i] - y[i]) ** 2) for i in rng.integers(0, len(p), (draws, len(p)))]
            metrics["low"], metrics["high"] = np.quantile(100 * (1 - np.sqrt(drawn)), [0.025, 0.975])
        return pd.Series(metrics)

    return joined.groupby(["forecaster", "kind", "source"])[["p", "outcome"]].apply(metrics)


def pandas_ratios() -> None:
    from foretell.metrics import Resampling
    from foretell.scoring.join import read_table
    from foretell.scoring.score import ScoringOptions, score_table

    with tempfile.TemporaryDirectory() as name:
        f, o = make(Path(name))

        def ours(draws: int) -> float:
            scoring = ScoringOptions(by=("kind", "source"), resampling=Resampling(draws=draws))
            return min(timed(lambda: score_table(read_table(f, o), scoring)) for _ in range(3))

        ours(2)  # the first call also pays for importing scipy
        points, intervals, same = ours(2), ours(1000), ours(DRAWS)
        peer, peer_intervals = timed(lambda: pandas_way(f, o)), timed(lambda: pandas_way(f, o, DRAWS))
    print(f"{FORECASTERS * QUESTIONS:,} rows, {FORECASTERS} forecasters, 18 groups; read, checked, joined and scored")
    print(
        f"intervals of every metric, {DRAWS} draws: {peer_intervals / same:5.1f} × as fast as pandas with those of one"
    )
    print(f"without intervals on both sides:      {peer / points:5.1f} × as fast as pandas groupby-apply")
    print(f"ours with 1,000 draws, pandas without: {peer / intervals:4.1f} ×")


def main() -> None:
    if sys.argv[1:2] == ["bare"]:
        f, o, by = sys.argv[2:]
        BareScript(Path(f), Path(o), tuple(filter(None, by.split(",")))).run()
        return
    good = long_table()
    pandas_ratios()
    if not good:
        raise SystemExit(f"more than {MOST_RATIO:g} times the bare script, or than {MOST_MEGABYTES} MB")


if __name__ == "__main__":
    main()
