"""Answer a question without a model: from a given price, public markets, a public series, or its wording alone."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Literal

from foretell.data.datasets.forecastbench_download import pulled_rounds, read_pulled, rounds_cache
from foretell.data.datasets.question_set import QuestionSet, union
from foretell.forecasters.base_rates.baselines import MarketPriceForecaster
from foretell.forecasters.base_rates.outside_estimate import ReferenceClass, ReferenceQuestion
from foretell.forecasters.base_rates.outside_model import shipped_model
from foretell.forecasters.base_rates.outside_view import OutsideView
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.base_rates.same_question import SAME, sense
from foretell.forecasters.forecaster import CannotForecast, Context, forecast_of
from foretell.forecasters.series.typed_question import asked_span, price_question, share_interval, weather_question
from foretell.frozen import frozen
from foretell.number_text import percent
from foretell.patterns import pattern
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, scaled
from foretell.runs.past import past_of
from foretell.runs.public_sources import LEAST, MOST, MarketMatch, PublicFindings, SeriesReading, look_around, pooled
from foretell.runs.settings import Settings

SIMILAR_SHOWN = 10
"""How many similar past questions are shown."""
MODEL_NOTE = "A model adds research (`foretell models` lists them)."
PRICE_NOTE = f"This is the price you gave: nothing was researched. {MODEL_NOTE}"
OUTSIDE_NOTE = (
    "Nothing was researched. The number only says how often questions worded like this came true on prediction "
    f"markets, where the answer is usually in doubt. {MODEL_NOTE}"
)
PUBLIC_NOTE = "No model was used: the answer comes from {}, and news was not considered. " + MODEL_NOTE
OFFLINE_NOTE = "Public markets and series were not queried, because {}."
NOTHING_FOUND = "None of the markets searched ({}) has the same question."
EARLIER_NOTE = (
    "A market on an earlier day ({}) already says {}. It is not used, because it may not ask the same; if what it asks "
    "about counts here too, the answer cannot be lower."
)
LAST_RESORT_WORTH, NOTHING_WORTH = 4.0, 1.0
"""How many past questions the wording of a question is worth, in general and if it is uninformative. Sets the range."""
FAMILIAR = 0.5
"""Share of known words below which the wording is uninformative."""
UNFAMILIAR_NOTE = "Most of its words occur in none of the past questions (all in English): even the range is a guess."
NO_SERIES_NOTE = "The public series that would decide it could not be read: even the range is a guess."
UNDATED_NOTE = (
    "Name a day, or say when it closes, and a public series can answer this; without one, the range is a guess."
)
OPEN_QUESTION = pattern(
    r"(?:who|whom|whose|which|when|where|why|what(?! (?:are|is|'s) the (?:odds|chance|probability|likelihood))"
    r"|how(?: (?:many|much|long|often|far))?(?! (?:likely|probable)))\b",
    re.IGNORECASE,
)
"""Beginnings of questions that cannot be answered with yes or no."""
Basis = Literal["model", "price", "markets", "series", "wording"]
CHOOSE_MODEL = (
    "For a researched answer add --model openai:NAME, anthropic:NAME or google:NAME and set its key "
    "(OPENAI_API_KEY, …), or use a model on this machine: --model compat:NAME@http://localhost:11434/v1 "
    "or --model local:PATH.gguf."
)


@frozen
class PublicAnswer:
    """An answer, and what it is based on."""

    forecast: Forecast
    """The combined trials, if a model was asked."""
    question: Question
    basis: Basis
    """What the answer is based on."""
    notes: tuple[str, ...] = ()
    """Caveats for the reader: failed trials, nothing researched, …"""
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    """Target → 80% interval of the probability; empty for a model that was asked once without a tree."""
    matches: tuple[MarketMatch, ...] = ()
    """Markets that ask the same question (used) or similar ones (only shown)."""
    reading: SeriesReading | None = None
    """What a public series says."""
    similar: tuple[ReferenceQuestion, ...] = ()
    """The most similar past questions, if rounds were downloaded and no model was asked."""


async def answer_without_model(question: Question, settings: Settings, *, past: bool) -> PublicAnswer:
    """Answer from a given price, public markets, a public series, or the wording; `past` uses nothing of today."""
    as_of = question.as_of_in("backtest" if past else "live")
    if all(target.snapshot is not None for target in question.targets):
        forecast = await MarketPriceForecaster().forecast(question, Context(as_of=as_of))
        return PublicAnswer(forecast=forecast, question=question, basis="price", notes=(PRICE_NOTE,))
    if not re.search(r"[^\W\d_]", question.text):
        raise InputError("the question has no words", column="QUESTION")
    asks_for = OPEN_QUESTION.match(question.text.strip())
    if asks_for and [target.id for target in question.targets] == ["yes"]:
        hint = "name what may happen with --option, or give the range of a number: --range LOW:HIGH"
        raise InputError(f"a question that asks {asks_for[0].lower()} has no probability of yes", hint=hint)
    number = question.range is not None
    if settings.network and not past:
        findings = await look_around(question, settings, number=number)
        problems = _unreached(findings)
    else:
        offline = "the question is asked as of a past day" if past else "the network is switched off"
        findings, problems = PublicFindings(), [OFFLINE_NOTE.format(offline)]
    answer = _from_public(question, findings)
    if answer is not None:
        return replace(answer, notes=(*answer.notes, *problems))
    if number:
        why = " ".join(["no public series answers this question, so the number needs a model.", *problems])
        raise InputError(why, column="--model", hint=CHOOSE_MODEL)
    last = await _last_resort(question, as_of, settings)
    nothing = [NOTHING_FOUND.format(", ".join(findings.asked))] if findings.asked else []
    notes = (*last.notes, *nothing, *_floors(question, last.forecast, findings.matches), *problems)
    return replace(last, matches=findings.matches, notes=notes)


def _unreached(findings: PublicFindings) -> list[str]:
    """Return one note per reason why markets or a series gave no answer."""
    by_reason: dict[str, list[str]] = {}
    for problem in findings.problems:
        who, _, why = problem.partition(": ")
        plain = "no answer in time" if why.endswith("Timeout") else re.sub(r"^\[Errno -?\d+\] ", "", why)
        by_reason.setdefault(plain, []).append(who)
    return [f"No answer from {', '.join(who)}: {why}." for why, who in by_reason.items()]


def _floors(question: Question, forecast: Forecast, matches: Sequence[MarketMatch]) -> list[str]:
    """Return a note on the highest price, above the answer, of a market that differs from it only by an earlier day."""
    meaning = sense(question.text, question.due.date())
    if meaning.standing or meaning.stays or meaning.negated:
        return []
    last = question.closes_at.date() if question.closes_at else meaning.until
    higher = [
        (match.price, match.closes)
        for match in matches
        if match.price is not None
        and match.closes is not None
        and match.similarity >= SAME
        and all(why.startswith("another day") for why in match.differs)
        and not match.same
        and (last is None or match.closes < last)
        and match.price > forecast.p.get(match.target, 1.0)
    ]
    return [EARLIER_NOTE.format(day, percent(price)) for price, day in sorted(higher)[-1:]]


def _from_public(question: Question, findings: PublicFindings) -> PublicAnswer | None:
    """Return the answer of markets or a series; None if neither covers every target."""
    context = Context(as_of=question.as_of_in("live"))
    prices = {target.id: findings.prices(target.id) for target in question.targets}
    if question.range is None and all(prices.values()):
        pools = {target: pooled(matches) for target, matches in prices.items()}
        p = scaled({target: value for target, (value, _) in pools.items()}, question.exclusivity)
        used = [match for matches in prices.values() for match in matches]
        text = (
            f"Taken from open markets that ask the same ({', '.join(dict.fromkeys(match.platform for match in used))})."
        )
        if len(used) > len(prices):
            text += " Prices of one question are averaged as log-odds, real money counting double."
        if findings.reading is not None:
            text += f" A public series says {percent(findings.reading.answer.p)}: {findings.reading.answer.reason}"
        forecast = forecast_of(p, question, context, "markets", text)
        ranges = {target: ends for target, (_, ends) in pools.items()}
        return PublicAnswer(
            forecast=forecast,
            question=question,
            basis="markets",
            ranges=ranges,
            matches=findings.matches,
            reading=findings.reading,
            notes=(PUBLIC_NOTE.format("market prices"),),
        )
    if findings.reading is None:
        return None
    source = "Open-Meteo's record of" if findings.reading.source == "open_meteo" else "Yahoo's prices of"
    note = PUBLIC_NOTE.format(f"{source} {findings.reading.name}")
    return replace(_from_series(question, findings.reading, context), matches=findings.matches, notes=(note,))


def _from_series(question: Question, reading: SeriesReading, context: Context) -> PublicAnswer:
    if reading.distribution is not None:
        p = {target.id: reading.distribution.above(float(target.id[1:])) for target in question.targets}
        forecast = forecast_of(p, question, context, "series", reading.reason, value=reading.value)
        forecast = replace(forecast, distribution=reading.distribution)
        return PublicAnswer(forecast=forecast, question=question, basis="series", reading=reading)
    (target,) = question.targets
    p = min(max(reading.answer.p, LEAST), MOST)
    forecast = forecast_of({target.id: p}, question, context, "series", reading.reason, value=reading.value)
    low, high = (min(max(end, LEAST), MOST) for end in reading.answer.interval)
    ranges = {target.id: (min(low, p), max(high, p))}
    return PublicAnswer(forecast=forecast, question=question, basis="series", ranges=ranges, reading=reading)


async def _last_resort(question: Question, as_of: AsOf, settings: Settings) -> PublicAnswer:
    """Answer with how similarly worded questions resolved, and a wide range."""
    past = _pulled_rounds(settings.home)
    span = asked_span(question.text, question.due.date(), None)
    if question.closes_at is None and span is not None:
        # A holiday named in the text is a deadline too.
        ends = datetime.combine(span.last, datetime.min.time(), UTC)
        question = replace(question, closes_at=ends if ends > question.due else None)
    try:
        forecast = await OutsideView().forecast(question, Context(as_of=as_of, past=past))
    except CannotForecast as reason:
        hint = "foretell data pull forecastbench brings rounds to learn from, or give --model"
        raise InputError(str(reason), hint=hint) from None
    similar = ReferenceClass.of(question, past.table, as_of).members[:SIMILAR_SHOWN] if past else ()
    doubts = _doubts(question)
    worth = NOTHING_WORTH if doubts else LAST_RESORT_WORTH
    ranges = {target: wide_range(p, worth) for target, p in forecast.p.items()}
    notes = (OUTSIDE_NOTE, *doubts)
    return PublicAnswer(
        forecast=forecast, question=question, basis="wording", ranges=ranges, similar=similar, notes=notes
    )


def _doubts(question: Question) -> list[str]:
    """Return the reasons why past questions are uninformative about this one."""
    due, closes = question.due.date(), question.closes_at.date() if question.closes_at else None
    if shipped_model().text.familiar(question.text) < FAMILIAR:
        return [UNFAMILIAR_NOTE]
    if len(question.targets) > 1:
        return []
    if weather_question(question.text, due, closes) or price_question(question.text, due, closes):
        return [NO_SERIES_NOTE]
    soon = due + timedelta(days=30)
    dated = weather_question(question.text, due, soon) or price_question(question.text, due, soon)
    return [UNDATED_NOTE] if closes is None and dated else []


def wide_range(p: float, worth: float = LAST_RESORT_WORTH) -> tuple[float, float]:
    """Return the range of a probability that is worth only a few past questions.

    >>> [round(end, 2) for end in wide_range(0.12)]
    [0.02, 0.43]
    """
    low, _, high = share_interval(worth * p, worth)
    return min(low, p), max(high, p)


@cache
def _pulled_rounds(home: Path) -> Past:
    cache, rounds = rounds_cache(home), list[QuestionSet]()
    for day in pulled_rounds(cache):
        with suppress(InputError):  # Skip rounds with damaged files.
            rounds.append(read_pulled(cache, day))
    everything = union("pulled", rounds)
    return past_of(everything.questions, everything.resolutions)
