"""One forecast a question out of a run's trials, for questions about a number too."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from foretell.arena.results import Combining, combined
from foretell.questions.distribution import Numeric
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question


def one_each(
    answers: Sequence[Forecast | Failure], questions: Iterable[Question], how: Combining | None = None
) -> list[Forecast]:
    """Trials combined; distributions over a number are averaged level by level."""
    numeric: dict[tuple[str, str], list[Numeric]] = {}
    for answer in answers:
        if isinstance(answer, Forecast) and isinstance(answer.distribution, Numeric):
            numeric.setdefault((answer.question_id, str(answer.as_of)), []).append(answer.distribution)
    found = combined(answers, questions, how)
    return [
        replace(forecast, distribution=average(several)) if len(several) > 1 else forecast
        for forecast in found
        for several in [numeric.get((forecast.question_id, str(forecast.as_of)), [])]
    ]


def average(distributions: Sequence[Numeric]) -> Numeric:
    """The mean of their quantiles at every level that one of them states and all of them reach.

    Averaging quantiles keeps the shape: the mean of two bells is a bell between them, not two bumps (Vincent 1912).

    >>> d = average([Numeric(x=(0, 10), cdf=(0, 1)), Numeric(x=(10, 30), cdf=(0, 1))])
    >>> d.x, d.cdf
    ((5.0, 20.0), (0.0, 1.0))
    """
    low, high = max(d.cdf[0] for d in distributions), min(d.cdf[-1] for d in distributions)
    levels = sorted({level for d in distributions for level in d.cdf if low <= level <= high})
    points: dict[float, float] = {}
    for level in levels:
        # Where all of them jump, the highest level stands.
        points[sum(d.quantile(level) for d in distributions) / len(distributions)] = level
    if len(points) < 2:
        return distributions[0]
    return Numeric(x=tuple(points), cdf=tuple(points.values()))
