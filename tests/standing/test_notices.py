"""Notices of a changed forecast: once per look, signed, to the address that the user named, and a valid feed."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree

import pytest
from aiohttp import web

from foretell.data.http import HttpLimits
from foretell.outgoing.public_address import look_up
from foretell.questions.errors import InputError
from foretell.questions.question import Question, Target
from foretell.runs.settings import Settings
from foretell.runs.store import RunStore
from foretell.standing import notices
from foretell.standing.notices import (
    ID_HEADER,
    PAUSES,
    SIGNATURE_HEADER,
    TIME_HEADER,
    Notice,
    atom_feed,
    check_notices,
    deliver,
    is_signed,
    notify,
    sign,
)
from foretell.standing.record import Look, NewEvidence, QuestionRecord, StandingBelief, StandingQuestion
from foretell.standing.store import QueuedNotice, StandingStore

DAY = datetime(2026, 7, 14, 9, 30, tzinfo=UTC)
SECRET = "a-secret-of-many-characters"
ATOM = "{http://www.w3.org/2005/Atom}"
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Watcher:
    store: StandingStore
    settings: Settings
    lines: list[str] = field(default_factory=list)

    def say(self, line: str) -> None:
        self.lines.append(line)

    @property
    def file(self) -> Path:
        return Path(self.settings.clock.removeprefix("file:"))

    def now(self) -> datetime:
        return datetime.fromisoformat(self.file.read_text(encoding="utf-8"))

    def wait(self, time: timedelta) -> None:
        now = self.now() if self.file.exists() else DAY
        self.file.write_text((now + time).isoformat(), encoding="utf-8")


@dataclass
class Received:
    headers: dict[str, str]
    body: bytes


def standing(id: str = "port", **watch: object) -> StandingQuestion:
    question = Question(
        id="asked/1",
        source="asked",
        text="Does the port <reopen> & stay \x00open?",
        due=DAY,
        targets=(Target(id="yes", resolves_at="2026-12-01"),),
    )
    return StandingQuestion(id=id, question=question, opened_at=DAY, settings={"watch": watch})


def looked(number: int, p: float) -> tuple[Look, StandingBelief]:
    news = NewEvidence(key="permit", text="The permit\n is \x1b[31mgranted.", url="https://example.org/1")
    at = DAY + timedelta(hours=number)
    look = Look(number=number, at=at, triggers=("document",), news=(news,), why="The permit was missing.")
    return look, StandingBelief(number=number, look=number, at=at, p={"yes": p}, evidence=(news,))


@pytest.fixture
def watcher(tmp_path: Path) -> Iterator[Watcher]:
    with closing(RunStore(tmp_path / "runs.db")) as runs:
        settings = Settings(home=tmp_path, keys={"HOOK": SECRET}, clock=f"file:{tmp_path / 'clock'}")
        watcher = Watcher(StandingStore(runs.database), settings)
        watcher.wait(timedelta())
        yield watcher


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rule with a shorter wait for an answer."""
    limits = HttpLimits(connect_seconds=5.0, read_seconds=0.3, total_seconds=20.0)
    monkeypatch.setattr(notices, "WEBHOOK_LIMITS", replace(limits, attempts=notices.WEBHOOK_LIMITS.attempts))


@asynccontextmanager
async def receiver(answer: Answer):
    """A real server on this machine; yields its address and what it received."""
    received: list[Received] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        received.append(Received(dict(request.headers), await request.read()))
        return await answer(request)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/hook/of-this-user", received
    finally:
        await runner.cleanup()


async def accepted(_: web.Request) -> web.Response:
    return web.Response(status=204)


def states(watcher: Watcher, channel: str = "webhook") -> list[object]:
    return [row["state"] for row in watcher.store.notices("port") if row.get("channel") == channel]


def add(watcher: Watcher, question: StandingQuestion, look: Look, belief: StandingBelief) -> None:
    watcher.store.open(question, DAY)
    watcher.store.add_look(question.id, look, None, belief=belief)


