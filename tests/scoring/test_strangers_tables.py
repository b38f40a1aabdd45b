"""Tables with the usual spellings of columns and values: which are read, and which are refused with all problems."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import foretell
from foretell.cli.main import cli
from foretell.questions.errors import InputError
from foretell.scoring.join import ReadOptions, read_table

Said = dict[str, list[float | None]]


@dataclass(frozen=True, kw_only=True)
class Good:
    """A file and its expected reading: the probabilities of each forecaster by target, and the outcomes."""

    text: str
    p: Said
    outcome: list[float]
    note: str = ""
    """Part of the note on how the file was read."""
    name: str = "results.csv"
    columns: dict[str, Any] = field(default_factory=dict[str, Any])
    outcomes: str = ""
    """Text of a second file, with the outcomes."""
    groups: dict[str, list[str]] = field(default_factory=dict[str, list[str]])


AB: Said = {"a": [0.2, 0.7], "b": [0.4, 0.9]}
LONG = "{0},{1},{2},{3}\na,q1,0.2,0\na,q2,0.7,1\nb,q1,0.4,0\nb,q2,0.9,1\n"
GOOD = {
    "canonical": Good(text=LONG.format("forecaster", "question", "p", "outcome"), p=AB, outcome=[0, 1]),
    "usual names": Good(
        text=LONG.format("model", "question_id", "prob", "resolution"),
        p=AB,
        outcome=[0, 1],
        note="Read 4 rows of results.csv: forecaster = model, question = question_id, p = prob, outcome = resolution.",
    ),
    "capitals and blanks": Good(
        text=LONG.format("Model Name", "Question ID", "Predicted Probability", "Resolved To"),
        p=AB,
        outcome=[0, 1],
        note="p = Predicted Probability",
    ),
    "canonical names in capitals": Good(
        text=LONG.format("Forecaster", "Question", "P", "Outcome"), p=AB, outcome=[0, 1], note="question = Question"
    ),
    "byte order mark": Good(text="\ufeff" + LONG.format("bot", "id", "forecast", "answer"), p=AB, outcome=[0, 1]),
    "semicolons and decimal commas": Good(
        text="system;id;probability;result\na;q1;0,2;0\na;q2;0,7;1\nb;q1;0,4;0\nb;q2;0,9;1\n",
        p=AB,
        outcome=[0, 1],
        note="decimal comma",
    ),
    "tabs": Good(text=LONG.format("team", "qid", "p_yes", "truth").replace(",", "\t"), p=AB, outcome=[0, 1]),
    "tabs in a tsv": Good(
        text=LONG.format("team", "qid", "p_yes", "truth").replace(",", "\t"), name="r.tsv", p=AB, outcome=[0, 1]
    ),
    "pipes": Good(text=LONG.format("method", "event", "prediction", "y").replace(",", "|"), p=AB, outcome=[0, 1]),
    "percent signs": Good(
        text="model,id,prob,outcome\na,q1,20 %,0\na,q2,70.0%,1\nb,q1,40%,0\nb,q2,90 %,1\n",
        p=AB,
        outcome=[0, 1],
        note="p = prob (percent)",
    ),
    "percent with decimal commas": Good(
        text='model;id;prob;outcome\na;q1;"20,5 %";0\na;q2;100 %;1\n',
        p={"a": [0.205, 1.0]},
        outcome=[0, 1],
        note="percent, decimal comma",
    ),
    "bare percent": Good(
        text="forecaster,question,p,outcome\na,q1,0,0\na,q2,1,1\na,q3,55,1\n",
        p={"a": [0.0, 0.01, 0.55]},
        outcome=[0, 1, 1],
        note="p = p (percent)",
    ),
    "yes and no": Good(
        text="model,id,prob,resolution\na,q1,0.2,No\na,q2,0.7,YES\n", p={"a": [0.2, 0.7]}, outcome=[0, 1], note="words"
    ),
    "what pandas writes": Good(
        text="model,id,prob,resolution\na,q1,0.2,False\na,q2,0.7,True\na,q3,0.5,\n",
        p={"a": [0.2, 0.7]},
        outcome=[0, 1],
        note="has not resolved: 1 forecast",
    ),
    "resolved text": Good(
        text="model,id,prob,resolution\na,q1,0.2,resolved: no\na,q2,0.7,Resolved YES\na,q3,0.5,N/A\n"
        "a,q4,0.5,annulled\n",
        p={"a": [0.2, 0.7]},
        outcome=[0, 1],
        note="has not resolved: 2 forecasts",
    ),
    "shares": Good(
        text="model,id,prob,resolution\na,q1,0.2,0.37\na,q2,0.7,1.0\n", p={"a": [0.2, 0.7]}, outcome=[0.37, 1]
    ),
    "the option that came true": Good(
        text="model,id,option,prob,answer\na,q1,Paris,0.6,Rome\na,q1,Rome,0.4,Rome\na,q2,yes,0.3,no\na,q2,no,0.7,no\n",
        p={"a": [0.6, 0.4, 0.3, 0.7]},
        outcome=[0, 1, 0, 1],
        note="the option that came true",
    ),
    "options against one row per question": Good(
        text="model,id,option,prob\na,q1,Paris,0.6\na,q1,Rome,0.4\na,q2,yes,0.3\n",
        outcomes="question_id,resolved_to\nq1,Rome\nq2,no\n",
        p={"a": [0.6, 0.4, 0.3]},
        outcome=[0, 1, 0],
    ),
    "wide": Good(
        text="question_id,gpt,claude,resolution,category\nq1,0.2,0.4,0,x\nq2,0.7,,1,y\n",
        p={"gpt": [0.2, 0.7], "claude": [0.4, None]},
        outcome=[0, 1],
        note="a wide table of 2 forecasters: gpt, claude",
        groups={"category": ["x", "y"]},
    ),
    "wide in percent, with other numbers": Good(
        text="id;gpt;claude;volume;outcome\nq1;20 %;40 %;1200;no\nq2;70 %;90 %;88;yes\n",
        p={"gpt": [0.2, 0.7], "claude": [0.4, 0.9]},
        outcome=[0, 1],
        note="wide table of 2 forecasters",
    ),
    "wide, named": Good(
        text="id,gpt,claude,days,outcome\nq1,0.2,0.4,20,0\nq2,0.7,0.9,3,1\n",
        columns={"p": ["claude", "gpt"]},
        p={"claude": [0.4, 0.9], "gpt": [0.2, 0.7]},
        outcome=[0, 1],
    ),
    "one forecaster": Good(
        text="id,probability,result\nq1,0.2,0\nq2,0.7,1\n",
        name="my bot.csv",
        p={"my bot": [0.2, 0.7]},
        outcome=[0, 1],
        note="one forecaster, called my bot",
    ),
    "columns named by the user": Good(
        text="who,what,how,end\na,q1,0.2,0\na,q2,0.7,1\n",
        columns={"forecaster": "who", "question": "what", "p": "how", "outcome": "end"},
        p={"a": [0.2, 0.7]},
        outcome=[0, 1],
    ),
    "two candidates, one named": Good(
        text="model,id,prob,forecast,outcome\na,q1,0.2,0.9,0\na,q2,0.7,0.9,1\n",
        columns={"p": "prob"},
        p={"a": [0.2, 0.7]},
        outcome=[0, 1],
    ),
    "labels of a canonical table": Good(
        text="forecaster,question,p,outcome,answer,category\na,q1,0.2,0,Rome,x\na,q2,0.7,1,Paris,y\n",
        p={"a": [0.2, 0.7]},
        outcome=[0, 1],
        groups={"answer": ["Rome", "Paris"], "category": ["x", "y"]},
    ),
    "days in many forms": Good(
        text="model,id,prob,outcome,asked,resolution_date\n"
        'a,q1,0.2,0,26 Oct 2025,10/26/2025\na,q2,0.7,1,"October 27, 2025",1/2/2026\na,q3,0.5,1,2025/10/28,2/3/2026\n'
        "a,q4,0.5,1,29.10.2025,3/4/2026\n",
        p={"a": [0.2, 0.7, 0.5, 0.5]},
        outcome=[0, 1, 1, 1],
        note="resolved_on = resolution_date (month/day/year)",
        groups={
            "due": ["2025-10-26", "2025-10-27", "2025-10-28", "2025-10-29"],
            "resolved_on": ["2025-10-26", "2026-01-02", "2026-02-03", "2026-03-04"],
        },
    ),
    "times without a zone, and epochs": Good(
        text="model,id,prob,outcome,resolved_at,asked\n"
        "a,q1,0.2,0,2025-10-26 12:00:00,1761480000\na,q2,0.7,1,2025-10-27 00:00:00,1761523200\n",
        p={"a": [0.2, 0.7]},
        outcome=[0, 1],
        note="resolved_on = resolved_at (UTC)",
        groups={"resolved_on": ["2025-10-26T12:00:00Z", "2025-10-27"], "due": ["2025-10-26T12:00:00Z", "2025-10-27"]},
    ),
    "each forecaster on its own day": Good(
        text="model,id,prob,outcome,forecast_date\na,q1,0.2,0,2025-01-01\na,q2,0.7,1,2025-01-01\n"
        "b,q1,0.4,0,2025-01-05\nb,q2,0.9,1,2025-01-06\n",
        p=AB,
        outcome=[0, 1],
    ),
    "json lines": Good(
        text='{"model": "a", "id": "q1", "prob": "20%", "resolved": false}\n'
        '{"model": "a", "id": "q2", "prob": "70%", "resolved": true}\n',
        name="r.jsonl",
        p={"a": [0.2, 0.7]},
        outcome=[0, 1],
    ),
    "a list in json": Good(
        text='[{"model": "a", "id": 1, "prob": 0.2, "resolved": "no"}, {"model": "a", "id": 2, "prob": 0.7, '
        '"resolved": "yes"}]',
        name="r.json",
        p={"a": [0.2, 0.7]},
        outcome=[0, 1],
    ),
    "an object with a list of rows": Good(
        text='{"model": "a", "forecast_due_date": "2026-01-18", "forecasts": '
        '[{"id": "q1", "forecast": 0.2, "answer": 0}, {"id": "q2", "forecast": 0.7, "answer": 1}]}',
        name="r.json",
        p={"a": [0.2, 0.7]},
        outcome=[0, 1],
        note="due = forecast_due_date",
    ),
    "an object of columns": Good(
        text='{"model": ["a", "a"], "id": [1, 2], "prob": [0.2, 0.7], "answer": ["no", "yes"]}',
        name="r.json",
        p={"a": [0.2, 0.7]},
        outcome=[0, 1],
    ),
    "a data frame written as json": Good(
        text='{"model": {"0": "a", "1": "a"}, "id": {"0": 1, "1": 2}, "prob": {"0": 0.2, "1": 0.7}, '
        '"answer": {"0": false, "1": true}}',
        name="r.json",
        p={"a": [0.2, 0.7]},
        outcome=[0, 1],
    ),
    "names in other alphabets": Good(
        text="id,模型一,модель,outcome\nq1,0.2,0.4,0\nq2,0.7,0.9,1\n",
        p={"模型一": [0.2, 0.7], "модель": [0.4, 0.9]},
        outcome=[0, 1],
        note="a wide table of 2 forecasters: 模型一, модель",
    ),
    "an export of Metaculus": Good(
        text="Question ID,Question Title,Forecaster Username,Forecast Time,Probability Yes,Resolution\n"
        "101,Will it?,a,2026-01-02 10:00:00+00:00,0.2,no\n102,Or not?,a,2026-01-02 11:00:00+00:00,0.7,yes\n"
        "101,Will it?,b,2026-01-02 10:00:00+00:00,0.4,no\n102,Or not?,b,2026-01-02 11:00:00+00:00,0.9,yes\n",
        p=AB,
        outcome=[0, 1],
        note="forecaster = Forecaster Username",
    ),
    "prices in percent": Good(
        text="model,id,prob,outcome,market_price\na,q1,0.2,0,35%\na,q2,0.7,1,\n",
        p={"a": [0.2, 0.7]},
        outcome=[0, 1],
        note="price = market_price (percent)",
    ),
}


def write_file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def read(folder: Path, case: Good) -> Any:
    outcomes = write_file(folder, "resolved.csv", case.outcomes) if case.outcomes else None
    return read_table(write_file(folder, case.name, case.text), outcomes, ReadOptions(columns=case.columns))


@pytest.mark.parametrize("case", GOOD)
def test_usual_spellings_are_read(tmp_path: Path, case: str):
    good = GOOD[case]
    table = read(tmp_path, good)
    assert table.forecasters == tuple(good.p)
    for name, p in good.p.items():
        np.testing.assert_allclose(table.p_of(name), np.array(p, float), rtol=1e-12)
    np.testing.assert_allclose(table.targets.outcome, good.outcome)
    assert good.note in " ".join(table.notes)
    assert len([note for note in table.notes if note.startswith("Read ")]) <= 2
    for column, names in good.groups.items():
        labels = table.targets.groups[column]
        assert [labels.names[code] for code in labels.codes] == names


def test_a_canonical_table_has_no_note(tmp_path: Path):
    assert read(tmp_path, GOOD["canonical"]).notes == ()
    assert read(tmp_path, GOOD["labels of a canonical table"]).notes == ()


@dataclass(frozen=True, kw_only=True)
class Bad:
    """A file, and its problems: row, column and number of rows of each, and words of the message."""

    text: str
    problems: list[tuple[int | None, str | None, int]]
    words: tuple[str, ...]
    columns: dict[str, Any] = field(default_factory=dict[str, Any])


BAD = {
    "several problems at once": Bad(
        text="model,id,prob,resolution\na,q1,abc,0\na,q2,0.7,won\na,q3,x,1\na,q4,1.5,1\n,q5,0.2,lost\na,q6,y,0\n",
        problems=[(1, "prob", 3), (2, "resolution", 2), (4, "prob", 1), (5, "model", 1)],
        words=(
            "4 problems in",
            "abc is not a number, and 2 more rows: 3, 6",
            "won is not an outcome",
            "1.5 is outside",
        ),
    ),
    "fractions and percent signs": Bad(
        text="model,id,prob,outcome\na,q1,0.2,0\na,q2,70 %,1\n",
        problems=[(2, "prob", 1)],
        words=("70 % is in percent", "row 1 has 0.2", "fractions (0.25)"),
    ),
    "fractions and bare percent": Bad(
        text="forecaster,question,p,outcome\na,q1,55,0\na,q2,1,1\na,q3,0.5,1\n",
        problems=[(1, "p", 1)],
        words=("55 is outside [0, 1]", "row 3 has 0.5"),
    ),
    "two candidates for p": Bad(
        text="model,id,prob,forecast,outcome\na,q1,0.2,0.3,0\n",
        problems=[(None, None, 1)],
        words=("'prob' and 'forecast'", "--columns p=prob or --columns p=forecast"),
    ),
    "no outcome": Bad(
        text="model,id,prob\na,q1,0.2\n",
        problems=[(None, "outcome", 1)],
        words=("column 'outcome' is missing", "model, id, prob", "--columns outcome=COLUMN"),
    ),
    "day or month": Bad(
        text="model,id,prob,outcome,asked\na,q1,0.2,0,03/04/2025\na,q2,0.2,0,05/06/2025\n",
        problems=[(1, "asked", 1)],
        words=("03/04/2025 could be day/month or month/day", "write days as 2025-10-26"),
    ),
    "day and month": Bad(
        text="model,id,prob,outcome,asked\na,q1,0.2,0,26/04/2025\na,q2,0.2,0,05/26/2025\n",
        problems=[(1, "asked", 1)],
        words=("26/04/2025 is day/month, but row 2 has 05/26/2025",),
    ),
    "the same row again, without forecasters": Bad(
        text="llm name,id,prob,outcome\na,q1,0.2,0\nb,q1,0.3,0\nc,q1,0.3,0\n",
        problems=[(2, "id", 2)],
        words=("repeats row 1, and 1 more row: 3", "--columns forecaster=COLUMN"),
    ),
    "wide, but which columns": Bad(
        text="id,gpt,claude,share,outcome\nq1,0.2,0.4,20,0\nq2,0.7,0.9,3,1\n",
        problems=[],
        words=("unclear which columns are forecasters", "--columns p=gpt,claude"),
    ),
    "wide, with a word": Bad(
        text="id,gpt,claude,outcome\nq1,0.2,0.4,0\nq2,0.7,maybe,1\n",
        columns={"p": ("gpt", "claude")},
        problems=[(2, "claude", 1)],
        words=("maybe is not a number",),
    ),
    "an unknown column": Bad(
        text="model,id,prob,outcome\na,q1,0.2,0\n",
        columns={"p": "probs"},
        problems=[],
        words=("there is no column 'probs'", "did you mean 'prob'?"),
    ),
    "an unknown role": Bad(
        text="model,id,prob,outcome\na,q1,0.2,0\n",
        columns={"forcaster": "model"},
        problems=[],
        words=("is not a role", "did you mean forecaster?"),
    ),
    "two outcomes of two questions": Bad(
        text="model,id,prob,outcome\na,q1,0.2,yes\nb,q1,0.3,no\na,q2,0.2,yes\nb,q2,0.3,no\n",
        problems=[(1, "outcome", 2)],
        words=("row 1, column outcome: this target has two different outcomes, and 1 more row: 3",),
    ),
    "above one and below zero": Bad(
        text="model,id,prob,outcome\na,q1,1.5,0\na,q2,0.5,1\na,q3,-0.2,1\n",
        problems=[(1, "prob", 2)],
        words=("1.5 is outside [0, 1], and 1 more row: 3",),
    ),
    "wide, with a slip": Bad(
        text="id,gpt,claude,topic,outcome\nq1,0.2,0.4,x,0\nq2,0.7,o.9,y,1\nq3,0.7,0.9,3,1\n",
        problems=[(2, "claude", 1)],
        words=("o.9 is not a number", "--columns p=A,B"),
    ),
    "a longer row": Bad(
        text="model,id,prob,outcome\na,q1,0.2,0\na,q2,0.7\na,q3,0.7,1,9,9\n",
        problems=[],
        words=("row 2: the row has 3 values and the header 4",),
    ),
    "two tables in one file": Bad(
        text="model,id,prob,outcome\na,q1,0.2,0\na,q2,0.7,1\nmodel,id,prob,outcome,topic\n"
        + "".join(f"a,z{i},0.5,1,x\n" for i in range(9)),
        problems=[],
        words=("row 3: the row has 5 values and the header 4",),
    ),
    "a column that is not there, in another alphabet": Bad(
        text="id,模型一,outcome\nq1,0.2,0\n",
        columns={"p": "模型二"},
        problems=[],
        words=("there is no column '模型二'",),
    ),
    "repeated trials": Bad(
        text="model,id,run,prob,outcome\na,q1,1,0.2,0\na,q1,2,0.3,0\n",
        problems=[(2, "id", 1)],
        words=("repeats row 1", "--columns trial=COLUMN"),
    ),
}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("42", "is neither a list nor an object"),
        ("[[1, 2], [3, 4]]", "the list does not consist of objects"),
        ('{"a": 1, "b": {"c": 2}}', "is an object without a list of rows"),
        ('{"a": [{"p": 1}], "b": [{"p": 2}, {"p": 3}]}', "is an object without a list of rows"),
    ],
)
def test_json_that_is_no_table_is_refused(tmp_path: Path, text: str, words: str):
    with pytest.raises(InputError, match=words) as refused:
        read_table(write_file(tmp_path, "r.json", text))
    assert str(refused.value.path).endswith("r.json")


@pytest.mark.parametrize("case", BAD)
def test_unclear_tables_are_refused_with_all_problems(tmp_path: Path, case: str):
    bad = BAD[case]
    with pytest.raises(InputError) as error:
        read_table(write_file(tmp_path, "results.csv", bad.text), None, ReadOptions(columns=bad.columns))
    assert [
        (table_problem.row, table_problem.column, table_problem.count) for table_problem in error.value.table_problems
    ] == bad.problems
    message = str(error.value)
    assert "\n" not in message
    assert "target' is missing" not in message
    for words in bad.words:
        assert words in message


def test_frames_arrow_and_parquet_with_usual_spellings_are_read(tmp_path: Path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({
        "model": ["a", "a", "b", "b"],
        "id": [1, 2, 1, 2],
        "prob": [20.0, 70.0, 40.0, 90.0],
        "resolution": [False, True, False, True],
        "resolved_at": pandas.to_datetime(["2025-10-26", "2025-10-27", "2025-10-26", "2025-10-27"]),
    })  # fmt: skip
    duckdb.sql("copy frame to '" + str(tmp_path / "r.parquet") + "'")
    sources = [frame, tmp_path / "r.parquet", frame.to_dict("records")]
    for package, table in (("polars", "DataFrame"), ("pyarrow", "table")):
        try:
            module = __import__(package)
        except ImportError:
            continue
        sources.append(getattr(module, table)({name: frame[name].to_list() for name in frame}))
    for source in sources:
        table = read_table(source)
        assert table.p_of("b").tolist() == [0.4, 0.9]
        assert table.targets.outcome.tolist() == [0, 1]
        assert "p = prob (percent)" in table.notes[0]
        assert table.targets.groups["resolved_on"].names == ("2025-10-26", "2025-10-27")


P = st.integers(1, 99).map(lambda n: n / 100)
ROWS = st.lists(st.tuples(P, P, st.booleans()), min_size=2, max_size=8)


def dialects(rows: list[tuple[float, float, bool]]) -> dict[str, str]:
    """The same forecasts of a and b as files in several dialects."""
    long = [(who, n, p, y) for n, (a, b, y) in enumerate(rows) for who, p in (("a", a), ("b", b))]
    word = {True: "Yes", False: "no"}
    return {
        "plain": "forecaster,question,p,outcome\n" + "".join(f"{w},q{n},{p},{int(y)}\n" for w, n, p, y in long),
        "percent": "model,id,prob,resolved\n" + "".join(f"{w},q{n},{100 * p:g} %,{y}\n" for w, n, p, y in long),
        "german": "Model;ID;Prob;Result\n"
        + "".join(f"{w};q{n};{str(p).replace('.', ',')};{word[y]}\n" for w, n, p, y in long),
        "wide": "id|a|b|resolution\n" + "".join(f"q{n}|{a}|{b}|{word[y]}\n" for n, (a, b, y) in enumerate(rows)),
    }


@settings(max_examples=25)
@given(rows=ROWS)
def test_a_table_scores_the_same_in_every_dialect(tmp_path_factory: pytest.TempPathFactory, rows: Any):
    folder = tmp_path_factory.mktemp("dialects")
    tables = {name: read_table(write_file(folder, f"{name}.csv", text)) for name, text in dialects(rows).items()}
    plain = tables["plain"]
    for table in tables.values():
        assert table.forecasters == plain.forecasters
        np.testing.assert_array_equal(table.targets.outcome, plain.targets.outcome)
        for name in plain.forecasters:
            np.testing.assert_allclose(table.p_of(name), plain.p_of(name), rtol=1e-12)


def test_fractional_outcomes_are_scored():
    rows = [{"model": "a", "id": "q1", "prob": 0.2, "resolution": 0.37}]
    metrics = foretell.score(rows, baselines=False).scores[0].metrics
    assert metrics["brier"].estimate == pytest.approx(0.17**2)
    assert metrics["log"].estimate == pytest.approx(0.37 * np.log(0.2) + 0.63 * np.log(0.8))
    assert metrics["metaculus_baseline"].estimate == pytest.approx(100 * (metrics["log"].estimate / np.log(2) + 1))
    several = [*rows, {"model": "a", "id": "q2", "prob": 0.9, "resolution": 1.0}]
    assert foretell.score(several, baselines=False).scores[0].metrics["ece"].estimate == pytest.approx((0.17 + 0.1) / 2)


def command(*words: str) -> Any:
    return CliRunner().invoke(cli, list(words))


def test_score_command_reads_usual_spellings(tmp_path: Path):
    path = write_file(tmp_path, "results.csv", dialects([(0.2, 0.4, False), (0.7, 0.9, True)])["german"])
    result = command("score", str(path), "--json")
    assert result.exit_code == 0, result.output
    board = json.loads(result.stdout)
    assert {score["forecaster"] for score in board["scores"]} >= {"a", "b"}
    assert "forecaster = Model" in board["notes"][0]
    python = foretell.score(path)
    assert python.notes == tuple(board["notes"])
    odd = write_file(tmp_path, "odd.csv", "who,what,how,end\na,q1,0.2,0\nb,q1,0.4,0\na,q2,0.3,1\nb,q2,0.9,1\n")
    named = "forecaster=who,question=what,p=how,outcome=end"
    for words in (
        ("score", str(odd)),
        ("compare", "a", "b", "-f", str(odd)),
        ("compare", "a", "b", str(odd)),
        ("score", str(odd), "--errors", "a"),
        ("compare", "a", "b", "--detect", "1", "-f", str(odd)),
    ):
        assert command(*words).exit_code != 0
        result = command(*words, "--columns", named)
        assert result.exit_code == 0, (words, result.exception)


def test_several_files_are_scored_on_one_board(tmp_path: Path):
    first = write_file(tmp_path, "mine.csv", "id,prob,resolution\nq1,20%,no\nq2,70%,yes\n")
    second = write_file(tmp_path, "yours.csv", "question;forecast\nq1;0,4\nq2;0,9\n")
    result = command("score", str(first), str(second), "--json")
    assert result.exit_code == 0, result.output
    board = json.loads(result.stdout)
    counts = {score["forecaster"]: score["n"] for score in board["scores"]}
    assert (counts["mine"], counts["yours"]) == (2, 2)
    assert [note.split(":")[0] for note in board["notes"] if note.startswith("Read")] == [
        "Read 2 rows of mine.csv",
        "Read 2 rows of yours.csv",
    ]


def test_a_missing_group_column_is_an_error_or_left_out(tmp_path: Path):
    path = write_file(tmp_path, "r.csv", "forecaster,question,p,outcome,source\na,q1,0.2,0,x\na,q2,0.7,1,y\n")
    board = foretell.score(path, by=("source", "horizon"))
    assert any("horizon" in note for note in board.notes)
    assert board.group(source="x")
    with pytest.raises(InputError, match=r"no column 'horizon'.*source"):
        foretell.score(path, by=("horizon",))


def test_calibration_study_works_with_a_minimal_table(tmp_path: Path):
    rows = "".join(f"a,q{n},{(n % 9 + 1) / 10},{int(n % 9 > 4)}\n" for n in range(40))
    path = write_file(tmp_path, "r.csv", "forecaster,question,p,outcome\n" + rows)
    quick = ("--section", "gain", "--method", "platt", "--bootstrap", "draws=100")
    result = command("study", "calibration", str(path), *quick, "--json")
    assert result.exit_code == 0, result.output
    assert "due and resolved_on" in result.output
    assert "question out" in result.output
    assert "BI past only" not in result.output


def test_epochs_are_read_as_times():
    at = datetime(2025, 10, 26, 12, tzinfo=UTC).timestamp()
    rows = [{"model": "a", "id": "q", "prob": 0.2, "resolution": 1, "resolved_at": int(1000 * at)}]
    assert read_table(rows).targets.groups["resolved_on"].names == ("2025-10-26T12:00:00Z",)
