"""Study: what does a model remember of past events? Asked directly, and by its forecasts with and without sources.

After Prophet Arena (2025, section 4.1.1 and appendix D.8). The events must have ended before the model's knowledge
cutoff; otherwise there is nothing to remember.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from statistics import median
from typing import Any, Literal, cast

import numpy as np

from foretell.data.datasets.question_files import ONLY_TARGET, read_outcomes
from foretell.data.datasets.question_set import asked_key
from foretell.forecasters.forecaster import Context, attempt
from foretell.forecasters.prompt.elicitation import OutcomeNames, rationale_in, read_probabilities
from foretell.forecasters.prompt.forecaster import PromptForecaster
from foretell.forecasters.prompt.prediction_context import (
    PredictionContext,
    RefusedArticle,
    StoredContexts,
    from_articles,
    known_at,
    one_line,
    refusal_notes,
    refused_articles,
)
from foretell.forecasters.prompt.rendering import NONE, SOURCES
from foretell.forecasters.prompt.rendering import outcomes as listed_outcomes
from foretell.frozen import frozen
from foretell.metrics.bootstrap import DEFAULT_RESAMPLING, Resampling, mean_interval, share_interval
from foretell.metrics.comparison import compare_paired
from foretell.metrics.scores import mean_brier
from foretell.models.model import Message, ModelError, Request, SystemMessage, UserMessage
from foretell.models.names import knowledge_cutoff
from foretell.models.structured_output import UnusableReply, ask_until_usable, closed_object
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.questions.forecast import Cost, Failure, Forecast
from foretell.questions.question import Question
from foretell.report.numbers import CellValue
from foretell.report.study import StudyTable, column, count, draw_settings, table, with_cost
from foretell.report.study_result import StudyResult
from foretell.request import setting
from foretell.runs.question_sets import open_benchmark
from foretell.scoring.verdict import Verdict
from foretell.studies.inputs import (
    BUDGET,
    StudyOptions,
    StudyProgress,
    StudyServices,
    evenly_spaced,
    gather_bounded,
    ignore_progress,
    refuse_if_all_failed,
)

MemoryKind = Literal["right", "wrong", "vague", "none"]
"""Recognised and recalled rightly; recalled wrongly; recognised without an outcome; not recognised."""
PROOF = 2
"""Minimum number of facts that should support a claim to remember."""
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


# Questions to a model, and its answers.


@frozen
class PastEvent:
    """An event with a known outcome, and a context that has its sources."""

    context: PredictionContext
    truth: Mapping[str, int]
    """Outcome (0 or 1) by target id; targets without a known outcome are absent."""
    refused: tuple[RefusedArticle, ...] = ()
    """Published sources that the leakage filter refuses, so that no model is shown them."""

    def __post_init__(self) -> None:
        unknown = set(self.truth) - {target.id for target in self.question.targets}
        if not self.truth or unknown:
            raise ValueError(f"question {self.question.id} has no known outcome, or one of a target it does not have")

    @property
    def question(self) -> Question:
        """The question that was asked."""
        return self.context.question


@frozen
class Recollection:
    """What a model says it remembers."""

    recognised: bool
    recalled: Mapping[str, int]
    """Recalled outcome (0 or 1) by target id; what the model does not remember is absent."""
    facts: tuple[str, ...] = ()
    p: Mapping[str, float] = field(default_factory=dict[str, float])
    rationale: str = ""

    def compared_with(self, truth: Mapping[str, int]) -> MemoryKind:
        """Compare the memory with what happened; one wrong outcome makes it wrong."""
        if not self.recognised:
            return "none"
        right = [outcome == truth[target] for target, outcome in self.recalled.items() if target in truth]
        return "vague" if not right else "right" if all(right) else "wrong"


@frozen
class RecallResult:
    """The answers of one model about one event, asked in three ways."""

    past: PastEvent
    recollection: Recollection | None
    without: Forecast | None
    """Forecast with neither sources nor market."""
    with_sources: Forecast | None
    problems: tuple[str, ...] = ()

    @property
    def memory(self) -> MemoryKind | None:
        """How the memory compares with what happened; None if the model gave no usable answer."""
        return None if self.recollection is None else self.recollection.compared_with(self.past.truth)


async def recall_events(
    events: Sequence[PastEvent], context_of: Callable[[Question], Context], progress: StudyProgress = ignore_progress
) -> list[RecallResult]:
    """Ask the model about every event three times: what it remembers, a forecast without sources, and one with them.

    An event that comes without sources is asked about twice.
    """

    async def remember(past: PastEvent) -> RecallResult:
        # A past event is asked about as of its own context.
        contexts = StoredContexts([past.context])
        context = replace(context_of(past.question), as_of=past.context.as_of, contexts=contexts)
        views = (NONE, SOURCES) if past.context.sources else (NONE,)
        forecasts = (attempt(PromptForecaster(view=view), past.question, context) for view in views)
        memory, answers = await asyncio.gather(_ask_recollection(past.question, context), asyncio.gather(*forecasts))
        problems = [memory] if isinstance(memory, str) else []
        problems += [answer.error for answer in answers if isinstance(answer, Failure)]
        without, with_sources = (*answers, None)[:2]
        return RecallResult(
            past=past,
            recollection=None if isinstance(memory, str) else memory,
            without=without if isinstance(without, Forecast) else None,
            with_sources=with_sources if isinstance(with_sources, Forecast) else None,
            problems=tuple(problems),
        )

    return await gather_bounded(events, remember, progress)


async def _ask_recollection(question: Question, context: Context) -> Recollection | str:
    """Return what the model remembers, or why it gave no usable answer."""
    names = OutcomeNames.of(question)
    request = Request(
        model=context.models.name("agent"),
        messages=recall_messages(known_at(question, context.as_of), names),
        schema=_schema(names),
        settings=context.models.settings("agent"),
        slot=f"{question.id}/recall {context.trial}",
    )
    try:
        return await ask_until_usable(context.model("agent"), request, lambda reply: read_recollection(reply, names))
    except ModelError as error:
        return str(error)


def recall_messages(question: Question, names: OutcomeNames) -> tuple[Message, ...]:
    """Return the messages to the model.

    Unlike for a forecast, they include when the event ended, because that helps to identify it.
    """
    recalled = ", ".join(f'"{key}": "<yes, no or unknown>"' for key in list(names.keys)[:3])
    numbers = ", ".join(f'"{key}": <number>' for key in list(names.keys)[:3])
    more = ", …" if len(names.keys) > 3 else ""
    closes = f"It ended at {question.closes_at:%Y-%m-%d %H:%M} UTC." if question.closes_at else ""
    sections = (
        ("Question", question.text),
        ("Category", question.category),
        ("When", closes),
        ("How it was decided", question.criteria[:6000]),
        ("Outcomes", listed_outcomes(question)),
    )
    system = INSTRUCTION.replace("$recalled", recalled + more).replace("$probabilities", numbers + more)
    text = "\n\n".join(f"# {heading}\n\n{part}" for heading, part in sections if part)
    return SystemMessage(text=system), UserMessage(text=text)


def read_recollection(reply: Mapping[str, Any], names: OutcomeNames) -> Recollection:
    """Read the recollection from a reply, or raise `UnusableReply`."""
    recognised = _flag(reply.get("recognised", reply.get("recognized")))
    if recognised is None:
        raise UnusableReply("`recognised` must be true or false")
    p = read_probabilities({name: part for name, part in reply.items() if name == "probabilities"}, names).p
    recalled_words, facts = reply.get("recalled"), reply.get("facts")
    recalled: dict[str, int] = {}
    if recognised and isinstance(recalled_words, Mapping):
        for name, word in list(cast("Mapping[Any, Any]", recalled_words).items())[:5000]:
            target, came_true = names.find(str(name)), _flag(word)
            if target is not None and came_true is not None:
                recalled[target] = int(came_true)
    listed = cast("list[Any]", facts)[:20] if isinstance(facts, list) else []
    return Recollection(
        recognised=recognised,
        recalled=recalled,
        facts=tuple(filter(None, (one_line(fact, 300) for fact in listed if isinstance(fact, str)))),
        p=p,
        rationale=rationale_in(reply)[:1000],
    )


def _flag(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    word = value.strip(" .!\"'").casefold() if isinstance(value, str) else ""
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


# Past events.


def past_events(dataset: str, *, outcomes: Path | None = None, limit: int | None = None) -> list[PastEvent]:
    """Return events with a known outcome, each as last asked; `outcomes` adds those that the question set lacks."""
    benchmark = open_benchmark(dataset)
    questions = benchmark.questions
    extra = read_outcomes(outcomes) if outcomes is not None else ()
    listed = {(resolution.question_id, resolution.target_id): resolution.outcome for resolution in extra}
    resolved = questions.outcomes()
    resolved_questions: dict[str, tuple[Question, dict[str, int]]] = {}
    for question in questions.questions:
        truth: dict[str, int] = {}
        for target in question.targets:
            # A question set has outcomes for each due date, or one for all; in a table, a single target needs no name.
            alone = listed.get((question.id, ONLY_TARGET)) if len(question.targets) == 1 else None
            own_outcome = resolved.get(
                (question.id, question.due, target.id), resolved.get((question.id, None, target.id))
            )
            outcome = next(
                (o for o in (listed.get((question.id, target.id)), alone, own_outcome) if o is not None), None
            )
            if outcome is not None:
                truth[target.id] = outcome
        if truth:
            resolved_questions[question.id] = question, truth
    if not resolved_questions:
        hint = "give --outcomes, a table of question, target and outcome"
        raise InputError("none of the questions has a known outcome", column="--questions", hint=hint)
    events: list[PastEvent] = []
    for question, truth in evenly_spaced(list(resolved_questions.values()), limit):
        material = questions.contexts.get(asked_key(question), ())
        refused = () if isinstance(material, str) else tuple(refused_articles(question, material))
        context = benchmark.contexts.get(question) or from_articles(question, ())
        events.append(PastEvent(context=context, truth=truth, refused=refused))
    return events


# The study.

ADVICE = (
    "Claimed: the model says that it remembers this very event. Right: it claims so and every outcome it recalls is "
    "what happened. Wrong: it claims so and at least one is not. Vague: it claims so and recalls no outcome.",
    "Mis-recall is the share of wrong ones among those that recall an outcome. A model that claims much and "
    "mis-recalls much makes up memories. In either case, a backtest before its knowledge cutoff cannot be trusted.",
    "Shares carry Wilson intervals over events. Brier scores are means over events, each event the mean over its "
    "outcomes. The gain is Brier without sources minus Brier with them, paired by event: above 0 where sources help.",
)
SHARES = (count("n"), *(column(name, decimals=2) for name in ("claimed", "right", "wrong", "vague", "mis-recall")))
SCORES = (
    count("n"),
    *(column(name, decimals=3) for name in ("recall", "without", "with")),
    column("gain", "without minus with sources, paired", 3),
)
RecallGroup = Sequence[RecallResult]
MOST_NAMED = 10
"""Maximum number of refused sources that are named."""


class MemorizationOptions(StudyOptions):
    """Past events, and the models that are asked about them."""

    questions: str = setting(
        help="Past events with outcomes: a file of questions, a published file of an arena, a folder of tables, or a "
        "name.",
        metavar="DATASET",
    )
    models: tuple[str, ...] = setting(
        help="A model, as provider:name; may be repeated.", flag="--model", metavar="MODEL", min_length=1
    )
    outcomes: Path | None = setting(
        None, "Table of outcomes (question, target, outcome), if the questions have none.", flag="-o/--outcomes",
        metavar="FILE",
    )  # fmt: skip
    limit: int | None = setting(None, "Only N events, evenly spaced.", metavar="N", ge=1)
    budget: float | None = BUDGET


async def study(inputs: StudyServices, options: MemorizationOptions) -> StudyResult:
    """What do models remember of past events?

    Every event is put to a model three times: recall, forecast without sources, forecast with them. Choose events that
    ended before the models' knowledge cutoff. A model that remembers much cannot be tested on such events; one that
    claims to remember and is wrong makes memories up.

      foretell study memorization --questions subset.csv --model openai:NAME --model google:NAME --budget 2
    """
    events = past_events(options.questions, outcomes=options.outcomes, limit=options.limit)
    inputs.check_models(options.models)
    by_model: dict[str, list[RecallResult]] = {}
    cost = Cost()
    for name in options.models:
        async with inputs.model("memorization", name, options.budget) as models:
            by_model[name] = await recall_events(events, models.context, models.progress)
            cost += models.cost
        problems = [problem for result in by_model[name] for problem in result.problems]
        answered = sum(result.memory is not None or result.without is not None for result in by_model[name])
        refuse_if_all_failed(name, problems, answered)
    result = memorization_study(by_model, options.resampling)
    refused = [article for event in events for article in event.refused]
    notes = refusal_notes(refused, len(refused) + sum(len(event.context.sources) for event in events), MOST_NAMED)
    bare = sum(not event.context.sources for event in events)
    notes += [f"{bare} of {len(events)} events have no sources and were asked about without them only"] if bare else []
    result = replace(result, notes=(*result.notes, *notes))
    return with_cost(result, cost, models=", ".join(options.models), events=len(events))


def memorization_study(by_model: Mapping[str, RecallGroup], resampling: Resampling = DEFAULT_RESAMPLING) -> StudyResult:
    """Study what models remember, by model."""
    rates: dict[str, tuple[CellValue, ...]] = {}
    claims: list[str] = []
    for model, group in by_model.items():
        recollections = [
            result.recollection for result in group if result.recollection and result.recollection.recognised
        ]
        rates[model] = (
            *_shares(group),
            float(median(len(recollection.facts) for recollection in recollections)) if recollections else None,
        )
        counts = _counts(group)
        claimed = counts.total() - counts["none"]
        claims.append(
            f"{model} claims to remember {claimed} of {counts.total()} events and is wrong on {counts['wrong']}"
        )
    categories = sorted({result.past.question.category for group in by_model.values() for result in group})
    by_category = {
        (category or "no category") + (f" · {model}" if len(by_model) > 1 else ""): _shares(part)
        for category in categories
        for model, group in by_model.items()
        if (part := [result for result in group if result.past.question.category == category])
    }
    facts = column("facts", "median number of details that go with a claim")
    caption = "Shares of events with a usable answer; in brackets intervals."
    return StudyResult(
        name="memorization",
        title="What models remember of past events",
        sentences=("; ".join(claims) + "." if claims else "No event was asked about.",),
        tables=(
            table("Recall by model", "Model", (*SHARES, facts), rates, caption=caption),
            table("Recall by category", "Category", SHARES, by_category),
            _scores_table(by_model, resampling),
        ),
        notes=tuple(note for model, group in by_model.items() for note in _notes(model, group)),
        settings=draw_settings(resampling),
        how_to_read=ADVICE,
    )


def _counts(group: RecallGroup) -> Counter[MemoryKind]:
    return Counter(result.memory for result in group if result.memory is not None)


def _shares(group: RecallGroup) -> tuple[CellValue, ...]:
    counts = _counts(group)
    n = counts.total()
    parts = (n - counts["none"], counts["right"], counts["wrong"], counts["vague"])
    mistaken = share_interval(counts["wrong"], counts["right"] + counts["wrong"])
    return (n, *(share_interval(part, n) for part in parts), mistaken)


def _scores_table(by_model: Mapping[str, RecallGroup], resampling: Resampling) -> StudyTable:
    """Table of the Brier scores of the three ways, over all events and by what was remembered."""
    rows: dict[str, tuple[CellValue, ...]] = {}
    for model, group in by_model.items():
        parts = {
            "all events": list(group),
            "recalled right": [result for result in group if result.memory == "right"],
            "not recalled, or wrongly": [result for result in group if result.memory in ("wrong", "vague", "none")],
        }
        rows |= {f"{model} · {name}": _brier_row(part, resampling) for name, part in parts.items() if part}
    caption = "Asked what it remembers; forecasting without sources and market; forecasting with sources."
    return table("Brier score by way of asking", "Model and events", SCORES, rows, caption=caption)


def _brier_row(group: RecallGroup, resampling: Resampling) -> tuple[CellValue, ...]:
    cluster = np.array([result.past.question.cluster for result in group])
    ways = np.array(
        [
            [_brier(way, result.past.truth) for way in (result.recollection, result.without, result.with_sources)]
            for result in group
        ]
    )
    scored = np.isfinite(ways)
    means = [mean_interval(ways[k, way].tolist(), cluster[k].tolist(), resampling) for way, k in enumerate(scored.T)]
    gain = None
    if (scored[:, 1] & scored[:, 2]).any():
        comparison = compare_paired(ways[:, 1], ways[:, 2], cluster, resampling=resampling)
        names = ("without sources", "with sources")
        gain = Verdict.of(comparison, names, "brier", level=resampling.level, unit="event")
    return (len(group), *means, gain)


def _brier(answer: Recollection | Forecast | None, truth: Mapping[str, int]) -> float:
    """Return the event's Brier score; NaN if there is no forecast."""
    return mean_brier([answer.p[target] for target in truth], list(truth.values())) if answer else float("nan")


def _notes(model: str, group: RecallGroup) -> list[str]:
    lost = Counter(problem for result in group for problem in result.problems)
    notes = [f"{model}: {n} answers were not usable: {why}" for why, n in lost.most_common(3)]
    bare = sum(
        result.recollection.recognised and len(result.recollection.facts) < PROOF
        for result in group
        if result.recollection
    )
    if bare:
        notes.append(f"{model}: {bare} claims to remember come with fewer than {PROOF} details")
    try:
        cutoff = knowledge_cutoff(model)
    except InputError:
        cutoff = None
    if cutoff is None:
        return [*notes, f"{model}: its knowledge cutoff is not known"]
    # A model cannot remember events that ended after its knowledge cutoff.
    knows, ends = AsOf.day(cutoff), [result.past.question.closes_at for result in group]
    if late := sum(end is None or not knows.admits(end) for end in ends):
        notes.append(f"{model}: {late} events ended after its knowledge cutoff, {cutoff}, or at an unknown time")
    return notes