async def told(
    watcher: Watcher, answer: Answer, times: int = 1, waits: Sequence[timedelta] = (timedelta(),)
) -> list[Received]:
    """Tell of the first look this many times, deliver after each wait, and return what a webhook received."""
    async with receiver(answer) as (address, received):
        question = standing(webhook=address, webhook_secret_env="HOOK")
        add(watcher, question, *looked(0, 0.42))
        look, belief = looked(1, 0.58)
        add(watcher, question, look, belief)
        for _ in range(times):
            await notify(watcher, question, look, belief, looked(0, 0.42)[1])
        for time in waits:
            watcher.wait(time)
            await deliver(watcher)
        return received


def test_a_webhook_gets_one_signed_notice_of_a_look(watcher: Watcher):
    (request,) = asyncio.run(told(watcher, accepted, times=3))
    assert is_signed(request.headers, request.body, SECRET, watcher.now())
    body = json.loads(request.body)
    assert body["id"] == request.headers[ID_HEADER]
    assert (body["question"], body["look"], body["p"], body["previous"]) == ("port", 1, {"yes": 0.58}, {"yes": 0.42})
    assert body["news"][0]["text"] == "The permit is [31mgranted."
    assert states(watcher) == ["queued", "sent"]
    assert watcher.lines == ["port: 58 % (was 42 %)"]


def test_a_signature_covers_the_body_and_the_time(watcher: Watcher):
    (request,) = asyncio.run(told(watcher, accepted))
    headers, body = request.headers, request.body
    sent = datetime.fromtimestamp(int(headers[TIME_HEADER]), UTC)
    assert is_signed({name.lower(): value for name, value in headers.items()}, body, SECRET, sent)
    assert not is_signed(headers, body + b" ", SECRET, sent)
    assert not is_signed(headers, body, "another secret", sent)
    assert not is_signed(headers, body, SECRET, sent + timedelta(minutes=11))
    assert not is_signed({**headers, TIME_HEADER: str(int(sent.timestamp()) + 1)}, body, SECRET, sent)
    assert not is_signed({**headers, SIGNATURE_HEADER: "sha256=é"}, body, SECRET, sent)
    assert not is_signed({}, body, SECRET, sent)
    signed = {TIME_HEADER: "soon", SIGNATURE_HEADER: sign(SECRET, "soon", body)}
    assert not is_signed(signed, body, SECRET, sent)


def test_a_failing_server_is_asked_again_and_the_failure_is_stored(watcher: Watcher):
    async def broken(_: web.Request) -> web.Response:
        return web.Response(status=500, text=f"cannot store {SECRET}")

    received = asyncio.run(told(watcher, broken, times=2, waits=[timedelta(), *[timedelta(days=2)] * 10]))
    assert len(received) == len(PAUSES) + 1
    assert len({request.headers[ID_HEADER] for request in received}) == 1
    assert len({request.headers[TIME_HEADER] for request in received}) == len(received), "each is signed anew"
    assert states(watcher) == ["queued", "failed"]
    assert len(watcher.lines) == 3, "the notice, its first failure, and that it was given up"
    problem = str(watcher.store.notices("port")[-1]["problem"])
    assert "500" in problem
    assert SECRET not in problem
    assert any("no notice to the webhook" in line for line in watcher.lines)


def test_a_server_that_recovers_gets_the_notice(watcher: Watcher):
    answers = iter([503, 204])

    async def recovering(_: web.Request) -> web.Response:
        return web.Response(status=next(answers))

    waits = [timedelta(), timedelta(seconds=10), timedelta(minutes=1), timedelta(days=1)]
    assert len(asyncio.run(told(watcher, recovering, waits=waits))) == 2
    assert states(watcher) == ["queued", "sent"]
    assert watcher.store.queued_notices() == []


def test_a_redirect_is_not_followed(watcher: Watcher):
    async def moved(request: web.Request) -> web.Response:
        raise web.HTTPTemporaryRedirect("/elsewhere")

    assert len(asyncio.run(told(watcher, moved))) == 1
    assert states(watcher) == ["queued", "failed"]


