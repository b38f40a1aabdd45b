"""How often a verdict is wrong when nothing differs, and how often intervals cover the truth.

Two forecasters of equal skill answer the same simulated questions, in clusters of related questions. For each number of
clusters the study counts how often each outlet calls one of them better or worse. The outlets share one verdict, so
their rates must be the same number, and at most 5 %. A second table measures how often 95 % intervals cover the truth.

    PYTHONPATH=. python benchmarks/verdict_study.py [--worlds 400]
"""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from tests.scoring.made_standings import DAY, START, Answer, Asked, Known, table_of

import foretell
from foretell.forecasters.combine.rows import Examples, TrialRows
from foretell.metrics import Resampling, ResamplingDesign, bootstrap_score, brier_index_from_sums, compare_paired
from foretell.metrics.arrays import Floats
from foretell.operations.compare import CompareResult, compare
from foretell.operations.requests.scoring import CompareRequest, ScoreRequest
from foretell.operations.score import ScoreResult, score
from foretell.scoring.arena_leaderboard import ScoredArena, compare_entries
from foretell.scoring.baselines import OVERALL
from foretell.scoring.breakdown import verdict_matrix
from foretell.scoring.score import ScoringOptions
from foretell.scoring.verdict import Verdict
from foretell.studies.scores import brier_of, paired_verdict

CLUSTERS = (3, 5, 10, 20, 50, 200)
SIZE = 3
"""Questions in a cluster."""
SHOCK = 1.0
"""Standard deviation, in log-odds, of the shared effect of the questions of a cluster, or of a day."""


def sigmoid(x: Floats) -> Floats:
    return 1 / (1 + np.exp(-x))


@dataclass(frozen=True, kw_only=True)
class World:
    """Two forecasters of equal skill on clusters of questions."""

    cluster: np.ndarray
    outcome: Floats
    p: Mapping[str, Floats]

    @classmethod
    def draw(cls, clusters: int, rng: np.random.Generator) -> "World":
        """Draw a world with this many clusters."""
        cluster = np.repeat(np.arange(clusters), SIZE)
        base = 0.5 + rng.normal(0, 1, len(cluster))
        common = rng.normal(0, SHOCK, (2, clusters))[:, cluster]
        logits = base + 0.5 * common + rng.normal(0, 0.3, (2, len(cluster)))
        outcome = rng.random(len(cluster)) < sigmoid(base + rng.normal(0, SHOCK, clusters)[cluster])
        return cls(cluster=cluster, outcome=outcome.astype(float), p={"a": sigmoid(logits[0]), "b": sigmoid(logits[1])})

    def rows(self) -> list[dict[str, object]]:
        """The world as a table, with its outcomes."""
        return [
            {"forecaster": name, "question": f"q{i:04d}", "p": float(p[i]), "outcome": int(self.outcome[i])}
            | {"cluster": f"c{self.cluster[i]:04d}"}
            for name, p in self.p.items()
            for i in range(len(self.outcome))
        ]

    def examples(self) -> Examples:
        """The world as the examples of a study."""
        n = len(self.outcome)
        text, days, none = np.full(n, "x"), np.full(n, np.datetime64("2026-01-01")), np.full(n, np.nan)
        rows = TrialRows(
            trials=np.stack([self.p["a"]]),
            question=np.array([f"q{i:04d}" for i in range(n)]),
            due=days,
            target=text,
            source=text,
            subtype=text,
            kind=text,
            horizon=none,
            price=none,
            prior=none,
            cluster=np.array([f"c{code:04d}" for code in self.cluster]),
        )
        return Examples(rows=rows, outcome=self.outcome, known_on=days, weight=np.ones(n))

    def arena(self) -> ScoredArena:
        """The world as an arena of events with one market each."""
        events = [f"e{i:04d}" for i in range(len(self.outcome))]
        arena_events = [
            Asked(event=event, taken_at=START, targets=("yes",), cluster=f"c{code:04d}")
            for event, code in zip(events, self.cluster, strict=True)
        ]
        outcomes = {
            (event, "yes"): Known(outcome=int(yes), known_at=START + DAY)
            for event, yes in zip(events, self.outcome, strict=True)
        }
        answers = [
            Answer(entry=name, event=event, taken_at=START, p={"yes": float(p[i])})
            for name, p in self.p.items()
            for i, event in enumerate(events)
        ]
        return ScoredArena.of(table_of("simulated", arena_events, outcomes, answers))


def board_verdict(world: World, metric: str) -> Verdict:
    board = score(ScoreRequest(forecasts=world.rows(), metric=metric, reference="b"))
    assert isinstance(board, ScoreResult)
    return next(verdict for verdict in board.board.verdicts if verdict.first == "a")


def command_verdict(world: World, metric: str) -> Verdict:
    result = compare(CompareRequest(names=("a", "b"), forecasts=world.rows(), metric=metric))
    assert isinstance(result, CompareResult)
    return result.pairs[0].verdicts[0]


