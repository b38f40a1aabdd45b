"""Fits the regression of the text model: past questions are rows, priors are scales of columns."""

from datetime import date
from math import sqrt
from typing import Any

import numpy as np

from foretell.forecasters.base_rates.outside_model import (
    DriftBasis,
    DriftingLevel,
    OutsideModel,
    OutsideModelRecord,
    PriceCorrection,
    TextModel,
    TrainingTargets,
    asking_hash,
    basis,
    on_grid,
    rate_table,
    training_targets,
)
from foretell.forecasters.base_rates.past import PastQuestions, Strings
from foretell.forecasters.base_rates.sparse_matrix import BlockRow, RepeatedRows, SparseMatrix
from foretell.forecasters.base_rates.text_features import (
    BUCKETS,
    NAMES,
    NOT_NEGATIVE,
    TIMED,
    Grams,
    features_of_past,
    gram_values,
    marks,
    rarity,
)
from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats, Ints, group_sums
from foretell.metrics.transforms import sigmoid
from foretell.questions.as_of import AsOf

# Logistic regression on many sparse columns, each with a normal prior, some of them bound to one sign.

STEPS, INNER, SMALL = 30, 200, 1e-5


def fit_logistic(
    columns: Any, target: Floats, weight: Floats, *, offset: Floats, not_negative: Bools, start: Floats | None = None
) -> Floats:
    """Return the β that minimise Σ w·CE(target, σ(offset + Xβ)) + |β|²/2, with β ≥ 0 for chosen columns.

    Targets are in [0, 1]: a probability counts as that share of a yes. A column with prior variance v must be
    multiplied by √v. The objective is strictly convex, so the solution is unique. It is found by Newton steps with
    conjugate gradients, and columns that would turn negative are held at zero while their gradient is positive.
    `columns` multiplies vectors like a matrix, also transposed; `start` may be the solution for a similar strength.
    """
    problem = _Problem(columns, target, weight, offset)
    beta = np.zeros(columns.shape[1]) if start is None else start.copy()
    held = np.zeros(len(beta), bool)
    for _ in range(1 + 2 * int(not_negative.sum())):
        beta = problem.solve(np.where(held, 0.0, beta), ~held)
        negative = not_negative & (beta < 0)
        free_again = held & (problem.gradient(beta) < -SMALL)
        if not negative.any() and not free_again.any():
            break
        held = (held | negative) & ~free_again
    return np.where(not_negative, np.maximum(beta, 0.0), beta)


class _Problem:
    def __init__(self, columns: Any, target: Floats, weight: Floats, offset: Floats) -> None:
        self.x, self.xt = columns, columns.T
        self.target, self.weight, self.offset = target, weight, offset

    def loss(self, beta: Floats) -> float:
        z = self.offset + self.x @ beta
        return _dot(self.weight, np.logaddexp(0.0, z) - self.target * z) + 0.5 * _dot(beta, beta)

    def gradient(self, beta: Floats) -> Floats:
        p = sigmoid(self.offset + self.x @ beta)
        return self.xt @ (self.weight * (p - self.target)) + beta

    def solve(self, beta: Floats, free: Bools) -> Floats:
        """Run Newton's method on the free columns; a step that does not reduce the loss is halved."""
        loss = self.loss(beta)
        for _ in range(STEPS):
            slope = np.where(free, self.gradient(beta), 0.0)
            if np.abs(slope).max(initial=0.0) < SMALL:
                break
            step = self._direction(beta, slope, free)
            size = 1.0
            while self.loss(beta - size * step) > loss and size > 1e-6:
                size /= 2
            beta = beta - size * step
            loss = self.loss(beta)
        return beta

    def _direction(self, beta: Floats, slope: Floats, free: Bools) -> Floats:
        """(I + XᵀWX)⁻¹·slope by conjugate gradients (Hestenes & Stiefel 1952)."""
        p = sigmoid(self.offset + self.x @ beta)
        curvature = self.weight * p * (1 - p)
        direction, residual = np.zeros(len(beta)), slope.copy()
        search, size = residual.copy(), _dot(residual, residual)
        goal = size * min(1e-4, float(np.sqrt(size)) * 1e-4 + 1e-12)
        for _ in range(INNER):
            curved = np.where(free, self.xt @ (curvature * (self.x @ search)) + search, 0.0)
            length = size / _dot(search, curved)
            direction, residual = direction + length * search, residual - length * curved
            smaller = _dot(residual, residual)
            if smaller <= goal:
                break
            search, size = residual + smaller / size * search, smaller
        return direction


def _dot(a: Floats, b: Floats) -> float:
    # Threads do not pay off for vectors this short.
    return float(np.einsum("i,i->", a, b))