def test_a_refused_notice_is_not_repeated(watcher: Watcher):
    async def refused(_: web.Request) -> web.Response:
        return web.Response(status=403)

    assert len(asyncio.run(told(watcher, refused, times=2, waits=[timedelta(), timedelta(days=1)]))) == 1
    assert states(watcher) == ["queued", "failed"]


def test_a_server_that_does_not_answer_costs_one_attempt_for_all_notices(watcher: Watcher):
    released = asyncio.Event()

    async def silent(_: web.Request) -> web.Response:
        await released.wait()
        return web.Response()

    async def work() -> list[Received]:
        async with receiver(silent) as (address, received):
            question = standing(webhook=address, webhook_secret_env="HOOK")
            for number in (1, 2, 3):
                look, belief = looked(number, 0.5 + number / 10)
                add(watcher, question, look, belief)
                await notify(watcher, question, look, belief, None)
                assert received == [], "a notice is queued without waiting for the server"
            await deliver(watcher)
            attempts = len(received)
            assert sum("no notice" in line for line in watcher.lines) == 1
            released.set()
            await deliver(watcher)
            assert len(received) == attempts, "nothing is due"
            watcher.wait(PAUSES[0])
            await deliver(watcher)
            return received

    received = asyncio.run(work())
    assert [json.loads(request.body)["look"] for request in received] == [1, 1, 2, 3]
    assert states(watcher) == [*["queued"] * 3, *["sent"] * 3]


def queue_three(watcher: Watcher, address: str) -> None:
    question = standing(webhook=address, webhook_secret_env="HOOK")
    for number in (1, 2, 3):
        look, belief = looked(number, 0.5 + number / 10)
        add(watcher, question, look, belief)
        watcher.store.queue_notice(
            QueuedNotice(
                id=Notice(standing=question, look=look, belief=belief, previous=None).id,
                standing="port",
                look=number,
                due=watcher.now(),
            )
        )


async def delivered_for_weeks(watcher: Watcher, answer: Answer) -> list[int]:
    """Deliver three notices until none is queued; return the looks that the server was told of, in order."""
    async with receiver(answer) as (address, received):
        queue_three(watcher, address)
        for _ in range(len(PAUSES) + 1):
            await deliver(watcher)
            watcher.wait(PAUSES[-1])
        assert watcher.store.queued_notices() == []
        return [json.loads(request.body)["look"] for request in received]


def test_a_notice_that_a_server_cannot_take_holds_up_no_other(watcher: Watcher):
    async def choking(request: web.Request) -> web.Response:
        return web.Response(status=500 if (await request.json())["look"] == 1 else 204)

    told = asyncio.run(delivered_for_weeks(watcher, choking))
    assert told == [1, 2, 3, *[1] * len(PAUSES)]
    assert states(watcher)[3:] == ["sent", "sent", "failed"]


def test_no_notice_is_given_up_without_an_attempt_of_its_own(watcher: Watcher):
    async def away_for_one(request: web.Request) -> web.Response:
        return web.Response(status=503 if (await request.json())["look"] == 1 else 204)

    told = asyncio.run(delivered_for_weeks(watcher, away_for_one))
    assert told == [*[1] * len(PAUSES), 1, 2, 3]
    assert states(watcher)[3:] == ["failed", "sent", "sent"]


def test_two_processes_post_a_notice_once(watcher: Watcher):
    async def work() -> list[Received]:
        async with receiver(accepted) as (address, received):
            question = standing(webhook=address, webhook_secret_env="HOOK")
            look, belief = looked(1, 0.58)
            add(watcher, question, look, belief)
            await notify(watcher, question, look, belief, None)
            await asyncio.gather(deliver(watcher), deliver(watcher))
            return received

    assert len(asyncio.run(work())) == 1


