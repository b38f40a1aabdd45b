"""One question's trials as rows, so that a learnt rule can be put to work on a question just asked."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from foretell.forecasters.combine.rows import Rows
from foretell.forecasters.priors import Rates
from foretell.questions.clock import AsOf
from foretell.questions.question import Question, Target


def rows_of(question: Question, trials: Sequence[Mapping[str, float]], as_of: AsOf, rates: Rates | None = None) -> Rows:
    """A row per target; prices and base rates as far as they were known at the cutoff.

    >>> from foretell.questions import Target
    >>> q = Question(id="q", source="asked", text="?", due="2026-01-01", targets=(Target(id="yes"),))
    >>> rows_of(q, [{"yes": 0.2}, {"yes": 0.5}], q.as_of).raw.round(3).tolist()
    [0.333]
    """
    n = len(question.targets)
    snapshots = [t.snapshot if t.snapshot and as_of.admits(t.snapshot.at) else None for t in question.targets]

    def text(value: str) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
        return np.full(n, value)

    return Rows(
        trials=np.array([[trial.get(t.id, np.nan) for t in question.targets] for trial in trials], np.float64),
        question=text(question.id),
        due=np.full(n, np.datetime64(question.due.date(), "D")),
        target=np.array([t.id for t in question.targets]),
        source=text(question.source),
        subtype=text(question.subtype),
        kind=text(question.kind),
        horizon=_numbers(question.horizon_days(t) for t in question.targets),
        price=_numbers(snapshot.price if snapshot else None for snapshot in snapshots),
        prior=_numbers(_rate(rates, question, t, as_of) for t in question.targets),
        cluster=text(question.cluster),
        liquidity=_numbers(snapshot.volume if snapshot else None for snapshot in snapshots),
    )


def _rate(rates: Rates | None, question: Question, target: Target, as_of: AsOf) -> float | None:
    # A market's own price says more than how often its platform said yes.
    return None if rates is None or question.kind == "market" else rates.rate(question, target, as_of)


def _numbers(values: Iterable[float | None]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([np.nan if value is None else value for value in values], np.float64)
