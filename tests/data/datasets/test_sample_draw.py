"""Properties of drawing samples; the samples of the paper are in tests/golden."""

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.data.datasets.question_set import QuestionSet
from foretell.data.datasets.samples import SamplePlan, build_sample, shares, shuffled
from foretell.questions.as_of import instant
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution

DUE = instant("2025-10-26")
PLAN = SamplePlan(due=DUE, resolved_by=instant("2026-04-10"), per_dataset_source=2)


def question(source: str, name: str, kind: str = "dataset") -> Question:
    return Question(id=f"{source}/{name}", source=source, text="?", due=DUE, kind=kind, targets=(Target(id="t"),))


def pool(sizes: dict[str, int], *, day: str = "2025-11-02", result: int | None = 1) -> QuestionSet:
    questions = tuple(
        question(source, f"{n:03}", "market" if source.startswith("m") else "dataset")
        for source, size in sizes.items()
        for n in range(size)
    )
    resolutions = tuple(
        Resolution(question_id=q.id, target_id="t", due=DUE, outcome=result, resolved_at=instant(day))
        for q in questions
    )
    return QuestionSet(name="pool", questions=questions, resolutions=resolutions)


def test_a_sample_has_all_market_questions_and_a_few_of_each_data_source() -> None:
    sample = build_sample(pool({"fred": 5, "acled": 3, "m1": 4}), PLAN)
    assert [q.source for q in sample.questions] == ["acled"] * 2 + ["fred"] * 2 + ["m1"] * 4
    assert len(sample.outcomes()) == 8
    assert sample.notes == ("4 resolved questions not drawn",)


def test_the_generator_is_seeded_again_for_each_source() -> None:
    questions = build_sample(pool({"fred": 9}), PLAN).questions
    two = build_sample(pool({"acled": 7, "fred": 9}), PLAN).questions
    assert [q.id for q in questions] == [q.id for q in two if q.source == "fred"]


def test_the_order_in_the_file_does_not_matter() -> None:
    base = pool({"fred": 9})
    turned = QuestionSet(name="pool", questions=base.questions[::-1], resolutions=base.resolutions)
    assert build_sample(base, PLAN).questions == build_sample(turned, PLAN).questions


def test_ids_are_sorted_with_their_date_appended() -> None:
    """'DTB1YR_…' comes before 'DTB1_…', like the study's file names."""
    pair = [question("fred", "DTB1"), question("fred", "DTB1YR")]
    assert sorted(q.id for q in pair) == ["fred/DTB1", "fred/DTB1YR"]
    unshuffled = next(seed for seed in range(99) if shuffled(pair, seed)[0].id == "fred/DTB1YR")
    other = next(seed for seed in range(99) if shuffled(pair, seed)[0].id == "fred/DTB1")
    a, b = question("fred", "A"), question("fred", "B")
    assert [q.id for q in shuffled([a, b], unshuffled)] == ["fred/A", "fred/B"]
    assert [q.id for q in shuffled([a, b], other)] == ["fred/B", "fred/A"]


def test_only_questions_resolved_in_time_are_drawn() -> None:
    too_late = pool({"fred": 3}, day="2026-04-11")
    assert build_sample(too_late, PLAN).questions == ()
    assert build_sample(too_late, PLAN).notes == ("3 questions not resolved in time",)
    assert len(build_sample(pool({"fred": 3}, day="2026-04-10"), PLAN).questions) == 2
    assert build_sample(pool({"fred": 3}, result=None), PLAN).questions == ()


def test_other_rounds_and_excluded_ids_are_not_drawn() -> None:
    base = pool({"fred": 3})
    plan = SamplePlan(due=DUE, resolved_by=PLAN.resolved_by, without=frozenset({"fred/001"}))
    assert {q.id for q in build_sample(base, plan).questions} == {"fred/000", "fred/002"}
    other = SamplePlan(due=DUE + timedelta(days=14), resolved_by=PLAN.resolved_by)
    assert build_sample(base, other).questions == ()


def test_a_maximum_of_market_questions_is_divided_by_size() -> None:
    plan = SamplePlan(due=DUE, resolved_by=PLAN.resolved_by, markets=10)
    questions = build_sample(pool({"m1": 60, "m2": 20, "m3": 20}), plan).questions
    assert [sum(q.source == s for q in questions) for s in ("m1", "m2", "m3")] == [6, 2, 2]


@settings(max_examples=100)
@given(st.dictionaries(st.text(max_size=3), st.integers(0, 40), max_size=6), st.integers(0, 120))
def test_shares_sum_to_the_total_and_never_exceed_a_group(sizes: dict[str, int], total: int) -> None:
    parts = shares(sizes, total)
    assert sum(parts.values()) == min(total, sum(sizes.values()))
    assert all(0 <= parts[name] <= size for name, size in sizes.items())


def test_dates_of_a_plan_may_be_text() -> None:
    plan = SamplePlan(due="2025-10-26", resolved_by="2026-04-10")
    assert plan.due == DUE
    with pytest.raises(ValueError, match="ISO"):
        SamplePlan(due="soon", resolved_by="2026-04-10")
