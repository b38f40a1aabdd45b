from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from foretell.questions.errors import InputError
from foretell.questions.question import Exclusivity, NumericRange, Question, Target
from foretell.runs.store import RunStore
from foretell.standing.confirm import confirm, confirm_by_itself
from foretell.standing.record import OutcomeProposal, StandingQuestion
from foretell.standing.store import StandingStore

DAY = datetime(2026, 7, 14, tzinfo=UTC)
CLOSES = datetime(2026, 12, 1, tzinfo=UTC)
AFTER = datetime(2026, 12, 2, tzinfo=UTC)


def question(*ids: str, exclusivity: Exclusivity = "exactly one", scale: NumericRange | None = None) -> Question:
    targets = tuple(Target(id=id, label=id, resolves_at=CLOSES) for id in ids or ("yes",))
    return Question(
        id="asked/1", source="asked", text="Which port reopens?", due=DAY, targets=targets, exclusivity=exclusivity,
        range=scale,
    )  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StandingStore]:
    with closing(RunStore(tmp_path / "runs.db")) as runs:
        yield StandingStore(runs.database)


def watched(store: StandingStore, asked: Question, **settings: object) -> StandingStore:
    standing = StandingQuestion(id="port", question=asked, opened_at=DAY, settings={"watch": settings})
    assert store.open(standing, DAY)
    return store


@pytest.mark.parametrize(
    ("asked", "answer", "outcome"),
    [
        (question(), "yes", {"yes": 1}),
        (question(), "No", {"yes": 0}),
        (question("Rotterdam", "Antwerp", "Hamburg"), "antwerp", {"Rotterdam": 0, "Antwerp": 1, "Hamburg": 0}),
        (question("Cancelled", "Played"), "Cancelled", {"Cancelled": 1, "Played": 0}),
        (question("A", "B", exclusivity="at most one"), "no", {"A": 0, "B": 0}),
        (question("A", "B", "C", exclusivity="independent"), "A, C", {"A": 1, "B": 0, "C": 1}),
        (question("Paris, Texas", "Rome"), "Paris, Texas", {"Paris, Texas": 1, "Rome": 0}),
        (
            question(">1", ">2", "<=2", scale=NumericRange(minimum=0, maximum=3)),
            "2",
            {">1": 1, ">2": 0, "<=2": 1},
        ),
        (
            question(">2026-08-01", ">2026-09-01", scale=NumericRange(minimum=1.78e9, maximum=1.8e9, dates=True)),
            "2026-08-15",
            {">2026-08-01": 1, ">2026-09-01": 0},
        ),
    ],
)
def test_an_answer_gives_the_outcome_of_every_target(
    store: StandingStore, asked: Question, answer: str, outcome: dict[str, int]
):
    stored = confirm(watched(store, asked), "po", answer, AFTER)
    assert {row.target_id: row.outcome for row in stored} == outcome
    record = store.record("port")
    assert record.outcomes == stored
    assert (record.standing.state, store.next_look("port")) == ("resolved", None)
    assert all(row.resolved_at == AFTER and row.due == DAY for row in stored)


@pytest.mark.parametrize("answer", ["cancelled", "ambiguous"])
def test_a_question_without_an_outcome_ends_unscored(store: StandingStore, answer: str):
    stored = confirm(watched(store, question("A", "B")), "port", answer, AFTER)
    assert [row.outcome for row in stored] == [None, None]
    assert store.record("port").standing.state == "cancelled"
    assert answer in stored[0].provenance


@pytest.mark.parametrize(("now", "look"), [(DAY, DAY + (CLOSES - DAY) / 2), (AFTER, AFTER + timedelta(days=1))])
def test_not_yet_plans_another_look(store: StandingStore, now: datetime, look: datetime):
    watched(store, question()).plan("port", None)
    assert confirm(store, "port", "not yet", now) == ()
    assert (store.next_look("port"), store.record("port").standing.state) == (look, "open")
    assert confirm(store, "port", "not-yet", now + timedelta(minutes=1)) == ()
    assert store.next_look("port") == look, "a look that is planned stays"


def test_a_later_answer_replaces_an_earlier_one(store: StandingStore):
    confirm(watched(store, question()), "port", "yes", AFTER)
    confirm(store, "port", "no", AFTER)
    assert [row.outcome for row in store.record("port").outcomes] == [0]
    confirm(store, "port", "not-yet", AFTER)
    record = store.record("port")
    assert ([row.outcome for row in record.outcomes], record.standing.state) == ([None], "open")


def test_a_proposal_counts_only_if_it_is_confirmed(store: StandingStore):
    watched(store, question())
    store.add_proposal("port", OutcomeProposal(at=AFTER, outcome={"yes": 1}, status="proposed"))
    assert confirm_by_itself(store, "port", AFTER) == ()
    assert store.record("port").outcomes == ()
    assert [row.outcome for row in confirm(store, "port", "proposed", AFTER)] == [1]


def test_a_proposal_counts_by_itself_if_the_user_said_so(store: StandingStore):
    watched(store, question(), confirm="proposed")
    for status in ("cancelled", "ambiguous", "not yet", "cannot tell"):
        store.add_proposal("port", OutcomeProposal(at=AFTER, outcome=None, status=status))
        assert confirm_by_itself(store, "port", AFTER) == ()
    store.add_proposal("port", OutcomeProposal(at=AFTER, outcome={"yes": 0}, status="proposed"))
    assert [row.outcome for row in confirm_by_itself(store, "port", AFTER)] == [0]
    assert confirm_by_itself(store, "port", AFTER) == (), "it has ended"


def test_what_was_proposed_may_also_be_no_outcome(store: StandingStore):
    watched(store, question())
    with pytest.raises(InputError, match="no outcome was proposed"):
        confirm(store, "port", "proposed", AFTER)
    store.add_proposal("port", OutcomeProposal(at=AFTER, outcome=None, status="cannot tell", why="two sources differ"))
    with pytest.raises(InputError, match="two sources differ"):
        confirm(store, "port", "proposed", AFTER)
    store.add_proposal("port", OutcomeProposal(at=AFTER, outcome=None, status="cancelled"))
    assert [row.outcome for row in confirm(store, "port", "proposed", AFTER)] == [None]


@pytest.mark.parametrize(
    ("asked", "answer", "problem"),
    [
        (question(), "maybe", "'maybe' is no answer.*yes, no, not-yet"),
        (question(), "", "is empty"),
        (question("A", "B"), "yes", "'yes' is no answer.*A, B, not-yet"),
        (question("A", "B"), "no", "one of the outcomes must come true"),
        (question("A", "B"), "A,B", "only one of the outcomes"),
        (question("Rotterdam", "Antwerp"), "Antwerpen", "did you mean Antwerp"),
        (question(">1", ">2", scale=NumericRange(minimum=0, maximum=3)), "lots", "is not a number"),
        (question(">1", ">2", scale=NumericRange(minimum=0, maximum=3)), "nan", "is not a number"),
        (question("A", "B", exclusivity="independent"), "A", "'B' is not decided yet"),
    ],
)
def test_an_answer_that_does_not_fit_changes_nothing(store: StandingStore, asked: Question, answer: str, problem: str):
    watched(store, asked)
    before = store.record("port")
    with pytest.raises(InputError, match=problem):
        confirm(store, "port", answer, DAY)
    assert store.record("port") == before


def test_a_question_that_does_not_exist_is_named(store: StandingStore):
    with pytest.raises(InputError, match="prot"):
        confirm(watched(store, replace(question())), "prot", "yes", DAY)
