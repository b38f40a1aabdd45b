"""The fitted values of the outside view: a drifting level, and the effects of wording and horizon."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field, replace
from datetime import date
from functools import lru_cache
from importlib.resources import files
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt

from foretell.forecasters.base_rates.past import PastQuestions
from foretell.forecasters.base_rates.rates import HORIZON_EDGES, effective_counts, shrunk_rate
from foretell.forecasters.base_rates.text_features import (
    NAMES,
    TextFeatures,
    bucket_of,
    buckets,
    gram_values,
    grams,
    mark,
    one_text,
    tokens,
)
from foretell.forecasters.combine.logistic import LogisticProblem, fit_logistic_ridge
from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats, Ints
from foretell.metrics.transforms import logit, sigmoid

# Training targets, without the bias that early answers are mostly yes.
#
# A yes is known on the day it happens, a no only at the deadline, so the questions known so far have too many yeses.
# Therefore an outcome counts only once its deadline is over. Until then the target is the market price, corrected by
# the outcomes of past prices. Without a price, it is whether the question came true up to now, with the elapsed time as
# its horizon.

EDGE = 0.005
PRIOR_SD = (0.3, 0.2)
"""Prior standard deviations of the shift and the slope of the price correction."""


@frozen
class PriceCorrection:
    """Corrects prices by past outcomes: σ(shift + slope · logit price)."""

    shift: float = 0.0
    slope: float = 1.0

    def of(self, price: Floats) -> Floats:
        """Return the corrected prices."""
        return sigmoid(self.shift + self.slope * logit(price, EDGE))


@frozen
class TrainingTargets:
    """One row per past question that can be used for training."""

    row: Bools
    """Mask of these rows among the past questions."""
    seen: list[TextFeatures]
    target: Floats
    weight: Floats


def fit_price_correction(price: Floats, outcome: Floats, weight: Floats) -> PriceCorrection:
    """Fit shift and slope of outcomes on prices, with a normal prior around no correction.

    >>> outcomes = (np.arange(200) % 10 < 2) * 1.0
    >>> fit_price_correction(np.full(200, 0.3), outcomes, np.ones(200)).of(np.array([0.3])).round(2)
    array([0.22])
    """
    problem = LogisticProblem.of(
        np.column_stack([np.ones(len(price)), logit(price, EDGE)]),
        outcome,
        weight=weight,
        penalty=1 / np.square(PRIOR_SD),
        centre=(0.0, 1.0),
    )
    shift, slope = fit_logistic_ridge(problem).tolist()
    return PriceCorrection(shift=shift, slope=slope)


def training_targets(
    past: PastQuestions, rows: Sequence[TextFeatures], share: Floats, day: date
) -> tuple[TrainingTargets, PriceCorrection]:
    """Return what can be learnt on `day` from questions known by then (`PastQuestions.before`), weighted by `share`."""
    age = (np.datetime64(day, "D") - past.due).astype(np.int64).astype(np.float64)
    days = np.array([np.nan if s.days is None else s.days for s in rows])
    known, priced = ~np.isnan(past.outcome), ~np.isnan(past.price)
    over = known & (days < age)
    both = over & priced
    correction = (
        fit_price_correction(past.price[both], past.outcome[both], share[both]) if both.any() else PriceCorrection()
    )
    price = correction.of(np.where(priced, past.price, 0.5))
    outcome = np.where(known, past.outcome, 0.0)
    target = np.where(both, (outcome + price) / 2, np.where(over, outcome, price))
    weight = np.where(both, 2.0, 1.0) * share
    # No price and no deadline: use the outcome. No price and a deadline ahead: use what is known so far.
    undated = ~priced & ~over & known & np.isnan(days)
    target = np.where(undated, outcome, target)
    course = np.array([s.course for s in rows], str)
    so_far = ~priced & (days >= age) & np.isin(course, ("by", "still"))
    target = np.where(so_far, np.where(known, outcome, (course == "still") * 1.0), target)
    used = priced | over | undated | so_far
    elapsed = [replace(s, days=max(1.0, float(a))) if f else s for s, a, f in zip(rows, age, so_far, strict=True)]
    features = [s for s, keep in zip(elapsed, used, strict=True) if keep]
    return TrainingTargets(row=used, seen=features, target=target[used], weight=weight[used]), correction


# The drift of the general level of answers: a slow random walk that reverts to its long-run mean.
#
# The kinds of questions asked change from month to month, and with them the share that comes true. The level of day t
# is a Gaussian process with covariance v·exp(−|t − t'| / m) (Ornstein & Uhlenbeck 1930): near days have similar levels,
# and days far from all data have the mean.

STEP = 14
"""Number of days that share one level."""
MEMORY = 100.0
"""Number of days after which 1/e of a deviation is left."""


@frozen
class DriftBasis:
    """Levels on a grid of days, expressed by independent unit normals: levels = root @ normals · √v."""

    grid: Ints
    """The grid's days, ascending, in days since 1970."""
    root: Floats

    def weights(self, normals: Floats) -> Floats:
        """Return the weights that turn covariances with the grid into a level: K⁻¹·levels, for v = 1."""
        return np.asarray(np.linalg.solve(self.root.T, normals), np.float64)


