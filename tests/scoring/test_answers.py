"""Scores of answers without a model, by the rules of FutureX."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.data.datasets.free_form import stated_answer
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Reference
from foretell.scoring.answers import chosen_options, score_answer, total_score


def reference(*answers: str, **more: object) -> Reference:
    return Reference(question_id="q", answers=answers, **more)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("right", "answer", "score"),
    [
        (reference("B", options=True, level=1), "b", 1),
        (reference("B", options=True, level=1), "A, B", 0),
        (reference("Yes", options=True, level=1), "Yes", 1),
        (reference("A", "C", options=True, level=2), "C, A", 1),
        (reference("A", "C", options=True, level=2), "A", 2 / 3),
        (reference("A", options=True, level=2), "A, B", 2 / 3),
        (reference("A", options=True, level=2), "B", 0),
        (reference("1,250", level=4, spread=50.0), "1,275", 0.75),
        (reference("1250", level=4, spread=50.0), "1,400 units", 0),
        (reference("100", level=3), "105", 0),
        (reference("100", level=3), "$102.5", 0.75),
        (reference("0", level=4), "0.005", 0.75),
        (reference("100"), "100.9", 1),
        (reference("100"), "102", 0),
        (reference("100"), "between 90 and 110", 0),
        (reference("−3.5", level=4), "-3.5 %", 1),
        (reference("X", "Y", "Z", level=3), "1. X\n2. Y\n3. Z", 1),
        (reference("X", "Y", "Z", level=3), "X, Z, Y", 0.8),
        (reference("X", "Y", "Z", level=3), "X, Y", 0.8 * 2 / 3),
        (reference("X; Y", level=4), "Y; X", 0.8),
        (reference("Kylian Mbappé", level=3), "kylian mbappe", 1),
        (reference("The Guardian"), "Guardian", 1),
        (reference("Paris"), "the city of Paris", 0),
        (reference("Paris"), "", 0),
    ],
)
def test_an_answer_scores_by_the_rule_of_its_question(right: Reference, answer: str, score: float) -> None:
    assert score_answer(right, answer).score == pytest.approx(score)


def test_only_texts_that_differ_are_left_to_a_judge() -> None:
    left = {
        (right.answers, answer)
        for right, answer in [
            (reference("Paris"), "Lyon"),
            (reference("Paris"), "paris"),
            (reference("7"), "8"),
            (reference("A", options=True, level=1), "B"),
            (reference("X", "Y", level=3), "X; Z"),
            (reference("Paris"), ""),
        ]
        if not score_answer(right, answer).comparable
    }
    assert left == {(("Paris",), "Lyon"), (("X", "Y"), "X; Z")}


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(0.1, 1e5))
def test_the_score_of_a_number_falls_with_its_error_and_stays_within_0_and_1(
    truth: float, error: float, spread: float
) -> None:
    right = reference(f"{truth:.6f}", spread=spread, level=4)
    near, far = (score_answer(right, f"{truth + share * error:.6f}").score for share in (0.5, 1.0))
    assert 0 <= far <= near + 1e-6 <= 1 + 2e-6


def test_the_total_weighs_the_levels_that_occur() -> None:
    scored = [
        score_answer(reference("A", options=True, level=1), "A"),
        score_answer(reference("A", options=True, level=1), "B"),
        score_answer(reference("100", level=4), "100"),
    ]
    assert total_score(scored) == pytest.approx((0.1 * 0.5 + 0.4 * 1) / 0.5)
    assert total_score([score_answer(reference("x"), "x"), score_answer(reference("x"), "y")]) == 0.5


def test_probabilities_choose_the_likeliest_option_or_all_that_are_likely() -> None:
    targets = tuple(Target(id=letter) for letter in "ABC")
    several = Question(id="q", source="s", text="?", due="2026-01-01", targets=targets)
    single = Question(id="q", source="s", text="?", due="2026-01-01", targets=targets, exclusivity="exactly one")
    binary = Question(id="q", source="s", text="?", due="2026-01-01")
    p = {"A": 0.6, "B": 0.7, "C": 0.1}
    assert chosen_options(several, p) == "A, B"
    assert chosen_options(several, dict.fromkeys("ABC", 0.1)) == "A"
    assert chosen_options(single, p) == "B"
    assert (chosen_options(binary, {"yes": 0.5}), chosen_options(binary, {"yes": 0.4})) == ("Yes", "No")


@pytest.mark.parametrize(
    ("reasons", "answer"),
    [
        ("I think so.\nAnswer: Paris", "Paris"),
        ("First answer: no.\n**Final answer:** `Paris`\nDone.", "Paris"),
        ("Answer: X; Y", "X; Y"),
        ("He leads by far. Answer: Paris", "Paris"),
        ("Answer: Paris\n\nFor:\n- Answer: Lyon, it says [search_1]", "Paris"),
        (r"It is \boxed{12.5}.", "12.5"),
        ("The answer is Paris.", ""),
    ],
)
def test_the_stated_answer_is_found_in_the_reasons(reasons: str, answer: str) -> None:
    assert stated_answer(reasons) == answer