def test_notices_to_a_webhook_that_was_taken_away_are_given_up(watcher: Watcher):
    question = standing(webhook="http://127.0.0.1:9/hook", webhook_secret_env="HOOK")
    look, belief = looked(1, 0.58)
    add(watcher, question, look, belief)
    asyncio.run(notify(watcher, question, look, belief, None))
    watcher.store.update(standing())
    asyncio.run(deliver(watcher))
    assert states(watcher) == ["queued", "failed"]


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ("update standing_entry set body = '[' where kind = 'look' and standing = 'port'", "look 1 of the watched"),
        (
            "update standing_entry set body = '{}' where kind = 'belief' and standing = 'port'",
            "belief 1 of the watched",
        ),
        ("delete from standing_entry where kind = 'belief' and standing = 'port'", "is missing"),
        ("delete from standing where id = 'port'", "the watched question port is missing"),
        ("update standing set body = 'x' where id = 'port'", "the watched question port is damaged"),
        ("update standing_queue set look = 99 where standing = 'port'", "look 99"),
    ],
)
def test_a_notice_that_cannot_be_read_is_given_up_and_holds_up_no_other(watcher: Watcher, damage: str, problem: str):
    async def work() -> list[str]:
        async with receiver(accepted) as (address, received):
            for id in ("port", "tram"):
                question = standing(id, webhook=address, webhook_secret_env="HOOK")
                look, belief = looked(1, 0.58)
                add(watcher, question, look, belief)
                await notify(watcher, question, look, belief, None)
            watcher.store.db.write(damage)
            for _ in range(2):
                await deliver(watcher)
            return [json.loads(request.body)["question"] for request in received]

    assert asyncio.run(work()) == ["tram"]
    assert states(watcher) == ["queued", "failed"]
    assert sum("port: no notice to the webhook" in line and problem in line for line in watcher.lines) == 1


def test_a_damaged_row_of_a_notice_is_named_and_stops_no_other(watcher: Watcher):
    question = standing(feed="changes.xml")
    for number in (1, 2):
        look, belief = looked(number, 0.5 + number / 10)
        add(watcher, question, look, belief)
        asyncio.run(notify(watcher, question, look, belief, None))
        watcher.store.db.write("update standing_entry set body = '{' where kind = 'notice' and number = 1")
    assert watcher.lines[1].startswith("notice 1 of the watched question port is damaged: is not JSON")
    assert watcher.lines[2:] == ["port: 70 %"]
    assert [row.get("state") for row in watcher.store.notices("port")][-1] == "sent"


def test_the_feed_leaves_out_a_damaged_question(watcher: Watcher, caplog: pytest.LogCaptureFixture):
    for id in ("port", "tram"):
        question = standing(id, feed="changes.xml")
        look, belief = looked(1, 0.58)
        add(watcher, question, look, belief)
        watcher.store.db.write("update standing_entry set body = '[' where standing = 'port' and kind = 'look'")
        asyncio.run(notify(watcher, question, look, belief, None))
    feed = ElementTree.parse(watcher.settings.home / "changes.xml")
    assert [entry.findtext(f"{ATOM}title") for entry in feed.iter(f"{ATOM}entry")] == ["tram: 58 %"]
    assert "look 1 of the watched question port is damaged" in caplog.text


def test_a_server_that_is_down_stops_nothing(watcher: Watcher):
    async def closed() -> str:
        async with receiver(accepted) as (address, _):
            return address

    question = standing(webhook=asyncio.run(closed()), webhook_secret_env="HOOK")
    look, belief = looked(1, 0.58)
    add(watcher, question, look, belief)
    asyncio.run(notify(watcher, question, look, belief, None))
    asyncio.run(deliver(watcher))
    assert states(watcher) == ["queued"]
    assert watcher.store.queued_notices()[0].due == watcher.now() + PAUSES[0]


def test_a_look_that_changed_nothing_gives_no_notice(watcher: Watcher):
    question = standing()
    look, belief = looked(1, 0.58)
    add(watcher, question, look, belief)
    asyncio.run(notify(watcher, question, look, None, belief))
    assert (watcher.lines, watcher.store.notices("port")) == ([], [])


