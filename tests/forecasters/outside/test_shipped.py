import json
from importlib.resources import files
from io import BytesIO

import numpy as np
import pytest

from foretell.forecasters.base_rates.outside_fit import fit_outside
from foretell.forecasters.base_rates.outside_model import NUMBERS, REPORT, from_files, shipped_model, to_files
from foretell.forecasters.base_rates.past import PastQuestions
from foretell.forecasters.base_rates.text_features import text_features
from foretell.forecasters.base_rates.wording import read
from foretell.questions.as_of import AsOf

FOLDER = files("foretell.forecasters.base_rates")


def test_saved_model_gives_the_same_log_odds_when_loaded(parade_bank: PastQuestions) -> None:
    model = fit_outside(parade_bank, AsOf.day("2025-12-31"), strength=3.0)
    numbers, report = to_files(model, {"n": 3})
    again = from_files(numbers, json.loads(json.dumps(report)))
    day = AsOf.day("2026-01-20").at.date()
    for text in ("Will a parade be seen by 1 March 2026?", "Will a comet be seen over Oslo?"):
        features = text_features(read(text, day), day, None)
        ours, theirs = (m.text.log_odds(features, "polymarket", day) for m in (model, again))
        assert abs(ours - theirs) < 2e-3
    assert again.record == model.record
    assert again.askings == model.askings
    assert again.rates == model.rates


def test_unknown_format_raises_an_error() -> None:
    with pytest.raises(ValueError, match="format 99"):
        from_files(b"", {"format": 99})


def test_shipped_model_has_numbers_and_a_report_but_no_texts() -> None:
    size = len(FOLDER.joinpath(NUMBERS).read_bytes()) + len(FOLDER.joinpath(REPORT).read_bytes())
    assert size < 400_000
    report = FOLDER.joinpath(REPORT).read_text(encoding="utf-8")
    assert "Will " not in report
    assert "https" not in report
    with np.load(BytesIO(FOLDER.joinpath(NUMBERS).read_bytes()), allow_pickle=False) as numbers:
        assert all(numbers[name].dtype.kind in "fiu" for name in numbers.files)


def test_shipped_model_records_its_training_data() -> None:
    model = shipped_model()
    assert model.record.last_known is not None
    assert model.record.last_known < model.record.as_of
    assert model.record.askings > 2000
    assert len(model.askings) >= model.record.askings
    assert model.text.named["horizon"] >= 0
    assert model.text.named["horizon, reversed"] >= 0