def on_grid(days: npt.NDArray[np.datetime64]) -> Ints:
    """Return the middle of each day's grid interval, in days since 1970."""
    return days.astype("M8[D]").astype(np.int64) // STEP * STEP + STEP // 2


def basis(days: Ints) -> DriftBasis:
    """The basis for levels on the given days of the grid."""
    grid = np.unique(days)
    # A small value on the diagonal keeps the Cholesky root numerically stable.
    root = np.linalg.cholesky(similarity(grid, grid) + 1e-9 * np.eye(len(grid)))
    return DriftBasis(grid=grid, root=np.asarray(root, np.float64))


def similarity(days: Ints, grid: Ints) -> Floats:
    """exp(−|t − t'| / MEMORY) of every day with every grid day."""
    return np.exp(-np.abs(days[:, None] - grid[None, :]) / MEMORY)


# How often data-set questions came true, by source, template, size of the last value and horizon.

STRENGTH = 10.0
CORRELATION = 0.1
"""Correlation ρ of one day's outcomes: m of them count as m / (1 + (m − 1)·ρ). Both values are as in `BaseRates`."""
SIZED = frozenset({("acled", "increase")})
"""Templates with classes by last value: a count that was zero all year hardly ever rises."""

SEVERAL = 5
"""Minimum number of questions in a round for all zeros to mean missing values."""


@frozen
class RateClass:
    """The class of a data-set target."""

    source: str
    subtype: str = ""
    size: float | None = None
    days: float | None = None

    @property
    def levels(self) -> tuple[str, ...]:
        """Names from the widest class to the narrowest, such as acled, acled/increase, acled/increase/zero."""
        names = [self.source, f"{self.source}/{self.subtype}"]
        if (self.source, self.subtype) in SIZED and self.size is not None:
            names.append(f"{names[-1]}/{'zero' if self.size == 0 else 'below one' if self.size < 1 else 'more'}")
        if self.days is not None:
            names.append(f"{names[-1]}/{int(np.searchsorted(HORIZON_EDGES, self.days))}")
        return tuple(names)


@frozen
class RateTable:
    """Counts of yes and of all outcomes by class, as effective numbers of independent outcomes."""

    counts: Mapping[str, tuple[float, float]]

    def rate(self, kind: RateClass) -> float | None:
        """Return the rate of a class, each shrunk to the wider one and the widest to one half; None if unseen."""
        return shrunk_rate(self.counts, kind.levels, STRENGTH)

    def outcomes_counted(self, kind: RateClass) -> float:
        """Effective number of independent outcomes in the narrowest class that has any."""
        return next((self.counts[level][1] for level in reversed(kind.levels) if level in self.counts), 0.0)


def rate_table(past: PastQuestions) -> RateTable:
    """Build the table from all known data-set outcomes."""
    resolved = past.take((past.kind == "dataset") & ~np.isnan(past.outcome))
    size, rows = trusted_sizes(resolved), dict[str, list[int]]()
    span = (resolved.resolves - resolved.due).astype(np.float64)
    for row, days in enumerate(np.where(np.isnat(resolved.resolves), np.nan, span)):
        kind = RateClass(
            source=str(resolved.source[row]),
            subtype=str(resolved.subtype[row]),
            size=None if np.isnan(size[row]) else float(size[row]),
            days=None if np.isnan(days) else float(days),
        )
        for level in kind.levels:
            rows.setdefault(level, []).append(row)
    counts = {
        level: effective_counts(resolved.outcome[at], resolved.known_on[at], CORRELATION) for level, at in rows.items()
    }
    return RateTable(counts=counts)


