import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from foretell.data.pages import Page, PageUnavailable
from foretell.data.search.engine import SearchHit
from foretell.data.series.series import Series, SeriesInMemory
from foretell.models.model import ModelBusy, Reply, Request
from foretell.questions.as_of import AsOf, instant
from foretell.questions.question import Exclusivity, NumericRange, Question, SeriesRef, Target
from foretell.questions.resolution import Resolution
from foretell.standing.readings import INSTRUCTIONS, OutcomeDocument, OutcomeReader, occurs
from foretell.standing.record import OutcomeProposal, QuestionRecord, Sharpening, StandingQuestion
from foretell.standing.resolve import OutcomeSources, market_proposal, propose_outcome, series_proposal

OPENED = datetime(2026, 7, 14, tzinfo=UTC)
DEADLINE = "2026-12-01"
NOW = datetime(2026, 12, 3, 9, tzinfo=UTC)
SIGNED = "On 12 November 2026 the two ministers signed the port treaty in Halvik."
QUIET = "The register lists no port treaty between the two states."
DECIDES = "The treaty register at https://treaties.example/halvik decides."


def question(*ids: str, exclusivity: Exclusivity = "exactly one", **more: Any) -> Question:
    targets = tuple(Target(id=id, label=id, resolves_at=DEADLINE) for id in ids or ("yes",))
    text = more.pop("text", "Will the port treaty be signed before 1 December 2026?")
    return Question(
        id="asked/1", source="asked", text=text, due=OPENED, targets=targets, exclusivity=exclusivity, **more
    )


def record(asked: Question | None = None, decides: str = "") -> QuestionRecord:
    asked = asked or question()
    sharpening = Sharpening(original="Treaty soon?", text=asked.text, decides=decides) if decides else None
    return QuestionRecord(standing=StandingQuestion(id="port", question=asked, opened_at=OPENED, sharpening=sharpening))


def document(
    text: str = SIGNED, host: str = "news.example", day: str | None = "2026-11-13", **more: Any
) -> OutcomeDocument:
    published = None if day is None else instant(day)
    return OutcomeDocument(
        url=f"https://{host}/halvik", title="Halvik", text=text, read_at=NOW, published=published, **more
    )


@dataclass
class ScriptedReader:
    """Answers requests for a reading by a function of the task."""

    answer: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    seen: list[Request] = field(default_factory=list[Request])

    async def complete(self, request: Request) -> Reply:
        self.seen.append(request)
        task = json.loads(request.messages[-1].text)  # pyright: ignore[reportAttributeAccessIssue]
        return Reply(text=json.dumps(self.answer(task)), charged=0.01)


def says(
    status: str = "decided",
    *true: str,
    quote: str = SIGNED,
    because: str = "event",
    on: str = "2026-11-12",
    value: Any = None,
) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """A reader that quotes every document in which the quotation occurs, or the first one if it occurs in none."""

    def answer(task: Mapping[str, Any]) -> dict[str, Any]:
        holding = [row["document"] for row in task["documents"] if quote in row["text"]] or [1]
        quotes = [{"document": number, "quote": quote} for number in holding] if quote else []
        return {
            "why": "It says so.", "status": status, "true": list(true), "value": value, "because": because,
            "happened_on": on, "quotes": quotes,
        }  # fmt: skip

    return answer


