"""Topics: decided by a model if there is one, otherwise by words."""

import asyncio
from collections import Counter

import pytest

from foretell.forecasters.topics import TOPICS, TopicClassifier, TopicLabel, by_words
from foretell.models.model import BudgetExceeded, ModelError
from foretell.models.names import ModelRoles
from foretell.models.providers.scripted import ScriptedModel
from foretell.questions.question import Question, Target


def about(text, source="metaculus", criteria="", background=""):
    return Question(
        id="q",
        source=source,
        text=text,
        due="2025-10-26",
        targets=(Target(id="yes"),),
        criteria=criteria,
        background=background,
    )


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("Will a ceasefire be announced between Russia and Ukraine?", "Geopolitics & Conflict"),
        ("Will the senator win the primary election?", "Domestic Politics"),
        ("Will CPI inflation exceed 3%?", "Macroeconomics"),
        ("Will Bitcoin reach $140,000?", "Financial Markets"),
        ("Will Chegg file for bankruptcy?", "Business & Industry"),
        ("Will the Supreme Court rule in this lawsuit?", "Society & Law"),
        ("Will NASA launch the rocket to the moon?", "Science & Technology"),
        ("Will the CDC report a measles outbreak?", "Health & Biology"),
        ("Will the 49ers win the Super Bowl?", "Sports & Entertainment"),
        ("Will it?", "Other"),
    ],
)
def test_without_a_model_words_decide_the_topic(text, topic):
    assert by_words(about(text)).topic == topic
    assert asyncio.run(TopicClassifier().sort(about(text))).topic == topic


def test_sources_with_one_topic_need_no_words():
    assert by_words(about("Will it rise?", "yfinance")) == TopicLabel(topic="Financial Markets", by="source")


def test_criteria_decide_the_topic_if_the_question_has_no_known_words():
    assert by_words(about("Will it happen?", criteria="YES if a vaccine is approved.")).topic == "Health & Biology"


def sort(script):
    sorter = TopicClassifier(models=ModelRoles(agent="scripted:x"), model=ScriptedModel(script))
    return asyncio.run(sorter.sort(about("Will the ceasefire hold?")))


def test_model_decides_the_topic_and_is_asked_again_after_an_invalid_one():
    assert sort(['{"topic": "Society & Law"}']) == TopicLabel(topic="Society & Law", by="model")
    assert sort(['{"topic": "Gardening"}', '{"topic": "Other"}']) == TopicLabel(topic="Other", by="model")


@pytest.mark.parametrize("script", [["?"] * 3, [ModelError("down")], [BudgetExceeded("spent")]])
def test_words_decide_the_topic_if_the_model_fails(script):
    assert sort(script) == TopicLabel(topic="Geopolitics & Conflict", by="words")


@pytest.mark.shared_data
def test_word_topics_of_the_paper_samples_are_near_the_published_counts(shared_data):
    """BLF 2026 counts 69 Sports & Entertainment and 66 Geopolitics & Conflict among the questions of A and B."""
    import duckdb

    path = shared_data / "tables" / "ab_questions.parquet"
    sql = "select distinct source, question, resolution_criteria, background from read_parquet(?)"
    rows = duckdb.connect().execute(sql, [str(path)]).fetchall()
    counts = Counter(
        by_words(about(text, source, criteria or "", more or "")).topic for source, text, criteria, more in rows
    )
    assert set(counts) <= set(TOPICS)
    assert 55 <= counts["Sports & Entertainment"] <= 80
    assert 55 <= counts["Geopolitics & Conflict"] <= 80
    assert counts["Other"] <= 15
