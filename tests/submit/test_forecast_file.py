"""Forecasts from files."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from foretell.questions import AsOf, Forecast, InputError, Numeric, Question, Target, to_json
from foretell.runs import average_distributions, one_forecast_per_question
from foretell.submit import read_forecasts

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)


def read(tmp_path: Path, text: str) -> tuple[list[Forecast], list[Question]]:
    path = tmp_path / "f.jsonl"
    path.write_text(text)
    return read_forecasts(path, NOW)


def test_plain_rows(tmp_path: Path):
    rows = """{"question": "metaculus/1", "p": 0.2, "rationale": "Because."}
{"question": "metaculus/2", "p": {"Ann": 0.7, "Bob": 0.3}}

{"question": "metaculus/3", "quantiles": {"0.1": 5, "0.9": 9}}
"""
    one, two, three = read(tmp_path, rows)[0]
    assert (one.p, one.rationale, one.as_of) == ({"yes": 0.2}, "Because.", AsOf(at=NOW, mode="live"))
    assert two.p == {"Ann": 0.7, "Bob": 0.3}
    assert (three.p, three.distribution) == ({}, Numeric.from_quantiles({0.1: 5, 0.9: 9}))


def test_whole_forecasts_with_their_questions(tmp_path: Path):
    asked = Question(id="metaculus/1", source="metaculus", text="?", due=NOW, targets=(Target(id="yes"),))
    said = Forecast(question_id="metaculus/1", forecaster="a", as_of=AsOf(at=NOW, mode="live"), p={"yes": 0.5})
    event = '{"event": "ModelCalled", "trial": 0}'
    assert read(tmp_path, "\n".join([to_json(asked), to_json(said), event])) == ([said], [asked])
    assert read(tmp_path, f"[{to_json(said)}]") == ([said], [])
    assert read(tmp_path, to_json(said)) == ([said], [])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "contains no forecast"),
        ("nonsense", "row 1: is not JSON"),
        ("[1]", "row 1: expected an object with fields"),
        ('{"question": "q", "prob": 0.2}', "row 1, column prob: is not a field"),
        ('{"question": "q"}', "needs a question, and either p or quantiles"),
        ('{"question": "q", "p": 20}', "column p: probability of target 'yes' is 20"),
        ('{"question": "q", "p": "x"}', "column p"),
        ('{"question": "q", "quantiles": {"0.1": 5, "0.9": 4}}', "column quantiles: x of a numeric"),
        ('{"question": "q", "quantiles": [1]}', "column quantiles"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, text: str, told: str):
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert told in str(caught.value)


def test_trials_about_a_number_are_averaged_level_by_level():
    def trial(n: int, shift: float) -> Forecast:
        stated = Numeric.from_quantiles({0.1: shift, 0.5: shift + 10, 0.9: shift + 30})
        as_of = AsOf(at=NOW, mode="live")
        return Forecast(question_id="q", forecaster="a", as_of=as_of, p={">9": 0.5}, trial=n, distribution=stated)

    (found,) = one_forecast_per_question([trial(0, 0.0), trial(1, 4.0)], ())
    assert found.distribution == Numeric.from_quantiles({0.1: 2.0, 0.5: 12.0, 0.9: 32.0})
    (alone,) = one_forecast_per_question([trial(0, 0.0)], ())
    assert alone.distribution == trial(0, 0.0).distribution


def test_distributions_that_share_no_level():
    low, high = Numeric(x=(0, 1), cdf=(0, 0.2)), Numeric(x=(0, 1), cdf=(0.5, 1))
    assert average_distributions([low, high]) == low
