"""Study: do intervals hold what they promise? Simulated tables whose true score is known, scored as boards are."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from foretell.metrics.arrays import Floats, Ints
from foretell.metrics.bootstrap import Interval, Resampling, brier_index_from_sums, summarise
from foretell.metrics.clusters import factorise
from foretell.report.numbers import percent
from foretell.report.study import CellValue, StudyResult
from foretell.request import setting
from foretell.scoring.engine import resample_units, two_way_replicates
from foretell.studies.inputs import DataInputs, StudyOptions
from foretell.studies.layout import column, count, draw_settings, table

LEVEL = 0.95
TRUTH_CLUSTERS = 200_000
"""Clusters from which the true score of a world is counted."""
NOTES = (
    "In every simulated table, clusters of a few targets share a shock that makes them easy or hard together; in the "
    "last rows, targets that resolve on one day share another. Coverage is the share of tables whose 95 % interval "
    "holds the true Brier index.",
    "Plain: percentiles of the resampled clusters. Expanded: the same at the level that makes up for few clusters "
    "(Hesterberg 2015), as boards have it. Two-way: the variance of both margins less that of their cells (Cameron, "
    "Gelbach & Miller 2011), as boards do where clusters share at least ten days.",
)


class CoverageOptions(StudyOptions):
    """How many tables are simulated."""

    worlds: int = setting(400, "Simulated tables of each kind.", ge=2)
    draws: int = setting(2000, "Bootstrap draws of each table; boards take 2,000.", ge=100)


@dataclass(frozen=True, kw_only=True)
class SimulatedTable:
    """How a table is made: clusters of targets, and days that they share."""

    clusters: int
    size: int = 4
    days: int | None = None
    shock: float = 1.0
    """Spread of what makes the targets of a cluster, or of a day, turn out alike, on the log-odds scale."""
    lean: float = 1.0
    """Mean of what is said, on that scale: with one, a day on which all go up is a good day for everybody."""

    def draw(self, rng: np.random.Generator) -> tuple[Floats, Ints, Ints]:
        """Squared errors, clusters and days of the targets."""
        cluster = np.repeat(np.arange(self.clusters), self.size)
        day = rng.integers(0, self.days, len(cluster)) if self.days else np.zeros(len(cluster), np.int64)
        own = rng.normal(0, self.shock, self.clusters)[cluster]
        common = rng.normal(0, self.shock, self.days)[day] if self.days else 0.0
        said = self.lean + rng.normal(0, 0.5, len(cluster))
        chance = 1 / (1 + np.exp(-(said + own + common)))
        outcome = rng.random(len(cluster)) < chance
        return (1 / (1 + np.exp(-said)) - outcome) ** 2, cluster, day

    def truth(self, rng: np.random.Generator) -> float:
        """The Brier index of endlessly many such targets; with days, over many of them."""
        many = replace(self, clusters=TRUTH_CLUSTERS, days=TRUTH_CLUSTERS if self.days else None)
        squared, _, _ = many.draw(rng)
        return float(100 * (1 - np.sqrt(squared.mean())))


SHARED_DAYS = "100 clusters, 20 shared days"
KINDS: Mapping[str, SimulatedTable] = {
    "12 clusters": SimulatedTable(clusters=12),
    "30 clusters": SimulatedTable(clusters=30),
    "100 clusters": SimulatedTable(clusters=100),
    SHARED_DAYS: SimulatedTable(clusters=100, days=20),
}


def study(inputs: DataInputs, options: CoverageOptions) -> StudyResult:
    """Do intervals hold what they promise?

    Coverage of the true score in simulated tables with few and many clusters, and with days that questions share.
    """
    data = inputs.data(options)
    rows: dict[str, tuple[CellValue, ...]] = {}
    for done, (name, kind) in enumerate(KINDS.items()):
        found = {way: _coverage(kind, options, way) for way in WAYS}
        data.progress(done + 1, len(KINDS))
        rows[name] = (*(found[way] for way in WAYS), _chance(found, options.worlds), options.worlds)
    columns = (
        column("plain", "% of tables whose interval holds the truth"),
        column("expanded", "the same, widened for few clusters"),
        column("expanded, two-way", "the same, days resampled too"),
        column("±", "how far chance may have moved what boards have, at 95 %"),
        count("tables", "simulated"),
    )
    reached = table("Coverage of 95 % intervals", "Table", columns, rows)
    few = reached.numbers("expanded")[next(iter(KINDS))]
    days = reached.numbers("expanded, two-way")[SHARED_DAYS]
    error = reached.numbers("±")[next(iter(KINDS))]
    return StudyResult(
        name="coverage",
        title="Do intervals hold what they promise",
        sentences=(
            f"With 12 clusters {few:.1f} ± {error:.1f} % of the intervals hold the truth; where questions share days, "
            f"{percent(days / 100)} of the two-way ones.",
        ),
        tables=(reached,),
        notes=NOTES,
        settings={**draw_settings(options.resampling), "worlds": options.worlds},
    )


WAYS = ("plain", "expanded", "two-way")


def _chance(found: Mapping[str, CellValue], worlds: int) -> float:
    """How far the share that boards have may be off, from so many tables (Agresti & Coull 1998)."""
    reached = found["expanded"] if found["two-way"] is None else found["two-way"]
    assert isinstance(reached, float)
    share = (reached / 100 * worlds + 2) / (worlds + 4)
    return float(196 * np.sqrt(share * (1 - share) / (worlds + 4)))


def _coverage(kind: SimulatedTable, options: CoverageOptions, way: str) -> CellValue:
    """How often the interval of a table holds the truth, in per cent."""
    if way == "two-way" and kind.days is None:
        return None
    rng = np.random.default_rng([options.seed, kind.clusters, kind.days or 0])
    truth, held = kind.truth(rng), 0
    how = Resampling(draws=options.draws, level=LEVEL, seed=options.seed, expanded=way != "plain")
    for _ in range(options.worlds):
        squared, cluster, day = kind.draw(rng)
        found = _interval(squared, cluster, day if way == "two-way" else None, how)
        held += found.low <= truth <= found.high
    return 100 * held / options.worlds


def _interval(squared: Floats, cluster: Ints, day: Ints | None, how: Resampling) -> Interval:
    """The interval of the Brier index as boards make it."""
    columns = np.column_stack([squared, np.ones(len(squared))])
    sides = [cluster] if day is None else [cluster, day, cluster * (int(day.max()) + 1) + day]
    sums = [factorise(side).sums(columns) for side in sides]
    drawn = [brier_index_from_sums(resample_units(one, how, way)) for way, one in enumerate(sums)]
    estimate = brier_index_from_sums(columns.sum(axis=0))
    replicates = drawn[0] if day is None else two_way_replicates(estimate, *drawn)
    fewest = min(len(one) for one in sums)
    return summarise(float(estimate), replicates, how, n_clusters=fewest)
