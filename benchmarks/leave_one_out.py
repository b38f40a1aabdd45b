"""791 leave-one-event-out fits of hierarchical Platt scaling against refitting each from scratch with scipy.

Prints ratios, not seconds, and how far the probabilities are apart. Reads the trials of BLF Pro under $FORETELL_DATA
(default: ../shared/data beside the repository); without them, made-up events of the same shape. One BLAS thread, both
sides in turns, because other work on the machine slows down multi-threaded code.

    python benchmarks/leave_one_out.py
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from foretell.forecasters.combine.calibration import HierarchicalPlatt
from foretell.forecasters.combine.crossfit import leave_one_out
from foretell.forecasters.combine.rows import Examples, TrialRows
from foretell.metrics import Floats, Ints
from foretell.metrics.transforms import logit, sigmoid

ROOT = Path(__file__).resolve().parents[1]
TABLES = Path(os.environ.get("FORETELL_DATA") or ROOT.parent / "shared" / "data") / "tables"
EVENTS = 791
SOURCES = ("acled", "dbnomics", "fred", "infer", "manifold", "metaculus", "polymarket", "wikipedia", "yfinance")
SHARES = (120, 119, 114, 10, 44, 20, 126, 120, 118)
PUBLISHED = """
select t.source, t.question_id, t.forecast_due_date, r.resolution_date, r.paper_outcome,
       list(t.probability order by t.trial)
from '{tables}/ab_trials.parquet' t
join '{tables}/ab_resolutions.parquet' r using (source, question_id, forecast_due_date)
where config = 'pro-high-brave-c1-p1-t1' and t.resolution_date in ('', r.resolution_date) group by all order by all"""


def published() -> Examples:
    import duckdb

    rows = duckdb.connect().execute(PUBLISHED.format(tables=TABLES)).fetchall()
    source, question, due, day, outcome, trials = zip(*rows, strict=True)
    return examples(np.array(trials).T, np.array(outcome), np.array(source), np.array(question), np.array(due), day)


def made_up() -> Examples:
    rng = np.random.default_rng(0)
    truth = rng.normal(-0.5, 2, EVENTS)
    trials = sigmoid(1.3 * truth + rng.normal(0, 0.5, (5, EVENTS)))
    due = np.full(EVENTS, "2025-10-26")
    question = np.array([f"q{i}" for i in range(EVENTS)])
    outcome = (rng.random(EVENTS) < sigmoid(truth)).astype(float)
    return examples(trials, outcome, np.repeat(SOURCES, SHARES), question, due, ["2025-11-02"] * EVENTS)


def examples(trials: Floats, outcome: Floats, source: Any, question: Any, due: Any, known_on: Any) -> Examples:
    n, nothing = len(outcome), np.full(len(outcome), np.nan)
    rows = TrialRows(
        trials=trials,
        question=question,
        due=due.astype("M8[D]"),
        target=np.array([f"t{i}" for i in range(n)]),
        source=source,
        subtype=np.full(n, ""),
        kind=np.full(n, "dataset"),
        horizon=nothing,
        price=nothing,
        prior=nothing,
        cluster=question,
    )
    return Examples(rows=rows, outcome=outcome, known_on=np.array(known_on, "M8[D]"), weight=np.ones(n))


class Refit:
    """One fit without one event by `scipy.optimize.minimize`, in the straightforward way."""

    def __init__(self, examples: Examples) -> None:
        self.x, self.y = logit(examples.rows.raw, 1e-4), examples.outcome
        self.code: Ints = np.unique(examples.rows.source, return_inverse=True)[1]
        self.size = int(self.code.max()) + 1

    def without(self, event: int, *, gradient: bool, **options: Any) -> float:
        """Return the event's probability from the fit on all others."""
        from scipy.optimize import minimize

        others = np.arange(len(self.x)) != event
        x, y, code = self.x[others], self.y[others], self.code[others]

        def loss(at: Floats) -> Any:
            z = at[0] * x + at[1] + at[2:][code]
            value = np.logaddexp(0, z).sum() - y @ z + (at[2:] ** 2).sum()
            if not gradient:
                return value
            missed = sigmoid(z) - y
            pull = np.bincount(code, missed, self.size) + 2 * at[2:]
            return value, np.concatenate([[missed @ x, missed.sum()], pull])

        start = np.zeros(2 + self.size)
        start[0] = 1.0
        at = minimize(loss, start, jac=gradient, **options).x
        return float(sigmoid(at[0] * self.x[event] + at[1] + at[2 + self.code[event]]))


SOLVERS: dict[str, tuple[int, dict[str, Any]]] = {
    "BFGS, numeric gradient": (40, {"gradient": False, "method": "BFGS"}),
    "L-BFGS-B, numeric gradient": (40, {"gradient": False, "method": "L-BFGS-B"}),
    "BFGS, exact gradient": (4, {"gradient": True, "method": "BFGS"}),
    "L-BFGS-B, exact gradient": (4, {"gradient": True, "method": "L-BFGS-B"}),
}
"""Refit only every n-th event and scale the time up, because 791 BFGS fits would take minutes."""
TIGHT: dict[str, Any] = {
    "gradient": True,
    "method": "L-BFGS-B",
    "options": {"ftol": 0.0, "gtol": 1e-9, "maxiter": 10_000, "maxfun": 100_000},
}


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def compare(examples: Examples, runs: int = 5) -> None:
    refit, method = Refit(examples), HierarchicalPlatt()
    ours = leave_one_out(method, examples, by="event")
    tight = np.array([refit.without(event, **TIGHT) for event in range(len(examples))])
    print(f"  largest |Δp| to scipy run to the end: {np.abs(ours - tight).max():.0e}")
    for name, (step, options) in SOLVERS.items():
        chosen = range(0, len(examples), step)
        ratios: list[float] = []
        theirs = np.empty(len(examples))
        for _ in range(runs):
            mine = statistics.median(seconds(lambda: leave_one_out(method, examples, by="event")) for _ in range(3))
            start = time.perf_counter()
            for event in chosen:
                theirs[event] = refit.without(event, **options)
            ratios.append((time.perf_counter() - start) * len(examples) / len(chosen) / mine)
        apart = np.abs(theirs - ours)[::step].max()
        text = f"{statistics.median(ratios):.0f} times as long ({min(ratios):.0f} to {max(ratios):.0f})"
        print(f"  {name}, default tolerance: {text}, largest |Δp| {apart:.0e}")


def main() -> None:
    if len(sys.argv) == 1:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        subprocess.run([sys.executable, __file__, "run"], env=environment, check=True)
        return
    real = (TABLES / "ab_trials.parquet").is_file()
    examples = published() if real else made_up()
    text = "the trials of BLF Pro" if real else "made-up events"
    print(f"{len(examples)} leave-one-event-out fits on {text}, against refitting each with scipy:")
    compare(examples)


if __name__ == "__main__":
    main()
