"""`foretell.score` takes runs, backtests, dictionaries, frames and files, and its results have text and HTML forms."""

import pickle

import pytest

import foretell
from foretell.questions.as_of import instant
from foretell.questions.backtest import Backtest
from foretell.questions.errors import InputError
from foretell.scoring.join import read_table

ROWS = [
    {"forecaster": name, "question": f"q{n}", "target": "yes", "p": p, "outcome": int(n % 3 == 0), "source": "x"}
    for name, p in (("bold", 0.9), ("<b>shy</b>", 0.6))
    for n in range(12)
]
FORECASTS = [{key: row[key] for key in ("forecaster", "question", "target", "p")} for row in ROWS]
OUTCOMES = [{key: row[key] for key in ("question", "target", "outcome", "source")} for row in ROWS[:12]]


def test_outcomes_may_be_a_column_of_the_forecasts(tmp_path):
    apart = foretell.score(FORECASTS, OUTCOMES)
    together = foretell.score(ROWS)
    assert apart.rows() == together.rows()
    path = tmp_path / "rows.csv"
    path.write_text("\n".join([",".join(ROWS[0]), *(",".join(map(str, row.values())) for row in ROWS)]))
    assert foretell.score(path).rows() == apart.rows()
    frame = pytest.importorskip("pandas").DataFrame(ROWS)
    assert foretell.score(frame).rows() == apart.rows()


def test_two_outcomes_of_one_target_are_refused():
    rows = [*ROWS, {**ROWS[0], "forecaster": "third", "outcome": 0}]
    with pytest.raises(InputError, match="two different outcomes"):
        read_table(rows)
    with pytest.raises(InputError, match="'outcome' is missing"):
        read_table(FORECASTS)


def test_a_backtest_is_scored_with_its_resolutions():
    due = instant("2026-01-10")
    questions = tuple(
        foretell.Question(id=f"q{n}", text="?", source="x", due=due, targets=(foretell.Target(id="yes"),))
        for n in range(3)
    )
    answers = tuple(
        foretell.Forecast(question_id=question.id, forecaster="me", as_of=question.as_of, p={"yes": 0.8})
        for question in questions
    )
    resolutions = [
        foretell.Resolution(question_id=question.id, target_id="yes", due=due, outcome=1) for question in questions
    ]
    board = foretell.score(Backtest(questions=questions, answers=answers), resolutions, baselines=False)
    assert board.scores[0].metrics["brier"].estimate == pytest.approx(0.04)


def test_results_print_as_text_and_html():
    board = foretell.score(ROWS, baselines=False)
    text = str(board)
    assert text.splitlines()[0].split()[:3] == ["kind", "forecaster", "n"]
    assert "bold" in text
    html = board._repr_html_()
    assert "&lt;b&gt;shy&lt;/b&gt;" in html
    assert "<b>" not in html
    pair = foretell.compare(ROWS, None, "bold", "<b>shy</b>")
    assert "diff" in str(pair)
    assert "<table>" in pair._repr_html_()
    pytest.importorskip("pandas")
    assert set(board.to_pandas().forecaster) == {"bold", "<b>shy</b>"}
    assert pair.to_pandas().metric.tolist() == ["brier_index"]


def test_further_metrics_are_computed_when_named():
    board = foretell.score(ROWS, metrics=("peer", "adjusted_brier_index", "accuracy", "resolution"))
    scores = board.group(kind="overall")
    peers = {score.forecaster: score.metrics["peer"].estimate for score in scores}
    # With two forecasters, the peer scores add up to 0.
    assert peers["bold"] == pytest.approx(-peers["<b>shy</b>"])
    by_name = {score.forecaster: score.metrics for score in scores}
    # All questions were answered by all, so the adjusted score of always-0.5 is 0.25.
    assert by_name["always 0.5"]["adjusted_brier_index"].estimate == pytest.approx(50)
    assert by_name["bold"]["accuracy"].estimate == pytest.approx(4 / 12)
    with pytest.raises(InputError, match="unknown metric 'luck'"):
        foretell.score(ROWS, metrics=("luck",))
    with pytest.raises(InputError, match="net needs prices"):
        foretell.score(ROWS, metric="net")


