"""Post-cutoff passages in the texts of questions, and plans and deadlines that are none."""

import json
from pathlib import Path

import pytest

from foretell import backtest
from foretell.questions.as_of import instant
from foretell.questions.question import LastValue, Question, Target
from foretell.tools.dates.stamps import MOST_LATE_DATES, late_stamp
from foretell.tools.post_cutoff_text import (
    CUT_MARK,
    post_cutoff_passages,
    split_leaky,
    tells_later_events,
    without_post_cutoff_passages,
)

LATE = """\
Updated June 7, 2024: the ECB cut its rate. It resolves YES.
Edit (7 June 2024): the bank cut rates; resolves YES.
[Update 2024-06-07] The bank cut its rate to 3.75.
EDIT 7/6/2024: rate was cut.
UPDATE 6 June 2024 - The governing council lowered the rate.
Resolved YES on 2024-06-07.
This question resolved Yes on June 7, 2024.
Fine print added 5 May 2024: only the deposit rate counts.
As of June 10, 2024, the deposit rate stands at 3.75 %.
The ECB cut its rate on 6 June 2024.
On 6 June 2024, the ECB lowered its deposit rate by 25 basis points.
In June 2024 the ECB cut its rate for the first time.
The rate was cut by the ECB on 6 June 2024.
Aktualisiert: 07.06.2024, die EZB senkte den Zins.
Mis à jour le 7 juin 2024 : la BCE a baissé son taux.
Обновлено 7 июня 2024: ставка снижена.
更新日：2024年6月7日 金利を引き下げた
Last edited: 2024-06-07T12:00:00Z
Retrieved 7 June 2024 from the ECB's site.
© 2025 European Central Bank
FRANKFURT, June 6, 2024 (Reuters) - The ECB cut rates.
2024-06-06: 3.75
2024-06-06, 3.75
See https://www.example.org/2024/06/06/ecb-cuts-rates/ for more.
Source: https://news.example/bank-cuts-rate-to-3-75-on-6-june-2024
Posted on June 8, 2024 by admin
Comment by moderator on June 8, 2024: closing this one as yes.
Note from the author, 8 June 2024: this has happened.
The president won the election on November 5, 2024.
The Lakers beat the Celtics 110-99 on May 12, 2024.
Post-mortem (July 2024): nobody saw the cut coming.
Clarification 2024-06-01: the main rate is meant.
The unemployment rate rose to 4.1% in June 2024.
(Added on 3 July 2024) The bank has since cut twice.
Version of 12 June 2024
Closed early on 7 June 2024 because the bank cut its rate.""".splitlines()

SCHEDULED = """\
Will the ECB cut its deposit rate by 30 June 2024?
Did the bank cut its rate on 6 June 2024?
This question resolves YES if the ECB lowers its rate between 1 May 2024 and 30 June 2024.
The next meeting is scheduled for 6 June 2024.
The governing council meets on 6 June 2024.
Resolves on 2024-06-30.
Deadline: 30 June 2024, 23:59 UTC
The election takes place on November 5, 2024.
If by June 30, 2024 no announcement was made, this resolves NO.
The bank announced that rates stay unchanged until June 2024.
The treaty expires on 31 December 2025.
The report published on 15 June 2024 by Eurostat decides this question.
Will be resolved by data published on June 12, 2024.
The market closes on June 6, 2024 at 10:00 AM ET.
He was elected for a term that ends on January 20, 2029.
She was confirmed to a full 14-year term ending January 31, 2038.
The law, passed in 2023, takes effect on 1 July 2024.
The trial was postponed to 20 May 2024.
The company said it would report earnings on May 2, 2024.
The launch has been delayed until June 2024.
Questions: 2024-06-06 decision; 2024-07-18 decision.
The Olympics begin on 26 July 2024.
The bond matures on 15 May 2034.
The Fed has scheduled its meeting for June 11-12, 2024.
What will the price be on December 31, 2024?
The budget approved in March runs from 1 April 2024 to 31 March 2025.
Yes if the temperature recorded on May 14, 2024 is above 60.
The final was moved to 1 June 2024 at Wembley.
According to the table released on September 3, 2024, which film leads?
It is based on the jobs report to be released June 7, 2024.
Rates were last changed on September 14, 2023.
The minister promised a vote on May 30, 2024.
Resolution source: the table published July 1, 2024.
The primary was set for June 4, 2024.
If he has taken at least 10 actions from Apr 26, 2024 through May 2, 2024 (as checked on the page), it resolves to Yes.
The agreement, signed in 2022, was extended to 31 December 2024.
Tickets for the concert of May 25, 2024 went on sale in January.
The court set a hearing date of June 14, 2024.
[October 2027: Oversight](https://scenario.example/#narrative-2027-10-15)""".splitlines()


def make_question(
    background: str = "", *, text: str = "Will it?", criteria: str = "", due: str = "2024-04-01"
) -> Question:
    return Question(id="q", source="own", text=text, background=background, criteria=criteria, due=instant(due))


