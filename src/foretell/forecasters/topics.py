"""Sorts a question into one of ten topics: with a model, or by its words without one."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Literal, get_args

from foretell.frozen import frozen
from foretell.models.model import Model, ModelError, SystemMessage, UserMessage
from foretell.models.names import ModelRoles
from foretell.models.structured_output import ask_typed
from foretell.questions.question import Question

Topic = Literal[
    "Domestic Politics",
    "Geopolitics & Conflict",
    "Business & Industry",
    "Society & Law",
    "Macroeconomics",
    "Science & Technology",
    "Health & Biology",
    "Financial Markets",
    "Sports & Entertainment",
    "Other",
]
TOPICS: tuple[Topic, ...] = get_args(Topic)
"""The classes of BLF 2026, Table 21."""
BY_SOURCE: Mapping[str, Topic] = {
    "acled": "Geopolitics & Conflict",
    "yfinance": "Financial Markets",
    "fred": "Macroeconomics",
    "dbnomics": "Science & Technology",
}
"""Topics of sources that ask about one subject only; the last one asks about the weather."""
WORDS: Mapping[Topic, str] = {
    "Geopolitics & Conflict": """war wars ceasefire truce invade invasion military missile missiles nuclear treaty
        sanctions nato russia russian ukraine ukrainian israel israeli gaza hamas hezbollah iran iranian taiwan china
        chinese north.korea coup troops strike strikes airstrike border peace hostage hostages attack terror terrorist
        embassy diplomatic syria yemen houthi houthis kashmir sudan zelensky zelenskyy putin xi.jinping netanyahu summit
        travel.advisory recognize annex sovereignty militant militants fatalities riots conflict strait greenland
        venezuela maduro""",
    "Domestic Politics": """election elections elected vote votes president presidential prime.minister chancellor
        senate senator congress house parliament parliamentary party coalition cabinet minister governor mayor nominee
        nomination primary approval.rating poll polls polling impeach impeached impeachment democrat democrats
        democratic republican republicans white.house shutdown bill veto executive.order secretary trump biden harris
        candidacy candidate resign resigns state.of.emergency referendum ballot government lawmakers amendment
        doge epstein""",
    "Macroeconomics": """inflation cpi gdp unemployment interest.rate interest.rates fed federal.reserve fomc ecb
        central.bank recession tariff tariffs trade.deal payrolls jobs.report deficit debt.ceiling bps basis.points
        economy economic currency yield yields treasury mortgage imf world.bank free.trade budget""",
    "Financial Markets": """stock stocks share.price shares bitcoin btc ethereum eth solana xrp crypto cryptocurrency
        market.cap nasdaq dow s&p spx index gold oil.price brent wti close.above close.below all-time.high ipo price
        a.share etf dividend ticker market.close""",
    "Business & Industry": """company companies ceo merger acquire acquires acquisition acquired bankruptcy bankrupt
        layoffs launch launches product revenue earnings tesla apple google amazon microsoft meta nvidia openai tiktok
        uber boeing airline airlines recall recalls factory sales subsidiary shareholder antitrust starbucks
        intel customers store""",
    "Science & Technology": """ai agi model gpt gpt-5 gemini claude llm grok deepseek xai chatbot spacex starship
        nasa rocket orbit moon mars satellite starlink telescope physics quantum fusion climate temperature hurricane
        hurricanes earthquake earthquakes volcano eruption magnitude weather arctic robot robotaxi chip software
        technology lmarena benchmark research scientists browser asteroid storm""",
    "Health & Biology": """vaccine vaccines virus disease covid coronavirus pandemic measles flu influenza h5n1 bird.flu
        cholera ebola mpox polio outbreak fda cdc who drug clinical.trial cancer health hospital medicine species
        epidemic cases.of""",
    "Society & Law": """court courts supreme.court judge lawsuit sued convicted conviction indicted indictment trial
        sentence sentenced guilty charged charges arrested prison pardon pardoned law legal ruling appeal certiorari
        university immigration protest protests police pope vatican church religion human.rights death.penalty murder
        extradited deported tax-exempt""",
    "Sports & Entertainment": """win.the champion champions championship championships league cup game games
        match nba nfl nhl mlb fifa uefa f1 formula.1 grand.prix olympic olympics super.bowl world.series premier.league
        tournament team player players coach oscar oscars academy.awards grammy emmy film films movie box.office album
        song songs spotify billboard netflix artist singer taylor.swift video.game gta poker chess fide elo grandmaster
        swimming world.record swimmer tennis golf boxing ufc marathon streamed celebrity streamer searched eurovision
        película videojuego tour.de.france ballon mvp playoffs opening.weekend""",
}
INSTRUCTION = (
    "Sort a forecasting question into exactly one topic by what decides it, not by who is mentioned. "
    f"The topics: {'; '.join(TOPICS)}. Weather and climate belong to Science & Technology; wars, borders and relations "
    "between states to Geopolitics & Conflict; elections and governments of one country to Domestic Politics; prices "
    "of traded assets to Financial Markets; rates, prices and output of whole economies to Macroeconomics."
)


@frozen
class TopicLabel:
    """A topic and how it was decided."""

    topic: Topic
    by: Literal["model", "words", "source", "nobody"]


@frozen(kw_only=False)
class TopicReply:
    """The model's answer, as parsed."""

    topic: Topic


@frozen
class TopicClassifier:
    """Asks the filter's model, which is fast. Without a model, or if it fails, the words of the question decide."""

    models: ModelRoles | None = None
    model: Model | None = None

    async def sort(self, question: Question) -> TopicLabel:
        """Return the topic of a question."""
        if self.models is None or self.model is None:
            return by_words(question)
        text = f"{question.text}\n\n{question.criteria[:1000]}".strip()
        request = self.models.request("filter", (SystemMessage(text=INSTRUCTION), UserMessage(text=text)), slot="topic")
        try:
            label = await ask_typed(self.model, request, TopicReply)
        except ModelError:
            return by_words(question)
        return TopicLabel(topic=label.topic, by="model")


def by_words(question: Question) -> TopicLabel:
    """Return the topic of the source if it has only one, else the topic with most words in the question.

    If the question's text has none of the words, its criteria decide, then its background.
    """
    if question.source in BY_SOURCE:
        return TopicLabel(topic=BY_SOURCE[question.source], by="source")
    for text in (question.text, question.criteria, question.background):
        counts: dict[Topic, int] = {
            topic: len(set(pattern.findall(text.lower()))) for topic, pattern in _patterns().items()
        }
        topic = max(counts, key=lambda topic: counts[topic])
        if counts[topic]:
            return TopicLabel(topic=topic, by="words")
    return TopicLabel(topic="Other", by="nobody")


@cache
def _patterns() -> dict[Topic, re.Pattern[str]]:
    """Return one pattern per topic, the last of `TOPICS` first: it wins ties. A dot in a word list means a space."""
    patterns: dict[Topic, re.Pattern[str]] = {}
    for topic in reversed(TOPICS):
        words = sorted(WORDS.get(topic, "").split(), key=len, reverse=True)
        choice = "|".join(re.escape(word).replace(r"\.", r"\s+") for word in words)
        if choice:
            patterns[topic] = re.compile(rf"(?<!\w)(?:{choice})(?!\w)")
    return patterns
