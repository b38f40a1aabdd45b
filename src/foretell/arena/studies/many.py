"""One change, many configurations: what it brings on average, where it hurts most, and how often beyond noise."""

from collections.abc import Mapping
from dataclasses import dataclass

from foretell.arena.report.figures.forest import ForestRow, forest_plot
from foretell.arena.report.svg import Figure
from foretell.arena.report.wording import signed
from foretell.arena.scoreboard import OVERALL
from foretell.arena.studies.paired import as_interval, gap, groups_of, mean_gain
from foretell.arena.study import Column, Value
from foretell.evaluate.arrays import Floats
from foretell.evaluate.bootstrap import Resampling
from foretell.evaluate.significance import Comparison
from foretell.forecasters.combine.rows import Examples

By = Mapping[str, Floats]
"""By configuration, the Brier score of every target."""


@dataclass(frozen=True, kw_only=True)
class Gains:
    """Paired gains in Brier index, by configuration and on average."""

    mean: Comparison
    """All configurations recomputed on the same resamples, on the targets that all of them answered."""
    kinds: Mapping[str, Comparison]
    """The mean on each kind of question, where there are several."""
    by: Mapping[str, Comparison]

    @property
    def worst(self) -> tuple[str, Comparison]:
        """The configuration that loses most, or gains least."""
        return min(self.by.items(), key=lambda item: item[1].diff)

    @property
    def better(self) -> int:
        """How many gain."""
        return sum(one.diff > 0 for one in self.by.values())

    @property
    def clearly_worse(self) -> int:
        """How many lose by more than noise: the whole interval lies below zero."""
        return sum(one.high < 0 for one in self.by.values())

    def values(self) -> tuple[Value, ...]:
        """For a table with `SPREAD` columns."""
        name, worst = self.worst
        return (worst, name, f"{self.better} of {len(self.by)}", self.clearly_worse)


SPREAD = (
    Column(label="worst", decimals=2, tip="the largest loss, or the smallest gain, of one configuration"),
    Column(label="there", numeric=False, tip="the configuration of the largest loss"),
    Column(label="better", tip="configurations that gain"),
    Column(label="clearly worse", tip="configurations whose whole interval lies below zero"),
)


def gains(after: By, before: By, tables: Mapping[str, Examples], how: Resampling) -> Gains:
    """What the change from `before` to `after` brings to the configurations of `after`."""
    names = list(after)
    some, pairs = tables[names[0]], ([after[n] for n in names], [before[n] for n in names])
    return Gains(
        mean=mean_gain(*pairs, some, how),
        kinds={kind: mean_gain(*pairs, some, how, group=kind) for kind in groups_of(some) if kind != OVERALL},
        by={n: gap(after[n], before[n], tables[n], OVERALL, how) for n in names},
    )


def forest(found: Mapping[str, Gains], label: str) -> Figure:
    """The mean gains as a picture, the largest on top."""
    order = sorted(found, key=lambda name: -found[name].mean.diff)
    rows = [ForestRow(name=name, interval=as_interval(found[name].mean)) for name in order]
    return forest_plot(rows, label=label, decimals=2, reference=0.0)


def told(found: Gains) -> str:
    """The mean gain and the worst case in words."""
    name, worst = found.worst
    kept = "no configuration loses by more than noise"
    hurt = kept if not found.clearly_worse else f"{found.clearly_worse} of {len(found.by)} lose by more than noise"
    return f"{hurt}; at worst {signed(worst.diff, 1)} ({name})"
