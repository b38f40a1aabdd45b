"""Markets and series that ask the same as a claim, for the leaves of a tree."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np

from foretell.forecasters.base_rates.same_question import compare, sense
from foretell.forecasters.combine.default import FRESH_PRICE_DAYS
from foretell.forecasters.forecaster import Context, MatchingSource
from foretell.frozen import frozen
from foretell.models.canonical import content_key
from foretell.models.journal import Journal
from foretell.number_text import percent
from foretell.questions.question import Question
from foretell.runs.public_sources import look_around
from foretell.runs.settings import Settings


@frozen
class MatchingSources:
    """Finds prices of the same question and readings of the series that decides it.

    Live, public markets and series are asked, once for each claim. In a backtest only the prices of earlier questions
    count, as they were known on the day.
    """

    settings: Settings
    journal: Journal

    async def of(self, question: Question, context: Context) -> Sequence[MatchingSource]:
        """Return what was found; empty if nothing asks the same."""
        stored = list(prices_of_same_question(question, context))
        if context.as_of.mode != "live" or not self.settings.network:
            return stored

        async def produce() -> list[dict[str, Any]]:
            return [vars(source) for source in await self._public(replace(question, due=context.as_of.at))]

        request = ["matching sources", question.text, context.as_of.at.isoformat()]
        found = await self.journal.once_json(content_key(request), "sources", produce)
        # Earlier versions stored only the text.
        public = [MatchingSource(text=each) if isinstance(each, str) else MatchingSource(**each) for each in found]
        return [*stored, *public]

    async def _public(self, question: Question) -> list[MatchingSource]:
        findings = await look_around(question, self.settings)
        oldest = question.due - timedelta(days=FRESH_PRICE_DAYS)
        sources = [
            MatchingSource(
                text=f"{match.platform} asks the same and stood at {percent(match.price)} on {match.at.date()}: "
                f"{match.text} ({match.url})",
                price=match.price if match.at >= oldest and match.volume != 0 else None,
            )
            for match in findings.matches
            if match.used
        ]
        if (reading := findings.reading) is not None:
            text = f"{reading.source}, {reading.name}: {percent(reading.answer.p)}. {reading.answer.reason}"
            sources.append(MatchingSource(text=text))
        return sources


def prices_of_same_question(question: Question, context: Context) -> Iterator[MatchingSource]:
    """Yield the fresh prices of earlier questions that ask the same."""
    day = context.as_of.at.date()
    table = context.past.whole.table
    now = np.datetime64(day, "D")
    fresh = (
        (table.price_on < now)
        & (table.price_on >= now - np.timedelta64(int(FRESH_PRICE_DAYS), "D"))
        & ~np.isnan(table.price)
    )
    if not fresh.any():
        return
    closes = question.closes_at.date() if question.closes_at else None
    claim = sense(question.text, day, closes)
    for row in np.flatnonzero(fresh):
        ends = None if np.isnat(table.resolves[row]) else table.resolves[row].astype("M8[D]").item()
        if compare(claim, sense(str(table.text[row]), day, ends), day).same:
            price = float(table.price[row])
            text = f"{table.source[row]} asks the same and stood at {percent(price)} on {table.price_on[row]}"
            yield MatchingSource(text=f"{text}: {table.text[row]}", price=price)
