from operator import not_

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.forecasters.tree import formula as ex

NAMES = ("P1", "P10", "P1.1", "P1.1.3", "P2", "PA", "rates_fall")
EXPRESSIONS = st.recursive(
    st.sampled_from(NAMES).map(ex.Var),
    lambda inner: st.one_of(
        inner.map(ex.Not),
        st.lists(inner, min_size=2, max_size=4).map(lambda items: ex.joined(ex.And, items)),
        st.lists(inner, min_size=2, max_size=4).map(lambda items: ex.joined(ex.Or, items)),
    ),
    max_leaves=12,
)


def test_ids_with_a_common_prefix_are_distinguished():
    assert ex.mentions("P1 AND P10 OR P1.1") == [("P1", 0), ("P10", 7), ("P1.1", 14)]
    assert ex.to_text(ex.parse("P1 AND P10 OR P1.1.3")) == "(P1 AND P10) OR P1.1.3"


def test_not_is_parsed_when_repeated_and_before_parentheses():
    assert ex.parse("NOT NOT P1") == ex.Not(ex.Not(ex.Var("P1")))
    assert ex.parse("not(P1 or P2)") == ex.Not(ex.Or((ex.Var("P1"), ex.Var("P2"))))
    assert ex.parse("NOT P1 AND P2") == ex.And((ex.Not(ex.Var("P1")), ex.Var("P2")))


@pytest.mark.parametrize(
    "text", ["P1 && !P2 || P3", "P1 & ~P2 | P3", "P1 ∧ ¬P2 ∨ P3", "p1 AND\n not P2\tor P3".replace("p1", "P1")]
)
def test_operator_signs_equal_operator_words(text: str):
    assert ex.parse(text) == ex.parse("P1 AND NOT P2 OR P3")


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("", 0, "the end"),
        ("P1 P2", 3, "AND or OR"),
        ("P1 AND", 6, "the end"),
        ("P1 AND OR P2", 7, '"OR"'),
        ("(P1 OR P2", 0, "never closed"),
        ("P1)", 2, 'extra ")"'),
        ("P1 AND (P2 P3)", 11, 'AND, OR or ")"'),
        ("P1 + P2", 3, "'+'"),
        ("P1. AND P2", 2, "'.'"),
        ("  $", 2, "'$'"),
        ("NOT", 3, "the end"),
        ("(" * 101 + "P1" + ")" * 101, 100, "levels"),
    ],
)
def test_parse_errors_point_at_their_position(text: str, position: int, problem: str):
    with pytest.raises(ex.FormulaError) as caught:
        ex.parse(text)
    assert problem in str(caught.value)
    assert caught.value.pointer.splitlines()[-1] == " " * position + "^"


@given(EXPRESSIONS)
def test_printed_formulas_parse_to_the_same_expression(expression: ex.Expression):
    assert ex.parse(ex.to_text(expression)) == expression


@given(EXPRESSIONS, st.sets(st.sampled_from(NAMES)))
def test_a_negated_formula_has_the_opposite_value(expression: ex.Expression, true: set[str]):
    world = {name: name in true for name in NAMES}
    values = [ex.fold(formula, world.__getitem__, not_, all, any) for formula in (expression, ex.Not(expression))]
    assert values in ([True, False], [False, True])
