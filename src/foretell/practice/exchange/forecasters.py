"""Scripted models that read the news and prices they are shown, served by a fake provider.

A reply depends only on the request. The part of a model's name before the first dash is its habit: `reader`, the
default, weighs what it reads, `hasty` adds noise of its own, `bold` is far too confident.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import date
from statistics import NormalDist
from typing import Any

from foretell.forecasters.forecaster import CannotForecast, Context
from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.practice.exchange.world import SimulatedWorld
from foretell.practice.models.formats import ModelQuery, ScriptedReply
from foretell.practice.models.scripts import arena_script
from foretell.practice.models.server import unit, without_ports
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question

# A forecaster that knows the hidden truth. It is an upper bound, not a competitor.

NAME = "oracle"


@frozen
class OracleForecaster:
    """Forecasts the ideal probability of every market at the time it is asked."""

    world: SimulatedWorld
    name: str = NAME

    async def forecast(self, question: Question, context: Context) -> Forecast:
        """Read the probabilities directly from the world, not over HTTP."""
        event = self.world.by_ticker.get(question.targets[0].id)
        if event is None:
            raise CannotForecast(f"question {question.id} is not in the simulated world")
        p = {target.id: self.world.truth(event.ticker, target.id, context.as_of.at) for target in question.targets}
        rationale = "The hidden truth of the simulation."
        return Forecast(question_id=question.id, forecaster=self.name, as_of=context.as_of, p=p, rationale=rationale)


NORMAL = NormalDist()
TRUST = {"courier": 1.0, "gazette": 0.5, "observer": 0.4, "buzz": 0.15}
"""Weight of a report, by outlet."""
FADES = 1.5
"""Half-life of a report's weight, in days."""
PRIOR_WEIGHT, MARKET_WEIGHT = 0.2, 1.8
_NOW = pattern(r"^It is (\d{4}-\d\d-\d\d)", re.MULTILINE)
_OUTCOME = pattern(r"^- `(.+?)`: (.+?)(?: \(decided on [\d-]+\))?$", re.MULTILINE)
_PRICE = pattern(r"^- `(.+?)`: implied probability ([\d.]+)", re.MULTILINE)
_SOURCE = pattern(r"^\[\d+\] .*\((\d{4}-\d\d-\d\d); \S*?//[^/]+/(\w+)/\S*\)\n(.+)$", re.MULTILINE)
_CHANCE = pattern(r"puts the chance that (.+?) at (\d+) in 100")
_LEVEL = pattern(r"(.+?) stands at (-?[\d.]+) [^,]*, with a usual move of ([\d.]+) ")
_ABOVE = pattern(r"Above (-?[\d.]+)")


@frozen
class ReadingHabit:
    """How a model distorts what it concludes from its reading, in logits."""

    factor: float = 1.0
    noise: float = 0.0


HABITS = {"reader": ReadingHabit(), "hasty": ReadingHabit(noise=1.0), "bold": ReadingHabit(factor=3.5, noise=0.4)}


@frozen
class NewsReport:
    """What a source says, and its weight."""

    text: str
    weight: float


def news_reader(query: ModelQuery) -> ScriptedReply:
    """Reply with probabilities based on the context; any request that is not a forecast goes to `arena_script`."""
    fields: Mapping[str, Any] = (query.schema or {}).get("properties", {})
    if query.tools or "probabilities" not in fields or "recognised" in fields:
        return arena_script(query)
    last = query.last
    labels, prices = dict(_OUTCOME.findall(last.partition("# Sources")[0])), dict(_PRICE.findall(last))
    reports = list(_reports(last))
    p: dict[str, float] = {}
    length = len(without_ports(last))
    for key in fields["probabilities"].get("properties", {}):
        label = labels.get(key, "")
        believed = _weighed(label, len(labels), reports, last, prices.get(key))
        p[key] = _distorted(believed, query.model, f"{last[:200]}/{key}/{length}")
    shown = "and the price" if prices else "without a price"
    return ScriptedReply(
        text=json.dumps({"rationale": f"{len(reports)} reports were weighed, {shown}.", "probabilities": p})
    )


def _reports(prompt: str) -> Iterator[NewsReport]:
    match = _NOW.search(prompt)
    today = date.fromisoformat(match[1]) if match else date.max
    for day, outlet, text in _SOURCE.findall(prompt):
        age = max(0, (today - date.fromisoformat(day)).days)
        yield NewsReport(text=text, weight=TRUST.get(outlet, 0.3) * 0.5 ** (age / FADES))


def _weighed(label: str, outcomes: int, reports: list[NewsReport], prompt: str, price: str | None) -> float:
    """Return the log odds of an outcome: the weighted mean of the reports, the price, and a low prior."""
    prior = 1 / outcomes if outcomes > 1 and not _ABOVE.match(label) else 0.3
    total, weight = PRIOR_WEIGHT * _odds(prior), PRIOR_WEIGHT
    for report in reports:
        p = _reported_probability(label, report.text, prompt)
        if p is not None:
            total, weight = total + report.weight * _odds(p), weight + report.weight
    if price is not None:
        # Longshots are overpriced, so prices are moved away from one half.
        total, weight = total + MARKET_WEIGHT * 1.08 * _odds(float(price)), weight + MARKET_WEIGHT
    return total / weight


def _reported_probability(label: str, text: str, prompt: str) -> float | None:
    """Return the probability that a report gives an outcome; None if the report is about something else."""
    if (chance := _CHANCE.search(text)) is not None:
        return int(chance[2]) / 100 if chance[1].casefold() == label.casefold() else None
    if (level := _LEVEL.match(text)) is not None:
        end = _ABOVE.match(label)
        if end is None or f"if {level[1].casefold()}:" not in prompt.casefold():
            return None
        return NORMAL.cdf((float(level[2]) - float(end[1])) / max(float(level[3]), 1e-6))
    share = re.search(rf"(?:: |, ){re.escape(label)} (\d+) in 100", text)
    return int(share[1]) / 100 if share else None


def _distorted(odds: float, model: str, words: str) -> float:
    habit = HABITS.get(model.partition("-")[0], HABITS["reader"])
    chance = min(max(unit(f"{model}/{words}"), 1e-6), 1 - 1e-6)
    odds = habit.factor * (odds + habit.noise * NORMAL.inv_cdf(chance))
    return round(min(0.995, max(0.005, 1 / (1 + math.exp(-odds)))), 4)


def _odds(p: float) -> float:
    clipped = min(0.985, max(0.015, p))
    return math.log(clipped / (1 - clipped))
