"""Simulated grounders and synthesizers err as they are told to, and no more."""

import numpy as np
import pytest

from foretell.metrics import Floats
from foretell.studies.trees import (
    DIRECT,
    RULES,
    NoiseStreams,
    SimulatedGrounder,
    SimulatedMethod,
    SimulatedSynthesizer,
    Simulation,
    simulate,
)

PERFECT = SimulatedGrounder(bias=0, slant=0, sd=0)
SURE = SimulatedSynthesizer(noise=0, judgement=0)


def said(grounder: SimulatedGrounder, run: int = 0, *, factor: float = 1.0) -> Floats:
    return grounder.estimate(np.full((4000, 3), 0.5), NoiseStreams.of(1, 2, run), factor=factor)


def test_bias_slant_and_spread_are_those_that_were_set():
    grounder = SimulatedGrounder(bias=0.02, slant=0.05, sd=0.08)
    runs = np.stack([said(grounder, run) for run in range(20)])
    assert runs.mean() == pytest.approx(0.52, abs=0.002)
    assert runs.var(axis=0, ddof=1).mean() == pytest.approx(0.08**2, rel=0.02)
    lasting = runs.mean(axis=0).var() - 0.08**2 / 20
    assert lasting == pytest.approx(0.05**2, rel=0.05)


def between(off: Floats) -> Floats:
    """Correlations of all pairs of claims."""
    return np.asarray(np.corrcoef(off.T))[np.triu_indices(3, 1)]


def test_errors_of_the_claims_of_one_question_are_correlated_as_set():
    off = said(SimulatedGrounder(bias=0, slant=0, sd=0.08, correlation=0.6)) - 0.5
    assert between(off) == pytest.approx(np.full(3, 0.6), abs=0.03)
    alone = said(SimulatedGrounder(bias=0, slant=0, sd=0.08)) - 0.5
    assert np.abs(between(alone)).max() < 0.05


def test_harder_claims_have_larger_errors_and_answers_stay_chances():
    grounder = SimulatedGrounder(bias=0.01, slant=0, sd=0.05)
    easy, hard = said(grounder) - 0.5, said(grounder, factor=2.0) - 0.5
    assert hard == pytest.approx(2 * easy)
    wild = said(SimulatedGrounder(sd=3.0))
    assert ((wild >= 0) & (wild <= 1)).all()


@pytest.mark.parametrize("wrong", [{"sd": -0.1}, {"correlation": 1.1}, {"harder": -1}])
def test_grounders_that_cannot_be(wrong: dict[str, float]):
    with pytest.raises(ValueError, match="a grounder needs"):
        SimulatedGrounder(**wrong)
    with pytest.raises(ValueError, match="there is no rule"):
        SimulatedMethod(name="x", rule="astrology")


def test_without_errors_the_rule_of_the_worlds_own_kind_and_the_grounder_say_the_truth():
    scene = Simulation(worlds=2, questions=40, runs=2)
    methods = [
        SimulatedMethod(name="alone", rule=DIRECT, grounder=PERFECT),
        SimulatedMethod(name="linear", rule="linear", grounder=PERFECT, synthesizer=SURE),
        SimulatedMethod(
            name="judge", rule="vanilla", grounder=PERFECT, synthesizer=SimulatedSynthesizer(noise=0, judgement=0)
        ),
    ]
    played = simulate(scene, methods)
    first = played.world == 0
    assert scene.kinds[0] == "linear"
    assert played.forecasts["alone"] == pytest.approx(np.stack([played.truth] * 2))
    assert played.forecasts["linear"][:, first] == pytest.approx(np.stack([played.truth[first]] * 2), abs=1e-6)
    assert played.forecasts["judge"][:, first] == pytest.approx(np.stack([played.truth[first]] * 2), abs=1e-6)


def test_asking_ten_times_takes_nine_tenths_of_the_chance_and_none_of_the_slant():
    grounder = SimulatedGrounder(bias=0, slant=0.05, sd=0.05, harder=1.0)
    alone = SimulatedMethod(name="1", rule=DIRECT, grounder=grounder)
    scene = Simulation(worlds=10, questions=200, runs=8)
    many = SimulatedMethod(name="10", rule=DIRECT, grounder=grounder, repeats=10)
    played = simulate(scene, [alone, many])
    inside = (played.truth > 0.3) & (played.truth < 0.7)
    one, ten = (played.forecasts[name][:, inside] for name in ("1", "10"))
    assert ten.var(axis=0, ddof=1).mean() / one.var(axis=0, ddof=1).mean() == pytest.approx(0.1, abs=0.01)
    lasting = (ten.mean(axis=0) - played.truth[inside]).var()
    assert lasting == pytest.approx(0.05**2 + 0.05**2 / 80, rel=0.1)


def test_an_analyzer_who_sees_nothing_says_the_same_of_every_question():
    blind = SimulatedMethod(name="blind", seen=0.0, grounder=PERFECT, synthesizer=SURE)
    played = simulate(Simulation(worlds=1, questions=30, runs=1), [blind])
    assert np.ptp(played.forecasts["blind"]) == pytest.approx(0, abs=1e-12)


def test_played_runs_are_tables_that_other_studies_read():
    played = simulate(
        Simulation(worlds=3, questions=5, runs=4), [SimulatedMethod(name="m", rule=rule) for rule in RULES[:1]]
    )
    table = played.tables["m"]
    assert table.rows.trials.shape == (4, 15)
    assert sorted(set(table.rows.cluster)) == ["w0", "w1", "w2"]
    assert set(table.outcome) <= {0.0, 1.0}