class Killed(BaseException):
    pass


def test_a_notice_is_sent_once_more_after_a_crash(watcher: Watcher):
    async def crash() -> list[Received]:
        async with receiver(accepted) as (address, received):
            question = standing(webhook=address, webhook_secret_env="HOOK")
            look, belief = looked(1, 0.58)
            add(watcher, question, look, belief)

            def die(*_: object, **__: object) -> None:
                raise Killed

            await notify(watcher, question, look, belief, None)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(watcher.store, "add_notice", die)
                with pytest.raises(Killed):
                    await deliver(watcher)
            for _ in range(3):
                await notify(watcher, question, look, belief, None)
                await deliver(watcher)
                watcher.wait(PAUSES[0])
            return received

    received = asyncio.run(crash())
    assert [len(received), len({request.headers[ID_HEADER] for request in received})] == [2, 1]
    assert len(watcher.lines) == 1


def test_the_secret_and_the_path_of_a_webhook_are_in_no_log(watcher: Watcher, caplog: pytest.LogCaptureFixture):
    async def broken(_: web.Request) -> web.Response:
        return web.Response(status=400, text=f"no {SECRET} at /hook/of-this-user")

    with caplog.at_level(logging.DEBUG):
        asyncio.run(told(watcher, broken))
    # The log of the receiving server is its own.
    logged = [record.getMessage() for record in caplog.records if record.name != "aiohttp.access"]
    seen = repr([logged, watcher.store.notices("port"), watcher.lines])
    assert SECRET not in seen
    assert "of-this-user" not in seen


@pytest.mark.parametrize(
    ("watch", "problem"),
    [
        ({"webhook": "ftp://example.org/"}, "not an address"),
        ({"webhook": "https://me:pw@example.org/"}, "not an address"),
        ({"webhook": "https://example.org:99999/"}, "not a web address"),
        ({"webhook": "http://example.org/hook", "webhook_secret_env": "HOOK"}, "not encrypted"),
        ({"webhook": "https://example.org/hook"}, "names no environment variable"),
        ({"webhook": "https://example.org/hook", "webhook_secret_env": "not a name"}, "names no environment variable"),
        ({"webhook": "https://example.org/hook", "webhook_secret_env": "OTHER"}, "not set"),
    ],
)
def test_a_webhook_that_cannot_be_used_is_refused(watch: dict[str, str], problem: str, tmp_path: Path):
    with pytest.raises(InputError, match=problem) as error:
        check_notices(watch, Settings(home=tmp_path, keys={"HOOK": SECRET}))
    assert "not a name" not in str(error.value)


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:8000/", "http://10.1.2.3/x", "http://localhost/", "http://receiver:8000/", "http://nas.local/"],
)
def test_a_private_address_may_be_named(address: str, tmp_path: Path):
    check_notices({"webhook": address, "webhook_secret_env": "HOOK"}, Settings(home=tmp_path, keys={"HOOK": SECRET}))


def test_a_public_name_that_leads_into_a_private_network_gets_nothing(
    watcher: Watcher, monkeypatch: pytest.MonkeyPatch
):
    async def inside(host: str, port: int) -> list[str]:
        return ["127.0.0.1"] if host == "hooks.example.org" else await look_up(host, port)

    monkeypatch.setattr("foretell.data.pages.look_up", inside)
    question = standing(webhook="https://hooks.example.org/x", webhook_secret_env="HOOK")
    look, belief = looked(1, 0.58)
    add(watcher, question, look, belief)
    asyncio.run(notify(watcher, question, look, belief, None))
    asyncio.run(deliver(watcher))
    assert "not on the public internet" in watcher.lines[-1]
    assert states(watcher) == ["queued"]


# The feed, by the elements that RFC 4287 requires.


