"""Three arms on the same questions, and what leaks can be worth at most."""

import asyncio
from dataclasses import replace

import pytest

from foretell.models.providers import ScriptedModel
from foretell.questions import Forecast, InputError, Question, Resolution, Target
from foretell.scoring import outcome_rows
from foretell.scoring.bootstrap_options import BootstrapOptions
from foretell.studies.audit import Auditor, AuditPassage, AuditScope, ShownMaterial, TextLocation, audit_material
from foretell.studies.audit.leakage import LeakExposure, estimate_leakage, leak_exposure

COUNT = 40
QUESTIONS = [
    Question(id=f"q{n}", source="own", text="?", due="2025-10-26", targets=(Target(id="yes"),)) for n in range(COUNT)
]
OUTCOMES = outcome_rows(
    QUESTIONS, [Resolution(question_id=f"q{n}", target_id="yes", outcome=n % 2) for n in range(COUNT)]
)
FAST = BootstrapOptions(draws=300)


def arm(right, questions=QUESTIONS):
    """Gives the right answer this probability, everywhere or question by question."""
    given = right if callable(right) else lambda n: right
    return [
        Forecast(
            question_id=q.id,
            forecaster="full",
            as_of=q.as_of,
            p={"yes": given(n) if n % 2 else 1 - given(n)},
        )
        for n, q in enumerate(questions)
    ]


def asked(n):
    return QUESTIONS[n].id, QUESTIONS[n].due.isoformat()


def test_the_bound_by_hand():
    """Losses 0.25, 0.16 and 0.01 are the same on every question, so intervals have no width."""
    exposure = LeakExposure(share=0.05, at_most=0.1, touched=frozenset({asked(0), asked(1)}))
    arms = {"this run": arm(0.6), "no tools": arm(0.5), "no filter": arm(0.9)}
    found = estimate_leakage(arms, QUESTIONS, OUTCOMES, exposure, FAST)
    assert found.n == COUNT
    assert found.lead.brier.diff == pytest.approx(-0.09)
    assert found.gain.brier.diff == pytest.approx(-0.15)
    assert found.future.brier.diff == pytest.approx(-0.24)
    assert found.own_brier == pytest.approx(0.16)
    assert found.bound.brier == pytest.approx(0.1 * 0.24, abs=1e-6)
    assert found.bound.share_of_lead == pytest.approx(0.024 / 0.09, abs=1e-5)
    assert found.bound.index == pytest.approx(100 * (0.184**0.5 - 0.4), abs=1e-4)
    assert found.untouched.brier.n == COUNT - 2
    assert found.untouched.brier.diff == pytest.approx(-0.09)
    assert "at most 0.0240 of the score" in str(found)
    assert "The lead is larger than that, even at the low end" in str(found)


def test_a_lead_earned_only_where_leaks_were_seen_is_gone_on_the_rest():
    hit = {asked(n) for n in range(10)}
    arms = {"this run": arm(lambda n: 0.95 if n < 10 else 0.5), "no tools": arm(0.5), "no filter": arm(0.95)}
    found = estimate_leakage(
        arms, QUESTIONS, OUTCOMES, LeakExposure(share=0.25, at_most=0.4, touched=frozenset(hit)), FAST
    )
    assert found.lead.brier.diff < -0.05
    assert found.untouched.brier.diff == pytest.approx(0)
    assert found.bound.share_of_lead > 1
    assert "does not clear it" in str(found)
    assert str(found).startswith(found.lead.brier.sentence)
    assert "Where no leak was seen: this run and no tools score the same on the 30 targets both answered." in str(found)


def test_without_a_lead_there_is_nothing_to_explain():
    arms = {"this run": arm(0.4), "no tools": arm(0.5), "no filter": arm(0.9)}
    found = estimate_leakage(arms, QUESTIONS, OUTCOMES, LeakExposure(share=0, at_most=0.1), FAST)
    assert found.bound.share_of_lead is None
    assert "no lead" in str(found)


def test_an_unfenced_run_that_gains_nothing_leaves_nothing_to_leak():
    arms = {"this run": arm(0.6), "no tools": arm(0.6), "no filter": arm(0.5)}
    found = estimate_leakage(arms, QUESTIONS, OUTCOMES, LeakExposure(share=0, at_most=0.5), FAST)
    assert found.bound.brier == 0


def test_an_unfenced_run_that_does_worse_does_not_shrink_the_bound():
    arms = {"this run": arm(0.8), "no tools": arm(0.5), "no filter": arm(0.5)}
    found = estimate_leakage(arms, QUESTIONS, OUTCOMES, LeakExposure(share=0, at_most=0.5), FAST)
    assert found.bound.brier == pytest.approx(0.5 * (0.25 - 0.04), abs=1e-6)


def test_only_targets_that_all_arms_answered_count_and_two_arms_give_no_bound():
    arms = {"this run": arm(0.6), "no tools": arm(0.5)[:30], "no filter": arm(0.9)[10:]}
    found = estimate_leakage(arms, QUESTIONS, OUTCOMES, LeakExposure(share=0, at_most=0.1), FAST)
    assert found.n == found.lead.brier.n == found.gain.brier.n == 20
    two = estimate_leakage(
        {"this run": arm(0.6), "no tools": arm(0.5)}, QUESTIONS, OUTCOMES, LeakExposure(share=0, at_most=0), FAST
    )
    assert two.bound is None
    assert two.gain is None
    with pytest.raises(InputError, match="share no resolved target"):
        estimate_leakage(
            {"this run": arm(0.6)[:5], "no tools": arm(0.5)[5:]}, QUESTIONS, OUTCOMES, LeakExposure(share=0, at_most=0)
        )


def test_everything_touched_leaves_no_clean_lead():
    touched = frozenset(asked(n) for n in range(COUNT))
    arms = {"this run": arm(0.6), "no tools": arm(0.5)}
    assert (
        estimate_leakage(arms, QUESTIONS, OUTCOMES, LeakExposure(share=1, at_most=1, touched=touched), FAST).untouched
        is None
    )


def judged(leaks, sample=None):
    """One text per question, some of them leaks."""
    passages = [
        AuditPassage(
            asked=asked(n),
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

    scope = AuditScope(questions={asked(n): replace(q, text="") for n, q in enumerate(QUESTIONS)})
    auditor = Auditor(model=ScriptedModel(reply), name="scripted:x")
    return asyncio.run(audit_material(ShownMaterial(passages=tuple(passages)), scope, auditor, sample=sample))


def test_exposure_counts_questions_and_takes_the_careful_end():
    found = leak_exposure(judged(4))
    assert found.share == pytest.approx(0.1)
    assert found.at_most == pytest.approx(judged(4).exposed.cluster_high)
    assert found.touched == {asked(n) for n in range(4)}
    assert leak_exposure(judged(0)).at_most > 0.05, "none seen in forty is not none"


def test_a_sample_gives_a_wider_exposure_and_no_clean_lead():
    whole, part = leak_exposure(judged(4)), leak_exposure(judged(4, sample=20))
    assert not part.whole
    assert part.at_most > whole.at_most
    arms = {"this run": arm(0.6), "no tools": arm(0.5)}
    assert estimate_leakage(arms, QUESTIONS, OUTCOMES, part, FAST).untouched is None
