"""A context is one value: what it holds, what it refuses, and a name that changes if and only if its content does."""

import json
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.forecasters.context.doubles import BACK, CUP, LIVE, shared, source

from foretell.data.datasets import ContextSource
from foretell.forecasters.prompt import (
    PredictionContext,
    RankedSource,
    from_articles,
    key_of,
    known_at,
    one_line,
    ranked,
    refusal_notes,
    refused_articles,
)
from foretell.questions import EXCLUSIVITIES, AsOf, InputError, Question, Snapshot, Target, instant

text = st.text(max_size=40)
dates = st.datetimes(
    min_value=instant("2000-01-01").replace(tzinfo=None), max_value=instant("2026-01-10").replace(tzinfo=None)
).map(lambda at: at.replace(tzinfo=instant("2026-01-01").tzinfo))
prices = st.none() | st.floats(0, 1)
snapshots = st.builds(
    Snapshot, at=dates, last_price=prices, yes_ask=prices, no_ask=prices, volume=st.none() | st.floats(0, 1e6)
)
targets = st.lists(st.text(min_size=1, max_size=8, alphabet="abc 123"), min_size=1, max_size=4, unique=True)
sources = st.lists(
    st.tuples(st.text(min_size=1, max_size=20, alphabet="abc/:."), text, st.none() | dates),
    max_size=10,
    unique_by=lambda one: one[0],
)


@st.composite
def contexts(draw: Any) -> PredictionContext:
    quoted = [Target(id=name, snapshot=draw(st.none() | snapshots)) for name in draw(targets)]
    words = st.text(max_size=30, alphabet=st.characters(exclude_categories=["Cs"]))
    question = Question(
        id="q",
        source="s",
        text=draw(words),
        due="2026-01-10",
        targets=tuple(quoted),
        exclusivity=draw(st.sampled_from(EXCLUSIVITIES)),
    )
    made = [
        RankedSource(url=url, title=f"t{title}", summary=title, published=published, rank=rank)
        for rank, (url, title, published) in enumerate(draw(sources), start=1)
    ]
    as_of = AsOf.day("2026-01-10", draw(st.sampled_from(["live", "backtest"])))
    return PredictionContext(
        question=question, as_of=as_of, sources=ranked(made), searcher=draw(st.sampled_from(["", "e"]))
    )


@given(contexts(), contexts())
@settings(deadline=None, max_examples=30)
def test_equal_contexts_have_equal_digests_and_others_have_not(
    one: PredictionContext, other: PredictionContext
) -> None:
    assert (one == other) == (one.digest == other.digest)
    again = PredictionContext.from_json(one.to_json(), digest=one.digest)
    assert again == one
    assert again.canonical == one.canonical


def test_every_part_counts() -> None:
    base = shared()
    quotes = replace(CUP.targets[0], snapshot=replace(CUP.targets[0].snapshot, volume=1201))
    changed = [
        replace(base, as_of=LIVE),
        replace(base, searcher="other"),
        replace(base, closing_time=True),
        replace(base, sources=base.sources[:1]),
        replace(base, sources=(replace(base.sources[0], summary="Otherwise."), base.sources[1])),
        replace(base, sources=(replace(base.sources[0], published=None), base.sources[1])),
        replace(base, question=replace(CUP, text="Who wins it?")),
        replace(base, question=replace(CUP, targets=(quotes, CUP.targets[1]))),
    ]
    assert len({one.digest for one in (base, *changed)}) == len(changed) + 1


def test_the_same_price_written_otherwise_is_the_same_context() -> None:
    def with_price(price: Any, volume: Any) -> str:
        shot = Snapshot(at=BACK.at, last_price=price, volume=volume)
        return shared(replace(CUP, targets=(Target(id="a", snapshot=shot),))).digest

    assert with_price(0, 10) == with_price(0.0, 10.0) == with_price(-0.0, 10)
    assert with_price(0.1, 10) != with_price(0.2, 10)


def test_it_refuses_what_is_younger_than_the_moment() -> None:
    with pytest.raises(ValueError, match="after 2026-01-10"):
        PredictionContext(question=CUP, as_of=BACK, sources=(source(1, published=instant("2026-01-11")),))
    early = AsOf(at=instant("2026-01-09T00:00:00Z"))
    with pytest.raises(ValueError, match="quotes of Red Team"):
        PredictionContext(question=CUP, as_of=early)
    assert PredictionContext(question=known_at(CUP, early), as_of=early).question.targets[0].snapshot is None
    assert known_at(CUP, BACK) is CUP


