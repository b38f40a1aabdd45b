"""`foretell ask --watch` killed with SIGKILL while it looks: nothing is lost, counted twice or paid for twice."""

import os
import random
import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.e2e.test_kill import bill, rows

from fakes.models import BackgroundModels
from foretell.data.corpus import Corpus, CorpusDocument
from foretell.questions.as_of import instant
from foretell.runs.store import RunStore
from foretell.standing.record import QuestionRecord
from foretell.standing.store import StandingStore

KILLS = int(os.environ.get("FORETELL_KILLS", "4"))
START = instant("2031-03-03T08:00:00Z")
TOPICS = ("Halvik terminal", "Brevern tramway")
PATIENCE = 60.0


def report(topic: str, number: int) -> str:
    words = ("inspectors", "painters", "divers", "surveyors", "electricians", "welders", "masons", "planners")
    who, what = words[number % len(words)], words[(number * 3 + 1) % len(words)]
    return f"{who.title()} of the {topic} met {what} on day {number} and signed paper number {100 + number}."


def publish(home: Path, topic: str, number: int) -> str:
    url = f"https://news.example/{topic.split()[0].lower()}/{number}"
    published = START + number * timedelta(hours=6)
    page = CorpusDocument(url=url, title=f"{topic}, {number}", text=report(topic, number), published=published)
    with closing(Corpus(home / "corpus.db")) as corpus:
        corpus.add([page])
    return url


def records(home: Path) -> list[QuestionRecord]:
    with closing(RunStore(home / "runs.db")) as runs:
        store = StandingStore(runs.database)
        return [store.record(standing.id) for standing in store.questions()]


def test_a_killed_watch_loses_nothing_and_pays_nothing_twice(build_workspace: Callable[..., Any], tmp_path: Path):
    clock, rng = tmp_path / "clock", random.Random(KILLS)

    def set_clock(number: int) -> None:
        text = (START + number * timedelta(hours=6)).isoformat()
        (tmp_path / "next").write_text(text, encoding="utf-8")
        (tmp_path / "next").replace(clock)

    set_clock(0)
    with BackgroundModels(script="foretell.practice.models.scripts:agent_script", latency=0.03) as provider:
        workspace = build_workspace(provider.url).with_environment(
            FORETELL_CLOCK=f"file:{clock}", FORETELL_MODEL="openai:gpt-5-mini"
        )
        workspace.set("network = false")
        for topic in TOPICS:
            words = ("--closes", "2031-12-31", "--search", "local", "--set", "forecaster=agent", "--watch", "--once")
            opened = workspace.foretell("ask", f"Will the {topic} open by 31 December 2031?", *words)
            assert opened.returncode == 0, opened.stderr
        killed, published = 0, dict[str, list[str]]()
        journal = workspace.home / "journal.db"

        def check_bill() -> None:
            kept = rows(journal, "select count(*) from kept where kind = 'model'")[0][0]
            with closing(workspace.journal()) as opened_journal:
                lost = opened_journal.ledger.lost_calls()
            assert kept <= sum(bill(provider).values()) <= kept + lost, "only a call in flight at a kill is paid again"

        for number in range(1, KILLS + 1):
            for topic in TOPICS:
                published.setdefault(topic, []).append(publish(workspace.home, topic, number))
            calls = sum(bill(provider).values())
            set_clock(number)
            child = workspace.start("ask", "--watch")
            until = time.monotonic() + PATIENCE
            # Two questions, and up to two calls for each: killed during or after one of them.
            wanted = calls + rng.randrange(1, 5)
            while child.poll() is None and sum(bill(provider).values()) < wanted and time.monotonic() < until:
                time.sleep(0.01)
            time.sleep(rng.uniform(0, 0.05))
            killed += child.poll() is None
            child.kill()
            child.wait()
            check_bill()
        set_clock(KILLS + 1)
        end = workspace.foretell("ask", "--watch", "--once")
        check_bill()

    assert end.returncode == 0, end.stderr
    assert killed >= KILLS - 1
    found = records(workspace.home)
    assert len(found) == len(TOPICS)
    for record in found:
        topic = next(topic for topic in TOPICS if topic in record.standing.question.text)
        assert [look.number for look in record.looks] == list(range(1, len(record.looks) + 1))
        assert [belief.number for belief in record.beliefs] == list(range(1, len(record.beliefs) + 1))
        news = [item.url for look in record.looks for item in look.news]
        assert sorted(news) == sorted(published[topic])
        counted = [item.url for belief in record.beliefs for item in belief.evidence if item.url]
        assert sorted(counted) == sorted(published[topic])
