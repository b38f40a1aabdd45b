"""How much of the spread of scores is due to the method, to the question, and to neither."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from foretell.evaluate.arrays import Floats
from foretell.evaluate.effects import TwoWayTable, two_way_effects, two_way_table

SumsOfSquares = Literal["marginal", "method_first", "question_first", "adjusted"]


@dataclass(frozen=True, kw_only=True)
class AnovaRow:
    """One line of an analysis-of-variance table; F and p are NaN for residual and total."""

    source: str
    ss: float
    df: int
    share: float
    """Sum of squares over the total sum of squares."""
    f: float = float("nan")
    p: float = float("nan")


def two_way_anova(
    y: npt.ArrayLike,
    method: npt.ArrayLike,
    question: npt.ArrayLike,
    *,
    kind: SumsOfSquares = "marginal",
) -> list[AnovaRow]:
    """Analysis of variance of y by method and question: rows method, question, residual, total.

    "marginal" is the paper's table: SS = Σ n_g (mean_g − mean)² for each factor by itself, and the residual is
    what remains of the total (BLF 2026, G.1). On a balanced table all kinds agree; on an unbalanced one the
    marginal sums overlap, so take "method_first" or "question_first" (sequential: what the second factor adds
    to the first) or "adjusted" (each given the other). F = (SS/df) / (residual SS/df).

    >>> rows = two_way_anova([1, 2, 4, 6], ["a", "b", "a", "b"], ["x", "x", "z", "z"])
    >>> [(r.source, round(r.ss, 4), r.df) for r in rows]
    [('method', 2.25, 1), ('question', 12.25, 1), ('residual', 0.25, 1), ('total', 14.75, 3)]
    """
    table = two_way_table(y, method, question)
    fit = two_way_effects(table.y, table.method.codes, table.question.codes)
    total = float(np.sum((table.y - table.y.mean()) ** 2))
    within = fit.residual_variance * fit.residual_df if fit.residual_df else 0.0
    ss_method, ss_question = _marginal(table)
    df_method, df_question = table.method.n - 1, table.question.n - 1
    slack = fit.n_components - 1
    given_method, given_question = total - within - ss_method, total - within - ss_question
    if kind == "marginal":
        within, slack = total - ss_method - ss_question, 0
    if kind in ("method_first", "adjusted"):
        ss_question, df_question = given_method, df_question - slack
    if kind in ("question_first", "adjusted"):
        ss_method, df_method = given_question, df_method - slack
    df_within = fit.residual_df if kind != "marginal" else len(table.y) - 1 - df_method - df_question
    mean_square = within / df_within if df_within > 0 else float("nan")
    return [
        _factor("method", ss_method, df_method, total=total, mean_square=mean_square, df_within=df_within),
        _factor("question", ss_question, df_question, total=total, mean_square=mean_square, df_within=df_within),
        AnovaRow(source="residual", ss=within, df=df_within, share=within / total),
        AnovaRow(source="total", ss=total, df=len(table.y) - 1, share=1.0),
    ]


def _marginal(table: TwoWayTable) -> tuple[float, float]:
    centred = table.y - table.y.mean()

    def between(sums: Floats, sizes: Floats) -> float:
        return float(np.sum(sums**2 / sizes))

    ones = np.ones_like(centred)
    return (
        between(table.by_method(centred), table.by_method(ones)),
        between(table.by_question(centred), table.by_question(ones)),
    )


def _factor(source: str, ss: float, df: int, *, total: float, mean_square: float, df_within: int) -> AnovaRow:
    from scipy.special import fdtrc

    if df < 1 or not mean_square > 0:
        return AnovaRow(source=source, ss=ss, df=df, share=ss / total)
    f = ss / df / mean_square
    return AnovaRow(source=source, ss=ss, df=df, share=ss / total, f=f, p=float(fdtrc(df, df_within, f)))
