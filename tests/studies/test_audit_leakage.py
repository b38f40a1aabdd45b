"""Three arms on the same questions, and the upper bound on the gain from leaks."""

import asyncio
from dataclasses import replace

import pytest

from foretell.models.providers.scripted import ScriptedModel
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution
from foretell.scoring.bootstrap_options import BootstrapOptions
from foretell.scoring.long_tables import outcome_rows
from foretell.studies.audit.auditor import Auditor
from foretell.studies.audit.leakage import LeakExposure, estimate_leakage, leak_exposure
from foretell.studies.audit.passages import AuditPassage, AuditScope, ShownMaterial, TextLocation, audit_material

COUNT = 40
QUESTIONS = [
    Question(id=f"q{n}", source="own", text="?", due="2025-10-26", targets=(Target(id="yes"),)) for n in range(COUNT)
]
OUTCOMES = outcome_rows(
    QUESTIONS, [Resolution(question_id=f"q{n}", target_id="yes", outcome=n % 2) for n in range(COUNT)]
)
FAST = BootstrapOptions(draws=300)


def arm(right, questions=QUESTIONS):
    """Return forecasts that give the right answer this probability, everywhere or by question."""
    p_of = right if callable(right) else lambda n: right
    return [
        Forecast(
            question_id=q.id,
            forecaster="full",
            as_of=q.as_of,
            p={"yes": p_of(n) if n % 2 else 1 - p_of(n)},
        )
        for n, q in enumerate(questions)
    ]


def key_of(n):
    return QUESTIONS[n].id, QUESTIONS[n].due.isoformat()


def test_leak_bound_matches_hand_computation():
    """Losses 0.25, 0.16 and 0.01 are the same on every question, so intervals have no width."""
    exposure = LeakExposure(share=0.05, at_most=0.1, touched=frozenset({key_of(0), key_of(1)}))
    arms = {"this run": arm(0.6), "no tools": arm(0.5), "no filter": arm(0.9)}
    estimate = estimate_leakage(arms, QUESTIONS, OUTCOMES, exposure, FAST)
    assert estimate.n == COUNT
    assert estimate.lead.brier.diff == pytest.approx(-0.09)
    assert estimate.gain.brier.diff == pytest.approx(-0.15)
    assert estimate.future.brier.diff == pytest.approx(-0.24)
    assert estimate.own_brier == pytest.approx(0.16)
    assert estimate.bound.brier == pytest.approx(0.1 * 0.24, abs=1e-6)
    assert estimate.bound.share_of_lead == pytest.approx(0.024 / 0.09, abs=1e-5)
    assert estimate.bound.index == pytest.approx(100 * (0.184**0.5 - 0.4), abs=1e-4)
    assert estimate.untouched.brier.n == COUNT - 2
    assert estimate.untouched.brier.diff == pytest.approx(-0.09)
    assert "at most 0.0240 of the score" in str(estimate)
    assert "The lead is larger than that, even at the low end" in str(estimate)


def test_lead_from_leaked_questions_vanishes_on_the_others():
    hit = {key_of(n) for n in range(10)}
    arms = {"this run": arm(lambda n: 0.95 if n < 10 else 0.5), "no tools": arm(0.5), "no filter": arm(0.95)}
    estimate = estimate_leakage(
        arms, QUESTIONS, OUTCOMES, LeakExposure(share=0.25, at_most=0.4, touched=frozenset(hit)), FAST
    )
    assert estimate.lead.brier.diff < -0.05
    assert estimate.untouched.brier.diff == pytest.approx(0)
    assert estimate.bound.share_of_lead > 1
    assert "cannot rule out leakage" in str(estimate)
    assert str(estimate).startswith(estimate.lead.brier.sentence)
    assert estimate.untouched.brier.sentence in str(estimate)


def test_without_a_lead_the_bound_has_no_share_of_it():
    arms = {"this run": arm(0.4), "no tools": arm(0.5), "no filter": arm(0.9)}
    estimate = estimate_leakage(arms, QUESTIONS, OUTCOMES, LeakExposure(share=0, at_most=0.1), FAST)
    assert estimate.bound.share_of_lead is None
    assert "no lead" in str(estimate)


