"""Looks at a standing question: what is new, what is judged, what changes, and that nothing is done or paid twice."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.standing.watching import CALL, CLOSES, START, Bench, Killed, question, report

from foretell.data.search.engine import SearchHit
from foretell.models.model import BudgetExceeded, ModelError
from foretell.standing.confirm import confirm
from foretell.standing.look import document
from foretell.standing.news import CHANGED, MOST_SENTENCES, unseen
from foretell.standing.opening import open_standing
from foretell.standing.question_look import look_at
from foretell.standing.record import NewEvidence, OutcomeProposal, QuestionRecord
from foretell.standing.watch import due_questions, watch
from foretell.standing.watcher import FirstAnswer, LookReport, Watcher

HOUR = timedelta(hours=1)


def steps(bench: Bench, work: Callable[[Watcher], Awaitable[Any]]) -> Any:
    async def opened() -> Any:
        async with bench.opened() as watcher:
            return await work(watcher)

    return asyncio.run(opened())


def opened(bench: Bench) -> str:
    async def work(watcher: Watcher) -> str:
        return open_standing(watcher.store, question(), bench.watch_settings(), START).id

    return steps(bench, work)


def looked(bench: Bench, id: str, hours: float) -> QuestionRecord:
    """Look at the question some hours after the start and return its record."""
    bench.now = START + hours * HOUR

    async def work(watcher: Watcher) -> QuestionRecord:
        await watch(watcher, once=True)
        return watcher.store.record(id)

    return steps(bench, work)


def test_news_moves_the_belief_and_anything_else_does_not(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.sources.documents = [report("Works began, odds 3 says the mayor of the town today.", START - HOUR)]
    id = opened(bench)
    assert id == "halvik-terminal"
    record = looked(bench, id, 0)
    assert (bench.asked, record.looks[0].triggers, record.beliefs[0].p) == (1, ("first",), {"yes": 0.4})
    record = looked(bench, id, 5)
    assert record.looks[-1].why == "Nothing new was found."
    assert record.looks[-1].triggers == ()
    assert bench.model.calls == []
    bench.sources.documents.append(report("Badges of the terminal are on sale in eleven shops now.", START + 6 * HOUR))
    record = looked(bench, id, 10)
    assert (record.looks[-1].bears, len(record.beliefs)) == (False, 1)
    assert "badges" in record.looks[-1].why
    bench.sources.documents.append(
        report("Inspectors passed the pier, odds 2 in the harbour report.", START + 11 * HOUR)
    )
    record = looked(bench, id, 15)
    assert record.looks[-1].triggers == ("document",)
    assert record.beliefs[-1].p["yes"] == pytest.approx(0.4 / 0.6 * 2 / (1 + 0.4 / 0.6 * 2), abs=1e-3)
    assert record.beliefs[-1].evidence[0].favours == "yes"
    assert record.looks[-1].billed == pytest.approx(2 * CALL)
    assert "→" in str(bench.reports[-1])


def test_the_same_fact_counts_once_whatever_the_address(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    id = opened(bench)
    looked(bench, id, 0)
    fact = "The council of Halvik voted on Friday to open the terminal with 7 votes, odds 2 said one member."
    bench.sources.documents = [report(fact, START + HOUR, "https://www.news.example/a?x=1")]
    first = looked(bench, id, 5).beliefs[-1].p
    bench.sources.documents += [
        report(fact, START + 6 * HOUR, "http://news.example:80/a/?x=1#top"),
        report(f"Breaking: {fact} More follows soon.", START + 6 * HOUR, "https://other.example/b"),
        report(
            "An excerpt of the same page that a search engine cut elsewhere, odds 9.",
            START + 6 * HOUR,
            "https://m.news.example/a?x=1",
        ),
    ]
    record = looked(bench, id, 10)
    assert record.looks[-1].news == ()
    assert record.beliefs[-1].p == first


def test_time_in_which_nothing_happens_lowers_the_chance_of_what_has_to_happen(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.sources.searched = True
    id = opened(bench)
    looked(bench, id, 0)
    assert len(looked(bench, id, 24).beliefs) == 1, "a day of forty changes too little to say"
    record = looked(bench, id, 10 * 24)
    belief = record.beliefs[-1]
    assert belief.p["yes"] == pytest.approx(1 - 0.6 ** (30 / 40) ** 0.5, abs=1e-4)
    assert record.looks[-1].triggers[-1] == "time"
    assert record.looks[-1].why.startswith("Time alone changed it from 40 % to 36 %: 30 of 40 days are left")
    assert bench.model.calls == []
    again = looked(bench, id, 35 * 24).beliefs[-1]
    assert again.p["yes"] == pytest.approx(1 - 0.6 ** (5 / 40) ** 0.5, abs=1e-3), "two steps are the same as one"
    bench.sources.documents = [report("Inspectors passed the pier, odds 2 in the report.", START + 36 * 24 * HOUR)]
    prior = again.p["yes"]
    moved = looked(bench, id, 37 * 24).beliefs[-1]
    assert moved.p["yes"] == pytest.approx(prior / (1 - prior) * 2 / (1 + prior / (1 - prior) * 2), abs=1e-3)
    assert not moved.moved_by


@pytest.mark.parametrize(
    "reason", ["no search ran", "a price", "a price is missing", "unjudged news", "a state on a day", "it happened"]
)
def test_time_changes_nothing_if_it_says_nothing(reason: str, tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.sources.searched = reason != "no search ran"
    if reason == "a price":
        bench.sources.price = lambda at: 0.4
    if reason == "a price is missing":
        bench.sources.price = lambda at: 0.2 if at < START + HOUR else None
    asked = question("Will the Halvik terminal be open on April 10, 2026?") if "state" in reason else question()

    async def work(watcher: Watcher) -> str:
        return open_standing(watcher.store, asked, bench.watch_settings(), START).id

    if reason == "it happened":
        bench.first_p = 0.98
    id = steps(bench, work)
    looked(bench, id, 0)
    if reason == "unjudged news":
        bench.model.failing = lambda kind: True
        bench.sources.documents = [report("Inspectors passed the pier, odds 2 in the report.", START + HOUR)]
    record = looked(bench, id, 20 * 24)
    assert all("time" not in look.triggers for look in record.looks)
    assert {belief.own.get("yes", bench.first_p) for belief in record.beliefs} == {bench.first_p}


def page(text: str, url: str = "https://council.example/pier") -> NewEvidence:
    """Return a page that was read whole, with the day on which it was first published."""
    hit = SearchHit(url=url, title="The pier of Halvik", snippet=text[:40], published=START + HOUR, text=text)
    return document(hit)


def test_what_is_new_on_a_page_that_changed_counts_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    id = opened(bench)
    looked(bench, id, 0)
    old = "The pier is being built. Its first half was passed, odds 2 said the inspectors of the town.\nVisits: none."
    bench.sources.documents = [page(old)]
    first = looked(bench, id, 5).beliefs[-1].p["yes"]
    assert first == pytest.approx(0.4 / 0.6 * 2 / (1 + 0.4 / 0.6 * 2), abs=1e-3)
    assert looked(bench, id, 10).looks[-1].news == ()
    new = f"{old}\nIts second half was passed too, odds 3."
    bench.sources.documents = [page(new), page(new, "https://www.council.example:443/pier?utm_source=x#top")]
    record = looked(bench, id, 15)
    (news,) = record.looks[-1].news
    assert news.text.endswith("Its second half was passed too, odds 3.")
    assert "odds 2" not in news.text, "what was read before is not read again"
    assert not news.sentences, "the page is not kept"
    assert record.beliefs[-1].p["yes"] == pytest.approx(
        first / (1 - first) * 3 / (1 + first / (1 - first) * 3), abs=1e-3
    )
    for hours, text in ((20, new), (25, old), (30, new)):  # Unchanged, taken back, and put back.
        bench.sources.documents = [page(text)]
        assert looked(bench, id, hours).looks[-1].news == ()


def test_a_question_that_is_opened_again_counts_nothing_of_a_known_page_twice(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    id = opened(bench)
    old = "The pier is being built. Its first half was passed, odds 2 said the inspectors of the town."
    looked(bench, id, 0)
    bench.sources.documents = [page(old)]
    looked(bench, id, 5)
    new = f"{old}\nIts second half was passed too, odds 3."
    bench.sources.documents = [page(new)]
    assert len(looked(bench, id, 10).looks[-1].news) == 1

    async def ended_and_opened_again(watcher: Watcher) -> set[str]:
        for answer in ("yes", "not yet"):
            confirm(watcher.store, id, answer, bench.now)
        return watcher.store.seen(id)

    assert not any(key.startswith(("said ", "whole ")) for key in steps(bench, ended_and_opened_again))
    changed = f"{new}\nVisits: none."
    for hours, text in ((25 * 24, old), (26 * 24, new), (27 * 24, changed)):
        bench.sources.documents = [page(text)]
        assert looked(bench, id, hours).looks[-1].news == ()
    bench.sources.documents = [page(f"{changed}\nIt opened, odds 4.")]
    (news,) = looked(bench, id, 28 * 24).looks[-1].news
    assert news.text.endswith(f"{CHANGED} It opened, odds 4.")


def test_a_page_that_repeats_a_known_fact_after_its_change_is_no_news(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    id = opened(bench)
    looked(bench, id, 0)
    fact = "The council of Halvik voted on Friday to open the terminal with 7 votes, odds 2 said one member."
    bench.sources.documents = [page("Minutes of the council follow here.")]
    looked(bench, id, 5)
    bench.sources.documents = [report(fact, START + 6 * HOUR, "https://other.example/b")]
    assert len(looked(bench, id, 10).looks[-1].news) == 1
    bench.sources.documents = [page(f"Minutes of the council follow here. {fact}")]
    assert looked(bench, id, 15).looks[-1].news == ()


def test_what_is_new_on_a_page_is_read_though_its_first_line_is_long() -> None:
    old = "A pier is built at Halvik " * 100
    before = document(SearchHit(url="https://council.example/pier", title="", snippet="", published=None, text=old))
    seen = [before.key, *(mark.key for mark in unseen([before], (), ())[1])]
    after = document(SearchHit(url=before.url, title="", snippet="", published=None, text=f"{old}\nIt opened."))
    (news,), _ = unseen([after], seen, [before])
    assert news.text.endswith(f"{CHANGED} It opened.")


def test_sentences_of_a_long_page_that_only_moved_up_are_not_new() -> None:
    lines = [f"Entry number {number} of the log was written." for number in range(2 * MOST_SENTENCES)]
    before = page("\n".join(lines))
    seen = [before.key, *(mark.key for mark in unseen([before], (), ())[1])]
    shorter = page("\n".join(lines[3:]))
    assert unseen([shorter], seen, [before])[0] == []
    (news,), _ = unseen([page("\n".join(["The pier opened.", *lines[3:]]))], seen, [before])
    assert news.text.endswith(f"{CHANGED} The pier opened.")


def test_an_excerpt_does_not_show_that_a_page_changed(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    id = opened(bench)
    looked(bench, id, 0)
    url = "https://council.example/pier"
    bench.sources.documents = [report("The pier is nearly done, odds 2.", START + HOUR, url)]
    beliefs = len(looked(bench, id, 5).beliefs)
    for hours, other in (
        (10, report("Another part of the page, odds 9.", START + HOUR, url)),
        (15, page("All, odds 9.")),
    ):
        bench.sources.documents = [other]
        assert len(looked(bench, id, hours).beliefs) == beliefs
    bench.sources.documents = [page("All, odds 9. Open!")]
    assert [item.text.splitlines()[-1] for item in looked(bench, id, 20).looks[-1].news] == [f"{CHANGED} Open!"]


def test_a_stop_does_not_wait_for_a_webhook_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foretell.standing.watch.LAST_SECONDS", 0.01)
    bench = Bench(tmp_path)
    opened(bench)

    async def work(watcher: Watcher) -> bool:
        stop, ended = asyncio.Event(), asyncio.Event()

        async def deliver() -> None:
            stop.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        await watch(replace(watcher, deliver=deliver), stop=stop, poll_seconds=0.01)
        return ended.is_set()

    assert steps(bench, work)


def test_a_price_wakes_it_if_it_moves_by_more_than_usual(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.sources.price = lambda at: 0.4 if at < START + 8 * HOUR else 0.43 if at < START + 16 * HOUR else 0.7
    bench.settings = {"price_steps": 3}
    id = opened(bench)
    looked(bench, id, 0)
    record = looked(bench, id, 20)
    assert record.looks[-1].triggers == ("price",)
    assert len(record.beliefs) == 2
    assert 0.6 < record.beliefs[-1].p["yes"] < 0.7, "a fresh price is moved a little by one's own estimate"
    assert record.beliefs[-1].own == {"yes": 0.4}
    assert bench.model.calls == [], "a price needs no model"
    assert "from 40 % to 70 %" in record.looks[-1].why


def test_a_restless_price_needs_a_larger_move(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.sources.price = lambda at: 0.5 if at >= START + HOUR else 0.4 + 0.15 * (at.day % 2)
    id = opened(bench)
    looked(bench, id, 0)
    assert "price" not in looked(bench, id, 25).looks[-1].triggers


def test_a_new_value_of_the_series_is_news(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.sources.value = lambda at: (3.0, "2026-03-01") if at < START + 8 * HOUR else (3.5, "2026-03-02")
    id = opened(bench)
    looked(bench, id, 0)
    looked(bench, id, 5)
    record = looked(bench, id, 10)
    assert [look.triggers for look in record.looks] == [("first",), (), ("series",)]
    assert bench.model.calls == ["watched halvik-terminal/look 3/belief/0"], "that it bears needs no model"
    assert record.beliefs[-1].evidence[0].text.startswith("the index stood at 3.5")
    assert looked(bench, id, 15).looks[-1].news == ()


def test_news_that_could_not_be_judged_waits(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    id = opened(bench)
    looked(bench, id, 0)
    bench.sources.documents = [report("The pier was passed, odds 2 said the inspectors.", START + HOUR)]
    bench.model.failing = lambda kind: True
    record = looked(bench, id, 5)
    assert record.looks[-1].bears is None
    assert "will be judged at the next look" in record.looks[-1].why
    assert len(record.beliefs) == 1
    bench.model.failing = lambda kind: kind == "belief"
    bench.sources.documents = []  # The search does not find it again.
    record = looked(bench, id, 10)
    assert len(record.beliefs) == 1
    bench.model.failing = lambda kind: False
    record = looked(bench, id, 15)
    assert len(record.beliefs) == 2
    assert len(record.beliefs[-1].evidence) == 1
    assert looked(bench, id, 20).looks[-1].news == ()


def test_a_spent_day_postpones_the_judgement_to_the_next(tmp_path: Path) -> None:
    bench = Bench(tmp_path, settings={"day_budget": 0.035, "budget": 1.0})
    id = opened(bench)
    looked(bench, id, 0)
    bench.sources.documents = [report("The pier was passed, odds 2 said the inspectors.", START + HOUR)]
    record = looked(bench, id, 5)
    assert "judged tomorrow" in record.looks[-1].why
    assert "the budget of the day allows 0.035 dollars" in record.looks[-1].why
    assert sum(look.billed for look in record.looks) <= 0.035
    bench.settings["day_budget"] = 1.0

    async def richer(watcher: Watcher) -> None:
        watcher.store.update(replace(record.standing, settings=bench.watch_settings()))

    steps(bench, richer)
    assert len(looked(bench, id, 24).beliefs) == 2


def test_the_budget_of_a_question_holds_over_days(tmp_path: Path) -> None:
    bench = Bench(tmp_path, settings={"budget": 0.2})
    id = opened(bench)
    record = looked(bench, id, 0)
    for day in range(1, 9):
        fact = f"On day {day} inspectors number {day} passed pier {day}, odds 1.1 they said."
        bench.sources.documents.append(report(fact, START + (24 * day - 1) * HOUR))
        record = looked(bench, id, 24 * day)
    assert sum(look.billed for look in record.looks) <= 0.2
    assert "the budget of the question allows" in record.looks[-1].why


@pytest.mark.parametrize(
    "place", ["before news", "before belief", "before the look is stored", "after the look is stored"]
)
def test_a_killed_look_is_repeated_once_and_pays_nothing_twice(place: str, tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    id = opened(bench)
    looked(bench, id, 0)
    bench.sources.documents = [report("The pier was passed, odds 2 said the inspectors.", START + HOUR)]

    def kill(at: str) -> None:
        if at == place:
            bench.kill = lambda _: None
            bench.model.kill = bench.kill
            raise Killed

    bench.kill = kill
    with pytest.raises(BaseException) as error:
        looked(bench, id, 5)
    assert (
        error.group_contains(Killed) if isinstance(error.value, BaseExceptionGroup) else isinstance(error.value, Killed)
    )
    # Meanwhile something else appeared, which must not change the requests of the repeated look.
    bench.sources.documents.append(report("A crane fell over, odds 0.5 said the harbour master.", START + 6 * HOUR))
    record = looked(bench, id, 6.5)
    while len(record.looks) < 3:
        record = looked(bench, id, 12)
    assert len(bench.model.calls) == len(set(bench.model.calls)) == 4
    assert [belief.look for belief in record.beliefs] == [1, 2, 3]
    assert record.beliefs[-1].p["yes"] == pytest.approx(0.4, abs=1e-3)
    assert sum(look.billed for look in record.looks) == pytest.approx(4 * CALL)


def test_a_forecast_that_a_crash_delayed_is_not_dated_back(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    id = opened(bench)
    looked(bench, id, 0)
    bench.sources.documents = [report("The pier was passed, odds 2 said the inspectors.", START + HOUR)]

    def kill(at: str) -> None:
        if at == "before belief":
            bench.kill = lambda _: None
            bench.model.kill = bench.kill
            raise Killed

    bench.kill = kill
    with pytest.raises(BaseException):  # noqa: B017 - Killed, alone or in a group
        looked(bench, id, 5)
    bench.sources.documents.append(report("A crane fell over, odds 0.5 said the harbour master.", START + 6 * HOUR))
    record = looked(bench, id, 72)
    assert [look.at for look in record.looks[1:]] == [START + 5 * HOUR, START + 72 * HOUR]
    assert [belief.at for belief in record.beliefs[1:]] == [START + 72 * HOUR] * 2
    assert len(record.looks[-1].news) == 1, "what appeared since is looked at at once"


def test_two_processes_take_a_look_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    id = opened(bench)

    async def work(watcher: Watcher) -> QuestionRecord:
        async with bench.opened() as other:
            await asyncio.gather(look_at(watcher, id, START), look_at(other, id, START))
            await asyncio.gather(watch(watcher, once=True), watch(other, once=True))
        return watcher.store.record(id)

    assert [look.number for look in steps(bench, work).looks] == [1]
    assert bench.asked == 1


def test_a_process_that_comes_late_to_a_question_does_not_look_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    id = opened(bench)

    async def work(watcher: Watcher) -> QuestionRecord:
        assert await due_questions(watcher, START) == [id]
        await look_at(watcher, id, START, if_due=True)
        assert await look_at(watcher, id, START, if_due=True) is None, "it was due when the other process began"
        return watcher.store.record(id)

    assert len(steps(bench, work).looks) == 1


def test_overdue_looks_become_one_and_a_clock_set_back_skips_none(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    id = opened(bench)
    looked(bench, id, 0)
    record = looked(bench, id, 24 * 30)
    assert len(record.looks) == 2
    assert record.looks[-1].triggers == ("clock",)
    assert len(looked(bench, id, 24 * 30 + 1).looks) == 2
    bench.sources.documents = [report("The pier was passed, odds 2 said the inspectors.", START + HOUR)]
    assert len(looked(bench, id, 2).looks) == 2, "the plan is made again, without a flood of looks"
    record = looked(bench, id, 6.5)
    assert (len(record.looks), len(record.beliefs)) == (3, 2)


def test_it_is_looked_at_at_the_close_and_then_daily(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    id = opened(bench)
    looked(bench, id, 0)
    bench.now = CLOSES - HOUR
    hours = (CLOSES - START) / HOUR
    looked(bench, id, hours - 1)
    record = looked(bench, id, hours)
    assert record.looks[-1].triggers == ("clock",)
    assert "It has closed" in record.looks[-1].why
    assert len(looked(bench, id, hours + 20).looks) == 3
    assert len(looked(bench, id, hours + 24).looks) == 4


def test_asking_the_same_again_goes_on_with_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path)

    async def work(watcher: Watcher) -> list[str]:
        first = open_standing(watcher.store, question(), bench.watch_settings(), START)
        again = open_standing(watcher.store, question(), bench.watch_settings(), START + HOUR)
        other = open_standing(watcher.store, question("Will the Halvik terminal be named?"), {}, START)
        return [first.id, again.id, other.id]

    assert steps(bench, work) == ["halvik-terminal", "halvik-terminal", "halvik-terminal-named"]


def test_a_first_answer_that_a_spent_day_refused_is_asked_for_on_the_next(tmp_path: Path) -> None:
    bench = Bench(tmp_path, settings={"day_budget": 1.0})
    days: list[str] = []

    async def first(standing: Any, sighting: Any, budget: Any) -> FirstAnswer:
        days.append(budget.id[-10:])
        if len(days) < 3:
            raise BudgetExceeded("the budget of the day is spent")
        return FirstAnswer(p={"yes": 0.4})

    bench.first = first  # type: ignore[method-assign]
    id = opened(bench)
    looked(bench, id, 0)
    looked(bench, id, 1)
    bench.sources.documents = [report("The pier was passed, odds 2 said the inspectors.", START + 2 * HOUR)]
    looked(bench, id, 24)
    assert days == ["2026-03-01", "2026-03-01", "2026-03-02"]
    record = looked(bench, id, 24)
    assert [look.triggers for look in record.looks] == [("first",), ("document",)]
    assert len(record.beliefs) == 2, "what appeared while it waited is not taken as known"


def test_news_beyond_what_is_judged_together_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foretell.standing.question_look.MOST_JUDGED", 3)
    bench = Bench(tmp_path)
    id = opened(bench)
    looked(bench, id, 0)
    bench.sources.documents = [
        report(
            f"Pier {n} of the harbour was passed on day {n}, odds 1.{n} they say.", START + n * HOUR, f"https://a.b/{n}"
        )
        for n in range(1, 6)
    ]
    looked(bench, id, 6)
    bench.sources.documents = []  # The search does not find them again.
    record = looked(bench, id, 12)
    assert [len(look.news) for look in record.looks] == [0, 3, 2]
    assert len({item.key for belief in record.beliefs for item in belief.evidence}) == 5


def test_a_closed_question_gets_a_proposal_and_ends_if_that_counts(tmp_path: Path) -> None:
    bench = Bench(tmp_path, settings={"confirm": "proposed"})
    id = opened(bench)
    asked: list[int] = []

    async def propose(record: QuestionRecord, now: Any, budget: Any) -> OutcomeProposal | None:
        asked.append(len(record.looks))
        if len(asked) == 1:
            raise ModelError("the provider is down")
        return OutcomeProposal(at=now, outcome={"yes": 1}, status="proposed", why="It opened.")

    async def work(watcher: Watcher) -> QuestionRecord:
        for hours in (0, 5, 24 * 40, 24 * 41, 24 * 42):
            bench.now = START + hours * HOUR
            await watch(replace(watcher, propose=propose), once=True)
        return watcher.store.record(id)

    record = steps(bench, work)
    assert asked == [3, 4], "asked after the close, and again on the next day after a failure"
    assert record.standing.state == "resolved"
    assert [outcome.outcome for outcome in record.outcomes] == [1]


def test_notices_of_a_killed_look_are_sent_and_beliefs_are_made_coherent(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    id = opened(bench)
    sent: list[int] = []

    async def notify(report: LookReport) -> None:
        if not sent:
            sent.append(0)
            raise Killed
        sent.append(report.look.number)

    async def coherent(standing: Any, belief: Any) -> dict[str, float]:
        return {"yes": belief.p["yes"] / 2}

    async def work(watcher: Watcher) -> QuestionRecord:
        await watch(replace(watcher, notify=notify, coherent=coherent), once=True)
        return watcher.store.record(id)

    with pytest.raises(Killed):
        steps(bench, work)
    bench.now = START + 5 * HOUR
    record = steps(bench, work)
    assert sent == [0, 1, 2]
    assert record.beliefs[0].coherent == {"yes": 0.2}
    assert record.beliefs[0].p == {"yes": 0.4}
