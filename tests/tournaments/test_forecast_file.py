"""Forecasts from files."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from foretell.questions.as_of import AsOf
from foretell.questions.codec import to_json
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast, Numeric
from foretell.questions.question import Question, Target
from foretell.runs.combine import combine_trials
from foretell.tournaments.submission import read_forecasts

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)


def read(tmp_path: Path, text: str) -> tuple[list[Forecast], list[Question]]:
    path = tmp_path / "f.jsonl"
    path.write_text(text)
    return read_forecasts(path, NOW)


def test_plain_rows_are_read_as_live_forecasts(tmp_path: Path):
    rows = """{"question": "metaculus/1", "p": 0.2, "rationale": "Because."}
{"question": "metaculus/2", "p": {"Ann": 0.7, "Bob": 0.3}}

{"question": "metaculus/3", "quantiles": {"0.1": 5, "0.9": 9}}
"""
    first, second, third = read(tmp_path, rows)[0]
    assert (first.p, first.rationale, first.as_of) == ({"yes": 0.2}, "Because.", AsOf(at=NOW, mode="live"))
    assert second.p == {"Ann": 0.7, "Bob": 0.3}
    assert (third.p, third.distribution) == ({}, Numeric.from_quantiles({0.1: 5, 0.9: 9}))


def test_complete_forecasts_are_read_with_their_questions(tmp_path: Path):
    question = Question(id="metaculus/1", source="metaculus", text="?", due=NOW, targets=(Target(id="yes"),))
    forecast = Forecast(question_id="metaculus/1", forecaster="a", as_of=AsOf(at=NOW, mode="live"), p={"yes": 0.5})
    event = '{"event": "ModelCalled", "trial": 0}'
    assert read(tmp_path, "\n".join([to_json(question), to_json(forecast), event])) == ([forecast], [question])
    assert read(tmp_path, f"[{to_json(forecast)}]") == ([forecast], [])
    assert read(tmp_path, to_json(forecast)) == ([forecast], [])


@pytest.mark.parametrize(
    ("text", "message"),
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
def test_invalid_rows_are_named(tmp_path: Path, text: str, message: str):
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert message in str(caught.value)


def test_trials_about_a_number_become_one_distribution():
    def trial(n: int, shift: float) -> Forecast:
        stated = Numeric.from_quantiles({0.1: shift, 0.5: shift + 10, 0.9: shift + 30})
        as_of = AsOf(at=NOW, mode="live")
        return Forecast(question_id="q", forecaster="a", as_of=as_of, p={">9": 0.5}, trial=n, distribution=stated)

    (combined,) = combine_trials([trial(0, 0.0), trial(1, 4.0)], ())
    assert isinstance(combined.distribution, Numeric)
    stated = [trial(n, shift).distribution for n, shift in enumerate((0.0, 4.0))]
    for value in (1.0, 12.0, 33.0):
        odds = [d.below(value) / d.above(value) for d in stated if isinstance(d, Numeric)]
        mean = (odds[0] * odds[1]) ** 0.5
        assert combined.distribution.below(value) == pytest.approx(mean / (1 + mean), abs=0.02)
    (alone,) = combine_trials([trial(0, 0.0)], ())
    assert alone.distribution == trial(0, 0.0).distribution
