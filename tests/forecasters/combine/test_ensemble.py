"""Ensembles: missing answers, documented weights, selection tested on later rounds, training overlap."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.forecasters.combine.crossfit import gain
from foretell.forecasters.combine.ensemble import (
    BestSoFar,
    Ensemble,
    EqualWeights,
    GreedySelection,
    PooledWeights,
    SkillWeights,
    greedy_path,
    side_by_side,
    weighted,
)
from foretell.forecasters.combine.rows import Examples, TrialRows
from foretell.forecasters.combine.rules import Training, TrainingOverlap, apply
from foretell.metrics import ResamplingDesign, brier_index_from_sums, compare_paired
from foretell.metrics.transforms import logit, sigmoid

ROUNDS = np.array(["2025-01-01", "2025-03-01", "2025-05-01", "2025-07-01"], dtype="M8[D]")


def rows_of(p, due=None, question=None, target=None):
    p = np.atleast_2d(np.asarray(p, float))
    n = p.shape[1]
    question = np.array([f"q{i}" for i in range(n)]) if question is None else np.asarray(question)
    text, missing = np.full(n, "s"), np.full(n, np.nan)
    return TrialRows(
        trials=p,
        question=question,
        due=np.full(n, ROUNDS[0]) if due is None else due,
        target=np.full(n, "yes") if target is None else np.asarray(target),
        source=text,
        subtype=text,
        kind=np.full(n, "market"),
        horizon=missing,
        price=missing,
        prior=missing,
        cluster=question,
    )


def world(n, *, noise, rounds=4, seed=0):
    """Return examples of members that know the true log-odds with different noise, over rounds two months apart."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(0, 1.5, n)
    outcome = (rng.uniform(size=n) < 1 / (1 + np.exp(-truth))).astype(float)
    seen = truth + rng.normal(size=(len(noise), n)) * np.asarray(noise)[:, None]
    due = np.repeat(ROUNDS[:rounds], -(-n // rounds))[:n]
    return Examples(
        rows=rows_of(1 / (1 + np.exp(-seen)), due=due),
        outcome=outcome,
        known_on=due + np.timedelta64(30, "D"),
        weight=np.ones(n),
    )


def names(examples):
    return tuple(f"m{i}" for i in range(len(examples.rows.trials)))


def test_weights_are_renormalised_over_members_with_an_answer():
    p = np.array([[0.2, np.nan, np.nan, 0.3], [0.4, 0.4, np.nan, 0.9], [0.9, 0.9, 0.7, np.nan]])
    mean = weighted(p, np.array([0.5, 0.5, 0.0]), "probability")
    assert mean == pytest.approx([0.3, 0.4, 0.7, 0.6])
    assert np.isnan(weighted(np.full((2, 1), np.nan), np.array([1.0, 0.0]), "logit")).all()


@settings(max_examples=40)
@given(
    st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=5),
    st.sampled_from(["logit", "probability"]),
)
def test_ensemble_is_within_the_range_of_its_members(p, space):
    table = np.array(p)
    ensemble = replace(EqualWeights(names=tuple(map(str, range(len(p))))).fit(_empty(len(p))), space=space)
    probabilities = ensemble.probabilities(rows_of(table))
    assert (probabilities >= table.min(axis=0) - 2e-6).all()
    assert (probabilities <= table.max(axis=0) + 2e-6).all()


def _empty(members):
    nothing = rows_of(np.empty((members, 0)), due=np.empty(0, "M8[D]"))
    return Examples(rows=nothing, outcome=np.empty(0), known_on=np.empty(0, "M8[D]"), weight=np.empty(0))


@pytest.mark.parametrize("method", [SkillWeights, GreedySelection, EqualWeights, PooledWeights, BestSoFar])
def test_without_a_past_weights_are_equal(method):
    fitted = method(names=("a", "b")).fit(_empty(2))
    assert fitted.weights == (0.5, 0.5)
    assert fitted.training == Training()


@pytest.mark.parametrize("method", [SkillWeights, GreedySelection])
@pytest.mark.parametrize("outcome", [0.0, 1.0])
def test_one_class_and_equal_members_give_finite_weights(method, outcome):
    n = 12
    rows = rows_of(np.full((3, n), 0.3), due=np.repeat(ROUNDS, 3))
    examples = Examples(
        rows=rows, outcome=np.full(n, outcome), known_on=rows.due + np.timedelta64(1, "D"), weight=np.ones(n)
    )
    fitted = method(names=("a", "b", "c")).fit(examples)
    assert fitted.weights == pytest.approx((1 / 3,) * 3)


def test_skill_weights_match_the_documented_formula():
    examples = world(400, noise=[0.2, 1.0, 2.0])
    fitted = SkillWeights(names=names(examples), half_life=1e9).fit(examples)
    p, y = examples.rows.trials, examples.outcome
    together = EqualWeights(names=names(examples)).fit(examples).probabilities(examples.rows)
    excess = ((p - y) ** 2 - (together - y) ** 2).mean(axis=1)
    se2 = ((p - y) ** 2 - (together - y) ** 2).var(axis=1, ddof=1) / 400
    trust = 1 - se2.mean() / excess.var()
    expected = np.exp(-0.5 * 400 * trust * (excess - excess.mean()))
    assert fitted.weights == pytest.approx(expected / expected.sum(), abs=1e-9)
    assert fitted.weights[0] > fitted.weights[1] > fitted.weights[2]


def test_skill_weights_of_equal_members_stay_nearly_equal():
    shares = [max(SkillWeights(names=tuple("abcde")).fit(world(60, noise=[1] * 5, seed=s)).weights) for s in range(20)]
    assert np.mean(shares) < 0.35


def test_skill_weights_discount_old_rounds():
    examples = world(400, noise=[0.1, 2.0])
    flipped = examples.rows.trials.copy()
    flipped[:, 200:] = flipped[::-1, 200:]
    turned = Examples(
        rows=examples.rows.with_trials(flipped),
        outcome=examples.outcome,
        known_on=examples.known_on,
        weight=examples.weight,
    )
    fitted = SkillWeights(names=("once good", "now good"), half_life=20).fit(turned)
    assert fitted.weights[1] > 0.9


def test_greedy_path_matches_a_naive_search():
    examples = world(60, noise=[0.5, 0.8, 1.0, 1.5])
    p, y = examples.rows.trials, examples.outcome
    bag: list[int] = []
    for _ in range(6):
        losses = [np.sum((sigmoid(logit(p[[*bag, m]]).mean(axis=0)) - y) ** 2) for m in range(4)]
        bag.append(int(np.argmin(losses)))
    assert greedy_path(examples, steps=6, replacement=True) == bag
    once = greedy_path(examples, steps=9, replacement=False)
    assert sorted(once) == [0, 1, 2, 3]
    assert once[0] == bag[0]


def test_greedy_path_uses_equal_weights_where_no_chosen_member_has_an_answer():
    for seed in range(8):
        examples = world(40, noise=[0.5, 0.8, 1.0], seed=seed)
        p, y = examples.rows.trials.copy(), examples.outcome
        p[np.random.default_rng(seed).uniform(size=p.shape) < 0.4] = np.nan
        examples = replace(examples, rows=examples.rows.with_trials(p))
        answered = ~np.isnan(p).all(axis=0)
        together = sigmoid(np.nanmean(logit(p[:, answered]), axis=0))
        bag: list[int] = []
        for _ in range(4):
            losses = []
            for m in range(3):
                chosen = logit(p[[*bag, m]][:, answered])
                known = ~np.isnan(chosen).all(axis=0)
                mean = together.copy()
                mean[known] = sigmoid(np.nanmean(chosen[:, known], axis=0))
                losses.append(np.sum((mean - y[answered]) ** 2))
            bag.append(int(np.argmin(losses)))
        assert greedy_path(examples, steps=4, replacement=True) == bag


def _past(p, outcome, weight=None):
    """Return examples of one day each, with members in rows."""
    n = len(outcome)
    due = ROUNDS[0] + np.arange(n)
    weight = np.ones(n) if weight is None else np.asarray(weight, float)
    known_on = due + np.timedelta64(1, "D")
    return Examples(rows=rows_of(p, due=due), outcome=np.asarray(outcome, float), known_on=known_on, weight=weight)


def test_best_so_far_has_the_least_weighted_squared_error():
    one_large, many_small = [0.4, 1.0, 1.0], [0.64, 0.64, 0.64]  # 0.36 against 0.39; absolute errors differ likewise
    assert BestSoFar(names=("a", "b")).fit(_past([one_large, many_small], [1, 1, 1])).weights == (1.0, 0.0)
    two_small, one_middle = [0.65, 0.65, 1.0], [0.4, 1.0, 1.0]  # 0.245 against 0.36, and 0.7 against 0.6
    assert BestSoFar(names=("a", "b")).fit(_past([two_small, one_middle], [1, 1, 1])).weights == (1.0, 0.0)
    heavy = _past([two_small, one_middle], [1, 1, 1], weight=[1, 9, 1])
    assert BestSoFar(names=("a", "b")).fit(heavy).weights == (0.0, 1.0)


def test_a_missing_answer_counts_as_one_half_for_the_best_so_far():
    for other, weights in ((0.45, (1.0, 0.0)), (0.55, (0.0, 1.0))):
        assert BestSoFar(names=("a", "b")).fit(_past([[0.9, np.nan], [0.9, other]], [1, 1])).weights == weights


def test_pooled_weights_minimise_the_documented_loss():
    examples = world(300, noise=[0.3, 0.8, 1.2], seed=3)
    spread, p, y = 0.2, examples.rows.trials, examples.outcome
    x = logit(p, 1e-3).T
    days, count = np.unique(examples.known_on, return_counts=True)
    size = count[np.searchsorted(days, examples.known_on)]
    weight = 1 / (1 + (size - 1) * 0.1)  # Outcomes of one day are correlated.
    w = np.full(3, 1 / 3)
    for _ in range(50):
        q = 1 / (1 + np.exp(-x @ w))
        gradient = x.T @ (weight * (q - y)) + (w - 1 / 3) / spread**2
        w -= np.linalg.solve(x.T @ (x * (weight * q * (1 - q))[:, None]) + np.eye(3) / spread**2, gradient)
    assert (w > 0).all()
    fitted = PooledWeights(names=names(examples), spread=spread).fit(examples)
    assert fitted.weights == pytest.approx(w / w.sum(), abs=1e-8)
    assert fitted.weights[0] > fitted.weights[1] > fitted.weights[2]


def test_pooled_weights_are_never_negative():
    rng = np.random.default_rng(1)
    truth = rng.normal(0, 2, 400)
    outcome = (rng.uniform(size=400) < sigmoid(truth)).astype(float)
    # The third says the opposite of what is known.
    examples = _past(sigmoid(np.stack([truth, 0.5 * truth + rng.normal(size=400), -truth])), outcome)
    fitted = PooledWeights(names=("a", "b", "c"), spread=5.0).fit(examples)
    assert fitted.weights[2] == 0.0
    assert sum(fitted.weights) == pytest.approx(1)
    assert fitted.weights[0] > 0.5


def test_pooled_weights_are_equal_if_no_member_has_a_positive_one():
    truth = np.random.default_rng(2).normal(0, 2, 200)
    examples = _past(sigmoid(np.stack([-truth, -2 * truth])), (truth > 0).astype(float))
    assert PooledWeights(names=("a", "b"), spread=10.0).fit(examples).weights == (0.5, 0.5)


def test_a_missing_answer_counts_as_the_mean_of_the_others_in_pooled_weights():
    examples = world(120, noise=[0.3, 0.8, 1.2], seed=4)
    p = examples.rows.trials.copy()
    p[0, ::3] = np.nan
    p[:, :2] = np.nan  # A row that nobody answered has no effect.
    filled = p.copy()
    filled[0, ::3] = sigmoid(logit(p[1:, ::3]).mean(axis=0))
    gaps = PooledWeights(names=names(examples)).fit(replace(examples, rows=examples.rows.with_trials(p)))
    whole = replace(examples, rows=examples.rows.with_trials(filled)).take(np.arange(120) >= 2)
    assert gaps.weights == pytest.approx(PooledWeights(names=names(examples)).fit(whole).weights, abs=1e-6)


def test_skill_weights_count_the_clusters_of_the_member_that_answered_most():
    examples = world(400, noise=[0.2, 1.5])
    p = examples.rows.trials.copy()
    p[1, 40:] = np.nan
    part = replace(examples, rows=examples.rows.with_trials(p))
    fitted = SkillWeights(names=names(examples), half_life=1e9).fit(part)
    y, together = part.outcome, EqualWeights(names=names(part)).fit(part).probabilities(part.rows)
    gains = [gain((q - y) ** 2 - (together - y) ** 2, part.rows.cluster, np.ones(400)) for q in p]
    assert [round(each.n_clusters) for each in gains] == [400, 40]
    excess = np.array([each.mean for each in gains])
    trust = max(0.0, 1 - np.mean([each.se**2 for each in gains]) / excess.var())
    expected = np.exp(-0.5 * 400 * trust * (excess - excess.mean()))
    assert 0 < trust < 1
    assert fitted.weights == pytest.approx(expected / expected.sum(), abs=1e-6)


def test_greedy_selection_drops_bad_members_if_later_rounds_confirm_it():
    examples = world(1200, noise=[0.3, 0.3, 4.0, 4.0, 4.0])
    fitted = GreedySelection(names=names(examples)).fit(examples)
    assert sum(fitted.weights[:2]) == pytest.approx(1)
    assert "later rounds" in fitted.reason
    without = GreedySelection(names=names(examples), replacement=False).fit(examples)
    assert set(without.weights[2:]) == {0.0}


def test_greedy_selection_of_similar_members_gives_equal_weights():
    selections = [
        GreedySelection(names=tuple("abcdef")).fit(world(80, noise=[1.0] * 6, seed=s)).weights for s in range(12)
    ]
    assert sum(weights == (1 / 6,) * 6 for weights in selections) >= 9


def test_length_of_a_selection_is_tested_only_on_later_rounds(monkeypatch):
    seen = []

    def spy(examples, *, steps, replacement):
        seen.append((examples.known_on.max(), len(examples)))
        return greedy_path(examples, steps=steps, replacement=replacement)

    monkeypatch.setattr("foretell.forecasters.combine.ensemble.greedy_path", spy)
    GreedySelection(names=("a", "b", "c")).fit(world(80, noise=[0.3, 3, 3]))
    assert [n for _, n in seen[:3]] == [20, 40, 60]
    assert all(known < due for (known, _), due in zip(seen[:3], ROUNDS[1:], strict=True))


def test_single_round_is_tested_on_held_out_questions():
    examples = world(600, noise=[0.2, 4.0, 4.0], rounds=1)
    fitted = GreedySelection(names=names(examples)).fit(examples)
    assert fitted.weights[0] == 1
    assert "held-out questions" in fitted.reason


def test_applying_an_ensemble_to_training_data_raises_an_error():
    examples = world(40, noise=[0.5, 1.0])
    fitted = SkillWeights(names=names(examples)).fit(examples)
    with pytest.raises(TrainingOverlap, match="q0@2025-01-01"):
        apply(fitted, examples.rows)
    later = rows_of([[0.4], [0.6]], due=ROUNDS[3:] + np.timedelta64(31, "D"), question=["new"])
    assert np.isfinite(apply(fitted, later)).all()
    early = rows_of([[0.4], [0.6]], due=ROUNDS[:1], question=["new"])
    with pytest.raises(TrainingOverlap, match="fitted on outcomes"):
        apply(fitted, early)
    assert np.isfinite(apply(fitted, early, check="ids")).all()
    assert json.loads(json.dumps(asdict(fitted), default=str))["names"] == ["m0", "m1"]


def test_equal_weights_have_no_training_data():
    examples = world(8, noise=[0.5, 1.0])
    assert np.isfinite(apply(EqualWeights(names=names(examples)).fit(examples), examples.rows)).all()


def test_side_by_side_joins_by_asking_and_target():
    a = rows_of([[0.2, 0.4], [0.2, 0.6]], question=["x", "y"])
    b = rows_of([[0.9, 0.1]], question=["z", "x"])
    members, rows = side_by_side({"a": a, "b": b})
    assert members == ("a", "b")
    assert rows.question.tolist() == ["x", "y", "z"]
    assert rows.trials[0] == pytest.approx([0.2, 0.5, np.nan], nan_ok=True)
    assert rows.trials[1] == pytest.approx([0.1, np.nan, 0.9], nan_ok=True)


def test_invalid_members_and_settings_raise_errors():
    rows = rows_of([[0.2], [0.3]])
    with pytest.raises(ValueError, match="2 members, 3 are named"):
        Ensemble(names=("a", "b", "c"), weights=(0.5, 0.5, 0.0)).probabilities(rows)
    with pytest.raises(ValueError, match="same name"):
        Ensemble(names=("a", "a"), weights=(0.5, 0.5)).probabilities(rows)
    for weights in ((0.5, 0.6), (-0.5, 1.5), (float("nan"), 1.0)):
        with pytest.raises(ValueError, match="sum to one"):
            Ensemble(names=("a", "b"), weights=weights)
    with pytest.raises(ValueError, match="2 members have 1 weights"):
        Ensemble(names=("a", "b"), weights=(1.0,))
    with pytest.raises(ValueError, match="half_life"):
        SkillWeights(names=("a",), half_life=0)
    with pytest.raises(ValueError, match="spread"):
        PooledWeights(names=("a",), spread=0)
    with pytest.raises(ValueError, match="steps"):
        GreedySelection(names=("a",), steps=0)
    with pytest.raises(ValueError, match="at least one forecaster"):
        side_by_side({})
    with pytest.raises(ValueError, match="twice"):
        side_by_side({"a": rows_of([[0.1, 0.2]], question=["x", "x"])})


def test_clustered_standard_error_equals_that_of_cluster_means():
    rng = np.random.default_rng(0)
    d = np.repeat(rng.normal(size=50), 4)
    result = gain(d, np.repeat(np.arange(50), 4).astype(str), np.ones(200))
    assert result.se == pytest.approx(d[::4].std(ddof=1) / np.sqrt(50))
    assert result.n_clusters == pytest.approx(50)
    assert gain(d[:4], np.zeros(4).astype(str), np.ones(4)).se == np.inf
    assert not gain(np.full(3, np.nan), np.zeros(3).astype(str), np.ones(3)).beyond(0)


def _real(shared_data):
    """Return all complete configurations on the paper's two rounds as members; markets and data sets weigh the same."""
    import duckdb

    tables = shared_data / "tables"
    con = duckdb.connect()
    con.execute(
        f"""create table asked as select row_number() over (order by r.forecast_due_date, r.source, r.question_id,
            r.resolution_date) - 1 as place, r.*, q.source_type, q.subtype
        from '{tables}/ab_resolutions.parquet' r
        join '{tables}/ab_questions.parquet' q using (forecast_due_date, source, question_id)"""
    )
    targets = con.execute("select * from asked order by place").fetchnumpy()
    log_odds = con.execute(
        f"""select config, place, avg(ln(p / (1 - p))) as x from
            (select *, greatest(1e-6, least(1 - 1e-6, probability)) as p from '{tables}/ab_trials.parquet') t
        join asked a on t.forecast_due_date = a.forecast_due_date and t.source = a.source
            and t.question_id = a.question_id and t.resolution_date in ('', a.resolution_date)
        where config not like '%clairvoyant%' group by config, place"""
    ).fetchnumpy()
    members, code = np.unique(log_odds["config"].astype(str), return_inverse=True)
    p = np.full((len(members), len(targets["place"])), np.nan)
    p[code, log_odds["place"].astype(int)] = 1 / (1 + np.exp(-log_odds["x"].astype(float)))
    complete = ~np.isnan(p).any(axis=1)
    kind = targets["source_type"].astype(str)
    question = np.char.add(np.char.add(targets["source"].astype(str), "/"), targets["question_id"].astype(str))
    rows = rows_of(
        p[complete],
        due=targets["forecast_due_date"].astype("M8[D]"),
        question=question,
        target=np.where(kind == "market", "yes", targets["resolution_date"].astype(str)),
    )
    share = {kind_name: 0.5 * len(kind) / np.sum(kind == kind_name) for kind_name in ("market", "dataset")}
    examples = Examples(
        rows=replace(rows, kind=kind),
        outcome=targets["outcome"].astype(float),
        known_on=targets["resolution_date"].astype("M8[D]"),
        weight=np.array([share[kind_name] for kind_name in kind]),
    )
    return tuple(members[complete].tolist()), examples


@pytest.mark.shared_data
def test_skill_weights_of_real_members_beat_equal_ones_on_the_next_round(shared_data):
    """Weights fitted on round A and applied to B, against equal weights."""
    members, examples = _real(shared_data)
    assert (len(members), len(examples)) == (35, 791)
    first = examples.rows.due == np.datetime64("2025-10-26")
    past, later = examples.take(first), examples.take(~first)
    design = ResamplingDesign(cluster=later.rows.cluster, stratum=later.rows.kind)

    def loss(method):
        return (apply(method.fit(past), later.rows, check="ids") - later.outcome) ** 2

    together, skill = loss(EqualWeights(names=members)), loss(SkillWeights(names=members))
    gained = compare_paired(skill, together, design, statistic=brier_index_from_sums)
    assert gained.diff == pytest.approx(1.3, abs=0.2)
    assert gained.low > 0
    greedy = compare_paired(loss(GreedySelection(names=members)), together, design, statistic=brier_index_from_sums)
    assert greedy.diff >= 0
    with pytest.raises(TrainingOverlap):
        apply(SkillWeights(names=members).fit(past), later.rows)
