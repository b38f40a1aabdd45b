"""Prediction contexts: validation, JSON round trips, and digests that identify the content."""

import json
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.forecasters.context.doubles import BACK, CUP, LIVE, shared, source

from foretell.data.datasets.question_set import ContextSource
from foretell.forecasters.prompt.prediction_context import (
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
from foretell.questions.as_of import AsOf, instant
from foretell.questions.errors import InputError
from foretell.questions.question import EXCLUSIVITIES, Question, Snapshot, Target

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
    unique_by=lambda row: row[0],
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
    ranked_sources = [
        RankedSource(url=url, title=f"t{title}", summary=title, published=published, rank=rank)
        for rank, (url, title, published) in enumerate(draw(sources), start=1)
    ]
    as_of = AsOf.day("2026-01-10", draw(st.sampled_from(["live", "backtest"])))
    return PredictionContext(
        question=question, as_of=as_of, sources=ranked(ranked_sources), searcher=draw(st.sampled_from(["", "e"]))
    )


@given(contexts(), contexts())
@settings(max_examples=30)
def test_digests_are_equal_exactly_if_contexts_are_equal(one: PredictionContext, other: PredictionContext) -> None:
    assert (one == other) == (one.digest == other.digest)
    again = PredictionContext.from_json(one.to_json(), digest=one.digest)
    assert again == one
    assert again.canonical == one.canonical


def test_change_of_any_field_changes_the_digest() -> None:
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
    assert len({context.digest for context in (base, *changed)}) == len(changed) + 1


def test_equal_prices_in_different_notations_give_the_same_digest() -> None:
    def with_price(price: Any, volume: Any) -> str:
        snapshot = Snapshot(at=BACK.at, last_price=price, volume=volume)
        return shared(replace(CUP, targets=(Target(id="a", snapshot=snapshot),))).digest

    assert with_price(0, 10) == with_price(0.0, 10.0) == with_price(-0.0, 10)
    assert with_price(0.1, 10) != with_price(0.2, 10)


def test_sources_and_quotes_after_the_cutoff_raise_errors() -> None:
    with pytest.raises(ValueError, match="after 2026-01-10"):
        PredictionContext(question=CUP, as_of=BACK, sources=(source(1, published=instant("2026-01-11")),))
    early = AsOf(at=instant("2026-01-09T00:00:00Z"))
    with pytest.raises(ValueError, match="quotes of Red Team"):
        PredictionContext(question=CUP, as_of=early)
    assert PredictionContext(question=known_at(CUP, early), as_of=early).question.targets[0].snapshot is None
    assert known_at(CUP, BACK) is CUP


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ([source(n) for n in range(1, 12)], "at most 10"),
        ([source(2)], "ranks must be"),
        ([source(1), source(2, url="https://news.example/1")], "same address"),
    ],
)
def test_sources_must_be_at_most_ten_ranked_and_distinct(sources: list[RankedSource], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PredictionContext(question=CUP, as_of=BACK, sources=tuple(sources))
    valid = ranked(sources)
    assert [item.rank for item in valid] == list(range(1, len(valid) + 1))
    PredictionContext(question=CUP, as_of=BACK, sources=valid)


def test_source_texts_are_on_one_line_and_not_empty() -> None:
    cleaned = RankedSource(
        url=" https://a.example/x y ", title="A\n\n# Market\n\nprice 1", summary="s\ud800\x1b[31m\u202e" + "w " * 900
    )
    assert cleaned.url == "https://a.example/x%20y"
    assert cleaned.title == "A # Market price 1"
    assert len(cleaned.summary) <= 900
    assert "\x1b" not in cleaned.summary
    assert "\ud800" not in cleaned.summary
    with pytest.raises(ValueError, match="address"):
        RankedSource(url="", title="t", summary="s")
    with pytest.raises(ValueError, match="neither"):
        RankedSource(url="https://a.example", title=" ", summary="\u200b")
    assert one_line("Cafe\u0301", 10) == one_line("Café", 10)


@pytest.mark.parametrize(
    "document",
    ["", "[]", "{}", '{"schema": "foretell/context/1"}', '{"schema": "foretell/context/1", "sources": 3}'],
)
def test_invalid_documents_raise_input_errors(document: str) -> None:
    with pytest.raises(InputError):
        PredictionContext.from_json(document)


def test_changed_documents_raise_errors() -> None:
    body = json.loads(shared().to_json())
    body["sources"][0]["summary"] = "Forged."
    with pytest.raises(InputError, match="digest"):
        PredictionContext.from_json(json.dumps(body), digest=shared().digest)
    body["sources"][0]["published"] = "2027-01-01"
    with pytest.raises(InputError, match="after"):
        PredictionContext.from_json(json.dumps(body))


def test_question_with_lone_surrogates_raises_an_error() -> None:
    with pytest.raises(ValueError, match="characters"):
        shared(replace(CUP, text="half \ud800 a pair"))


def test_published_articles_become_a_context_in_order_of_rank() -> None:
    articles = [
        ContextSource(title="Third", url="https://c.example", summary="Unranked."),
        ContextSource(title="Second", url="https://b.example", summary="B.", rank=7),
        ContextSource(title="First", url="https://a.example", summary="A.", rank=1),
        ContextSource(title="", url="https://d.example", summary=" "),
        ContextSource(title="No address", url="", summary="E."),
        ContextSource(title="Again", url="https://a.example", summary="Copy.", rank=9),
    ]
    context = from_articles(CUP, articles)
    assert [item.title for item in context.sources] == ["First", "Second", "Third", "No address"]
    assert context.as_of == CUP.as_of
    assert key_of(context.question, context.as_of) == key_of(CUP, CUP.as_of)


def test_published_articles_that_leak_are_refused_and_listed() -> None:
    day = f"{CUP.due + timedelta(days=30):%d %B %Y}"
    leaking = (
        ContextSource(title="Written later", url="https://a.example/1", summary=f"Updated {day}: the favourite won."),
        ContextSource(title=f"The final, {day}", url="https://a.example/2", summary="All goals."),
        ContextSource(title="Told as past", url="https://a.example/3", summary=f"The cup was won by them on {day}."),
        ContextSource(title="Dated address", url=f"https://a.example/{CUP.due.year + 1}/05/06/final", summary="Goals."),
        ContextSource(title="Prices", url="https://polymarket.com/event/cup", summary="What traders think."),
    )
    plan = ContextSource(title="A plan", url="https://a.example/6", summary=f"The final is scheduled for {day}.")
    refused = refused_articles(CUP, [*leaking, plan])
    assert [item.url for item in refused] == [item.url for item in leaking]
    assert [item.title for item in from_articles(CUP, [*leaking, plan]).sources] == ["A plan"]
    notes = refusal_notes(refused, 6, 2)
    assert notes[0] == "5 of 6 sources that came with the questions are not shown to models:"
    assert "Written later" in notes[1]
    assert notes[-1] == "… and 3 more"


@pytest.mark.shared_data
def test_contexts_of_the_published_subset_survive_a_round_trip(shared_data: Any) -> None:
    from foretell.data.datasets.prophet_arena import read_events_csv
    from foretell.data.datasets.question_set import asked_key

    (path,) = sorted((shared_data / "prophet_arena").glob("*.csv"))[:1]
    events_csv = read_events_csv(path)
    built = [from_articles(question, events_csv.contexts[asked_key(question)]) for question in events_csv.questions]
    assert len({context.digest for context in built}) == len(built)
    assert all(PredictionContext.from_json(context.to_json()) == context for context in built)
    assert all(len(context.sources) <= 10 for context in built)
    refused = [
        refused_article
        for question in events_csv.questions
        for refused_article in refused_articles(question, events_csv.contexts[asked_key(question)])
    ]
    assert len(refused) <= 4, list(map(str, refused))


def test_context_of_an_earlier_version_keeps_its_digest():
    """Earlier versions stored exclusivity as a flag, and the digest is that of the old form."""
    whole = shared(replace(CUP, exclusivity="exactly one"))
    assert '"exclusive":true' in whole.to_json()
    assert PredictionContext.from_json(whole.to_json(), digest=sha256(whole.to_json().encode()).hexdigest()) == whole
    some = shared(replace(CUP, exclusivity="at most one"))
    assert '"exclusivity":"at most one"' in some.to_json()
    assert PredictionContext.from_json(some.to_json(), digest=some.digest) == some
    assert len({whole.digest, some.digest, shared(replace(CUP, exclusivity="independent")).digest}) == 3