def test_the_feed_has_an_entry_per_belief_of_all_its_questions(watcher: Watcher):
    for id in ("port", "tram"):
        question = standing(id, feed="feeds/changes.xml")
        watcher.store.open(question, DAY)
        previous = None
        for number, p in ((1, 0.42), (2, 0.58)):
            look, belief = looked(number, p)
            watcher.store.add_look(id, look, None, belief=belief)
            asyncio.run(notify(watcher, question, look, belief, previous))
            previous = belief
    watcher.store.open(standing("other", feed="another.xml"), DAY)
    file = watcher.settings.home / "feeds" / "changes.xml"
    feed = ElementTree.fromstring(file.read_bytes())
    titles = [entry.findtext(f"{ATOM}title") for entry in feed.iter(f"{ATOM}entry")]
    assert sorted(titles) == ["port: 42 %", "port: 58 % (was 42 %)", "tram: 42 %", "tram: 58 % (was 42 %)"]
    assert [path.name for path in file.parent.iterdir()] == ["changes.xml"]


def records(last: int = 2) -> list[QuestionRecord]:
    pairs = [looked(number, 0.4 + number / 10) for number in range(1, last + 1)]
    return [
        QuestionRecord(
            standing=replace(standing(), question=replace(standing().question, url="https://example.org/q?a=1&b=2")),
            looks=tuple(look for look, _ in pairs),
            beliefs=tuple(belief for _, belief in pairs),
        )
    ]


@pytest.mark.parametrize("given", [[], records(), records(150)], ids=["empty", "two", "many"])
def test_the_feed_has_what_the_standard_requires(given: list[QuestionRecord]):
    feed = ElementTree.fromstring(atom_feed(given, name="feed"))
    assert feed.tag == f"{ATOM}feed"
    assert feed.find(f"{ATOM}author/{ATOM}name") is not None
    entries = feed.findall(f"{ATOM}entry")
    assert len(entries) == min(100, sum(len(record.beliefs) for record in given))
    for element in (feed, *entries):
        for name in ("id", "title", "updated"):
            (only,) = element.findall(f"{ATOM}{name}")
            assert only.text
            if name == "updated":
                assert datetime.fromisoformat(only.text).tzinfo is not None
    ids = [entry.findtext(f"{ATOM}id", "") for entry in entries]
    assert len({*ids, feed.findtext(f"{ATOM}id")}) == len(ids) + 1
    assert all(id.startswith("urn:uuid:") for id in ids)
    for entry in entries:
        assert len(entry.findall(f"{ATOM}content")) == 1
        assert [link.get("href") for link in entry.findall(f"{ATOM}link")] == ["https://example.org/q?a=1&b=2"]
    times = [entry.findtext(f"{ATOM}updated", "") for entry in entries]
    assert times == sorted(times, reverse=True)
    assert not entries or feed.findtext(f"{ATOM}updated") == times[0]


def test_texts_of_the_feed_are_escaped_and_ids_stay_the_same():
    text = atom_feed(records(), name="feed")
    assert b"<reopen>" not in text
    assert not set(b"\x00\x1b") & set(text)
    entry = ElementTree.fromstring(text).find(f"{ATOM}entry")
    assert entry is not None
    assert (entry.findtext(f"{ATOM}content") or "").startswith("Does the port <reopen> & stay open?")
    assert atom_feed(records(), name="feed") == text
    first, later = (ElementTree.fromstring(atom_feed(records(last), name="feed")) for last in (1, 2))
    old = {each.text for each in first.iter(f"{ATOM}id")}
    assert old < {each.text for each in later.iter(f"{ATOM}id")}


def test_an_id_depends_on_the_question_its_opening_and_the_look():
    look, belief = looked(1, 0.5)
    notice = Notice(standing=standing(), look=look, belief=belief, previous=None)
    again = replace(notice, belief=replace(belief, p={"yes": 0.9}))
    others = [replace(notice, standing=standing("tram")), replace(notice, look=looked(2, 0.5)[0])]
    others.append(replace(notice, standing=replace(standing(), opened_at=DAY + timedelta(days=1))))
    assert again.id == notice.id
    assert len({notice.id, *(other.id for other in others)}) == 4
