"""The verdict on two forecasters: which is better on the questions both answered, and whether by more than chance.

Commands, pages, reports, studies and the Python API all compare two forecasters with a `Verdict` and show its sentence.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Literal

from foretell.frozen import frozen
from foretell.metrics.bootstrap import Interval
from foretell.metrics.comparison import Comparison, benjamini_hochberg, holm, stars
from foretell.metrics.metric import Metric, metric_text
from foretell.metrics.power import questions_about
from foretell.number_text import number, p_text, plural, signed_decimals

Finding = Literal["better", "worse", "no difference that matters", "could be chance", "too few to tell"]
SYMBOLS: Mapping[Finding, str] = {
    "better": "▲",
    "worse": "▼",
    "no difference that matters": "≈",
    "could be chance": "~",
    "too few to tell": "?",
}
LEAST_CLUSTERS = 10
"""With fewer independent clusters than this, no interval of a difference can be trusted."""
MOST_NEEDED = 1_000_000
"""If more questions than this are needed, the number is not shown."""
METRIC_NOUNS = {
    "brier_index": "Brier index",
    "brier": "Brier score",
    "metaculus_baseline": "Metaculus baseline score",
    "log": "log score",
    "ece": "calibration error",
    "accuracy in points": "accuracy",
}
"""Names of metrics in sentences; tables use shorter ones."""
IN_POINTS = ("brier_index", "adjusted_brier_index", "accuracy in points")
"""Metrics on a scale of 100 points."""
Correction = Literal["none", "holm", "bh"]
"""How p-values are corrected for the number of comparisons: not at all, Holm, or Benjamini–Hochberg."""


@frozen
class Verdict:
    """The first forecaster against the second on the targets both answered.

    The tests are made in this order: are there enough independent clusters, and both outcomes among them; does the
    whole interval lie within the smallest difference that matters; does it exclude zero?
    """

    first: str
    second: str
    metric: str
    group: Mapping[str, str] = field(default_factory=dict[str, str])
    """The targets it is about, e.g. {"source": "manifold"}; {"kind": "overall"} or nothing is all of them."""
    first_score: Interval
    """Score of the first on the targets both answered."""
    second_score: Interval
    diff: float
    """`first_score` − `second_score`, in the unit of the metric."""
    se: float
    low: float
    """Ends of the interval of the difference; NaN if there are too few clusters."""
    high: float
    p: float
    """Two-sided p-value of the difference; NaN if there are too few clusters."""
    n: int
    """Number of targets both answered."""
    n_clusters: int
    n_effective: int
    """Number of clusters that the uncertainty rests on, if some count for less."""
    better: Literal["low", "high"]
    """Which values of the metric are good."""
    matters: float
    """The smallest difference that matters."""
    level: float
    unit: str = "question"
    """What an independent cluster is called."""
    warning: str | None = None
    comparisons: int = 1
    """Number of comparisons that were made together."""
    p_corrected: float = math.nan
    """p-value corrected for that number; NaN if it was not."""
    one_sided: bool = False
    """Whether all outcomes are the same, so that no resample shows what the other one would change."""
    says: Finding = field(init=False)
    needed: int | None = field(init=False)
    """About how many more independent clusters are needed; None if it is decided, or if no number is enough."""
    sentence: str = field(init=False)
    """The verdict in words."""

    def __post_init__(self) -> None:
        """Compute the finding, the number of clusters needed and the sentence."""
        if self._too_few:
            for name in ("low", "high", "p", "p_corrected"):
                object.__setattr__(self, name, math.nan)
        for name, value in (("says", self._says), ("needed", self._needed), ("sentence", self._sentence)):
            object.__setattr__(self, name, value())

    @classmethod
    def of(
        cls,
        comparison: Comparison,
        names: tuple[str, str],
        metric: Metric | str,
        *,
        level: float,
        matters: float | None = None,
        unit: str = "question",
    ) -> "Verdict":
        """Build the verdict on two forecasters from the comparison of their scores."""
        of = metric_text(metric) if isinstance(metric, str) else metric
        numbers = {name: getattr(comparison, name) for name in ("diff", "se", "low", "high", "n", "n_clusters")}
        return cls(
            first=names[0],
            second=names[1],
            metric=of.name,
            first_score=comparison.first,
            second_score=comparison.second,
            p=comparison.p_two_sided,
            n_effective=comparison.n_effective,
            better=of.better,
            matters=of.matters if matters is None else matters,
            level=level,
            unit=unit,
            warning=comparison.warning,
            **numbers,
        )

    @property
    def gain(self) -> float:
        """The difference with its sign chosen so that positive means the first is better."""
        return self.diff if self.better == "high" else -self.diff

    @property
    def interval(self) -> Interval:
        """The difference with its interval, for charts."""
        names = ("low", "high", "se", "n_clusters", "n_effective", "warning")
        return Interval(estimate=self.diff, draws=0, **{name: getattr(self, name) for name in names})

    @property
    def gain_interval(self) -> Interval:
        """The gain with its interval."""
        return self.interval if self.better == "high" else self.interval.times(-1)

    @property
    def symbol(self) -> str:
        """A symbol for the finding: ▲ better, ▼ worse, ≈ no difference that matters, ~ chance, ? too few."""
        return SYMBOLS[self.says]

    @property
    def decided(self) -> bool:
        """Whether one of them is better by more than chance."""
        return self.says in ("better", "worse")

    @property
    def stars(self) -> str:
        """*** if p is below 0.001, ** below 0.01, * below 0.05; empty if neither is better."""
        return stars(self.p) if self.decided else ""

    @property
    def survives(self) -> bool:
        """Whether it stays decided after correction for the number of comparisons."""
        return self.decided and not self.p_corrected >= 1 - self.level

    @property
    def mark(self) -> str:
        """The stars; † means that it could be chance after correction for the number of comparisons."""
        return self.stars + "†" * (self.decided and not self.survives)

    @property
    def decimals(self) -> int:
        """Number of decimals that shows a tenth of the smallest difference that matters."""
        shown = 1 if self.metric in IN_POINTS else metric_text(self.metric).decimals
        return max(shown, math.ceil(-math.log10(self.matters)) + 1) if 0 < self.matters < 1 else shown

    @property
    def correction_text(self) -> str:
        """A sentence if it could be chance after correction for the number of comparisons, else nothing."""
        if not self.decided or self.survives:
            return ""
        return (
            f"Corrected for {plural(self.comparisons, 'comparison')}, it could be chance ({p_text(self.p_corrected)})."
        )

    def places(self, decimals: int) -> int:
        """Number of decimals, from `decimals`, that shows which one is ahead if the interval excludes zero."""
        return signed_decimals(self.shown_difference, self.low, self.high, decimals)

    def shown_difference(self, decimals: int) -> float:
        """Return the difference of the two scores as they are shown, so that the numbers side by side subtract.

        Rounded alone, 57.56 − 55.74 = 1.82 would be shown as 57.6, 55.7 and 1.8.
        """
        shown = round(
            round(self.first_score.estimate, decimals) - round(self.second_score.estimate, decimals), decimals
        )
        # Scores without a value, and differences that are not those of the scores, are rounded alone.
        return shown if abs(shown - self.diff) < 10.0**-decimals else self.diff

    def swapped(self) -> "Verdict":
        """Return the verdict on the second against the first."""
        return replace(
            self,
            first=self.second,
            second=self.first,
            first_score=self.second_score,
            second_score=self.first_score,
            diff=-self.diff,
            low=-self.high,
            high=-self.low,
        )

    @property
    def _too_few(self) -> bool:
        return self.n_effective < LEAST_CLUSTERS or (self.one_sided and not self._same)

    def _says(self) -> Finding:
        if self._too_few:
            return "too few to tell"
        if self._same or max(abs(self.low), abs(self.high)) <= self.matters:
            return "no difference that matters"
        if self.low > 0 or self.high < 0:
            return "better" if self.gain > 0 else "worse"
        return "could be chance"

    @property
    def _same(self) -> bool:
        return not self.diff and not self.low and not self.high

    def _needed(self) -> int | None:
        if self.says not in ("too few to tell", "could be chance"):
            return None
        if self.one_sided and self.n_effective >= LEAST_CLUSTERS:
            return None
        gain, sd, total = max(abs(self.diff), self.matters), self.se * math.sqrt(self.n_effective), LEAST_CLUSTERS
        if gain > 0 and sd > 0:
            total = max(total, questions_about(gain, sd))
        return total - self.n_effective if total < MOST_NEEDED else None

    def _sentence(self) -> str:
        if self.says == "too few to tell" and self.n_effective >= LEAST_CLUSTERS:
            outcomes = f"all {self.n:,} outcomes are the same, and the other one could change the difference"
            return f"Too few to tell {self.first} from {self.second}: {outcomes}."
        if self.says == "too few to tell":
            shared = f"they share {plural(self.n_effective, f'independent {self.unit}')}"
            return f"Too few to tell {self.first} from {self.second}: {shared}{self._wanted('at least', 'more')}."
        scope = f"on the {plural(self.n, 'event' if self.unit == 'event' else 'target')} both answered"
        if self._same:
            return f"{self.first} and {self.second} score the same {scope}."
        places = self.places(self.decimals)
        by = f"{self._number(abs(self.shown_difference(places)), places)} {self._noun} {self._numbers(places)}"
        if self.decided:
            return f"{self.first} is {self.says} than {self.second} by {by} {scope}, which is more than chance."
        if self.says == "could be chance":
            side = "ahead of" if self.gain >= 0 else "behind"
            chance = f"which could be chance{self._wanted('about', f'more independent {self.unit}s')}"
            return f"{self.first} is {side} {self.second} by {by} {scope}, {chance}."
        least = f"{self.matters:g}{' point' if self._noun.startswith('points') else ''}"
        differ = f"{self.first} and {self.second} do not differ by an amount that matters ({least})"
        return f"{differ}: the first is {'ahead' if self.gain >= 0 else 'behind'} by {by} {scope}."

    def _numbers(self, places: int) -> str:
        """Both scores, the interval of the amount stated, and p."""
        scores = " and ".join(self._number(score.estimate, places) for score in (self.first_score, self.second_score))
        stated = self.gain_interval if self.gain >= 0 else self.gain_interval.times(-1)
        ends = f"{self._number(stated.low, places)} to {self._number(stated.high, places)}"
        interval = f"{100 * self.level:g} % interval {ends}"
        return f"({scores}; {interval}{f', {p_text(self.p)}' if self.decided else ''})"

    def _number(self, value: float, places: int) -> str:
        if metric_text(self.metric).unit == "points":
            return number(100 * value, max(1, places - 2))
        return number(value, places)

    @property
    def _noun(self) -> str:
        metric = metric_text(self.metric)
        noun = METRIC_NOUNS.get(metric.name) or metric.label
        return f"points of {noun}" if metric.name in IN_POINTS or metric.unit == "points" else f"in {noun}"

    def _wanted(self, about: str, more: str) -> str:
        if self.needed is None or self.needed <= 0:
            return ""
        return f"; {about} {self.needed:,} {more} {'is' if self.needed == 1 else 'are'} needed"


def corrected(verdicts: Sequence[Verdict], correction: Correction = "holm") -> tuple[Verdict, ...]:
    """Return verdicts that were made together, with p-values corrected for their number."""
    known = [verdict.p for verdict in verdicts if not math.isnan(verdict.p)]
    adjust = {"holm": holm, "bh": benjamini_hochberg}.get(correction)
    if adjust is None or len(known) < 2:
        return tuple(verdicts)
    adjusted = adjust([verdict.p for verdict in verdicts]).tolist()
    return tuple(
        replace(verdict, p_corrected=p, comparisons=len(known)) for verdict, p in zip(verdicts, adjusted, strict=True)
    )