def trusted_sizes(past: PastQuestions) -> Floats:
    """Return the last values; NaN for rounds in which a template has only zeros, which mean missing values."""
    size = past.size.copy()
    for source, subtype in SIZED:
        of_template = (past.source == source) & (past.subtype == subtype)
        for due in np.unique(past.due[of_template]):
            rows = of_template & (past.due == due)
            if len(np.unique(past.id[rows])) >= SEVERAL and not past.size[rows].any():
                size[rows] = np.nan
    return size


UNSEEN = "words not seen in training"


@frozen(eq=False)
class DriftingLevel:
    """Log-odds of a typical question of a source on a day."""

    long_run: float
    source: Mapping[str, float]
    """What each source adds; unknown sources add nothing."""
    grid: Ints
    drift: Floats
    """Weights of the similarity to the grid's days; see `DriftBasis`."""
    drift_of: Mapping[str, Floats]
    """The same weights for the drift of each source alone."""

    def at(self, source: str, day: date) -> float:
        """Return the level of a source on a day; far from all data it is the long-run level."""
        near = similarity(np.array([np.datetime64(day, "D").astype(np.int64)]), self.grid)[0]
        own = self.drift_of.get(source)
        drifted = float((near * self.drift).sum()) + (0.0 if own is None else float((near * own).sum()))
        return self.long_run + self.source.get(source, 0.0) + drifted


@frozen
class LogOddsPart:
    """One part of a probability: its name, and the log-odds it adds."""

    name: str
    log_odds: float


@frozen(eq=False)
class TextModel:
    """Log-odds = level + Σ named columns + Σ hashed words."""

    level: DriftingLevel
    named: Mapping[str, float]
    words: Floats
    rarity: Floats
    known: Ints
    """Marks of all grams in the training data, ascending; only these are named as reasons."""
    price_correction: PriceCorrection

    def parts(self, seen: TextFeatures, source: str, day: date) -> tuple[LogOddsPart, ...]:
        """Return all parts of the log-odds: the level, then named columns, then words, the strongest first."""
        parts = [LogOddsPart(name="level", log_odds=self.level.at(source, day))]
        for name, value in zip(NAMES, seen.named.tolist(), strict=True):
            added = value * self.named.get(name, 0.0)
            if added:
                parts.append(LogOddsPart(name=name, log_odds=added))
        return (*parts, *self._word_parts(seen))

    def log_odds(self, seen: TextFeatures, source: str, day: date) -> float:
        """The sum of all parts."""
        ids = buckets(seen.reading.text)
        worded = float((gram_values(one_text(ids), self.rarity) * self.words[ids]).sum())
        coefficients = np.array([self.named.get(name, 0.0) for name in NAMES])
        return self.level.at(source, day) + float((seen.named * coefficients).sum()) + worded

    def familiar(self, text: str) -> float:
        """Return the share of a text's words that are in the training data; 0 for a text without words.

        >>> shipped_model().text.familiar("Will Ada win the election?") > 0.5, shipped_model().text.familiar("asdf")
        (True, 0.0)
        """
        words = [mark(0, word) for word in set(tokens(text))]
        return float(np.isin(words, self.known).mean()) if words else 0.0

    def _word_parts(self, seen: TextFeatures) -> list[LogOddsPart]:
        """Return the parts of the words. Grams that share a bucket count once; unseen ones are not named."""
        ids = buckets(seen.reading.text)
        added = gram_values(one_text(ids), self.rarity) * self.words[ids]
        owner: dict[int, str] = {}
        for block, gram in grams(seen.reading.text):
            number = mark(block, gram)
            place = int(np.searchsorted(self.known, number))
            if place < len(self.known) and self.known[place] == number:
                owner.setdefault(int(bucket_of(np.array([number]))[0]), f"“{gram}”")
        total: dict[str, float] = {}
        for number, value in zip(ids.tolist(), added.tolist(), strict=True):
            name = owner.get(number, UNSEEN)
            total[name] = total.get(name, 0.0) + value
        odds_parts = [LogOddsPart(name=name, log_odds=value) for name, value in total.items() if value]
        return sorted(odds_parts, key=lambda part: -abs(part.log_odds))