LONG_RUN = -1.0
"""Log-odds that the level is shrunk to: 27 % yes."""
LEVEL, SOURCE, DRIFT, OWN_DRIFT = 1.0, sqrt(0.5), 1.0, sqrt(0.3)
TURN, TIME = sqrt(0.2), sqrt(1 / 3)
"""Prior standard deviations of the coefficients, in log-odds."""
NAMED_SCALE = np.array([TIME if name in TIMED else TURN for name in NAMES])


@frozen(eq=False)
class TextModelTable:
    """Training data as the rows of a regression."""

    targets: TrainingTargets
    source: Strings
    grid: Ints
    """The grid day of each row; see `on_grid`."""
    text: Ints
    """The text of each row, as the number of a row of `grams`: a question is asked several times in the same words."""
    grams: Grams
    values: Floats
    """Values of the grams."""
    named: Floats
    rarities: Floats
    known: Ints
    """Marks of all grams."""
    price_correction: PriceCorrection

    def __len__(self) -> int:
        return len(self.source)


def table_of(past: PastQuestions, day: date) -> TextModelTable:
    """Build the table of market questions known by `day`; a question asked several times counts once in total."""
    _, code, times = np.unique(past.id, return_inverse=True, return_counts=True)
    share = 1.0 / times[code]
    targets, price_correction = training_targets(past, features_of_past(past), share, day)
    texts = {seen.reading.text: seen for seen in targets.seen}
    numbers = {text: number for number, text in enumerate(texts)}
    text = np.array([numbers[seen.reading.text] for seen in targets.seen], np.int64)
    grams = Grams.of([*texts.values()])
    rarities = rarity(grams, group_sums(text, share[targets.row], len(texts)))
    return TextModelTable(
        targets=targets,
        source=past.source[targets.row],
        grid=on_grid(past.due[targets.row]),
        text=text,
        grams=grams,
        values=gram_values(grams, rarities),
        named=np.array([s.named for s in targets.seen]).reshape(len(targets.seen), len(NAMES)),
        rarities=rarities,
        known=np.unique(np.concatenate([*map(marks, texts), np.array([], np.int64)])),
        price_correction=price_correction,
    )


def fit_text(table: TextModelTable, strength: float, start: Floats | None = None) -> tuple[TextModel, Floats]:
    """Fit a model with the given prior precision of words; also return its raw coefficients for a warm start."""
    levels, sources = basis(table.grid), np.unique(table.source)
    columns = _columns(table, strength, levels, sources)
    bound = np.zeros(columns.shape[1], bool)
    bound[2 * BUCKETS + np.flatnonzero(np.isin(NAMES, NOT_NEGATIVE))] = True
    targets, offset = table.targets, np.full(len(table), LONG_RUN)
    beta = fit_logistic(columns, targets.target, targets.weight, offset=offset, not_negative=bound, start=start)
    ends = np.cumsum([2 * BUCKETS, len(NAMES), 1, len(sources), len(levels.grid)])
    words, named, level, source, drift, own = np.split(beta, ends)
    names = list(map(str, sources))
    fitted = DriftingLevel(
        long_run=LONG_RUN + float(level[0]) * LEVEL,
        source=dict(zip(names, (source * SOURCE).tolist(), strict=True)),
        grid=levels.grid,
        drift=levels.weights(drift) * DRIFT,
        drift_of={
            name: levels.weights(part) * OWN_DRIFT
            for name, part in zip(names, own.reshape(len(names), -1), strict=True)
        },
    )
    model = TextModel(
        level=fitted,
        named=dict(zip(NAMES, (named * NAMED_SCALE).tolist(), strict=True)),
        words=words / sqrt(strength),
        rarity=table.rarities,
        known=table.known,
        price_correction=table.price_correction,
    )
    return model, beta


def prior_text() -> TextModel:
    """Return the model before any data: the long-run level for every question."""
    none, grid = np.zeros(2 * BUCKETS), np.array([], np.int64)
    level = DriftingLevel(long_run=LONG_RUN, source={}, grid=grid, drift=np.array([]), drift_of={})
    return TextModel(level=level, named={}, words=none, rarity=none, known=grid, price_correction=PriceCorrection())