def heat_map_verdict(world: World, metric: str) -> Verdict:
    table = foretell.scoring.read_table(world.rows())
    return verdict_matrix(table, ["a", "b"], {"kind": OVERALL}, ScoringOptions(metric=metric))[0]


def python_verdict(world: World, metric: str) -> Verdict:
    return foretell.compare(world.rows(), None, "a", "b", metric=metric).verdicts[0]


def study_verdict(world: World, metric: str) -> Verdict:
    examples = world.examples()
    first, second = (brier_of(p, examples) for p in world.p.values())
    verdict = paired_verdict(first, second, examples, ("a", "b"), OVERALL, Resampling())
    assert verdict is not None
    return verdict


def arena_verdict(world: World, metric: str) -> Verdict:
    return compare_entries(world.arena(), "a", "b").verdicts[0]


OUTLETS: Mapping[str, tuple[str, Callable[[World, str], Verdict]]] = {
    "board": ("brier_index", board_verdict),
    "compare": ("brier_index", command_verdict),
    "heat map": ("brier_index", heat_map_verdict),
    "Python": ("brier_index", python_verdict),
    "study": ("brier_index", study_verdict),
    "board, Brier": ("brier", board_verdict),
    "arena, Brier": ("brier", arena_verdict),
}


def wrong_verdicts(worlds: int) -> None:
    """Print, per outlet and number of clusters, the share of worlds in which equal forecasters get a verdict."""
    print(f"Called better or worse though equal, % of {worlds} worlds (95 % intervals; at most 5 is right)\n")
    print("| outlet | " + " | ".join(f"{n} clusters" for n in CLUSTERS) + " |\n|---|" + "---|" * len(CLUSTERS))
    called = {name: dict.fromkeys(CLUSTERS, 0) for name in OUTLETS}
    for n in CLUSTERS:
        rng = np.random.default_rng([0, n])
        for _ in range(worlds):
            world = World.draw(n, rng)
            for name, (metric, verdict) in OUTLETS.items():
                called[name][n] += verdict(world, metric).decided
    for name, verdicts in called.items():
        print(
            f"| {name} | " + " | ".join(f"{100 * hits / worlds:.1f}" for hits in verdicts.values()) + " |", flush=True
        )


# How often intervals cover the truth.


@dataclass(frozen=True, kw_only=True)
class SimulatedTable:
    """The layout of a simulated table: clusters of targets, and days that they share."""

    clusters: int
    days: int | None = None

    def draw(self, rng: np.random.Generator) -> tuple[Floats, np.ndarray, np.ndarray]:
        """Draw the squared errors of both forecasters (targets × 2), clusters and days of the targets."""
        cluster = np.repeat(np.arange(self.clusters), SIZE + 1)
        day = rng.integers(0, self.days, len(cluster)) if self.days else np.zeros(len(cluster), np.int64)
        common = rng.normal(0, SHOCK, self.clusters)[cluster]
        if self.days:
            common = common + rng.normal(0, SHOCK, self.days)[day]
        errors = 1.0 + rng.normal(0, 0.5, (len(cluster), 2)) + np.array([0.0, 0.5])
        outcome = rng.random(len(cluster)) < sigmoid(1.0 + common)
        return (sigmoid(errors) - outcome[:, None]) ** 2, cluster, day

    def truth(self, rng: np.random.Generator) -> tuple[float, float]:
        """Return the true Brier index of the first and the true difference, from a very large table."""
        large = replace(self, clusters=200_000, days=200_000 if self.days else None)
        index = 100 * (1 - np.sqrt(large.draw(rng)[0].mean(axis=0)))
        return float(index[0]), float(index[0] - index[1])


TABLES = {
    **{f"{n} clusters": SimulatedTable(clusters=n) for n in (5, 12, 30, 100)},
    "100 clusters, 20 shared days": SimulatedTable(clusters=100, days=20),
}


def coverage(worlds: int) -> None:
    """Print how often the interval of a score and of a difference covers the true value."""
    how = Resampling()
    print(f"\nIntervals that hold the truth, % of {worlds} tables\n")
    print("| table | score | difference |\n|---|---|---|")
    for name, table in TABLES.items():
        rng = np.random.default_rng([1, table.clusters, table.days or 0])
        (score_truth, gap_truth), covered = table.truth(rng), np.zeros(2)
        for _ in range(worlds):
            squared, cluster, day = table.draw(rng)
            design = ResamplingDesign(cluster=cluster, crossed=day if table.days else None)
            alone = bootstrap_score(squared[:, 0], design, statistic=brier_index_from_sums, resampling=how)
            pair = compare_paired(squared[:, 0], squared[:, 1], design, statistic=brier_index_from_sums, resampling=how)
            covered += (alone.low <= score_truth <= alone.high, pair.low <= gap_truth <= pair.high)
        print(f"| {name} | {100 * covered[0] / worlds:.1f} | {100 * covered[1] / worlds:.1f} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=400)
    options = parser.parse_args()
    wrong_verdicts(options.worlds)
    coverage(options.worlds)
