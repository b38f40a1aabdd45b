import numpy as np
import pytest

from foretell.metrics import two_way_anova


def trials(filled=1.0):
    rng = np.random.default_rng(0)
    method, question, _ = np.indices((4, 12, 3)).reshape(3, -1)
    y = rng.normal(0, 0.1, 4)[method] + rng.normal(0, 0.4, 12)[question] + rng.normal(0, 0.3, len(method))
    selected = rng.random(len(y)) < filled
    return y[selected], method[selected], question[selected]


def statsmodels_table(y, method, question, order, typ):
    ols = pytest.importorskip("statsmodels.formula.api").ols
    anova_lm = pytest.importorskip("statsmodels.stats.anova").anova_lm
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"y": y, "method": method.astype(str), "question": question.astype(str)})
    return anova_lm(ols(f"y ~ {' + '.join(f'C({name})' for name in order)}", frame).fit(), typ=typ)


@pytest.mark.parametrize("kind", ["marginal", "method_first", "question_first", "adjusted"])
def test_balanced_tables_agree_with_statsmodels_whatever_the_kind(kind):
    y, method, question = trials()
    theirs = statsmodels_table(y, method, question, ["method", "question"], 1)
    rows = two_way_anova(y, method, question, kind=kind)
    for row in rows[:2]:
        other = theirs.loc[f"C({row.source})"]
        assert (row.ss, row.df, row.f, row.p) == pytest.approx(
            (other["sum_sq"], other["df"], other["F"], other["PR(>F)"])
        )
    assert rows[2].ss == pytest.approx(theirs.loc["Residual", "sum_sq"])
    assert sum(row.share for row in rows[:3]) == pytest.approx(1)
    assert [row.df for row in rows] == [3, 11, 144 - 15, 143]


@pytest.mark.parametrize(
    ("kind", "order", "typ"),
    [
        ("method_first", ["method", "question"], 1),
        ("question_first", ["question", "method"], 1),
        ("adjusted", ["method", "question"], 2),
    ],
)
def test_unbalanced_tables_agree_with_statsmodels(kind, order, typ):
    y, method, question = trials(0.6)
    theirs = statsmodels_table(y, method, question, order, typ)
    for row in two_way_anova(y, method, question, kind=kind)[:3]:
        other = theirs.loc["Residual" if row.source == "residual" else f"C({row.source})"]
        assert (row.ss, row.df) == pytest.approx((other["sum_sq"], other["df"]))
        if row.source != "residual":
            assert (row.f, row.p) == pytest.approx((other["F"], other["PR(>F)"]))


def test_marginal_follows_the_papers_formula_when_unbalanced():
    y, method, question = trials(0.6)
    rows = {row.source: row for row in two_way_anova(y, method, question)}
    for name, labels in (("method", method), ("question", question)):
        by_hand = sum((labels == g).sum() * (y[labels == g].mean() - y.mean()) ** 2 for g in np.unique(labels))
        assert rows[name].ss == pytest.approx(by_hand)
    assert rows["residual"].ss == pytest.approx(rows["total"].ss - rows["method"].ss - rows["question"].ss)
    assert rows["residual"].df == len(y) - 1 - 3 - 11


def test_f_is_nan_without_residual_degrees_of_freedom():
    rows = two_way_anova([1.0, 2.0], ["a", "b"], ["x", "x"])
    assert np.isnan(rows[0].f)
    assert rows[0].share == 1.0
