"""Previews pass the rules and reports of later days do not, on the texts of `benchmarks/leak_texts.py`."""

import pytest
from benchmarks.leak_texts import leak_texts

from foretell.questions.as_of import AsOf
from foretell.tools.dates.relative import late_age, late_anniversary, late_counted_time
from foretell.tools.dates.stamps import late_stamp

CUTOFF = AsOf.day("2024-06-20")


def test_nine_of_ten_leaks_are_stopped_and_one_of_fifty_clean_texts() -> None:
    """Most leaks that pass have no date. The rules were tuned on most of these texts."""
    texts = leak_texts()
    wrong = {
        leak: [text.text for text in texts if text.leak == leak and (text.refusal() is not None) != leak]
        for leak in (True, False)
    }
    leaks = sum(text.leak for text in texts)
    previews = sum(text.kind.startswith("preview") for text in texts)
    assert leaks > 500
    assert previews > 750
    assert len(wrong[True]) <= 0.1 * leaks, wrong[True]
    assert len(wrong[False]) <= 0.02 * (len(texts) - leaks), wrong[False]


@pytest.mark.parametrize(
    "text",
    [
        "Our base case is that the Bank cuts on 18 December 2024.",
        "Money markets price a 63 % chance of a cut on 18 December 2024.",
        "The union threatened to stop work on 1 July 2024.",
        "Both chambers passed the act, which takes force on 1 August 2024.",
        "The judge set 18 September 2024 for sentencing.",
        "The cabinet agreed on Tuesday on an election on 23 February 2025.",
        "Dealers sold options that expire on 8 November 2024.",
        "Date | Event | Actual | Forecast\n2024-07-11 | CPI y/y | – | 3.1%",
        "Date,Event,Previous,Forecast,Actual\n2024-07-11,CPI y/y,3.3,3.1,",
        "| Date | Event | Previous |\n|---|---|---|\n| 11 July 2024 | CPI | 3.3% |",
        "Launch | Vehicle | No earlier than\nHera | Falcon 9 | 2024-10-08",
        "The agency shipped the stage to Kourou for a flight between 15 June and 31 July 2024.",
        "Ministers named a new date; 23 March 2025 was mentioned twice.",
        "The house valued the stone and sends it under the hammer on 12 November 2024.",
        "He said the older model retires on 5 January 2025 and gave developers a guide.",
        "The model had the party on 108 seats on 4 July 2024.",
        "In der letzten Umfrage lag sie vor der Stichwahl am 18. August 2024 vorn.",
        "Sie kündigte an, am 26. August 2024 über den Vorsitz neu zu entscheiden.",
        "Acordaron reunirse de nuevo el 2 de julio de 2024 en Ginebra.",
        "Стороны договорились встретиться снова 2 июля 2024 года.",
        "La préfecture a autorisé le rassemblement du 24 août 2024.",
    ],
)
def test_verbs_in_the_past_do_not_make_a_preview_late(text: str) -> None:
    assert late_stamp(text, CUTOFF) is None


@pytest.mark.parametrize(
    "text",
    [
        "The bank cut its rate on 18 December 2024 as expected.",
        "The bank cut its rate on 18 December 2024, which traders had priced in.",
        "The committee warned on 11 July 2024 that prices were rising.",
        "On 11 July 2024 the minister argued for a ceiling on rents and lost.",
        "Date | Event | Actual | Forecast\n2024-07-11 | CPI y/y | 3.0% | 3.1%",
        "Port channel, [28.06.24 07:03]\nThe deal is signed.",
        "Date,Event,Previous,Forecast,Actual\n2024-07-11,CPI y/y,3.3,3.1,3.0",
        "Payrolls   05 July 2024: 206k (fcst 190k)",
        "A gunman opened fire at a rally in Butler on 13 July 2024, grazing the candidate's ear.",
        "At the hearing on 11 July 2024 the judge ordered the firm to pay.",
        "Kofi A., 28/06/2024, 17:24 - he is sworn in now",
        "Партия победила на выборах 28 июля 2024 года.",
    ],
)
def test_reports_of_later_days_are_late(text: str) -> None:
    assert late_stamp(text, CUTOFF) is not None


def test_times_are_counted_from_dates_before_the_cutoff() -> None:
    published = CUTOFF.at.date()
    late = "Two months after the June cut, approvals picked up."
    assert late_counted_time(late, published, CUTOFF) == "Two months after the June"
    assert late_counted_time("Two months after the March cut, approvals picked up.", published, CUTOFF) is None
    assert late_counted_time("Two months after the June cut, the review will begin.", published, CUTOFF) is None
    assert late_counted_time("Sechs Wochen nach dem Brand vom 7. Juni 2024 kehren sie zurück.", published, CUTOFF)
    assert late_counted_time("A seis meses del apagón del 7 de junio de 2024 nadie responde.", published, CUTOFF)
    passed = "A full six months have passed since the inauguration of 7 June 2024."
    assert (
        late_counted_time(passed, published, CUTOFF) == "six months have passed since the inauguration of 7 June 2024"
    )
    assert late_anniversary("By the first anniversary of the vote of 9 June 2024 it had met twice.", CUTOFF)
    assert late_anniversary("The first anniversary of the vote of 9 June 2024 will be marked.", CUTOFF) is None
    assert late_age("The strike that began on 1 June 2024 is in its third month.", CUTOFF) == "in its third month"
    assert late_age("The strike that began on 1 April 2024 is in its third month.", CUTOFF) is None
