"""A user's own questions: valid files, and the error for each mistake."""

import json
from dataclasses import replace

import pytest

from foretell.data.datasets.question_files import read_questions
from foretell.questions.as_of import instant
from foretell.questions.codec import to_json
from foretell.questions.errors import InputError
from foretell.questions.question import Question, Snapshot, Target

PLAIN = {"text": "Will it rain?", "due": "2026-01-18", "by": "2026-02-01"}


def test_only_a_text_is_required(write) -> None:
    path = write("q.jsonl", json.dumps({"text": "Will it rain in Oslo?"}))
    (question,) = read_questions(path, asked_at=instant("2026-01-18T09:30:00Z")).questions
    assert question.id.startswith("will-it-rain-in-oslo-")
    assert (question.source, question.kind, question.exclusivity) == ("own", "market", "independent")
    assert [t.id for t in question.targets] == ["yes"]
    assert question.as_of.at == instant("2026-01-18T09:30:00Z")


def test_all_fields_are_read(write) -> None:
    row = PLAIN | {
        "id": "rain",
        "source": "met",
        "category": "weather",
        "subtype": "daily",
        "criteria": "At the station.",
        "background": "It rained before.",
        "cluster": "oslo",
        "url": "https://example.org",
        "opens": "2026-01-01",
        "closes": "2026-02-01T12:00:00Z",
        "price": 0.3,
        "price_at": "2026-01-17",
    }
    (question,) = read_questions(write("q.jsonl", json.dumps(row))).questions
    assert (question.id, question.source, question.category, question.cluster) == ("rain", "met", "weather", "oslo")
    assert question.targets[0].snapshot == Snapshot(at=instant("2026-01-17"), last_price=0.3)
    assert question.targets[0].resolves_at == instant("2026-02-01")
    assert question.criteria == "At the station."


def test_all_file_formats_give_the_same_questions(write) -> None:
    rows = [
        PLAIN | {"id": "a"},
        {"id": "b", "text": "Who, if anyone, wins?", "due": "2026-01-18", "options": ["Ann", "Bob"]},
        {"id": "c", "text": "Up?", "due": "2026-01-18", "dates": ["2026-01-25", "2026-02-18"], "series": "fred/DGS10"},
    ]
    as_csv = (
        "id,text,due,by,options,dates,series\n"
        "a,Will it rain?,2026-01-18,2026-02-01,,,\n"
        'b,"Who, if anyone, wins?",2026-01-18,,Ann; Bob,,\n'
        "c,Up?,2026-01-18,,,2026-01-25; 2026-02-18,fred/DGS10\n"
    )
    as_yaml = """
questions:
  - {id: a, text: "Will it rain?", due: 2026-01-18, by: 2026-02-01}
  - id: b
    text: Who, if anyone, wins?
    due: 2026-01-18
    options: [Ann, Bob]
  - {id: c, text: "Up?", due: 2026-01-18, dates: [2026-01-25, 2026-02-18], series: fred/DGS10}
"""
    files = [
        write("q.jsonl", "\n".join(map(json.dumps, rows)) + "\n\n"),
        write("q.json", rows),
        write("q.csv", "\ufeff" + as_csv),
        write("q.yaml", as_yaml),
    ]
    questions = [read_questions(file).questions for file in files]
    assert questions[0] == questions[1] == questions[2] == questions[3]
    _, options, dated = questions[0]
    assert options.exclusivity == "exactly one"
    assert [t.id for t in options.targets] == ["Ann", "Bob"]
    assert [t.id for t in dated.targets] == ["2026-01-25", "2026-02-18"]
    assert dated.kind == "dataset"
    assert dated.series is not None
    assert (dated.series.provider, dated.series.id) == ("fred", "DGS10")


def test_options_may_have_prices_and_be_independent(write) -> None:
    row = PLAIN | {"options": ["Ann", "Bob"], "exclusive": False, "price": {"Ann": 0.7, "Bob": 0.6}}
    (question,) = read_questions(write("q.jsonl", json.dumps(row))).questions
    assert question.exclusivity == "independent"
    assert [t.snapshot.last_price for t in question.targets if t.snapshot] == [0.7, 0.6]


