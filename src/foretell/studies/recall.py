"""What a model remembers of past events: asked outright, and by what it forecasts with and without sources.

After Prophet Arena (2025, section 4.1.1 and appendix D.8). The events must have ended before the model's knowledge
does, else there is nothing to remember.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Literal, cast

import numpy as np

from foretell.forecasters.forecaster import Context, attempt
from foretell.forecasters.prompt.answers import OutcomeNames, rationale_in, read_probabilities
from foretell.forecasters.prompt.forecaster import PromptForecaster
from foretell.forecasters.prompt.prediction_context import PredictionContext, StoredContexts, known_at, one_line
from foretell.forecasters.prompt.rendering import NONE, SOURCES, outcomes
from foretell.metrics.bootstrap import Resampling
from foretell.metrics.comparison import Comparison, compare_paired
from foretell.metrics.scores import mean_brier
from foretell.metrics.shares import DEFAULT_DRAWS, mean_interval, share_interval
from foretell.models.capabilities import knowledge_cutoff
from foretell.models.model import Message, ModelError, Request, SystemMessage, UserMessage
from foretell.models.names import ModelRole
from foretell.models.structured_output import UnusableReply, ask_until_usable, closed_object
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.report.study import (
    CellValue,
    StudyColumn,
    StudyProgress,
    StudyResult,
    StudyRow,
    StudyTable,
    ignore_progress,
)
from foretell.report.study_report import study_page
from foretell.studies.inputs import gather_bounded

MemoryKind = Literal["right", "wrong", "vague", "none"]
"""Recognised and recalled as it was; recalled otherwise; recognised without an outcome; not recognised."""
PROOF = 2
"""Facts that go with a claim to remember."""
INSTRUCTION = """\
You are asked what you remember. Below is an event of the past on which people could bet. It is over, and how it came \
out is known. If this very event is in your memory, say so and say how it came out. If it is not, say that: nothing is \
lost by not knowing, and invented details are worse than none.

Answer with one JSON object and nothing else:
{"recognised": <true or false>, "facts": ["<detail>", …], "recalled": {$recalled}, "rationale": "<one or two \
sentences>", "probabilities": {$probabilities}}

