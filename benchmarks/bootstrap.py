"""Paired clustered bootstrap of 12 methods on 791 events against a Python loop, and memory at 500,000 forecasts.

Prints ratios and megabytes, not seconds, because ratios depend less on the machine. Both sides run on one
BLAS thread, in turns, because other work on the machine slows down multi-threaded code.
"""

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import combinations

import numpy as np

from foretell.metrics import (
    Comparison,
    Floats,
    Ints,
    Resampling,
    ResamplingDesign,
    bootstrap_score,
    brier_index_from_sums,
    compare_pairs,
)

DRAWS = 5000


def brier_table(rows: int, methods: int, clusters: int, seed: int = 0) -> tuple[Floats, Ints]:
    rng = np.random.default_rng(seed)
    cluster = rng.integers(0, clusters, rows)
    shared = rng.beta(1, 5, clusters)[cluster]
    return np.clip(shared[:, None] + rng.normal(0, 0.1, (rows, methods)), 0, 1), cluster


def loop(scores: Floats, cluster: Ints, draws: int) -> Floats:
    """One resample of clusters at a time, with the index of every method recomputed on the rows drawn."""
    rng = np.random.default_rng(0)
    order = np.argsort(cluster, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(cluster[order])) + 1)
    out = np.empty((draws, scores.shape[1]))
    for draw in range(draws):
        picked = np.concatenate([members[i] for i in rng.integers(0, len(members), len(members))])
        index = 100 * (1 - np.sqrt(scores[picked].mean(axis=0)))
        out[draw] = index - index[0]
    return out


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def speed(runs: int = 5) -> None:
    scores, cluster = brier_table(791, 12, 400)
    against, all_pairs = [(i, 0) for i in range(1, 12)], list(combinations(range(12), 2))

    def compared(pairs: list[tuple[int, int]]) -> list[Comparison]:
        draws = Resampling(draws=DRAWS)
        return list(compare_pairs(scores, pairs, cluster, statistic=brier_index_from_sums, resampling=draws).values())

    ours: dict[str, Callable[[], object]] = {
        "12 methods against one reference": lambda: compared(against),
        "all 66 pairs": lambda: compared(all_pairs),
    }
    print(f"791 events, 12 methods, {DRAWS:,} draws, {runs} alternating runs: a Python loop over draws takes")
    for name, call in ours.items():
        call()
        ratios = [1 / seconds(call) * seconds(lambda: loop(scores, cluster, DRAWS)) for _ in range(runs)]
        text = f"(median; {min(ratios):.0f} to {max(ratios):.0f})"
        print(f"  {statistics.median(ratios):.0f} times as long as {name} {text}")
    results = compared(against)
    # Seed 0 gives the loop and the engine the same resamples, so this is rounding, not chance.
    looped = loop(scores, cluster, DRAWS).std(axis=0, ddof=1)
    apart = max(abs(result.se / se - 1) for result, se in zip(results, looped[1:], strict=True))
    print(f"  largest relative difference of a standard error on the same resamples: {apart:.0e}")


def memory(case: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    scores, cluster = brier_table(500_000, 2, 33_000)
    day = np.random.default_rng(1).integers(0, 400, len(scores))
    few = Resampling(draws=200)
    if case == "clusters":
        many = Resampling(draws=DRAWS)
        compare_pairs(scores, [(1, 0)], cluster, statistic=brier_index_from_sums, resampling=many)
    elif case == "crossed":
        compare_pairs(scores, [(1, 0)], ResamplingDesign(cluster=cluster, crossed=day), resampling=few)
    else:
        bootstrap_score(scores[:, 0], resampling=few)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  {case}: peak {peak:.0f} MB, of which {before:.0f} MB before the data", flush=True)


def main() -> None:
    if len(sys.argv) > 1:
        speed() if sys.argv[1] == "speed" else memory(sys.argv[1])
        return
    one_thread = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run([sys.executable, __file__, "speed"], env=one_thread, check=True)
    print("500,000 forecasts of each of two methods (5,000 draws by cluster; 200 by two margins and by row):")
    sys.stdout.flush()
    for case in ("clusters", "crossed", "rows"):
        # Peak memory never falls within a process, so each case has its own.
        subprocess.run([sys.executable, __file__, case], check=True)


if __name__ == "__main__":
    main()
