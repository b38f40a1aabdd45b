"""The regression behind the text model: past questions as rows, priors as scales of columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from math import sqrt
from typing import Any

import numpy as np

from foretell.evaluate.arrays import Floats, Ints
from foretell.forecasters.combine.rows import sigmoid
from foretell.forecasters.outside.hashing import BUCKETS, marks
from foretell.forecasters.outside.labels import Lessons, Worth, lessons
from foretell.forecasters.outside.levels import Basis, basis, on_grid
from foretell.forecasters.outside.model import Level, TextModel
from foretell.forecasters.outside.past import PastQuestions, Strings
from foretell.forecasters.outside.ridge import fit_logistic
from foretell.forecasters.outside.seen import NAMES, NOT_NEGATIVE, TIMED, Grams, Seen, gram_values, rarity, seen_in

LONG_RUN = -1.0
"""Log-odds that the level is shrunk to: 27 % yes."""
LEVEL, SOURCE, DRIFT, OWN_DRIFT = 1.0, sqrt(0.5), 1.0, sqrt(0.3)
TURN, TIME = sqrt(0.2), sqrt(1 / 3)
"""Prior standard deviations of the coefficients, in log-odds."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """Lessons as the rows of a regression."""

    lessons: Lessons
    source: Strings
    grid: Ints
    """Each row's stretch of days; see `levels`."""
    grams: Grams
    values: Floats
    """Of the grams."""
    named: Floats
    telling: Floats
    known: Ints
    """Marks of all grams."""
    worth: Worth

    def __len__(self) -> int:
        return len(self.source)


def table_of(past: PastQuestions, day: date) -> Table:
    """The table of market questions known by `day`; each question counts as one, however often it was asked."""
    _, code, times = np.unique(past.id, return_inverse=True, return_counts=True)
    share = 1.0 / times[code]
    found, worth = lessons(past, seen_in(past), share, day)
    grams = Grams.of(found.seen)
    telling = rarity(grams, share[found.row])
    return Table(
        lessons=found,
        source=past.source[found.row],
        grid=on_grid(past.due[found.row]),
        grams=grams,
        values=gram_values(grams, telling),
        named=np.array([s.named for s in found.seen]).reshape(len(found.seen), len(NAMES)),
        telling=telling,
        known=np.unique(np.concatenate([*(marks(s.reading.text) for s in found.seen), np.array([], np.int64)])),
        worth=worth,
    )


def fit_text(table: Table, strength: float, start: Floats | None = None) -> tuple[TextModel, Floats]:
    """The model whose words have the given prior precision, and its raw coefficients for a warm start elsewhere."""
    levels, sources = basis(table.grid), np.unique(table.source)
    blocks = _blocks(table, strength, levels, sources)
    beta = _coefficients(blocks, table, start)
    ends = np.cumsum([block.shape[1] for block in blocks])
    words, named, level, source, drift, own = np.split(beta, ends[:-1])
    names = list(map(str, sources))
    fitted = Level(
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
        named=dict(zip(NAMES, (named * _named_scale()).tolist(), strict=True)),
        words=words / sqrt(strength),
        rarity=table.telling,
        known=table.known,
        worth=table.worth,
    )
    return model, beta


def prior_text() -> TextModel:
    """What is believed before any question was seen: the long-run level, whatever is asked."""
    none, grid = np.zeros(2 * BUCKETS), np.array([], np.int64)
    level = Level(long_run=LONG_RUN, source={}, grid=grid, drift=np.array([]), drift_of={})
    return TextModel(level=level, named={}, words=none, rarity=none, known=grid, worth=Worth())


def validation_loss(model: TextModel, rows: Sequence[Seen], past: PastQuestions, target: Floats) -> float:
    """Mean squared distance of the model's probabilities from what the rows came to."""
    days: list[date] = past.due.astype("M8[D]").tolist()
    z = [model.log_odds(s, str(name), day) for s, name, day in zip(rows, past.source, days, strict=True)]
    return float(np.mean((sigmoid(z) - target) ** 2))


def _named_scale() -> Floats:
    return np.array([TIME if name in TIMED else TURN for name in NAMES])


def _blocks(table: Table, strength: float, levels: Basis, sources: Strings) -> list[Any]:
    """Sparse columns: words, named, level, source, drift, drift of each source; scaled to unit prior variance."""
    from scipy.sparse import csr_matrix

    n, steps = len(table), len(levels.grid)
    root = levels.root[np.searchsorted(levels.grid, table.grid)]
    code = np.searchsorted(sources, table.source)
    own = (code[:, None] * steps + np.arange(steps)).ravel()
    each = np.arange(n)
    words = (table.values / sqrt(strength), (table.grams.row, table.grams.bucket))
    return [
        csr_matrix(words, (n, 2 * BUCKETS)),
        csr_matrix(table.named * _named_scale()),
        csr_matrix(np.full((n, 1), LEVEL)),
        csr_matrix((np.full(n, SOURCE), (each, code)), (n, len(sources))),
        csr_matrix(root * DRIFT),
        csr_matrix((root.ravel() * OWN_DRIFT, (np.repeat(each, steps), own)), (n, len(sources) * steps)),
    ]


def _coefficients(blocks: list[Any], table: Table, start: Floats | None) -> Floats:
    from scipy.sparse import hstack

    columns: Any = hstack(blocks).tocsr()
    bound = np.zeros(columns.shape[1], bool)
    bound[2 * BUCKETS + np.flatnonzero(np.isin(NAMES, NOT_NEGATIVE))] = True
    return fit_logistic(
        columns,
        table.lessons.target,
        table.lessons.weight,
        offset=np.full(len(table), LONG_RUN),
        not_negative=bound,
        start=start,
    )