def test_at_most_one_of_the_options_may_come_true(write) -> None:
    row = PLAIN | {"options": ["Ann", "Bob"]}
    variants = (
        {"exclusivity": "at most one"},
        {"exclusivity": "at-most-one"},
        {"exclusive": True},
        {"exclusivity": ""},
    )
    rows = [json.dumps(row | more | {"id": str(n)}) for n, more in enumerate(variants)]
    questions = read_questions(write("q.jsonl", "\n".join(rows))).questions
    assert [question.exclusivity for question in questions] == [
        "at most one",
        "at most one",
        "exactly one",
        "exactly one",
    ]
    table = "text,due,options,exclusivity\nWho?,2026-01-18,Ann;Bob,at most one\n"
    assert read_questions(write("q.csv", table)).questions[0].exclusivity == "at most one"


def test_a_question_may_be_about_a_level_of_a_series(write) -> None:
    row = PLAIN | {"series": "fred/DGS10", "below": 4.5}
    (question,) = read_questions(write("q.jsonl", json.dumps(row))).questions
    assert question.series is not None
    assert (question.series.comparison, question.series.threshold) == ("below", 4.5)


def test_complete_questions_are_read_unchanged(write) -> None:
    question = Question(id="w", source="s", text="?", due="2026-01-18", targets=(Target(id="x"), Target(id="y")))
    path = write("q.jsonl", to_json(question) + "\n" + json.dumps(PLAIN))
    assert read_questions(path).questions[0] == question
    fields = json.loads(to_json(question))
    unnamed = json.dumps({name: value for name, value in fields.items() if name != "source"})
    assert read_questions(write("q.jsonl", unnamed)).questions == (replace(question, source="own"),)
    for changes, column in (({"sauce": "s"}, "sauce"), ({"source": 7}, "source"), ({"text": None}, "text")):
        path = write("bad.jsonl", f"{json.dumps(PLAIN)}\n{json.dumps(fields | changes)}")
        with pytest.raises(InputError, match=rf"bad\.jsonl, row 2, column {column}: "):
            read_questions(path)


