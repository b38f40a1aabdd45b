from dataclasses import fields, replace
from datetime import date

import numpy as np

from foretell.forecasters.base_rates.outside_fit import LONG_RUN, STRENGTHS, fit_outside
from foretell.forecasters.base_rates.outside_model import asking_hash
from foretell.forecasters.base_rates.past import NEVER, Past, PastQuestions
from foretell.forecasters.base_rates.text_features import text_features
from foretell.forecasters.base_rates.wording import read
from foretell.metrics.transforms import sigmoid
from foretell.questions.as_of import AsOf

LATE = AsOf.day("2025-12-31")
DAY = date(2025, 12, 31)


def chance(model, text: str, source: str = "polymarket", day: date = DAY) -> float:
    return float(sigmoid(model.text.log_odds(text_features(read(text, day), day, None), source, day)))


def test_model_learns_words_that_predict_outcomes(parade_bank: PastQuestions) -> None:
    model = fit_outside(parade_bank, LATE)
    parade, comet = (chance(model, f"Will a {w} be seen over Oslo by 1 March 2026?") for w in ("parade", "comet"))
    assert parade > 0.5 > 0.3 > comet
    assert model.record.questions == len(parade_bank)
    assert model.record.strength in STRENGTHS
    assert set(model.record.tried) == {f"{s:g}" for s in STRENGTHS}


def test_parts_add_up_to_the_log_odds_and_name_only_known_words(parade_bank: PastQuestions) -> None:
    model = fit_outside(parade_bank, LATE, strength=1.0)
    features = text_features(read("Will a comet be seen by 1 March 2026?", DAY), DAY, None)
    parts = model.text.parts(features, "polymarket", DAY)
    assert np.isclose(sum(p.log_odds for p in parts), model.text.log_odds(features, "polymarket", DAY))
    assert any("comet" in p.name for p in parts)
    unknown_words = text_features(read("Will Quetzalcoatl sneeze?", DAY), DAY, None)
    assert not any("sneeze" in p.name for p in model.text.parts(unknown_words, "polymarket", DAY))


def test_outcomes_of_the_cutoff_day_or_later_do_not_change_the_model(parade_bank: PastQuestions) -> None:
    cutoff = AsOf.day("2025-05-11")
    now = np.datetime64("2025-05-11")
    model = fit_outside(parade_bank, cutoff)
    late = parade_bank.known_on >= now
    columns = {f.name: getattr(parade_bank, f.name) for f in fields(parade_bank)}
    flipped = PastQuestions(**columns | {"outcome": np.where(late, 1 - parade_bank.outcome, parade_bank.outcome)})
    blank = PastQuestions(
        **columns
        | {
            "outcome": np.where(late, np.nan, parade_bank.outcome),
            "known_on": np.where(late, NEVER, parade_bank.known_on),
        }
    )
    shorter = parade_bank.take(parade_bank.due < now)
    for other in (flipped, blank, shorter):
        again = fit_outside(other, cutoff)
        np.testing.assert_array_equal(again.text.words, model.text.words)
        assert again.text.named == model.text.named
        assert again.record == model.record
    assert model.record.last_known < cutoff.at.date()


def test_early_answers_do_not_raise_the_level(bank_of) -> None:
    # Three in ten come true early, and no is known only in December: in June only the yeses are known.
    rows = []
    for i in range(400):
        row = {"id": f"q{i}", "text": f"Will thing{i} happen by 1 December 2025?", "due": "2025-01-05", "price": 0.3}
        rows.append(row | ({"outcome": 1.0, "known_on": "2025-03-01"} if i % 10 < 3 else {}))
    model = fit_outside(bank_of(rows), AsOf.day("2025-06-01"))
    assert 0.2 < chance(model, "Will a thing happen by 1 December 2025?", day=date(2025, 6, 1)) < 0.4


def test_degenerate_banks_give_finite_numbers(bank_of) -> None:
    nothing = fit_outside(Past().table, LATE)
    assert chance(nothing, "Will it rain?") == float(sigmoid(LONG_RUN))
    assert nothing.record.last_known is None
    for outcome in (0.0, 1.0):
        one_class = bank_of([{"text": "Same?", "outcome": outcome, "known_on": "2025-02-01"}] * 3)
        assert 0 < chance(fit_outside(one_class, LATE), "Will it rain by 1 March 2026?") < 1
    certain = bank_of([{"text": "Sure?", "price": p} for p in (0.0, 1.0, 1.0)])
    assert 0 < chance(fit_outside(certain, LATE), "Sure?") < 1
    unknown = bank_of([{"text": "Who knows?"}])
    assert chance(fit_outside(unknown, LATE), "Will it rain?") == float(sigmoid(LONG_RUN))


def test_unseen_source_gets_the_general_level(parade_bank: PastQuestions) -> None:
    model = fit_outside(parade_bank, LATE, strength=3.0)
    text = "Will a comet be seen by 1 March 2026?"
    assert 0 < chance(model, text, "nowhere") < 0.5
    far = model.text.level.at("nowhere", date(2060, 1, 1))
    assert np.isclose(far, model.text.level.long_run)


def test_order_of_the_bank_does_not_matter(parade_bank: PastQuestions) -> None:
    mixed = parade_bank.take(np.random.default_rng(0).permutation(len(parade_bank)))
    a, b = (fit_outside(bank, LATE, strength=3.0) for bank in (parade_bank, mixed))
    np.testing.assert_allclose(a.text.words, b.text.words, atol=1e-5)


def test_askings_are_stored_as_hashes(parade_bank: PastQuestions) -> None:
    model = fit_outside(parade_bank, LATE, strength=3.0)
    assert asking_hash("parade0/0@2025-01-05") in model.askings or asking_hash("comet0/0@2025-01-05") in model.askings
    assert replace(model.record, askings=0) != model.record
