from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tools.doubles import CUTOFF

from foretell.questions.as_of import AsOf
from foretell.studies.audit.leaks import ASKED
from foretell.tools.dates.addresses import late_address
from foretell.tools.dates.ages import age_stamp, without_age
from foretell.tools.dates.find import find_dates
from foretell.tools.dates.records import late_entry, late_row, stated_outcome
from foretell.tools.dates.stamps import late_stamp
from foretell.tools.leakage_rules import LeakageRules
from foretell.tools.tool import SourceItem

DATE_FORMATS = (
    "{0:%Y-%m-%d}",
    "{0:%B} {0.day}, {0.year}",
    "{0.day} {0:%b} {0.year}",
    "{0.day}. {0:%B} {0.year}",
    "{0.month}/{0.day}/{0.year}",
)


@given(st.dates(date(2001, 1, 1), date(2060, 12, 31)), st.sampled_from(DATE_FORMATS))
@settings(max_examples=150)
def test_all_date_formats_are_read(day: date, template: str) -> None:
    readings = [
        found_date.readings for found_date in find_dates(f"It was said on {template.format(day)} that all is well.")
    ]
    assert len(readings) == 1
    assert day in readings[0]


@given(st.dates(date(2001, 1, 1), date(2060, 12, 31)), st.dates(date(2001, 1, 1), date(2060, 12, 31)))
@settings(max_examples=100)
def test_stamp_is_late_if_and_only_if_its_day_begins_after_the_cutoff(day: date, cutoff: date) -> None:
    text = f"A story.\nUpdated {day:%B} {day.day}, {day.year}\nMore of it."
    assert (late_stamp(text, AsOf.day(cutoff)) is not None) == (day > cutoff)


@pytest.mark.parametrize(
    "text",
    [
        "The timetable will be published on March 5, 2026.",
        "It is to be updated March 5, 2026, they said.",
        "He posted a photo. On March 5, 2026 the fair opens.",
        "An updated forecast is due on March 5, 2026.",
        "Rates are not revised until March 5, 2026.",
        "We publish on March 5, 2026.",
    ],
)
def test_plans_to_publish_are_not_stamps(text: str) -> None:
    assert late_stamp(text, CUTOFF) is None


def test_letters_that_change_length_in_lower_case_do_not_hide_a_stamp() -> None:
    assert late_stamp("İstanbul İİİ. Updated March 5, 2026", CUTOFF) is not None


def test_an_age_is_a_stamp_only_about_the_page_itself() -> None:
    assert age_stamp("Updated 3 hours ago") is not None
    assert age_stamp("The rule was introduced 3 years ago") is None
    assert age_stamp("They had it published two years ago") is None


def test_only_live_reports_have_entries() -> None:
    text = "27 October 2025: the vote begins."
    assert late_entry("Vote: live updates", text, CUTOFF) is not None
    assert late_entry("Calendar of votes", text, CUTOFF) is None
    assert late_entry("Vote: live updates", text.replace("27", "26"), CUTOFF) is None


@pytest.mark.parametrize(
    "text",
    [
        "The ferry is slow in winter. Uploaded by Dock Cam on 3 March 2026. It takes an hour.",
        "Der Hafen ist klein. Urteil des Landgerichts Kiel vom 3. März 2026. Die Klage wird abgewiesen.",
        "Kiel, 3. März 2026. Die Fähre hat am Morgen den Kai gerammt.",
        "Avis de Jeanne le 3 mars 2026 : le colis est arrivé ouvert.",
        "Verkauft am 3. März 2026, Wohnung, 60 Quadratmeter",
        "Versteigerung vom 3. März 2026: eine Uhr für 900 Euro",
        "(undo) 14:26, 3 March 2026 Gull (talk)",
        "★★★★☆ Gull, 3 March 2026. Stopped charging after a week.",
        "Backup written to disk-20260303.tar.gz",
        "Cash held: 4.2m as at 3 March 2026.",
        "Good morning, it is Tuesday, 3 March 2026. The ferry is back.",
    ],
)
def test_dated_documents_are_found_within_a_paragraph(text: str) -> None:
    assert late_stamp(text, CUTOFF) is not None


