"""Answers as the terminal and comments write them."""

from foretell.questions.forecast import Forecast, Numeric
from foretell.questions.question import Question


def answer_text(forecast: Forecast, question: Question | None) -> str:
    """A forecast in a few words.

    >>> from foretell.questions.as_of import AsOf
    >>> answer_text(Forecast(question_id="q", forecaster="f", as_of=AsOf.day("2026-11-15"), p={"yes": 0.344}), None)
    '34.4%'
    """
    scale = None if question is None else question.range
    if isinstance(forecast.distribution, Numeric):
        values = [forecast.distribution.quantile(level) for level in (0.1, 0.5, 0.9)]
        if scale is None or not scale.dates:
            values = [float(f"{value:.4g}") for value in values]
        low, middle, high = (str(value) if scale is None else scale.write(value) for value in values)
        return f"{middle} (8 in 10: {low} to {high})"
    if len(forecast.p) == 1:
        return f"{next(iter(forecast.p.values())):.1%}"
    labels = {} if question is None else {target.id: target.label or target.id for target in question.targets}
    ranked = sorted(forecast.p.items(), key=lambda one: -one[1])
    return ", ".join(f"{labels.get(id, id)} {p:.1%}" for id, p in ranked)
