"""What a model remembers of past events: asked outright, and by what it forecasts with and without sources.

After Prophet Arena (2025, section 4.1.1 and appendix D.8). The events must have ended before the model's knowledge
does, else there is nothing to remember.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np

from foretell.metrics.bootstrap import Resampling
from foretell.metrics.comparison import Comparison, compare_paired
from foretell.metrics.scores import mean_brier
from foretell.metrics.shares import DEFAULT_DRAWS, mean_interval, share_interval
from foretell.models.capabilities import knowledge_cutoff
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.questions.forecast import Cost
from foretell.report.study import CellValue, StudyColumn, StudyResult, StudyRow, StudyTable
from foretell.request import setting
from foretell.studies.inputs import (
    StudyOptions,
    StudyServices,
    refuse_if_all_failed,
    unpriced_note,
)
from foretell.studies.recollection import PROOF, MemoryKind, RecallResult, past_events, recall_events

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


class RecallOptions(StudyOptions):
    """Past events, and the models that are asked about them."""

    questions: str = setting(
        help="Past events with outcomes: a file of questions, a published file of an arena, a folder of tables, or a "
        "name.",
        flag="--questions/--data",
        metavar="DATASET",
    )
    models: tuple[str, ...] = setting(help="provider:name; repeatable.", flag="--model", metavar="MODEL", min_length=1)
    rounds: tuple[str, ...] = setting((), "Only these rounds of the questions.", flag="--round", metavar="DATE")
    outcomes: Path | None = setting(
        None,
        "Table of outcomes (question, target, outcome), where the questions bring none.",
        flag="-o/--outcomes",
        metavar="FILE",
    )
    limit: int | None = setting(None, "Only N events, at equal distances.", metavar="N", ge=1)
    budget: float | None = setting(None, "Hard limit for the whole study.", metavar="DOLLARS", gt=0)


async def study(inputs: StudyServices, options: RecallOptions) -> StudyResult:
    """What do models remember of past events?

    Every event is put three times: recall, forecast without sources, forecast with them. Choose events that ended
    before the models' knowledge does. Who remembers much cannot be tested on such events; who claims to remember and
    is wrong makes memories up.

      foretell study recall --questions subset.csv --model openai:NAME --model google:NAME --budget 2
    """
    events = past_events(options.questions, rounds=options.rounds, outcomes=options.outcomes, limit=options.limit)
    inputs.check_models(options.models)
    by_model: dict[str, list[RecallResult]] = {}
    cost = Cost()
    for name in options.models:
        async with inputs.model("recall", name, options.budget) as models:
            found = await recall_events(events, models.context, progress=models.progress)
            cost += models.cost
        problems = [problem for one in found for problem in one.problems]
        refuse_if_all_failed(name, problems, sum(one.memory is not None or one.without is not None for one in found))
        by_model[name] = found
    result = recall_study(by_model, options.resampling)
    settings = {"models": ", ".join(options.models), "events": len(events), **result.settings}
    return replace(result, settings=settings, notes=(*result.notes, *unpriced_note(cost)), cost=cost)


def recall_study(by_model: Mapping[str, RecallGroup], resampling: Resampling = DEFAULT_DRAWS) -> StudyResult:
    """The study of what models remember, by model."""
    return StudyResult(
        name="recall",
        title="What models remember of past events",
        sentences=(_sentence(by_model),),
        tables=(_rates(by_model), _categories(by_model), _scores(by_model, resampling)),
        notes=tuple(_notes(by_model)),
        settings={"draws": resampling.draws, "level": resampling.level, "seed": resampling.seed},
        how_to_read=ADVICE,
    )


def _rates(by_model: Mapping[str, RecallGroup]) -> StudyTable:
    columns = (StudyColumn(label="n", decimals=0), *(StudyColumn(label=name, decimals=2) for name in SHARES))
    return StudyTable(
        title="Recall by model",
        row_header="Model",
        columns=(*columns, StudyColumn(label="facts", decimals=1, tip="median number of details that go with a claim")),
        rows=tuple(StudyRow(name=model, values=(*_shares(group), _facts(group))) for model, group in by_model.items()),
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
    return StudyTable(title="Recall by category", row_header="Category", columns=columns, rows=tuple(entries))


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
        row_header="Model and events",
        columns=(*columns, StudyColumn(label="gain", decimals=3, tip="without minus with sources, paired")),
        rows=tuple(entries),
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


def _sentence(by_model: Mapping[str, RecallGroup]) -> str:
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