@pytest.mark.parametrize("text", LATE)
def test_post_cutoff_passages_are_found_and_cut(text: str) -> None:
    (first, *_) = post_cutoff_passages(make_question(text))
    assert first.field == "background"
    assert first.found
    assert " ".join(text.split())[:20] in first.sentence
    cut = without_post_cutoff_passages(
        make_question(f"The rate is 4 %.\n\n{text}\nIt fell.\n\nThe next meeting is on 18 July 2024.")
    )
    assert cut.background == f"The rate is 4 %.\n\n{CUT_MARK}\n\nThe next meeting is on 18 July 2024."
    assert not post_cutoff_passages(cut)


@pytest.mark.parametrize("text", SCHEDULED)
def test_plans_deadlines_and_conditions_are_not_post_cutoff_text(text: str) -> None:
    question = make_question(text, criteria=text, text=text)
    assert post_cutoff_passages(question) == ()
    assert without_post_cutoff_passages(question) == question


def test_label_with_a_later_announcement_date_is_post_cutoff_text() -> None:
    for label, late in (
        ("Yes, as announced on 6 June 2024", True),
        ("Yes, as confirmed by the board on 6 June 2024", True),
        ("Cut announced on 6 June 2024", False),
        ("Above 3% as reported on 12 June 2024", False),
    ):
        option = Target(id="a", label=label)
        question = Question(id="q", source="own", text="?", due=instant("2024-04-01"), targets=(option,))
        assert bool(post_cutoff_passages(question)) == late, label


def test_all_texts_of_a_question_are_checked() -> None:
    late = "Updated June 7, 2024: yes."
    for question, field in (
        (make_question(text=late), "question"),
        (make_question(criteria=late), "criteria"),
        (make_question(late), "background"),
        (
            Question(id="q", source="own", text="?", due=instant("2024-04-01"), targets=(Target(id="a", label=late),)),
            "option a",
        ),
        (
            Question(
                id="q",
                source="own",
                text="?",
                due=instant("2024-04-01"),
                last_value=LastValue(value=4, at=instant("2024-03-01"), meaning=late),
            ),
            "last value",
        ),
    ):
        assert [cutoff_passage.field for cutoff_passage in post_cutoff_passages(question)] == [field]
        assert post_cutoff_passages(without_post_cutoff_passages(question)) == ()


def test_question_text_may_be_a_statement_in_the_past_tense() -> None:
    claim = "The bank cut its rate on 6 June 2024."
    assert post_cutoff_passages(make_question(text=claim)) == ()
    assert post_cutoff_passages(make_question(claim))
    assert tells_later_events(claim, make_question().as_of)
    assert not tells_later_events("The bank is to decide on 6 June 2024.", make_question().as_of)


def test_cutoff_time_decides() -> None:
    text = "Updated June 7, 2024: yes."
    assert post_cutoff_passages(make_question(text))
    assert not post_cutoff_passages(make_question(text, due="2024-06-07"))
    assert post_cutoff_passages(make_question(text, due="2024-06-06T12:00:00Z"))


def test_long_and_hostile_texts_are_checked_up_to_a_limit() -> None:
    for text in ("Updated June 7, 2024 " * 700, "é on 6 June 2024 was " * 200, "2024-06-06," * 1000, "(" * 70_000):
        assert post_cutoff_passages(make_question(text))
        assert len(without_post_cutoff_passages(make_question(text)).background) <= 60_000 + len(CUT_MARK)


def test_text_with_hundreds_of_future_days_counts_as_late() -> None:
    due = "The report of a state is due by {} June {}. "
    days = "".join(due.format(1 + place % 28, 2025 + place // 28) for place in range(MOST_LATE_DATES + 1))
    assert "more than 300 dates" in str(post_cutoff_passages(make_question(days))[0])
    assert not post_cutoff_passages(make_question(days[: len(days) // 2]))
    assert late_stamp(days, make_question("").as_of) is not None


def test_backtests_exclude_leaky_questions_by_default() -> None:
    late, early = (
        make_question("Updated June 7, 2024: yes."),
        Question(id="e", source="own", text="?", due=instant("2024-04-01")),
    )
    backgrounds: list[str] = []

    def forecaster(question: Question) -> float:
        backgrounds.append(question.background)
        return 0.3

    result = backtest(forecaster, [late, early])
    assert [forecast.question_id for forecast in result.forecasts] == ["e"]
    assert result.excluded == (late,)
    assert len(backtest(forecaster, [late, early], leaky_questions="keep").forecasts) == 2
    backtest(forecaster, [late], leaky_questions="redact")
    assert backgrounds == ["", "Updated June 7, 2024: yes.", "", CUT_MARK]
    assert split_leaky([late, early], "exclude") == ([early], [late])


def test_real_questions_have_no_post_cutoff_passages(shared_data: Path) -> None:
    """Checks a question set as it was published."""
    passages: list[str] = []
    for file in sorted((shared_data / "forecastbench" / "question_sets").glob("*.json"))[:1]:
        data = json.loads(file.read_text(encoding="utf-8"))
        for row in data["questions"]:
            texts = {name: row.get(name) or "" for name in ("background", "resolution_criteria")}
            question = Question(
                id=str(row["id"]),
                source=row["source"],
                text=row["question"],
                background=texts["background"],
                criteria=texts["resolution_criteria"] + "\n\n" + str(row.get("market_info_resolution_criteria") or ""),
                due=instant(data["forecast_due_date"]),
            )
            passages += map(str, post_cutoff_passages(question))
    assert passages == []