@pytest.mark.parametrize(
    ("sources", "told"),
    [
        ([source(n) for n in range(1, 12)], "at most 10"),
        ([source(2)], "ranks are"),
        ([source(1), source(2, url="https://news.example/1")], "twice"),
    ],
)
def test_ten_sources_in_their_order_each_once(sources: list[RankedSource], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        PredictionContext(question=CUP, as_of=BACK, sources=tuple(sources))
    mended = ranked(sources)
    assert [one.rank for one in mended] == list(range(1, len(mended) + 1))
    PredictionContext(question=CUP, as_of=BACK, sources=mended)


def test_a_source_is_one_line_and_never_empty() -> None:
    made = RankedSource(
        url=" https://a.example/x y ", title="A\n\n# Market\n\nprice 1", summary="s\ud800\x1b[31m\u202e" + "w " * 900
    )
    assert made.url == "https://a.example/x%20y"
    assert made.title == "A # Market price 1"
    assert len(made.summary) <= 900
    assert "\x1b" not in made.summary
    assert "\ud800" not in made.summary
    with pytest.raises(ValueError, match="address"):
        RankedSource(url="", title="t", summary="s")
    with pytest.raises(ValueError, match="neither"):
        RankedSource(url="https://a.example", title=" ", summary="\u200b")
    assert one_line("Cafe\u0301", 10) == one_line("Café", 10)


@pytest.mark.parametrize(
    "written",
    ["", "[]", "{}", '{"schema": "foretell/context/1"}', '{"schema": "foretell/context/1", "sources": 3}'],
)
def test_what_is_no_context_is_told_in_one_line(written: str) -> None:
    with pytest.raises(InputError):
        PredictionContext.from_json(written)


def test_a_changed_file_is_noticed() -> None:
    body = json.loads(shared().to_json())
    body["sources"][0]["summary"] = "Forged."
    with pytest.raises(InputError, match="digest"):
        PredictionContext.from_json(json.dumps(body), digest=shared().digest)
    body["sources"][0]["published"] = "2027-01-01"
    with pytest.raises(InputError, match="after"):
        PredictionContext.from_json(json.dumps(body))


def test_a_question_with_broken_characters_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="characters"):
        shared(replace(CUP, text="half \ud800 a pair"))


def test_published_articles_become_a_context() -> None:
    articles = [
        ContextSource(title="Third", url="https://c.example", summary="Unranked."),
        ContextSource(title="Second", url="https://b.example", summary="B.", rank=7),
        ContextSource(title="First", url="https://a.example", summary="A.", rank=1),
        ContextSource(title="", url="https://d.example", summary=" "),
        ContextSource(title="No address", url="", summary="E."),
        ContextSource(title="Again", url="https://a.example", summary="Copy.", rank=9),
    ]
    made = from_articles(CUP, articles)
    assert [one.title for one in made.sources] == ["First", "Second", "Third", "No address"]
    assert made.as_of == CUP.as_of
    assert key_of(made.question, made.as_of) == key_of(CUP, CUP.as_of)


def test_published_articles_are_judged_by_the_rules_of_the_fence_and_named_where_refused() -> None:
    day = f"{CUP.due + timedelta(days=30):%d %B %Y}"
    late = (
        ContextSource(title="Written later", url="https://a.example/1", summary=f"Updated {day}: the favourite won."),
        ContextSource(title=f"The final, {day}", url="https://a.example/2", summary="All goals."),
        ContextSource(title="Told as past", url="https://a.example/3", summary=f"The cup was won by them on {day}."),
        ContextSource(title="Dated address", url=f"https://a.example/{CUP.due.year + 1}/05/06/final", summary="Goals."),
        ContextSource(title="Prices", url="https://polymarket.com/event/cup", summary="What traders think."),
    )
    plan = ContextSource(title="A plan", url="https://a.example/6", summary=f"The final is scheduled for {day}.")
    refused = refused_articles(CUP, [*late, plan])
    assert [one.url for one in refused] == [one.url for one in late]
    assert [one.title for one in from_articles(CUP, [*late, plan]).sources] == ["A plan"]
    notes = refusal_notes(refused, 6, 2)
    assert notes[0] == "5 of 6 sources that came with the questions are shown to no model:"
    assert "Written later" in notes[1]
    assert notes[-1] == "… and 3 more"


@pytest.mark.shared_data
def test_the_published_subset_makes_contexts_that_come_back(shared_data: Any) -> None:
    from foretell.data.datasets import asked_key, read_events_csv

    (path,) = sorted((shared_data / "prophet_arena").glob("*.csv"))[:1]
    found = read_events_csv(path)
    made = [from_articles(question, found.contexts[asked_key(question)]) for question in found.questions]
    assert len({one.digest for one in made}) == len(made)
    assert all(PredictionContext.from_json(one.to_json()) == one for one in made)
    assert all(len(one.sources) <= 10 for one in made)
    refused = [
        one for question in found.questions for one in refused_articles(question, found.contexts[asked_key(question)])
    ]
    assert len(refused) <= 4, list(map(str, refused))


def test_a_context_of_an_earlier_version_keeps_its_digest():
    """There, that exactly one outcome comes true was a flag; the digest was taken of that spelling."""
    whole = shared(replace(CUP, exclusivity="exactly one"))
    assert '"exclusive":true' in whole.to_json()
    assert PredictionContext.from_json(whole.to_json(), digest=sha256(whole.to_json().encode()).hexdigest()) == whole
    some = shared(replace(CUP, exclusivity="at most one"))
    assert '"exclusivity":"at most one"' in some.to_json()
    assert PredictionContext.from_json(some.to_json(), digest=some.digest) == some
    assert len({whole.digest, some.digest, shared(replace(CUP, exclusivity="independent")).digest}) == 3
