"""Two-way fixed effects on a leaderboard of 1.67 million scores: exact elimination against pyfixest.

Prints ratios and errors, not seconds: ratios depend less on the machine. Both sides run on one
BLAS thread, in turns, because other work on the machine slows down multi-threaded code.
"""

import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np

from foretell.metrics import Floats, Ints, two_way_effects


def scores(methods: int, questions: int, filled: float, seed: int = 0) -> tuple[Floats, Ints, Ints]:
    rng = np.random.default_rng(seed)
    method, question = np.nonzero(rng.random((methods, questions)) < filled)
    effects = rng.normal(0, 0.02, methods)[method] + rng.normal(0.15, 0.1, questions)[question]
    return effects + rng.normal(0, 0.05, len(method)), method, question


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def error_against_dense() -> float:
    y, method, question = scores(12, 60, 0.4, seed=1)
    fit = two_way_effects(y, method, question)
    design = np.hstack([np.eye(12)[method], np.eye(60)[question]])
    solution = np.linalg.lstsq(design, y, rcond=None)[0]
    dense = solution[:12] - solution[:12].mean()
    return float(np.max(np.abs(fit.method - dense)))


def pyfixest_effects(y: Floats, method: Ints, question: Ints) -> Floats:
    import pandas as pd
    import pyfixest

    frame = pd.DataFrame({"y": y, "method": method, "question": question})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        effects = pyfixest.feols("y ~ 1 | method + question", frame).fixef()
    effect = effects["C(method)"]
    levels = np.array([effect.get(str(i), 0.0) for i in range(int(method.max()) + 1)])
    return levels - levels.mean()


def compare(runs: int = 5) -> None:
    print(f"largest error against dense least squares, 12 methods × 60 questions: {error_against_dense():.1e}")
    y, method, question = scores(150, 33_120, 0.336)
    two_way_effects(y, method, question)
    pyfixest_effects(*scores(5, 50, 0.8))
    ratios: list[float] = []
    for _ in range(runs):
        ours = seconds(lambda: two_way_effects(y, method, question))
        ratios.append(seconds(lambda: pyfixest_effects(y, method, question)) / ours)
    print(f"{len(y):,} rows, {runs} alternating runs: pyfixest feols + fixef takes")
    print(f"  {statistics.median(ratios):.0f} times as long (median; {min(ratios):.0f} to {max(ratios):.0f})")
    apart = two_way_effects(y, method, question).method - pyfixest_effects(y, method, question)
    print(f"largest difference of a method effect: {np.max(np.abs(apart)):.1e}")


def main() -> None:
    if os.environ.get("OPENBLAS_NUM_THREADS") == "1":
        compare()
    else:
        subprocess.run([sys.executable, __file__], env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}, check=True)


if __name__ == "__main__":
    main()