def _columns(table: TextModelTable, strength: float, levels: DriftBasis, sources: Strings) -> BlockRow:
    """Return columns (words, named, level, source, drift, drift by source), scaled to unit prior variance."""
    steps, grams = len(levels.grid), table.grams
    # The last four depend only on the source and the day, which many rows share.
    day, source = np.searchsorted(levels.grid, table.grid), np.searchsorted(sources, table.source)
    shared, which = np.unique(source * steps + day, return_inverse=True)
    source, day = np.divmod(shared, steps)
    root, of_source = levels.root[day], source[:, None] == np.arange(len(sources))
    own = (of_source[:, :, None] * root[:, None, :]).reshape(len(shared), -1)
    level = np.full((len(shared), 1), LEVEL)
    words = SparseMatrix.of(table.values / sqrt(strength), grams.row, grams.bucket, (len(grams.start) - 1, 2 * BUCKETS))
    return BlockRow(
        [
            RepeatedRows(rows=words, which=table.text),
            table.named * NAMED_SCALE,
            RepeatedRows(
                rows=np.hstack([level, of_source * SOURCE, root * DRIFT, own * OWN_DRIFT]),
                which=which,
            ),
        ]
    )


# Fitting the outside view on the questions known on a day.

STRENGTHS = (1.0, 3.0, 10.0)
"""Candidates for the precision of the words' coefficients."""
USUAL = 3.0
"""The precision used if the past is too short to choose."""
ENOUGH = 200
"""Minimum number of training rows before an origin at which strengths are compared."""


def fit_outside(bank: PastQuestions, as_of: AsOf, *, strength: float | None = None) -> OutsideModel:
    """Fit the outside view on what was known of `bank` before the day of the cutoff.

    The text model learns from market questions, the table of rates from data-set questions. Unless `strength` is given,
    it is chosen within that past: models are fitted before two earlier rounds and compared on the new questions after.
    """
    day = as_of.at.date()
    past = bank.before(day)
    markets = past.take(past.kind == "market")
    if not len(markets):
        return _assemble(past, markets, prior_text(), day, 0.0, {})
    losses: dict[float, float] = {} if strength is not None else _tried(markets, day)
    chosen = strength if strength is not None else min(losses, key=lambda s: (losses[s], s), default=USUAL)
    table = table_of(markets, day)
    text = fit_text(table, chosen)[0] if len(table) else prior_text()
    return _assemble(past, markets, text, day, chosen, {f"{s:g}": loss for s, loss in losses.items()})


def _tried(markets: PastQuestions, day: date) -> dict[float, float]:
    """Return the validation loss by strength over two origins; empty if no origin has enough data."""
    rounds = np.unique(markets.due)
    if len(rounds) < 5:
        return {}
    whole = table_of(markets, day)
    later = markets.take(whole.targets.row)
    losses: dict[float, list[float]] = {}
    for origin, end in ((rounds[-4], rounds[-2]), (rounds[-2], np.datetime64(day, "D"))):
        early = markets.before(origin.item())
        table = table_of(early, origin.item())
        rows = np.flatnonzero((later.due >= origin) & (later.due < end) & ~np.isin(later.id, early.id))
        if len(table) < ENOUGH or not len(rows):
            continue
        new, seen, target = later.take(rows), [whole.targets.seen[i] for i in rows], whole.targets.target[rows]
        days: list[date] = new.due.astype("M8[D]").tolist()
        start: Floats | None = None
        for strength in sorted(STRENGTHS, reverse=True):
            model, start = fit_text(table, strength, start)
            z = [model.log_odds(s, str(name), due) for s, name, due in zip(seen, new.source, days, strict=True)]
            losses.setdefault(strength, []).append(float(np.mean((sigmoid(z) - target) ** 2)))
    return {s: float(np.mean(values)) for s, values in losses.items()}


def _assemble(
    past: PastQuestions, markets: PastQuestions, text: TextModel, day: date, strength: float, tried: dict[str, float]
) -> OutsideModel:
    seen = np.concatenate([past.known_on, past.price_on])
    seen = seen[~np.isnat(seen)]
    table_rows = markets.take(~np.isnan(markets.price) | ~np.isnan(markets.outcome))
    record = OutsideModelRecord(
        as_of=day,
        last_known=seen.max().astype("M8[D]").item() if len(seen) else None,
        first_due=past.due.min().astype("M8[D]").item() if len(past) else None,
        last_due=past.due.max().astype("M8[D]").item() if len(past) else None,
        askings=len(np.unique(table_rows.askings)),
        questions=len(np.unique(table_rows.id)),
        outcomes=int((~np.isnan(markets.outcome)).sum()),
        prices=int((~np.isnan(markets.price)).sum()),
        dataset_outcomes=int(((past.kind == "dataset") & ~np.isnan(past.outcome)).sum()),
        strength=strength,
        tried=tried,
    )
    used = past.take(~np.isnan(past.outcome) | ~np.isnan(past.price))
    hashes = frozenset(asking_hash(str(asking)) for asking in np.unique(used.askings))
    return OutsideModel(text=text, rates=rate_table(past), record=record, askings=hashes)