def test_bound_is_zero_if_the_unfiltered_run_gains_nothing():
    arms = {"this run": arm(0.6), "no tools": arm(0.6), "no filter": arm(0.5)}
    estimate = estimate_leakage(arms, QUESTIONS, OUTCOMES, LeakExposure(share=0, at_most=0.5), FAST)
    assert estimate.bound.brier == 0


def test_an_unfiltered_run_that_does_worse_does_not_shrink_the_bound():
    arms = {"this run": arm(0.8), "no tools": arm(0.5), "no filter": arm(0.5)}
    estimate = estimate_leakage(arms, QUESTIONS, OUTCOMES, LeakExposure(share=0, at_most=0.5), FAST)
    assert estimate.bound.brier == pytest.approx(0.5 * (0.25 - 0.04), abs=1e-6)


def test_only_targets_that_all_arms_answered_count_and_two_arms_give_no_bound():
    arms = {"this run": arm(0.6), "no tools": arm(0.5)[:30], "no filter": arm(0.9)[10:]}
    estimate = estimate_leakage(arms, QUESTIONS, OUTCOMES, LeakExposure(share=0, at_most=0.1), FAST)
    assert estimate.n == estimate.lead.brier.n == estimate.gain.brier.n == 20
    two = estimate_leakage(
        {"this run": arm(0.6), "no tools": arm(0.5)}, QUESTIONS, OUTCOMES, LeakExposure(share=0, at_most=0), FAST
    )
    assert two.bound is None
    assert two.gain is None
    with pytest.raises(InputError, match="share no resolved target"):
        estimate_leakage(
            {"this run": arm(0.6)[:5], "no tools": arm(0.5)[5:]}, QUESTIONS, OUTCOMES, LeakExposure(share=0, at_most=0)
        )


def test_no_clean_lead_if_every_question_saw_a_leak():
    touched = frozenset(key_of(n) for n in range(COUNT))
    arms = {"this run": arm(0.6), "no tools": arm(0.5)}
    assert (
        estimate_leakage(arms, QUESTIONS, OUTCOMES, LeakExposure(share=1, at_most=1, touched=touched), FAST).untouched
        is None
    )


def judged(leaks, sample=None):
    """Return an audit with one text per question, some of them leaks."""
    passages = [
        AuditPassage(
            asked=key_of(n),
            decision="kept",
            tool="web_search",
            title=f"{n}",
            text="LEAK" if n < leaks else "fine",
            seen=(TextLocation(trial=0, step=1),),
        )
        for n in range(COUNT)
    ]

    def reply(request):
        import json

        texts = json.loads(request.messages[-1].text.partition("Texts:\n")[2])
        rows = [{"id": t["id"], "verdict": "leak" if "LEAK" in t["text"] else "clean"} for t in texts]
        return json.dumps({"verdicts": rows})

    scope = AuditScope(questions={key_of(n): replace(q, text="") for n, q in enumerate(QUESTIONS)})
    auditor = Auditor(model=ScriptedModel(reply), name="scripted:x")
    return asyncio.run(audit_material(ShownMaterial(passages=tuple(passages)), scope, auditor, sample=sample))


def test_exposure_counts_questions_and_uses_the_upper_end():
    exposure = leak_exposure(judged(4))
    assert exposure.share == pytest.approx(0.1)
    assert exposure.at_most == pytest.approx(judged(4).exposed.cluster_high)
    assert exposure.touched == {key_of(n) for n in range(4)}
    assert leak_exposure(judged(0)).at_most > 0.05, "none in forty does not prove that there are none"


def test_a_sample_gives_a_wider_exposure_and_no_clean_lead():
    whole, part = leak_exposure(judged(4)), leak_exposure(judged(4, sample=20))
    assert not part.whole
    assert part.at_most > whole.at_most
    arms = {"this run": arm(0.6), "no tools": arm(0.5)}
    assert estimate_leakage(arms, QUESTIONS, OUTCOMES, part, FAST).untouched is None