- `recognised` is true only if you remember this event itself, not merely events of its kind.
- `facts` holds at least two details that can be checked, such as figures, dates, names or places, where it is true; \
else it is empty.
- `recalled` says for every listed outcome whether it came true: "yes", "no", or "unknown" where you do not remember.
- `probabilities` says for every listed outcome how likely you think it is that it came true, a number from 0 to 1: by \
memory where there is one, else by judgement.
- Use the names of outcomes in backticks, all of them and no others."""


@dataclass(frozen=True, kw_only=True)
class PastEvent:
    """An event whose outcome is known, with a context that has its sources."""

    context: PredictionContext
    truth: Mapping[str, int]
    """0 or 1 by target id; targets without a known outcome are absent."""

    def __post_init__(self) -> None:
        unknown = set(self.truth) - {target.id for target in self.question.targets}
        if not self.truth or unknown:
            raise ValueError(f"question {self.question.id} has no known outcome, or one of a target it does not have")

    @property
    def question(self) -> Question:
        """What was asked."""
        return self.context.question


@dataclass(frozen=True, kw_only=True)
class Recollection:
    """What a model says it remembers."""

    recognised: bool
    recalled: Mapping[str, int]
    """0 or 1 by target id; what it does not remember is absent."""
    facts: tuple[str, ...] = ()
    p: Mapping[str, float] = field(default_factory=dict[str, float])
    rationale: str = ""

    def against(self, truth: Mapping[str, int]) -> MemoryKind:
        """How the memory compares with what happened: one wrong outcome makes it wrong.

        >>> Recollection(recognised=True, recalled={"a": 1}).against({"a": 1, "b": 0})
        'right'
        """
        if not self.recognised:
            return "none"
        told = [said == truth[target] for target, said in self.recalled.items() if target in truth]
        return "vague" if not told else "right" if all(told) else "wrong"


@dataclass(frozen=True, kw_only=True)
class RecallResult:
    """One event put to one model in three ways."""

    past: PastEvent
    recollection: Recollection | None
    without: Forecast | None
    """Forecast with neither sources nor market."""
    with_sources: Forecast | None
    problems: tuple[str, ...] = ()

    @property
    def memory(self) -> MemoryKind | None:
        """None where the model gave no usable answer."""
        return None if self.recollection is None else self.recollection.against(self.past.truth)


async def recall_events(
    events: Sequence[PastEvent],
    context_of: Callable[[Question], Context],
    role: ModelRole = "agent",
    progress: StudyProgress = ignore_progress,
) -> list[RecallResult]:
    """Put every event to the model three times: what it remembers, a forecast without sources, one with them."""
    return await gather_bounded(events, lambda past: _remembered(past, context_of(past.question), role), progress)


async def _remembered(past: PastEvent, context: Context, role: ModelRole) -> RecallResult:
    context = replace(context, as_of=past.context.as_of)  # A past event is asked about as of its own context.
    stored = StoredContexts([past.context])
    bare, told = (PromptForecaster(contexts=stored, view=view, role=role) for view in (NONE, SOURCES))
    memory, without, with_sources = await asyncio.gather(
        ask_recollection(past.question, context, role),
        attempt(bare, past.question, context),
        attempt(told, past.question, context),
    )
    problems = [memory] if isinstance(memory, str) else []
    problems += [one.error for one in (without, with_sources) if isinstance(one, Failure)]
    return RecallResult(
        past=past,
        recollection=None if isinstance(memory, str) else memory,
        without=without if isinstance(without, Forecast) else None,
        with_sources=with_sources if isinstance(with_sources, Forecast) else None,
        problems=tuple(problems),
    )


async def ask_recollection(question: Question, context: Context, role: ModelRole = "agent") -> Recollection | str:
    """What the model remembers, or why it gave no usable answer."""
    names = OutcomeNames.of(question)
    model = context.model(role)
    request = Request(
        model=context.models.name(role),
        messages=recall_messages(known_at(question, context.as_of), names),
        schema=_schema(names),
        settings=context.models.settings(role),
        slot=f"{question.id}/recall {context.trial}",
    )
    try:
        return await ask_until_usable(model, request, lambda said: read_recollection(said, names))
    except ModelError as error:
        return str(error)


def recall_messages(question: Question, names: OutcomeNames) -> tuple[Message, ...]:
    """What the model is asked. Unlike a forecaster it is told when the event ended: that helps to place it."""
    told = ", ".join(f'"{key}": "<yes, no or unknown>"' for key in list(names.keys)[:3])
    numbers = ", ".join(f'"{key}": <number>' for key in list(names.keys)[:3])
    more = ", …" if len(names.keys) > 3 else ""
    closes = f"It ended at {question.closes_at:%Y-%m-%d %H:%M} UTC." if question.closes_at else ""
    sections = (
        ("Question", question.text),
        ("Category", question.category),
        ("When", closes),
        ("How it was decided", question.criteria[:6000]),
        ("Outcomes", outcomes(question)),
    )
    system = INSTRUCTION.replace("$recalled", told + more).replace("$probabilities", numbers + more)
    text = "\n\n".join(f"# {heading}\n\n{part}" for heading, part in sections if part)
    return SystemMessage(text=system), UserMessage(text=text)


def read_recollection(said: Mapping[str, Any], names: OutcomeNames) -> Recollection:
    """The recollection in an answer, or `UnusableReply`."""
    recognised = _flag(said.get("recognised", said.get("recognized")))
    if recognised is None:
        raise UnusableReply("`recognised` must be true or false")
    stated = read_probabilities({name: part for name, part in said.items() if name == "probabilities"}, names)
    given: Any = said.get("recalled")
    recalled = _recalled(cast("Mapping[Any, Any]", given), names) if isinstance(given, Mapping) else {}
    listed = cast("list[Any]", said.get("facts") or []) if isinstance(said.get("facts"), list) else []
    facts = [one_line(fact, 300) for fact in listed[:20] if isinstance(fact, str)]
    return Recollection(
        recognised=recognised,
        recalled=recalled if recognised else {},
        facts=tuple(filter(None, facts)),
        p=stated.p,
        rationale=rationale_in(said)[:1000],
    )


def _recalled(given: Mapping[Any, Any], names: OutcomeNames) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, word in list(given.items())[:5000]:
        target, came_true = names.find(str(name)), _flag(word)
        if target is not None and came_true is not None:
            found[target] = int(came_true)
    return found


def _flag(given: Any) -> bool | None:
    if isinstance(given, bool):
        return given
    word = given.strip(" .!\"'").casefold() if isinstance(given, str) else ""
    return {"yes": True, "true": True, "no": False, "false": False}.get(word)


def _schema(names: OutcomeNames) -> dict[str, Any]:
    word = {"type": "string", "enum": ["yes", "no", "unknown"]}
    number = {"type": "number", "minimum": 0, "maximum": 1}
    return closed_object(
        {
            "recognised": {"type": "boolean"},
            "facts": {"type": "array", "items": {"type": "string"}},
            "recalled": closed_object(dict.fromkeys(names.keys, word)),
            "rationale": {"type": "string"},
            "probabilities": closed_object(dict.fromkeys(names.keys, number)),
        }
    )


# What models remember, as tables: recall and mis-recall by category, and what sources add to it.

ADVICE = (
    "Claimed: the model says that it remembers this very event. Right: it claims so and every outcome it recalls is "
    "what happened. Wrong: it claims so and at least one is not. Vague: it claims so and recalls no outcome.",
    "Mis-recall is the share of wrong ones among those that recall an outcome. A model that claims much and "
    "mis-recalls much makes up memories; a backtest before its knowledge ends cannot be trusted either way.",
    "Shares carry Wilson intervals over events. Brier scores are means over events, each event the mean over its "
    "outcomes. The gain is Brier without sources minus Brier with them, paired by event: above 0 where sources help.",
)
SHARES = ("claimed", "right", "wrong", "vague", "mis-recall")
RecallGroup = Sequence[RecallResult]


def recall_study(by_model: Mapping[str, RecallGroup], resampling: Resampling = DEFAULT_DRAWS) -> StudyResult:
    """The study of what models remember, by model."""
    return StudyResult(
        name="recall",
        title="What models remember of past events",
        finding=_finding(by_model),
        grids=(_rates(by_model), _categories(by_model), _scores(by_model, resampling)),
        notes=tuple(_notes(by_model)),
        settings={"draws": resampling.draws, "level": resampling.level, "seed": resampling.seed},
        advice=ADVICE,
    )


def recall_page(study: StudyResult) -> str:
    """The study as a web page."""
    return study_page(study)


def _rates(by_model: Mapping[str, RecallGroup]) -> StudyTable:
    columns = (StudyColumn(label="n", decimals=0), *(StudyColumn(label=name, decimals=2) for name in SHARES))
    return StudyTable(
        title="Recall by model",
        head="Model",
        columns=(*columns, StudyColumn(label="facts", decimals=1, tip="median number of details that go with a claim")),
        entries=tuple(
            StudyRow(name=model, values=(*_shares(group), _facts(group))) for model, group in by_model.items()
        ),
        caption="Shares of events with a usable answer; in brackets 95 % intervals.",
    )


def _categories(by_model: Mapping[str, RecallGroup]) -> StudyTable:
    columns = (StudyColumn(label="n", decimals=0), *(StudyColumn(label=name, decimals=2) for name in SHARES))
    entries = [
        StudyRow(name=(category or "no category") + (f" · {model}" if len(by_model) > 1 else ""), values=_shares(part))
        for category in sorted({one.past.question.category for group in by_model.values() for one in group})
        for model, group in by_model.items()
        if (part := [one for one in group if one.past.question.category == category])
    ]
    return StudyTable(title="Recall by category", head="Category", columns=columns, entries=tuple(entries))


def _shares(group: RecallGroup) -> tuple[CellValue, ...]:
    count: Counter[MemoryKind] = Counter(one.memory for one in group if one.memory is not None)
    n, told = sum(count.values()), count["right"] + count["wrong"]
    parts = (n - count["none"], count["right"], count["wrong"], count["vague"])
    return (n, *(share_interval(part, n) for part in parts), share_interval(count["wrong"], told))


def _facts(group: RecallGroup) -> float | None:
    counts = [len(one.recollection.facts) for one in group if one.recollection and one.recollection.recognised]
    return float(median(counts)) if counts else None


def _scores(by_model: Mapping[str, RecallGroup], resampling: Resampling) -> StudyTable:
    """Brier scores of the three ways, over all events and apart by what was remembered."""
    columns = [
        StudyColumn(label="n", decimals=0),
        *(StudyColumn(label=name, decimals=3) for name in ("recall", "without", "with")),
    ]
    entries = [
        StudyRow(name=f"{model} · {told}", values=_brier_row(part, resampling))
        for model, group in by_model.items()
        for told, part in _parts(group)
        if part
    ]
    return StudyTable(
        title="Brier score by way of asking",
        head="Model and events",
        columns=(*columns, StudyColumn(label="gain", decimals=3, tip="without minus with sources, paired")),
        entries=tuple(entries),
        caption="Asked what it remembers; forecasting without sources and market; forecasting with sources.",
    )


def _parts(group: RecallGroup) -> list[tuple[str, list[RecallResult]]]:
    right = [one for one in group if one.memory == "right"]
    other = [one for one in group if one.memory in ("wrong", "vague", "none")]
    return [("all events", list(group)), ("recalled right", right), ("not recalled, or wrongly", other)]


def _brier_row(group: RecallGroup, resampling: Resampling) -> tuple[CellValue, ...]:
    cluster = [one.past.question.cluster for one in group]
    ways = [
        [_brier(one.recollection.p if one.recollection else None, one) for one in group],
        [_brier(one.without.p if one.without else None, one) for one in group],
        [_brier(one.with_sources.p if one.with_sources else None, one) for one in group],
    ]
    means = [
        mean_interval([v for v in way if v == v], [c for c, v in zip(cluster, way, strict=True) if v == v], resampling)
        for way in ways
    ]
    return (len(group), *means, _gain(ways[1], ways[2], cluster, resampling))


def _gain(
    without: Sequence[float], with_sources: Sequence[float], cluster: Sequence[str], resampling: Resampling
) -> Comparison | None:
    both = ~np.isnan(without) & ~np.isnan(with_sources)
    if not both.any():
        return None
    return compare_paired(list(without), list(with_sources), list(cluster), resampling=resampling)


def _brier(p: Mapping[str, float] | None, one: RecallResult) -> float:
    """The event's Brier score, NaN where there is no forecast."""
    if p is None:
        return float("nan")
    truth = one.past.truth
    return mean_brier([p[target] for target in truth], list(truth.values()))