@pytest.mark.parametrize(
    "text",
    [
        "Poll of 20 October 2025 on the referendum of 3 March 2026: 42 % undecided.",
        "Review written 20 October 2025. Next inspection 3 March 2026.",
        "Financial calendar: annual meeting 3 March 2026; trading update 5 May 2026.",
        "Pre-order: hardback, publication date 3 March 2026.",
        "Road closed from 3 March 2026 to 5 March 2026 for repairs.",
        "Coming up\n3 March 2026, quiz night",
        "Expires: Tue, 03 Mar 2026 10:00:00 GMT",
        "Lot 3.3.26 was sold.",
        "L'udienza è fissata al 3 marzo 2026.",
        "提出期限:2026年3月3日",
    ],
)
def test_future_days_next_to_document_words_are_plans(text: str) -> None:
    assert late_stamp(text, CUTOFF) is None


def test_dates_in_addresses_of_agendas_are_plans() -> None:
    assert late_address("https://a.org/2026/03/05/x", CUTOFF) is not None
    assert late_address("https://a.org/events/2026/03/05/x", CUTOFF) is None
    assert late_address("https://a.org/2025/10/26/x", CUTOFF) is None
    assert late_address("https://a.org/2026/99/99/x", CUTOFF) is None


def test_without_age_removes_only_a_leading_age() -> None:
    assert without_age("2 months ago · Ten days ago it rained.") == "Ten days ago it rained."
    assert without_age("It rained 2 days ago.") == "It rained 2 days ago."


@pytest.mark.shared_data
def test_late_stamps_in_real_texts_are_real_leaks(shared_data) -> None:
    """Question texts of ForecastBench: one in five names a day after its due date, four were rewritten after it."""
    import duckdb

    execute = duckdb.connect().execute(
        # In order, so that a text of several rounds is read once.
        "SELECT forecast_due_date, concat_ws(chr(10), question, background, resolution_criteria) FROM read_parquet(?)"
        " ORDER BY 2",
        [str(shared_data / "tables" / "questions.parquet")],
    )
    late = [late_stamp(text, AsOf.day(str(due)[:10])) for due, text in execute.fetchall()]
    assert len(late) > 8_000
    assert {stamp[-17:] for stamp in late if stamp} == {"Update 2025-07-01"}


def test_only_days_that_begin_after_the_cutoff_are_late() -> None:
    morning = AsOf(at=CUTOFF.at - timedelta(hours=15))
    assert late_stamp("Updated 26 October 2025", morning) is None
    assert late_stamp("Updated 27 October 2025", morning) is not None


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "é",
        "слово ",
        "\n",
        " ",
        "2025 ",
        "2025-06-05 ",
        "2025-06-05 10:00\n",
        '{"d":"2025-06-05","v":1},',
        "| ",
        "2025年",
    ],
)
def test_endless_lines_take_linear_time(piece: str) -> None:
    """With more than linear time this test would not end."""
    text = piece * (200_000 // len(piece)) + ": 5 June 2026"
    late_stamp(text, CUTOFF)
    late_row("Rates", text, CUTOFF)
    stated_outcome(text)
    age_stamp(text)


@pytest.mark.parametrize(
    "text",
    [
        "Él murió el 6 de junio de 2026, según el ministro.",
        "Q&amp;A: la présidente a été élue le 6 juin 2026 à Nîmes.",
        "คลองเปิดอีกครั้งเมื่อวันที่ 6 มิถุนายน 2569 แล้ว",
        "On the fifth of June, two thousand and twenty-six, the bank cut its rate.",
    ],
)
def test_past_events_are_found_in_long_lines(text: str) -> None:
    """Places of the folded form are found again in the text itself, also behind many accents and entities."""
    assert late_stamp(text, CUTOFF) is not None
    assert late_stamp("Ñandú &amp; señor: más allá. " * 200 + text, CUTOFF) is not None


@pytest.mark.parametrize(
    ("text", "late"),
    [
        ("Bollettino neve del 4 maggio 2026, ore 8. Al passo sono stati misurati 212 cm.", True),
        ("চট্টগ্রাম, ২৮ মে ২০২৬: গতকাল নগরীর নিম্নাঞ্চল প্লাবিত হয়েছে।", True),
        ("The cable car reopened on Good Friday 2026.", True),
        ("The cable car will reopen on Good Friday 2026.", False),
        ("원서 접수: 2026년 5월 13일 ~ 6월 1일.", False),
        ("Parts list: M6x2026 threaded rod, hinge no. 4.", False),
    ],
)
def test_inflected_months_seasons_holidays_and_headings_are_dates(text: str, late: bool) -> None:
    published = CUTOFF.at - timedelta(days=20)
    item = SourceItem(title="", url="https://a.example/b", text=text, published=published, dating="published")
    admitted = LeakageRules(as_of=CUTOFF, question=ASKED).admit(item, "web_search")
    assert isinstance(admitted, SourceItem) != late
