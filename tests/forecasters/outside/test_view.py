import asyncio
from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.forecasters.base_rates.outside_fit import fit_outside
from foretell.forecasters.base_rates.outside_view import OutsideView
from foretell.forecasters.base_rates.past import Past, PastQuestions
from foretell.forecasters.forecaster import CannotForecast, Context
from foretell.questions.as_of import AsOf
from foretell.questions.question import LastValue, Question, Snapshot, Target

NOW = AsOf(at="2027-03-01T12:00:00Z", mode="live")


def make_question(text: str, *, due: str = "2027-03-01", by: str | None = None, source: str = "asked") -> Question:
    targets = (Target(id="yes", resolves_at=by),)
    return Question(id="new", source=source, text=text, due=due, closes_at=by, targets=targets)


def probability(view: OutsideView, question: Question, as_of: AsOf = NOW, past: Past | None = None) -> float:
    return asyncio.run(view.forecast(question, Context(as_of=as_of, past=past or Past()))).p["yes"]


FREE = ["Will it snow in Oslo?", "?", "Ist das wahr", "x" * 5000, "‹date›", "Will A & B merge by 2031?\n\nDetails."]


@pytest.mark.parametrize("text", FREE)
def test_unusual_questions_get_a_probability(text: str) -> None:
    p = probability(OutsideView(), make_question(text))
    assert 0.01 < p < 0.9


@given(text=st.text(min_size=1, max_size=60))
@settings(max_examples=30)
def test_any_text_gets_a_probability(text: str) -> None:
    assert 0 < probability(OutsideView(), make_question(text)) < 1


TEMPLATES = ("Will Ada resign {} {}?", "Ada trillionaire {} {}?", "Will at least 3 comets be seen {} {}, says NASA?")
STAYING = ("Will Ada remain chancellor {} {}?", "Will there be no eclipse {} {}?", "Will Ada still lead {} {}?")
SPANS = st.lists(st.integers(1, 12_000), min_size=2, max_size=6, unique=True)


def over_deadlines(
    view: OutsideView, template: str, word: str, spans: list[int], as_of: AsOf, past: Past | None = None
) -> list[float]:
    due = as_of.at.date()
    ends = [due + timedelta(days=span) for span in sorted(spans)]
    texts = [template.format(word, f"{end.day} {end:%B} {end.year}") for end in ends]
    return [probability(view, make_question(text, due=due.isoformat()), as_of, past) for text in texts]


@given(template=st.sampled_from(TEMPLATES), word=st.sampled_from(["by", "before", "until"]), spans=SPANS)
@settings(max_examples=30)
def test_later_deadline_never_makes_an_event_less_likely(template: str, word: str, spans: list[int]) -> None:
    p = over_deadlines(OutsideView(), template, word, spans, NOW)
    assert p == sorted(p)


@given(template=st.sampled_from(STAYING), word=st.sampled_from(["by", "before", "until"]), spans=SPANS)
@settings(max_examples=30)
def test_later_deadline_never_makes_a_lasting_state_more_likely(template: str, word: str, spans: list[int]) -> None:
    p = over_deadlines(OutsideView(), template, word, spans, NOW)
    assert p == sorted(p, reverse=True)


@given(spans=SPANS, template=st.sampled_from(TEMPLATES))
@settings(max_examples=15)
def test_later_deadline_never_lowers_the_probability_of_a_fitted_model(
    spans: list[int], template: str, parade_past: Past
) -> None:
    p = over_deadlines(OutsideView(), template, "by", spans, AsOf.day("2025-12-31"), parade_past)
    assert p == sorted(p)


def test_later_resolution_date_never_makes_an_event_less_likely() -> None:
    p = [
        probability(OutsideView(), make_question("Will it snow in Oslo?", by=f"{year}-06-01"))
        for year in range(2027, 2040)
    ]
    assert p == sorted(p)
    assert p[-1] > p[0]