@frozen
class OutsideModelRecord:
    """A description of a model's training data."""

    as_of: date
    """The cutoff: outcomes and prices of this day and later were not used."""
    last_known: date | None = None
    """The last day on which an outcome or a price in the training data became known."""
    first_due: date | None = None
    last_due: date | None = None
    askings: int = 0
    """Number of askings of market questions with a price or an outcome."""
    questions: int = 0
    outcomes: int = 0
    """Number of market outcomes known by then; each counted once its deadline was over."""
    prices: int = 0
    dataset_outcomes: int = 0
    strength: float = 0.0
    """Precision of the words' coefficients."""
    tried: Mapping[str, float] = field(default_factory=dict[str, float])
    """Validation loss by strength; empty if there was too little data to compare."""


@frozen(eq=False)
class OutsideModel:
    """Text model, rates of data-set questions, and the record of their training data."""

    text: TextModel
    rates: RateTable
    record: OutsideModelRecord
    askings: frozenset[int] = frozenset()
    """Hashes of question@due of all training questions."""


# The model that comes with the package: a file of numbers and a report on its training data.

NUMBERS, REPORT = "numbers.npz", "training.json"
FORMAT = 1


@lru_cache(maxsize=1)
def shipped_model() -> OutsideModel:
    """The model shipped with the package, loaded once."""
    folder = files("foretell.forecasters.base_rates")
    report: dict[str, Any] = json.loads(folder.joinpath(REPORT).read_text(encoding="utf-8"))
    return from_files(folder.joinpath(NUMBERS).read_bytes(), report)


def to_files(model: OutsideModel, scores: dict[str, Any]) -> tuple[bytes, dict[str, Any]]:
    """Serialise a model to numbers and a report, without texts or ids: askings are hashed, words are buckets."""
    level, used = model.text.level, np.flatnonzero(model.text.words)
    names = sorted(level.drift_of)
    buffer = BytesIO()
    np.savez_compressed(
        buffer,
        used=used.astype(np.uint16),
        words=model.text.words[used].astype(np.float16),
        rarity=model.text.rarity.astype(np.float16),
        known=np.diff(model.text.known, prepend=0),
        grid=level.grid.astype(np.int32),
        drift=level.drift.astype(np.float32),
        drift_of=np.array([level.drift_of[name] for name in names], np.float32).reshape(len(names), len(level.grid)),
        askings=np.array(sorted(model.askings), np.uint64),
    )
    record = asdict(model.record) | {
        name: value.isoformat() for name, value in asdict(model.record).items() if isinstance(value, date)
    }
    report = {
        "format": FORMAT,
        "record": record,
        "scores": scores,
        "worth of prices": asdict(model.text.price_correction),
        "level": {"long run": level.long_run, "source": dict(level.source), "drifting": names},
        "named": dict(model.text.named),
        "rates": {name: list(counts) for name, counts in sorted(model.rates.counts.items())},
    }
    return buffer.getvalue(), report


def from_files(numbers: bytes, report: dict[str, Any]) -> OutsideModel:
    """Load a model from a file of numbers and its report."""
    if report.get("format") != FORMAT:
        raise ValueError(f"the outside view's numbers have format {report.get('format')}, this version reads {FORMAT}")
    with np.load(BytesIO(numbers), allow_pickle=False) as file:
        data: dict[str, Any] = {name: file[name] for name in file.files}
    rarity = data["rarity"].astype(np.float64)
    words: Floats = np.zeros(len(rarity))
    words[data["used"]] = data["words"]
    level_report = report["level"]
    level = DriftingLevel(
        long_run=level_report["long run"],
        source=level_report["source"],
        grid=data["grid"].astype(np.int64),
        drift=data["drift"].astype(np.float64),
        drift_of=dict(zip(level_report["drifting"], data["drift_of"].astype(np.float64), strict=True)),
    )
    text = TextModel(
        level=level,
        named=report["named"],
        words=words,
        rarity=rarity,
        known=np.cumsum(data["known"]),
        price_correction=PriceCorrection(**report["worth of prices"]),
    )
    rates = RateTable(counts={name: (yes, n) for name, (yes, n) in report["rates"].items()})
    days = ("as_of", "last_known", "first_due", "last_due")
    dates = {name: date.fromisoformat(day) if (day := report["record"][name]) else None for name in days}
    record = OutsideModelRecord(**report["record"] | dates)
    return OutsideModel(text=text, rates=rates, record=record, askings=frozenset(data["askings"].tolist()))


def asking_hash(asking: str) -> int:
    """Return the first eight bytes of an asking's SHA-256, which identify it without revealing it."""
    return int.from_bytes(hashlib.sha256(asking.encode()).digest()[:8], "big")
