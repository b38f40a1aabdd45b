from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from foretell.data.datasets.forecastbench import read_question_set
from foretell.questions.as_of import instant
from foretell.questions.question import Exclusivity, NumericRange, Question, Target
from foretell.standing.question_checks import find_problems, problems_of, unresolvable_note

VAGUE = """\
Will AI take over soon?
Is Bitcoin going to crash?
Will the economy get better?
Will my team win?
Will it rain?
Will the war end?
Should I buy Tesla stock?
Is Messi the best footballer ever?
Will housing prices drop significantly next year?
Will there be a major earthquake in California?
Will inflation come down?
Will he resign?
Will Apple release something big in 2027?
Will the new iPhone be a success?
Will Norway join the EU?
Will remote work become the norm by 2030?
Will Trump be popular in 2027?
Will the stock market go up tomorrow?
Will oil prices rise above 100 before 2028?
Who will win the election?
When will humans land on Mars?
Will the peace talks succeed by March?
Will electric cars become mainstream in the next few years?
Will the startup do well?
Will Biden or Trump be remembered as the better president?
Will Russia attack and will NATO respond by the end of 2027?
Is nuclear power worth it?
Will many people die of bird flu in 2027?
Will the company go bankrupt before 2028?
Will Twitter recover?
Will the vote be at 5 pm?
Will it be cold in Paris next week?
Will the minister's approval rating be above 40% in June 2027?
Will GTA 6 ever come out?
Will China become the dominant superpower by 2050?
Do you think Ukraine will win the war?
Will there be serious unrest in France in 2027?
Will interest rates be low in 2028?
Will the movie be good?
Will a lot of banks fail next year?
""".splitlines()
"""Questions as people type them."""
CLEAR = """\
Will it snow in Oslo before Christmas?
Will Norges Bank cut its rate before 2027?
Will Norway leave the EEA by the end of 2027?
Will Bitcoin hit $150k by 31 December 2026?
Will the temperature in Paris reach 30 °C on 3 July 2027?
Will a magnitude 7.0 or greater earthquake occur in California before 2028, according to the USGS?
Will Emmanuel Macron resign before 1 March 2027?
Will SpaceX land a Starship on Mars before 2031?
Will the US CPI for December 2026 be above 3.0 % year on year?
Will either Brazil or Argentina win the 2030 FIFA World Cup?
Will Lazio win the Serie A in 2027?
Will a new Major League Baseball team play before 2030?
Will the film "Major Trouble" be released before 2028?
Will the launch take place before 17:00 UTC on 3 May 2027?
Will Trump's approval rating be above 45% on Silver Bulletin on 1 June 2027?
Will more people than in 2025 visit Iceland in 2027?
""".splitlines()


def asked(text: str, *ids: str, exclusivity: Exclusivity = "exactly one", criteria: str = "") -> Question:
    targets = tuple(Target(id=id, label=id) for id in ids or ("yes",))
    return Question(
        id="q", source="asked", text=text, due="2026-11-19", targets=targets, exclusivity=exclusivity, criteria=criteria
    )


def test_vague_questions_are_found():
    assert [text for text in VAGUE if not problems_of(asked(text))] == []


def test_clear_questions_are_left_alone():
    assert {text: found for text in CLEAR if (found := problems_of(asked(text)))} == {}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Will Norway join the EU?", "deadline"),
        ("Will Norway join the EU by 1 May 2020?", "deadline passed"),
        ("Will Norway join the EU by 2030?", "by"),
        ("Will Norway join the EU by March 2030?", "by"),
        ("Will the vote in Oslo on 3 May 2027 be over by 5 pm?", "time zone"),
        ("Will rents in Oslo fall drastically in 2027?", "vague"),
        ("Is Oslo the best city in 2027?", "opinion"),
        ("Will Norway join the EU and will Sweden leave it before 2030?", "several"),
        ("Will Brazil or Argentina win the 2030 World Cup?", "alternatives"),
        ("Will she win in 2027?", "unnamed"),
        ("Will it rain tomorrow?", "unnamed"),
        ("How many people will visit Oslo in 2027?", "open"),
        ("Will the net worth of Elon Musk exceed $1 trillion in 2027?", "source"),
        ("Will the temperature in Oslo reach 80 degrees on 3 July 2027?", "unit"),
    ],
)
def test_each_rule_finds_what_it_is_for(text: str, kind: str):
    assert kind in {problem.kind for problem in find_problems(asked(text))}


def test_what_the_criteria_define_is_not_vague():
    text = "Will a major bank fail in 2027?"
    assert problems_of(asked(text)) == ('"major" is not defined',)
    criteria = "A bank is major if its assets were above 100 billion euros at the end of 2026, according to the ECB."
    assert problems_of(asked(text, criteria=criteria)) == ()


def test_a_given_closing_day_is_a_deadline():
    question = asked("Will Norway join the EU?")
    assert problems_of(question) == ("it names no deadline",)
    assert problems_of(replace(question, closes_at=instant("2027-01-01"))) == ()


def test_outcomes_or_a_range_answer_an_open_question():
    assert problems_of(asked("Who wins the 2027 election in France?", "Ann", "Bob")) == ()
    scale = NumericRange(minimum=0, maximum=12)
    number = replace(asked("How many goals are scored on 3 May 2027 in Oslo?", ">3"), range=scale)
    assert problems_of(number) == ()


def test_the_note_names_every_problem_once():
    (note,) = unresolvable_note(asked("Will Oslo change significantly soon?"))
    assert note.count("significantly") == note.count("soon") == 1
    assert "no deadline" in note
    assert unresolvable_note(asked(CLEAR[0])) == ()


@pytest.mark.shared_data
def test_published_questions_rarely_get_a_note(shared_data: Path):
    questions = {
        question.id: replace(question, source="asked", series=None, url="")
        for path in sorted((shared_data / "forecastbench" / "question_sets").glob("*-llm.json"))
        for question in read_question_set(path).questions
    }
    noted = [id for id, question in questions.items() if problems_of(question)]
    assert len(questions) > 1_000
    assert len(noted) / len(questions) < 0.02
    markets = [question for question in questions.values() if question.kind == "market"]
    bare = [replace(question, criteria="", background="") for question in markets]
    kinds = Counter(problem.kind for question in bare for problem in find_problems(question))
    assert sum(bool(problems_of(question)) for question in bare) / len(bare) < 0.08, kinds