def test_shipped_model_refuses_questions_before_its_last_outcome() -> None:
    question = make_question("Will it rain?", due="2025-10-26")
    with pytest.raises(CannotForecast, match="fitted on outcomes up to"):
        probability(OutsideView(), question, question.as_of)
    after = make_question("Will it rain?", due="2027-01-01")
    assert 0 < probability(OutsideView(), after, after.as_of) < 1


def test_question_of_the_training_data_is_refused(parade_bank: PastQuestions) -> None:
    model = fit_outside(parade_bank, AsOf.day("2025-12-31"), strength=3.0)
    blind = replace(model, record=replace(model.record, last_known=None))
    id = str(parade_bank.id[0])
    question = Question(id=id, source="polymarket", text="?", due="2025-01-05", targets=(Target(id="yes"),))
    with pytest.raises(CannotForecast, match="fitted on this asking"):
        probability(OutsideView(model=blind), question, question.as_of)


def test_model_of_a_backtest_is_fitted_once_for_each_day(parade_bank: PastQuestions) -> None:
    past, fitted = Past.of_table(parade_bank), ("outside view", date(2025, 6, 15))
    question = make_question("Will a parade be seen over Lima by 1 August 2025?", due="2025-06-15", source="polymarket")
    p = probability(OutsideView(), question, question.as_of, past)
    assert p > 0.4
    model = past.cached(fitted, lambda: None)
    assert model is not None
    # With a later cutoff, a question still uses only what was known when it was asked.
    assert probability(OutsideView(), question, AsOf.day("2025-12-31"), past) == p
    assert past.cached(fitted, lambda: None) is model


def test_price_of_the_question_is_not_used(parade_past: Past) -> None:
    question = make_question("Will a parade be seen over Lima by 1 August 2025?", due="2025-06-15")
    priced = replace(question, targets=(Target(id="yes", snapshot=Snapshot(at="2025-06-15", last_price=0.99)),))
    view = OutsideView()
    assert probability(view, question, question.as_of, parade_past) == probability(
        view, priced, question.as_of, parade_past
    )


def test_exclusive_options_sum_to_one() -> None:
    targets = tuple(Target(id=name, label=name) for name in ("Ada", "Bert", "Cleo"))
    question = Question(
        id="q", source="own", text="Who wins?", due="2027-03-01", targets=targets, exclusivity="exactly one"
    )
    p = asyncio.run(OutsideView().forecast(question, Context(as_of=NOW))).p
    assert sum(p.values()) == pytest.approx(1.0)


def test_data_set_questions_get_the_rate_of_their_class() -> None:
    targets = (Target(id="a", resolves_at="2027-03-08"), Target(id="b", resolves_at="2027-08-28"))

    def rate(source: str, subtype: str, value: float | None = None) -> float:
        last = None if value is None else LastValue(value=value, at="2027-02-20")
        question = Question(
            id="d", source=source, subtype=subtype, kind="dataset", text="?", due="2027-03-01", targets=targets,
            last_value=last,
        )  # fmt: skip
        return asyncio.run(OutsideView().forecast(question, Context(as_of=NOW))).p["a"]

    assert rate("wikipedia", "vaccine") < 0.05
    assert rate("wikipedia", "swimming") > 0.9
    assert rate("acled", "increase", 0.0) < 0.15 < 0.3 < rate("acled", "increase", 20.0)
    assert 0 < rate("never seen", "all") < 1


def test_rationale_names_reasons_and_the_reference_class(parade_past: Past) -> None:
    question = make_question("Will a parade be seen over Lima by 1 August 2025?", due="2025-06-15", source="polymarket")
    backtest = asyncio.run(OutsideView().forecast(question, Context(as_of=question.as_of, past=parade_past)))
    assert "Questions of polymarket resolve yes" in backtest.rationale
    assert "parade" in backtest.rationale
    assert "most similar questions" in backtest.rationale
    live = asyncio.run(OutsideView().forecast(make_question("Will it rain?"), Context(as_of=NOW)))
    assert "Market questions in general resolve yes" in live.rationale
    assert "No deadline is named." in live.rationale