def _finding(by_model: Mapping[str, RecallGroup]) -> str:
    told: list[str] = []
    for model, group in by_model.items():
        count: Counter[MemoryKind] = Counter(one.memory for one in group if one.memory is not None)
        claimed = sum(count.values()) - count["none"]
        told.append(
            f"{model} claims to remember {claimed} of {sum(count.values())} events and is wrong on {count['wrong']}"
        )
    return "; ".join(told) + "." if told else "No event was asked about."


def _notes(by_model: Mapping[str, RecallGroup]) -> list[str]:
    told: list[str] = []
    for model, group in by_model.items():
        lost = Counter(problem for one in group for problem in one.problems)
        told += [f"{model}: {n} answers came to nothing: {why}" for why, n in lost.most_common(3)]
        bare = sum(
            one.recollection.recognised and len(one.recollection.facts) < PROOF for one in group if one.recollection
        )
        told += [f"{model}: {bare} claims to remember come with fewer than {PROOF} details"] * bool(bare)
        told += _unknowable(model, group)
    return told


def _unknowable(model: str, group: RecallGroup) -> list[str]:
    """Events that ended after the model's knowledge: not to remember them is no fault."""
    try:
        cutoff = knowledge_cutoff(model)
    except InputError:
        cutoff = None
    if cutoff is None:
        return [f"{model}: it is not known when its knowledge ends"]
    known = AsOf.day(cutoff.day)
    late = sum(one.past.question.closes_at is None or not known.admits(one.past.question.closes_at) for one in group)
    return [f"{model}: {late} events ended after {cutoff.day}, when its knowledge does, or at no known time"] * bool(
        late
    )