def readers(*answers: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> list[OutcomeReader]:
    return [OutcomeReader(model=ScriptedReader(answer), name=f"fake:{n}") for n, answer in enumerate(answers)]


def propose(
    documents: Sequence[OutcomeDocument] = (),
    *answers: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    of: QuestionRecord | None = None,
    now: datetime = NOW,
    **sources: Any,
) -> OutcomeProposal:
    consulted = OutcomeSources(documents=documents, readers=readers(*answers), **sources)
    return asyncio.run(propose_outcome(of or record(), consulted, now))


TWO_SITES = (document(), document(host="daily.example"))
YES = says("decided", "yes")
UNSPECIFIC = "The ministers signed the port treaty in Halvik."
UNDATED = (document(UNSPECIFIC, day="2026-12-02"), document(UNSPECIFIC, "b.example", "2026-12-02"))


# Texts.


def test_two_readings_that_agree_on_two_sites_propose_an_outcome():
    proposal = propose(TWO_SITES, YES, YES)
    assert (proposal.outcome, proposal.status) == ({"yes": 1}, "proposed")
    assert [reading.quote for reading in proposal.readings] == [SIGNED, SIGNED]
    assert proposal.billed == pytest.approx(0.02)


def test_one_model_reads_twice_with_different_instructions_and_order():
    reader = ScriptedReader(YES)
    sources = OutcomeSources(documents=TWO_SITES, readers=[OutcomeReader(model=reader, name="fake:one")])
    assert asyncio.run(propose_outcome(record(), sources, NOW)).outcome == {"yes": 1}
    systems = [request.messages[0].text for request in reader.seen]  # pyright: ignore[reportAttributeAccessIssue]
    assert sorted(systems) == sorted(INSTRUCTIONS)
    orders = [
        [row["address"] for row in json.loads(request.messages[-1].text)["documents"]]  # pyright: ignore[reportAttributeAccessIssue]
        for request in reader.seen
    ]
    assert orders[0] == orders[1][::-1]


@pytest.mark.parametrize(
    ("documents", "second", "why"),
    [
        (TWO_SITES, says("decided", quote=SIGNED), "the readings differ"),
        (TWO_SITES, says("not yet", quote=""), "the readings differ"),
        (TWO_SITES, says("decided", "yes", quote="The treaty was signed with great joy."), "does not occur"),
        (TWO_SITES, says("decided", "yes", quote="signed"), "does not occur"),
        (TWO_SITES, says("decided", "yes", quote=""), "quotes nothing"),
        (TWO_SITES, says("decided", "yes", on=""), "does not say when"),
        (TWO_SITES, says("decided", "yes", on="2025-11-12"), "before the question was opened"),
        (TWO_SITES, says("decided", "yes", on="2026-12-02"), "after the deadline"),
        (TWO_SITES, says("decided", "yes", on="2026-11-20"), "was published before"),
        ((document(), document(day=None, host="daily.example")), YES, "has no date"),
        ((document(day="2020-01-02"), document(day="2020-01-02", host="b.example")), YES, "no text was found"),
        ((document(),), YES, "only news.example says so"),
        ((document(), replace(document(), url="https://www.news.example/2")), YES, "only news.example says so"),
        ((document(), replace(document(), url="corpus:note")), YES, "no public address"),
        (UNDATED, says("decided", "yes", quote=UNSPECIFIC), "does not name 2026-11-12"),
    ],
)  # fmt: skip
def test_a_reading_that_fails_a_check_proposes_nothing(
    documents: Sequence[OutcomeDocument], second: Callable[[Mapping[str, Any]], Mapping[str, Any]], why: str
):
    first = second if "differ" not in why and "quot" not in why and "occur" not in why else YES
    proposal = propose(documents, first, second)
    assert (proposal.outcome, proposal.status) == (None, "cannot tell")
    assert why in proposal.why


def test_a_report_after_the_deadline_counts_if_it_names_the_day():
    late = (document(day="2026-12-02"), document(host="daily.example", day="2026-12-02"))
    assert propose(late, YES, YES).outcome == {"yes": 1}


NO = says("decided", quote=QUIET, because="deadline", on="")


def test_no_by_the_deadline_needs_the_deciding_source_read_after_it():
    register = document(QUIET, "treaties.example", None)
    decided = record(decides=DECIDES)
    assert propose([register], NO, NO, of=decided).outcome == {"yes": 0}
    before = propose([register], NO, NO, of=decided, now=NOW - timedelta(days=9))
    assert (before.status, "has not passed" in before.why) == ("cannot tell", True)
    earlier = replace(register, read_at=NOW - timedelta(days=9))
    assert "read after the deadline" in propose([earlier], NO, NO, of=decided).why
    elsewhere = (document(QUIET), document(QUIET, "daily.example"))
    assert propose(elsewhere, NO, NO).outcome is None


def test_the_deciding_source_alone_is_enough_and_comes_first():
    register = document(SIGNED, "treaties.example", None)
    reader = ScriptedReader(YES)
    sources = OutcomeSources(
        documents=(document(QUIET), register), readers=[OutcomeReader(model=reader, name="fake:one")]
    )
    assert asyncio.run(propose_outcome(record(decides=DECIDES), sources, NOW)).outcome == {"yes": 1}
    shown = [json.loads(request.messages[-1].text)["documents"] for request in reader.seen]  # pyright: ignore[reportAttributeAccessIssue]
    assert [[row["decides the question"] for row in rows] for rows in shown] == [[True], [True]]


def test_criteria_name_the_deciding_source_in_a_sentence_about_it():
    register = document(QUIET, "treaties.example", None)
    by_register = "It resolves by the entry in the register, according to https://treaties.example/halvik."
    assert propose([register], NO, NO, of=record(question(criteria=by_register))).outcome == {"yes": 0}
    example = "For example, https://treaties.example/halvik shows a treaty of 2019. It must be signed by both."
    assert propose([register], NO, NO, of=record(question(criteria=example))).outcome is None


@pytest.mark.parametrize("status", ["cancelled", "ambiguous"])
def test_a_question_without_an_outcome_is_proposed_as_that(status: str):
    text = "The organisers announced on 3 November 2026 that the signing is called off for good."
    documents = (document(text), document(text, "daily.example"))
    proposal = propose(documents, says(status, quote=text), says(status, quote=text))
    assert (proposal.outcome, proposal.status) == (None, status)
    assert propose(documents[:1], says(status, quote=text), says(status, quote=text)).status == "cannot tell"


@pytest.mark.parametrize(
    "text",
    [
        "پیمان بندر در هالویک امضا می\u200cشود و نامه\u200cها منتشر می\u200cشوند",
        "हस्ताक्षर समारोह में मंत्रियों ने श्री\u200dमान का स्वागत किया और संधि पर हस्ताक्षर किए",
        "The ministers 👩\u200d⚖\ufe0f👨\u200d⚖\ufe0f signed the treaty on the port of Halvik today",
    ],
)
def test_joined_letters_and_emoji_are_quoted_with_and_without_their_joiners(text: str):
    for quote in (text, re.sub("[\u200c\u200d\ufe0f]", "", text)):
        assert occurs(quote, document(text))


def test_not_yet_needs_no_quotation():
    assert propose(TWO_SITES, says("not yet", quote=""), says("not yet", quote="")).status == "not yet"


@pytest.mark.parametrize(("now", "status"), [(OPENED + timedelta(days=1), "not yet"), (NOW, "cannot tell")])
def test_without_texts_or_readers_nothing_is_proposed(now: datetime, status: str):
    assert propose((), now=now).status == status
    assert propose((), YES, YES, now=now).status == status


def test_a_reader_that_fails_cannot_tell():
    class Broken:
        async def complete(self, request: Request) -> Reply:
            raise ModelBusy("overloaded")

    sources = OutcomeSources(
        documents=TWO_SITES, readers=[*readers(YES), OutcomeReader(model=Broken(), name="fake:broken")]
    )
    proposal = asyncio.run(propose_outcome(record(), sources, NOW))
    assert (proposal.status, "overloaded" in proposal.readings[1].why) == ("cannot tell", True)


def test_one_of_several_outcomes_is_proposed():
    asked = question("Halvik", "Norden", text="Where is the port treaty signed before 1 December 2026?")
    proposal = propose(TWO_SITES, says("decided", "Halvik"), says("decided", "Halvik"), of=record(asked))
    assert proposal.outcome == {"Halvik": 1, "Norden": 0}
    both = says("decided", "Halvik", "Norden")
    assert "2 outcomes came true instead of one" in propose(TWO_SITES, both, both, of=record(asked)).why


def test_a_number_decides_its_thresholds():
    asked = question(
        ">3", ">5", text="How many ships call before 1 December 2026?", range=NumericRange(minimum=0, maximum=9)
    )
    text = "By 30 November 2026 four ships had called at the port, the harbour master said."
    documents = (document(text, day="2026-12-01"), document(text, "daily.example", "2026-12-01"))
    four = says("decided", quote=text, on="2026-11-30", value=4)
    assert propose(documents, four, four, of=record(asked)).outcome == {">3": 1, ">5": 0}
    five = says("decided", quote=text, on="2026-11-30", value=5)
    assert "differ" in propose(documents, four, five, of=record(asked)).why


def test_pages_and_search_results_are_read():
    class Pages:
        async def fetch(self, url: str, as_of: AsOf) -> Page:
            if "treaties" in url:
                return Page(url=url, hops=(url,), title="Register", text=SIGNED, published=None)
            raise PageUnavailable(f"{url}: gone")

    class Engine:
        name, filters_dates = "fake", True

        async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
            published = instant("2026-11-13")
            return [
                SearchHit(url="https://a.example/1", title="A", snippet="", published=published, text=SIGNED),
                SearchHit(url="https://b.example/1", title="B", snippet="", published=published, text=SIGNED),
                SearchHit(url="https://c.example/1", title="C", snippet="", published=published),
            ]

    assert propose((), YES, YES, engine=Engine()).outcome == {"yes": 1}
    assert propose((), YES, YES, pages=Pages(), of=record(decides=DECIDES)).outcome == {"yes": 1}


# Series and markets.


def series(*values: float, last: str = "2026-12-02") -> Series:
    end = np.datetime64(last, "D")
    return Series(id="X", days=np.arange(end - len(values) + 1, end + 1), values=np.array(values, float))


REF = SeriesRef(provider="fred", id="X")


@pytest.mark.parametrize(
    ("values", "last", "threshold", "outcome", "status"),
    [
        ((1, 1, 2), DEADLINE, 1.0, {"yes": 1}, "proposed"),
        ((1, 1, 1), DEADLINE, 1.0, {"yes": 0}, "proposed"),
        ((1, 1, 2), "2026-11-29", 1.0, None, "not yet"),
        ((1, 1, 2), "2026-06-29", 1.0, None, "cannot tell"),
        ((1, 1, 2), DEADLINE, None, None, "cannot tell"),
    ],
)
def test_a_series_decides_by_its_value_of_the_day(
    values: tuple[float, ...], last: str, threshold: float | None, outcome: dict[str, int] | None, status: str
):
    ref = replace(REF, threshold=threshold)
    proposal = series_proposal(question(), ref, series(*values, last=last), NOW)
    assert (proposal.outcome, proposal.status) == (outcome, status)


def test_a_value_of_today_is_not_final():
    today = datetime(2026, 12, 1, 12, tzinfo=UTC)
    proposal = series_proposal(question(), replace(REF, threshold=1.0), series(1, 2, last=DEADLINE), today)
    assert proposal.status == "not yet"


def test_a_monthly_value_holds_until_the_next():
    days = np.array(["2026-09-01", "2026-10-01", "2026-11-01"], "M8[D]")
    monthly = Series(id="X", days=days, values=np.array([1.0, 2.0, 3.0]))
    asked = question()
    middle = replace(asked, targets=(Target(id="yes", resolves_at="2026-11-20"),))
    assert series_proposal(middle, replace(REF, threshold=2.5), monthly, NOW).outcome == {"yes": 1}
    assert series_proposal(asked, replace(REF, threshold=2.5), monthly, NOW).status == "not yet"


def test_the_series_of_a_question_is_read_and_needs_no_model():
    asked = question(series=replace(REF, threshold=1.0))
    memory = SeriesInMemory(series={"X": series(1, 2, 2)})
    assert propose((), of=record(asked), series=memory).outcome == {"yes": 1}
    assert propose((), of=record(asked)).status == "cannot tell"


@pytest.mark.parametrize(
    ("text", "highest", "outcome", "status"),
    [
        ("Will Bitcoin hit $150k before 1 December 2026?", 160_000, {"yes": 1}, "proposed"),
        ("Will Bitcoin hit $150k before 1 December 2026?", 120_000, {"yes": 0}, "proposed"),
        ("Will Bitcoin hit $150k before 1 December 2026?", 149_900, None, "cannot tell"),
    ],
)
def test_a_typed_question_about_a_price_is_decided_by_closes(
    text: str, highest: float, outcome: dict[str, int] | None, status: str
):
    closes = SeriesInMemory(series={"BTC-USD": replace(series(1e5, highest, 1e5, 1e5), id="BTC-USD")})
    proposal = propose((), of=record(question(text=text)), series=closes)
    assert (proposal.outcome, proposal.status) == (outcome, status), proposal.why


def resolution(target: str, outcome: int | None, payoff: float | None = None) -> Resolution:
    return Resolution(question_id="asked/1", target_id=target, due=OPENED, outcome=outcome, payoff=payoff)


@pytest.mark.parametrize(
    ("settled", "outcome", "status"),
    [
        ([("A", 1, None), ("B", 0, None)], {"A": 1, "B": 0}, "proposed"),
        ([("A", 1, None)], None, "not yet"),
        ([], None, "not yet"),
        ([("A", None, None), ("B", None, None)], None, "cancelled"),
        ([("A", None, 0.5), ("B", None, 0.5)], None, "ambiguous"),
        ([("A", 1, None), ("B", None, None)], None, "ambiguous"),
        ([("A", 1, None), ("B", 1, None)], None, "cannot tell"),
    ],
)
def test_a_market_decides_by_its_own_result(
    settled: list[tuple[str, int | None, float | None]], outcome: dict[str, int] | None, status: str
):
    proposal = market_proposal(question("A", "B"), [resolution(*row) for row in settled], "manifold", NOW)
    assert (proposal.outcome, proposal.status) == (outcome, status)


def test_the_market_of_a_question_is_asked_first():
    class Settlements:
        platform = "metaculus"

        async def settlements(self, questions: Sequence[Question]) -> list[Resolution]:
            return [replace(resolution("yes", 0), question_id=questions[0].id)]

    asked = replace(question(), id="metaculus/20925", source="metaculus")
    proposal = propose(TWO_SITES, YES, YES, of=record(asked), settlements={"metaculus": Settlements()})
    assert proposal.outcome == {"yes": 0}