def test_an_unknown_run_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path))
    with pytest.raises(InputError, match="no run is named 'abc123'"):
        foretell.score("abc123")


@pytest.mark.parametrize(("old", "new"), [("bi", "brier_index"), ("ms", "metaculus_baseline"), ("net0.5", "net with")])
def test_a_former_name_of_a_metric_is_refused_with_its_new_name(old, new):
    with pytest.raises(InputError, match=f"{old} is now {new}"):
        foretell.score(ROWS, metric=old)


def test_a_dictionary_of_columns_is_a_table():
    columns = {name: [row[name] for row in ROWS] for name in ROWS[0]}
    assert foretell.score(columns).rows() == foretell.score(ROWS).rows()
    with pytest.raises(InputError, match=r"columns have different lengths: forecaster 24, question 24, .* p 23"):
        foretell.score({**columns, "p": columns["p"][1:]})
    with pytest.raises(InputError, match="outcomes: cannot read dict as a table"):
        foretell.score(FORECASTS, {"q0": 1})


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"missing": 2}, "field missing: must be from 0 to 1, not 2"),
        ({"missing": "half"}, "field missing: is 'half'; expected a number or None"),
        ({"missing": float("nan")}, "field missing: must be from 0 to 1"),
        ({"matters": -1}, "field matters: must be at least 0"),
        ({"trials": "median"}, "field trials: is 'median'; expected 'mean', 'logit-mean' or 'separate'"),
        ({"weights": "all"}, "field weights: is 'all'; expected 'equal' or 'question'"),
    ],
)
def test_options_that_do_not_exist_are_refused(options, problem):
    with pytest.raises(InputError, match=problem):
        foretell.score(ROWS, **options)
    with pytest.raises(InputError, match=problem):
        foretell.compare(ROWS, None, "bold", "<b>shy</b>", **options)


def test_nothing_is_ignored_beside_a_table_that_was_read():
    table = read_table(ROWS)
    for options in ({"outcomes": OUTCOMES}, {"trials": "separate"}, {"columns": {"p": "p"}}):
        with pytest.raises(InputError, match="no effect on a table that was read"):
            foretell.score(table, **options)
    with pytest.raises(InputError, match="'bold' is compared with itself"):
        foretell.compare(table, None, "bold", "bold")


def test_results_show_their_text_and_are_equal_by_value():
    for result in (foretell.score(ROWS[:1]), foretell.compare(ROWS, None, "bold", "<b>shy</b>")):
        assert repr(result) == str(result)
        assert pickle.loads(pickle.dumps(result)) == result
    # One question has no interval: its ends are NaN.
    assert foretell.score(ROWS[:1]) == foretell.score(ROWS[:1])
    assert foretell.score(ROWS[:1]) != foretell.score(ROWS[1:2])
    assert foretell.score(ROWS) != foretell.compare(ROWS, None, "bold", "<b>shy</b>")
    assert repr(read_table(ROWS)) == "<ForecastTable: 24 forecasts by 2 forecasters, 12 targets>"


def test_a_forecaster_whose_answers_all_failed_is_named() -> None:
    def broken(question: foretell.Question) -> float:
        raise ValueError("no data")

    board = foretell.score(foretell.backtest([broken, "constant"], "demo", limit=2))
    assert [score.forecaster for score in board.scores if score.forecaster == "broken"] == []
    assert "broken is left out: it answered no question (ValueError: no data)." in str(board)


def test_a_named_index_a_lazy_frame_and_an_iterator_are_tables() -> None:
    rows = [{"forecaster": who, "question": str(n), "p": 0.4, "outcome": n % 2} for who in "ab" for n in range(4)]
    expected = foretell.score(rows).scores
    frame = pytest.importorskip("pandas").DataFrame(rows)
    assert foretell.score(iter(rows)).scores == expected
    assert foretell.score(frame.set_index("question")).scores == expected
    assert foretell.score(frame.set_index(["question", "forecaster"])).scores == expected
    assert foretell.score(frame.set_index("question", drop=False)).scores == expected
    with pytest.raises(InputError, match="cannot read Series as a table"):
        foretell.score(frame["p"])
    polars = pytest.importorskip("polars")
    assert foretell.score(polars.DataFrame(rows).lazy()).scores == expected
