"""Marks as tables: by forecaster with intervals, and how far people agree with the judge."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, cast

from foretell.forecasters.agent.agent import without_numbers
from foretell.forecasters.prompt.prediction_context import PredictionContext
from foretell.forecasters.prompt.rendering import BOTH, ContextView, render
from foretell.metrics.agreement import RaterAgreement, rater_agreement
from foretell.metrics.bootstrap import Interval, Resampling
from foretell.metrics.shares import DEFAULT_DRAWS, mean_interval
from foretell.models.canonical import content_key
from foretell.models.model import Model, ModelError, ModelSettings, Request, SystemMessage, UserMessage
from foretell.models.structured_output import UnusableReply, ask_until_usable, closed_object
from foretell.questions.forecast import Forecast
from foretell.report.charts.ranking import ForestRow, forest_plot
from foretell.report.study import (
    CellValue,
    StudyChart,
    StudyColumn,
    StudyProgress,
    StudyResult,
    StudyRow,
    StudyTable,
    ignore_progress,
)
from foretell.report.study_report import study_page
from foretell.studies.inputs import gather_bounded
from foretell.studies.rubric import (
    DIMENSIONS,
    HIGHEST,
    LOWEST,
    MARKED_EXAMPLE,
    MarkedExample,
    Rating,
    judge_instruction,
)

# How well forecasts are reasoned: a model marks five sides of each from 1 to 5, by a fixed rubric.

LONGEST_REASONS = 12_000
LONGEST_WHY = 1_000
_MARK = closed_object(
    {"reason": {"type": "string"}, "score": {"type": "integer", "minimum": LOWEST, "maximum": HIGHEST}}
)
SCHEMA = closed_object(dict.fromkeys(DIMENSIONS, _MARK))


@dataclass(frozen=True, kw_only=True)
class ReasoningCase:
    """One forecast to be marked: what was shown, what was answered, and why."""

    context: PredictionContext
    forecast: Forecast
    view: ContextView = BOTH
    """What of the context the forecaster was shown."""

    @property
    def item(self) -> str:
        """The name under which people rate it: it says nothing about who made the forecast."""
        made = self.forecast
        told = [self.context.digest, self.view.name, made.forecaster, made.trial, made.rationale]
        return content_key(["reasoning", *told])[:16]

    def sheet(self) -> str:
        """What people read who rate it: the same that the judge reads, as plain text."""
        numbers = "\n".join(f"- {target}: {p:.3f}" for target, p in self.forecast.p.items())
        reasons = without_numbers(self.forecast.rationale)[:LONGEST_REASONS]
        return f"{render(self.context, self.view)}\n\n# Probabilities\n\n{numbers}\n\n# Reasons\n\n{reasons}"

    def task(self) -> str:
        """What the judge reads, as JSON: no text can pose as another. The forecaster stays unnamed."""
        return json.dumps(
            {
                "case": render(self.context, self.view),
                "probabilities": {target: round(p, 4) for target, p in self.forecast.p.items()},
                "rationale": without_numbers(self.forecast.rationale)[:LONGEST_REASONS],
            },
            ensure_ascii=False,
        )


@dataclass(frozen=True, kw_only=True)
class MarkedCase:
    """The marks of one case, or why there are none."""

    case: ReasoningCase
    scores: Mapping[str, int] = field(default_factory=dict[str, int])
    reasons: Mapping[str, str] = field(default_factory=dict[str, str])
    problem: str = ""

    @property
    def mean(self) -> float:
        """The mean of all five marks."""
        return sum(self.scores.values()) / len(self.scores)


@dataclass(frozen=True, kw_only=True)
class ReasoningJudge:
    """Asks one model about every case by itself, always in the same words. Replies are kept by its journal."""

    model: Model
    name: str
    """`provider:name`."""
    reference: MarkedExample = MARKED_EXAMPLE
    settings: ModelSettings = field(default_factory=ModelSettings)
    """The temperature is 0 whatever they say."""
    attempts: int = 3

    async def judge(
        self, cases: Sequence[ReasoningCase], progress: StudyProgress = ignore_progress
    ) -> list[MarkedCase]:
        """The marks of every case, in their order."""
        return await gather_bounded(cases, self._mark, progress)

    def request(self, case: ReasoningCase) -> Request:
        """What the model is asked."""
        return Request(
            model=self.name,
            messages=(SystemMessage(text=judge_instruction(self.reference)), UserMessage(text=case.task())),
            schema=SCHEMA,
            settings=replace(self.settings, temperature=0.0),
            slot="reasoning judge",
        )

    async def _mark(self, case: ReasoningCase) -> MarkedCase:
        try:
            found = await ask_until_usable(self.model, self.request(case), read_marks, attempts=self.attempts)
        except ModelError as error:
            return MarkedCase(case=case, problem=str(error))
        return MarkedCase(
            case=case,
            scores={name: score for name, (score, _) in found.items()},
            reasons={name: why for name, (_, why) in found.items()},
        )


def read_marks(said: Mapping[str, Any]) -> dict[str, tuple[int, str]]:
    """Mark and reason of every dimension, or `UnusableReply` with what is wrong.

    >>> read_marks({name: {"reason": "so", "score": "4/5"} for name in DIMENSIONS})["sources"]
    (4, 'so')
    """
    inner = next((said[name] for name in ("scores", "marks") if isinstance(said.get(name), Mapping)), said)
    given = cast("Mapping[str, Any]", inner)
    found: dict[str, tuple[int, str]] = {}
    wrong: list[str] = []
    for name in DIMENSIONS:
        part = given.get(name)
        told = cast("Mapping[str, Any]", part) if isinstance(part, Mapping) else {"score": part}
        mark = _mark_of(told.get("score", told.get("mark")))
        if mark is None:
            wrong.append(f"`{name}` needs a whole `score` from {LOWEST} to {HIGHEST}")
        else:
            why = told.get("reason")
            found[name] = mark, why.strip()[:LONGEST_WHY] if isinstance(why, str) else ""
    if wrong:
        raise UnusableReply("; ".join(wrong))
    return found


def _mark_of(given: Any) -> int | None:
    """A whole number in range, also written as 4.0, "4" or "4/5"."""
    if isinstance(given, str):
        head = given.strip()[:10].removesuffix(f"/{HIGHEST}").strip()
        given = float(head) if head.replace(".", "", 1).isdecimal() else None
    if isinstance(given, bool) or not isinstance(given, int | float) or given % 1:
        return None
    return int(given) if LOWEST <= given <= HIGHEST else None


MEAN = "mean"
ADVICE = (
    "Marks go from 1 to 5. They say how a forecast was reasoned, not how good it was; read them beside the scores.",
    "Intervals come from resampling whole events, since forecasts of one event share their material. Two forecasters "
    "are told apart by the same judge only as far as people agree with it: see the table of agreement.",
    "Kappa is 1 for perfect agreement and 0 for what chance alone would give, with disagreements weighted by their "
    "square (κ²) or their size (κ). A kappa near that between people is as much as can be asked for.",
    "Where nearly all marks are the same, kappa and correlation say little, even if raters hardly ever differ: look "
    "at the distance and the share of equal marks then.",
)
MarkPair = tuple[int, int, str]
"""Two marks for one item."""


def judge_study(
    marked: Sequence[MarkedCase], ratings: Sequence[Rating] = (), resampling: Resampling = DEFAULT_DRAWS
) -> StudyResult:
    """The study of a judge's marks, with people's ratings of the same items where there are any."""
    done = [one for one in marked if one.scores]
    grids = [_by_forecaster(done, resampling)]
    known = {one.case.item for one in marked}
    if ratings:
        grids += _agreements(done, ratings, resampling)
    rows = [
        ForestRow(name=entry.name, interval=overall)
        for entry in grids[0].entries
        if isinstance(overall := entry.values[-1], Interval)
    ]
    figure = forest_plot(rows, label="mean mark, 1 to 5", decimals=2)
    return StudyResult(
        name="reasoning",
        title="How well forecasts are reasoned",
        finding=_finding(done),
        grids=tuple(grids),
        pictures=(StudyChart(name="marks", title="Mean marks", figure=figure),) if rows else (),
        notes=tuple(_notes(marked, ratings, known)),
        settings={"draws": resampling.draws, "level": resampling.level, "seed": resampling.seed},
        advice=ADVICE,
    )


def judge_page(study: StudyResult) -> str:
    """The study as a web page."""
    return study_page(study)


def _by_forecaster(done: Sequence[MarkedCase], resampling: Resampling) -> StudyTable:
    groups: dict[str, list[MarkedCase]] = {}
    for one in done:
        groups.setdefault(one.case.forecast.forecaster, []).append(one)
    ordered = sorted(groups.items(), key=lambda pair: -sum(one.mean for one in pair[1]) / len(pair[1]))
    columns = [
        StudyColumn(label="n", decimals=0),
        *(StudyColumn(label=name, decimals=2, tip=d.asks) for name, d in DIMENSIONS.items()),
    ]
    return StudyTable(
        title="Marks by forecaster",
        head="Forecaster",
        columns=(*columns, StudyColumn(label=MEAN, decimals=2)),
        entries=tuple(StudyRow(name=name, values=_means(group, resampling)) for name, group in ordered),
        caption="Mean marks from 1 to 5, the best mean first; in brackets 95 % intervals, events resampled.",
    )


def _means(group: Sequence[MarkedCase], resampling: Resampling) -> tuple[CellValue, ...]:
    cluster = [one.case.context.question.cluster for one in group]
    marks = [mean_interval([one.scores[name] for one in group], cluster, resampling) for name in DIMENSIONS]
    return (len(group), *marks, mean_interval([one.mean for one in group], cluster, resampling))


def _agreements(done: Sequence[MarkedCase], ratings: Sequence[Rating], resampling: Resampling) -> list[StudyTable]:
    judged = {one.case.item: one.scores for one in done}
    columns = (
        StudyColumn(label="items", decimals=0),
        StudyColumn(label="ratings", decimals=0),
        StudyColumn(label="κ²", decimals=2, tip="weighted kappa, quadratic weights"),
        StudyColumn(label="κ", decimals=2, tip="weighted kappa, linear weights"),
        StudyColumn(label="r", decimals=2, tip="Pearson's correlation"),
        StudyColumn(label="ρ", decimals=2, tip="Spearman's rank correlation"),
        StudyColumn(label="distance", decimals=2, tip="mean absolute difference of marks"),
        StudyColumn(label="variance", decimals=2, tip="of the absolute difference, over items"),
        StudyColumn(label="bias", decimals=2, tip="mean of person minus judge"),
        StudyColumn(label="same", decimals=2, tip="share of equal marks"),
        StudyColumn(label="±1", decimals=2, tip="share within one mark"),
    )
    titles = (
        ("People and judge", {name: _with_judge(name, ratings, judged) for name in DIMENSIONS}),
        ("People among themselves", {name: _among_people(name, ratings) for name in DIMENSIONS}),
    )
    return [
        StudyTable(
            title=title,
            head="Dimension",
            columns=columns,
            entries=tuple(StudyRow(name=name, values=_row(pairs, resampling)) for name, pairs in by_name.items()),
            caption="Every item counts once; in brackets 95 % intervals, items resampled.",
        )
        for title, by_name in titles
        if any(by_name.values())
    ]


def _with_judge(name: str, ratings: Sequence[Rating], judged: Mapping[str, Mapping[str, int]]) -> list[MarkPair]:
    return [
        (one.scores[name], judged[one.item][name], one.item)
        for one in ratings
        if name in one.scores and name in judged.get(one.item, {})
    ]


def _among_people(name: str, ratings: Sequence[Rating]) -> list[MarkPair]:
    """Every pair of raters of an item, both ways round: neither of two people is the first."""
    by_item: dict[str, list[int]] = {}
    for one in ratings:
        if name in one.scores:
            by_item.setdefault(one.item, []).append(one.scores[name])
    pairs = [(a, b, item) for item, marks in by_item.items() for a, b in combinations(marks, 2)]
    return [*pairs, *((b, a, item) for a, b, item in pairs)]


def _row(pairs: Sequence[MarkPair], resampling: Resampling) -> tuple[CellValue, ...]:
    if not pairs:
        return (0, 0, *[None] * 9)
    first, second, items = zip(*pairs, strict=True)
    found: RaterAgreement = rater_agreement(first, second, items, resampling=resampling)
    means: list[CellValue] = [found.kappa, found.linear, found.pearson, found.spearman, found.distance]
    return (found.items, found.ratings, *means, found.variance, found.bias, found.exact, found.within_one)


def _finding(done: Sequence[MarkedCase]) -> str:
    if not done:
        return "No forecast was marked."
    weakest = min(DIMENSIONS, key=lambda name: sum(one.scores[name] for one in done))
    overall = sum(one.mean for one in done) / len(done)
    return f"{len(done)} forecasts have a mean mark of {overall:.2f}; they are weakest in {DIMENSIONS[weakest].label}."


def _notes(marked: Sequence[MarkedCase], ratings: Sequence[Rating], known: set[str]) -> list[str]:
    lost = Counter(one.problem for one in marked if not one.scores)
    told = [f"{n} forecasts could not be marked: {why}" for why, n in lost.most_common(5)]
    strangers = sum(one.item not in known for one in ratings)
    return [*told, *([f"{strangers} ratings are of items that were not judged"] if strangers else [])]