def test_unparsable_date_raises_at_load(write) -> None:
    with pytest.raises(InputError) as caught:
        read_questions(write("q.jsonl", json.dumps(PLAIN) + "\n" + json.dumps(PLAIN | {"id": "b", "by": "next year"})))
    assert "q.jsonl, row 2, column by: 'next year' is not an ISO date" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"due": "2026-01-18T12:00:00"}, "column due: '2026-01-18T12:00:00' has no time zone"),
        ({"due": None}, "column due: is missing"),
        ({"due": 20260118}, "column due: 20260118 is not a date"),
        ({"by": "2026-01-01"}, "column by: 2026-01-01 is before 2026-01-18, its due day"),
        ({"resolves": "2026-03-01"}, "column resolves: by and resolves mean the same; give one"),
        ({"dates": ["2026-03-01"]}, "column dates: already says when the question resolves"),
        ({"by": None, "dates": ["2025-03-01"]}, "column dates: 2025-03-01 is not a date after the due day"),
        ({"by": None, "dates": ["2026-03-01"], "options": ["a", "b"]}, "column dates: a question has options or dates"),
        ({"by": None, "dates": "2026-03-01"}, "column dates: expected a list"),
        ({"options": ["only"]}, "column options: needs two or more options"),
        ({"options": ["a", "a"]}, "names target 'a' twice"),
        ({"options": ["a", "b"], "price": 0.5}, "column price: one price does not say which option"),
        ({"options": ["a", "b"], "price": {"c": 0.5}}, "column price: 'c' is not an option (known: a, b)"),
        ({"price": 30}, "column price: last_price is 30.0; expected a number from 0 to 1"),
        ({"price": "30 %"}, "column price: '30 %' is not a number"),
        ({"price": 0.3, "price_at": "2026-01-19"}, "column price_at: the price is from after the due time"),
        ({"kind": "bet"}, "column kind: 'bet' is not a kind (known: market, dataset)"),
        ({"exclusive": "perhaps"}, "column exclusive: 'perhaps' is neither true nor false"),
        ({"exclusivity": "two"}, "column exclusivity: 'two' is not one of exactly one, at most one, independent"),
        ({"exclusivity": "at most one", "exclusive": True}, "column exclusive: is the older name of exclusivity"),
        ({"series": "DGS10"}, "column series: 'DGS10' does not name a series"),
        ({"above": 3}, "column series: is missing"),
        ({"series": "fred/X", "above": 3, "below": 4}, "column below: give above or below, not both"),
        ({"text": ["a"]}, "column text: expected a text"),
        ({"text": ""}, "column text: is missing"),
        ({"backgruond": "…"}, "column backgruond: is not a known field (did you mean background?)"),
        ({"zzz": 1}, "column zzz: is not a known field (known: text, id,"),
        ({"outcome": 1}, "column outcome: a question file must not contain answers"),
        ({"resolved_to": None}, "column resolved_to: a question file must not contain answers"),
    ],
)
def test_each_mistake_raises_with_row_and_column(write, changes: dict, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_questions(write("q.jsonl", json.dumps(PLAIN) + "\n" + json.dumps(PLAIN | {"id": "b"} | changes)))
    assert "q.jsonl, row 2" in str(caught.value)
    assert message in str(caught.value)


def test_an_id_may_be_used_once_per_due_day(write) -> None:
    twice = "\n".join([json.dumps(PLAIN | {"id": "a"})] * 2)
    with pytest.raises(InputError, match="row 2, column id: question a is already in row 1"):
        read_questions(write("q.jsonl", twice))
    later = PLAIN | {"id": "a", "due": "2026-01-25"}
    again = "\n".join([json.dumps(PLAIN | {"id": "a"}), json.dumps(later)])
    assert len(read_questions(write("q.jsonl", again)).questions) == 2


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("q.txt", "?", ".txt is not a kind of question file"),
        ("q", "?", "no ending is not a kind"),
        ("q.jsonl", "", "contains no question"),
        ("q.csv", "text,due\n", "contains no question"),
        ("q.yaml", "questions: []", "contains no question"),
        ("q.jsonl", "{", "row 1: is not JSON"),
        ("q.jsonl", "[1]", "row 1: expected an object"),
        ("q.json", "{}", "expected a list of questions"),
        ("q.yaml", "a: [", "is not YAML"),
        ("q.yaml", "text: hello", "expected a list of questions"),
        ("q.yaml", "- text: ?\n  due: 2026-13-45", "is not"),
        ("q.yaml", "questions: []\nname: x", "field name: is not allowed next to the list"),
        ("q.csv", "text,due\n?,2026-01-18,more\n", "row 1: the row has 3 values and the header 2"),
        ("q.csv", "text,due\n?\n", "row 1: the row has 1 values and the header 2"),
        ("q.csv", 'text,due\n"?,2026-01-18\n', "row 1: a quotation mark is never closed"),
        ("q.csv", "text,due,text\n?,2026-01-18,!\n", "column 'text' appears twice"),
        ("q.csv", "text,due\n?\0,2026-01-18\n", "line 2 contains a NUL byte"),
        ("q.json", '[\n{"text": "?",\n', "is not JSON: Expecting property name enclosed in double quotes at line 2"),
        ("q.json", '[{"text": "?", "text": "!"}]', "field text: appears twice"),
        ("q.jsonl", "[" * 100_000, "row 1: is not JSON that can be read: it is nested too deeply"),
        ("q.jsonl", '\n{"text": "?', "row 2: is not JSON: Unterminated string starting at character 10"),
    ],
)
def test_an_unreadable_file_raises_with_the_reason(write, name: str, content: str, message: str) -> None:
    path = write(name, content)
    with pytest.raises(InputError) as caught:
        read_questions(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_yaml_never_runs_code(write) -> None:
    with pytest.raises(InputError, match="is not YAML"):
        read_questions(write("q.yaml", "- text: !!python/object/apply:os.getcwd []"))
