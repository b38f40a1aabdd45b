"""What models remember, as tables: recall and mis-recall by category, and what sources add to it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median

import numpy as np

from foretell.arena.report.study_page import study_page
from foretell.arena.studies.recall import PROOF, Memory, Remembered
from foretell.arena.studies.shares import DRAWS, mean, share
from foretell.arena.study import Column, Entry, Grid, Study, Value
from foretell.evaluate.bootstrap import Resampling
from foretell.evaluate.compare import compare_paired
from foretell.evaluate.proper import mean_brier
from foretell.evaluate.significance import Comparison
from foretell.llm.cutoffs import cutoff_of
from foretell.questions.clock import AsOf
from foretell.questions.problems import InputError

ADVICE = (
    "Claimed: the model says that it remembers this very event. Right: it claims so and every outcome it recalls is "
    "what happened. Wrong: it claims so and at least one is not. Vague: it claims so and recalls no outcome.",
    "Mis-recall is the share of wrong ones among those that recall an outcome. A model that claims much and "
    "mis-recalls much makes up memories; a backtest before its knowledge ends cannot be trusted either way.",
    "Shares carry Wilson intervals over events. Brier scores are means over events, each event the mean over its "
    "outcomes. The gain is Brier without sources minus Brier with them, paired by event: above 0 where sources help.",
)
SHARES = ("claimed", "right", "wrong", "vague", "mis-recall")
Group = Sequence[Remembered]


def recall_study(by_model: Mapping[str, Group], resampling: Resampling = DRAWS) -> Study:
    """The study of what models remember, by model."""
    return Study(
        name="recall",
        title="What models remember of past events",
        finding=_finding(by_model),
        grids=(_rates(by_model), _categories(by_model), _scores(by_model, resampling)),
        notes=tuple(_notes(by_model)),
        settings={"draws": resampling.draws, "level": resampling.level, "seed": resampling.seed},
        advice=ADVICE,
    )


def recall_page(study: Study) -> str:
    """The study as a web page."""
    return study_page(study)


def _rates(by_model: Mapping[str, Group]) -> Grid:
    columns = (Column(label="n", decimals=0), *(Column(label=name, decimals=2) for name in SHARES))
    return Grid(
        title="Recall by model",
        head="Model",
        columns=(*columns, Column(label="facts", decimals=1, tip="median number of details that go with a claim")),
        entries=tuple(Entry(name=model, values=(*_shares(group), _facts(group))) for model, group in by_model.items()),
        caption="Shares of events with a usable answer; in brackets 95 % intervals.",
    )


def _categories(by_model: Mapping[str, Group]) -> Grid:
    columns = (Column(label="n", decimals=0), *(Column(label=name, decimals=2) for name in SHARES))
    entries = [
        Entry(name=(category or "no category") + (f" · {model}" if len(by_model) > 1 else ""), values=_shares(part))
        for category in sorted({one.past.question.category for group in by_model.values() for one in group})
        for model, group in by_model.items()
        if (part := [one for one in group if one.past.question.category == category])
    ]
    return Grid(title="Recall by category", head="Category", columns=columns, entries=tuple(entries))


def _shares(group: Group) -> tuple[Value, ...]:
    count: Counter[Memory] = Counter(one.memory for one in group if one.memory is not None)
    n, told = sum(count.values()), count["right"] + count["wrong"]
    parts = (n - count["none"], count["right"], count["wrong"], count["vague"])
    return (n, *(share(part, n) for part in parts), share(count["wrong"], told))


def _facts(group: Group) -> float | None:
    counts = [len(one.recollection.facts) for one in group if one.recollection and one.recollection.recognised]
    return float(median(counts)) if counts else None


def _scores(by_model: Mapping[str, Group], resampling: Resampling) -> Grid:
    """Brier scores of the three ways, over all events and apart by what was remembered."""
    columns = [
        Column(label="n", decimals=0),
        *(Column(label=name, decimals=3) for name in ("recall", "without", "with")),
    ]
    entries = [
        Entry(name=f"{model} · {told}", values=_brier_row(part, resampling))
        for model, group in by_model.items()
        for told, part in _parts(group)
        if part
    ]
    return Grid(
        title="Brier score by way of asking",
        head="Model and events",
        columns=(*columns, Column(label="gain", decimals=3, tip="without minus with sources, paired")),
        entries=tuple(entries),
        caption="Asked what it remembers; forecasting without sources and market; forecasting with sources.",
    )


def _parts(group: Group) -> list[tuple[str, list[Remembered]]]:
    right = [one for one in group if one.memory == "right"]
    other = [one for one in group if one.memory in ("wrong", "vague", "none")]
    return [("all events", list(group)), ("recalled right", right), ("not recalled, or wrongly", other)]


def _brier_row(group: Group, resampling: Resampling) -> tuple[Value, ...]:
    cluster = [one.past.question.cluster for one in group]
    ways = [
        [_brier(one.recollection.p if one.recollection else None, one) for one in group],
        [_brier(one.without.p if one.without else None, one) for one in group],
        [_brier(one.with_sources.p if one.with_sources else None, one) for one in group],
    ]
    means = [
        mean([v for v in way if v == v], [c for c, v in zip(cluster, way, strict=True) if v == v], resampling)
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


def _brier(p: Mapping[str, float] | None, one: Remembered) -> float:
    """The event's Brier score, NaN where there is no forecast."""
    if p is None:
        return float("nan")
    truth = one.past.truth
    return mean_brier([p[target] for target in truth], list(truth.values()))


def _finding(by_model: Mapping[str, Group]) -> str:
    told: list[str] = []
    for model, group in by_model.items():
        count: Counter[Memory] = Counter(one.memory for one in group if one.memory is not None)
        claimed = sum(count.values()) - count["none"]
        told.append(
            f"{model} claims to remember {claimed} of {sum(count.values())} events and is wrong on {count['wrong']}"
        )
    return "; ".join(told) + "." if told else "No event was asked about."


def _notes(by_model: Mapping[str, Group]) -> list[str]:
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


def _unknowable(model: str, group: Group) -> list[str]:
    """Events that ended after the model's knowledge: not to remember them is no fault."""
    try:
        cutoff = cutoff_of(model)
    except InputError:
        cutoff = None
    if cutoff is None:
        return [f"{model}: it is not known when its knowledge ends"]
    known = AsOf.day(cutoff.day)
    late = sum(one.past.question.closes_at is None or not known.admits(one.past.question.closes_at) for one in group)
    return [f"{model}: {late} events ended after {cutoff.day}, when its knowledge does, or at no known time"] * bool(
        late
    )
