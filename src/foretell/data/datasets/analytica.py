"""The two kinds of data sets of Analytica: claims that came true or not, and option tasks with payoffs."""

from collections.abc import Callable, Iterable, Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np

from foretell.data.datasets.dataset import FileFormat
from foretell.data.datasets.question_set import AskedKey, QuestionSet, QuestionSetBuilder, asked_key
from foretell.data.datasets.rows import Row, first_fields, jsonl_rows
from foretell.data.series.series import Series
from foretell.frozen import frozen
from foretell.questions.as_of import AsOf, instant
from foretell.questions.errors import known_names
from foretell.questions.field_checks import check_least
from foretell.questions.question import LastValue, Question, Target
from foretell.questions.resolution import Resolution

# Claim sets: statements that a later publication found true or false (the format of Matter-of-Fact).

Split = Literal["validation", "test"]
CLAIM_FIELDS = ("id", "claim", "label", "published", "category", "split", "background")
TRUE = "true"
"""The only target of a claim."""


def read_claims(path: str | Path, split: Split | None = None) -> QuestionSet:
    """Read claims, one JSON object per line: `claim`, `label` (true/false), `published`, `category`, `split`, `id`.

    The publication itself decides a claim, so a forecaster may use what was known by the end of the day before it. With
    `split`, only that part is returned and the rest is counted. The split is the question's subtype, and so a column of
    every table of outcomes. Several categories are separated by semicolons.
    """
    set_builder, ids = QuestionSetBuilder(), set[str]()
    for row in jsonl_rows(Path(path)):
        row.known_fields(CLAIM_FIELDS)
        published = row.need_datetime("published", "the publication day is the cutoff")
        part = row.text("split").lower()
        if part and part not in get_args(Split):
            raise row.problem("split", f"{part!r} is not a split", known_names(part, get_args(Split)))
        question = Question(
            id=row.text("id") or f"claim/{row.number}",
            source="claims",
            subtype=part or "claim",
            text=row.need_text("claim"),
            due=instant(published.date() - timedelta(days=1)),
            targets=(Target(id=TRUE),),
            category=row.text("category"),
            background=row.text("background"),
        )
        if question.id in ids:
            raise row.problem("id", f"claim {question.id} occurs twice")
        ids.add(question.id)
        if split is not None and part != split:
            set_builder.counts[f"claims of the {part or 'unnamed'} split left out"] += 1
            continue
        set_builder.questions[asked_key(question)] = question
        set_builder.resolutions.append(
            Resolution(
                question_id=question.id,
                target_id=TRUE,
                due=question.due,
                outcome=int(row.need_flag("label", "true or false")),
                resolved_at=published,
                provenance=row.path.name,
            )
        )
    return set_builder.build(" ".join(filter(None, [Path(path).stem, split])))


claims = FileFormat(
    read=lambda request: read_claims(request.path),
    recognises=lambda path: first_fields(path) >= {"claim", "published"},
)
"""The data set `claims:FILE`, and any JSONL file whose first line is a claim."""


# Option tasks with payoffs (Analytica, appendix C): which of several choices returns most per dollar?

TASK_FIELDS = (
    *("id", "question", "options", "cutoff", "resolves"),
    *("category", "criteria", "background", "source", "cluster"),
)
NO_BEST = "tasks dropped: no single option pays best"


def read_options(path: str | Path) -> QuestionSet:
    """Read option tasks, one JSON object per line.

    `question`, `options` ({"label": dollars, …} or [{"label": …, "value": dollars}, …]) and `cutoff` are required;
    `resolves`, `id`, `category`, `criteria`, `background`, `source` and `cluster` are optional. Dollars are what one
    dollar put on the option returned; leave all of them out (null) while a task is open.
    """
    set_builder, seen = QuestionSetBuilder(), set[AskedKey]()
    for line in jsonl_rows(Path(path)):
        line.known_fields(TASK_FIELDS)
        row = line.named(line.text("id"))
        payoffs = _read_payoffs(row)
        question = _option_question(row, tuple(payoffs))
        if asked_key(question) in seen:
            raise row.problem("id", f"task {question.id} occurs twice")
        seen.add(asked_key(question))
        known = {label: value for label, value in payoffs.items() if value is not None}
        if known and best_option(known) is None:
            set_builder.counts[NO_BEST] += 1
            continue
        set_builder.questions[asked_key(question)] = question
        set_builder.resolutions += resolve_options(question, known, provenance=row.path.name)
    return set_builder.build(Path(path).stem)


def best_option(payoffs: Mapping[str, float], *, tolerance: float = 1e-9) -> str | None:
    """Return the option that pays more than every other; None if the two best cannot be distinguished.

    >>> best_option({"long": 1.2, "short": 0.8}), best_option({"long": 1.0, "short": 1.0})
    ('long', None)
    """
    ranked = sorted(payoffs, key=lambda label: -payoffs[label])
    if len(ranked) > 1 and payoffs[ranked[0]] - payoffs[ranked[1]] <= tolerance:
        return None
    return ranked[0] if ranked else None


def resolve_options(question: Question, payoffs: Mapping[str, float], *, provenance: str = "") -> list[Resolution]:
    """Return the outcomes of a task: 1 for the option that paid best, 0 for the others, each with its payoff."""
    best = best_option(payoffs)
    resolves = question.targets[0].resolves_at
    return [
        Resolution(
            question_id=question.id,
            target_id=label,
            due=question.due,
            outcome=int(label == best),
            payoff=dollars,
            resolved_at=resolves,
            provenance=provenance,
        )
        for label, dollars in payoffs.items()
    ]


def _option_question(row: Row, labels: tuple[str, ...]) -> Question:
    due = row.need_datetime("cutoff", "the last day that a forecaster may know about")
    resolves = row.get_datetime("resolves")
    if resolves is not None and resolves <= due:
        raise row.problem("resolves", f"{resolves.date()} is not after the cutoff {due.date()}")
    text = row.need_text("question")
    return row.reading(
        "options",
        lambda: Question(
            id=row.text("id") or f"option/{row.number}",
            source=row.text("source") or "options",
            text=text,
            due=due,
            targets=tuple(Target(id=label, label=label, resolves_at=resolves) for label in labels),
            category=row.text("category"),
            criteria=row.text("criteria"),
            background=row.text("background"),
            cluster=row.text("cluster"),
            exclusivity="exactly one",
        ),
    )


def _read_payoffs(row: Row) -> dict[str, float | None]:
    options: Any = row.need("options")
    if isinstance(options, dict):
        options = [{"label": label, "value": value} for label, value in cast(dict[Any, Any], options).items()]
    if not isinstance(options, list) or len(cast(list[Any], options)) < 2:
        raise row.problem("options", "needs two or more options")
    payoffs: dict[str, float | None] = {}
    for item in cast(list[Any], options):
        part = row.part("options", {"label": item} if isinstance(item, str) else item)
        if not {"label", "value"} >= set(part.fields):
            raise row.problem("options", f"expected a label and a value, found {str(item)[:60]}")
        label = str(part.need("label"))
        if label in payoffs:
            raise row.problem("options", f"option {label!r} occurs twice")
        payoffs[label] = part.real("value")
    if len({value is None for value in payoffs.values()}) > 1:
        raise row.problem("options", "some options have dollars and some have none")
    return payoffs


# Financial tasks from a price series: long or short, higher or lower, with what each choice returned.


@frozen
class FinancialTaskPlan:
    """Requirements for a task to be well formed."""

    horizon_days: int = 365
    min_history: int = 250
    """Minimum observations up to the cutoff, about one trading year."""
    max_stale_days: int = 7
    """Maximum age in days of the price that is used for a day."""
    min_move: float = 1e-6
    """Minimum relative price move; smaller moves leave nothing to choose between."""

    def __post_init__(self) -> None:
        check_least(self, horizon_days=1, min_history=1)


@frozen
class FinancialTaskKind:
    """Wording of a task, and what each option returns for one dollar, given the ratio of end to start price."""

    name: str
    text: str
    payoffs: Callable[[float], dict[str, float]]


LONG_SHORT = FinancialTaskKind(
    name="long_short",
    text="Held for {days} days from {start}, will {asset} return more to a buyer or to a short seller?",
    payoffs=lambda ratio: {"long": ratio, "short": 2.0 - ratio},
)
"""A dollar held long returns the ratio; a dollar sold short returns 2 − ratio, which is negative past a doubling."""

HIGHER_LOWER = FinancialTaskKind(
    name="higher_lower",
    text="Will {asset} stand higher or lower on {end} than on {start}?",
    payoffs=lambda ratio: {"higher": float(ratio > 1), "lower": float(ratio < 1)},
)
"""A contract on the right side pays one dollar, the other nothing."""


@frozen
class DiscardedTask:
    """A task that was not well formed, and why."""

    series: str
    cutoff: date
    reason: str


@frozen
class FinancialTasks(QuestionSet):
    """Tasks built from price series, and those that were discarded."""

    discarded: tuple[DiscardedTask, ...] = ()


def build_financial_tasks(
    series: Series | Iterable[Series],
    cutoffs: Iterable[date],
    wager: FinancialTaskKind = LONG_SHORT,
    plan: FinancialTaskPlan | None = None,
) -> FinancialTasks:
    """Build one task per series and cutoff day; tasks that are not well formed are dropped, each with its reason.

    >>> days = np.arange("2024-01-01", "2024-03-01", dtype="M8[D]")
    >>> prices = Series(id="X", days=days, values=np.linspace(100, 120, len(days)))
    >>> tasks = build_financial_tasks(prices, [date(2024, 2, 1), date(2024, 2, 25)],
    ...                     plan=FinancialTaskPlan(horizon_days=14, min_history=20, max_stale_days=3))
    >>> [(r.target_id, r.outcome, round(r.payoff, 3)) for r in tasks.resolutions]
    [('long', 1, 1.043), ('short', 0, 0.957)]
    >>> tasks.discarded[0].reason, tasks.notes
    ('no price at the end', ('1 tasks dropped: no price at the end',))
    """
    plan = plan or FinancialTaskPlan()
    all_series = [series] if isinstance(series, Series) else list(series)
    set_builder, discarded = QuestionSetBuilder(), list[DiscardedTask]()
    for prices, cutoff in ((prices, cutoff) for cutoff in sorted(set(cutoffs)) for prices in all_series):
        payoffs = _series_payoffs(prices, cutoff, wager, plan)
        if isinstance(payoffs, str):
            set_builder.counts[f"tasks dropped: {payoffs}"] += 1
            discarded.append(DiscardedTask(series=prices.id, cutoff=cutoff, reason=payoffs))
            continue
        question = _financial_question(prices, cutoff, wager, plan, tuple(payoffs))
        set_builder.questions[asked_key(question)] = question
        set_builder.resolutions += resolve_options(question, payoffs, provenance=question.id)
    name = all_series[0].id if len(all_series) == 1 else f"{len(all_series)} series"
    return FinancialTasks(**vars(set_builder.build(f"{name} {wager.name}")), discarded=tuple(discarded))


LATEST_VALUES, EARLIER_MONTHS = 10, 24
"""Prices that a task includes: number of last daily prices, and number of earlier months with their last price."""


def _financial_question(
    series: Series, cutoff: date, wager: FinancialTaskKind, plan: FinancialTaskPlan, labels: tuple[str, ...]
) -> Question:
    """Build the task with the prices up to its date: any forecaster may know them, whatever tools there are."""
    id, end = series.id, cutoff + timedelta(days=plan.horizon_days)
    known = series.until(AsOf.day(cutoff))
    last_day = cast(date, known.days[-1].astype(object))
    words = {"asset": id, "days": plan.horizon_days, "start": cutoff.isoformat(), "end": end.isoformat()}
    return Question(
        id=f"{wager.name}/{id}/{plan.horizon_days}d",
        source="financial",
        subtype=wager.name,
        text=wager.text.format(**words),
        due=instant(cutoff),
        targets=tuple(Target(id=label, label=label, resolves_at=instant(end)) for label in labels),
        exclusivity="exactly one",
        cluster=f"financial/{id}",
        background=_prices_told(known),
        last_value=LastValue(value=float(known.values[-1]), at=instant(last_day), meaning=f"price of {id}"),
    )


def _prices_told(known: Series) -> str:
    """Format prices as text: the last ones day by day, before that the last of each month."""
    rows = list(zip(known.days.astype(str).tolist(), known.values.tolist(), strict=True))
    latest, months = rows[-LATEST_VALUES:], dict[str, str]()
    for day, value in rows[:-LATEST_VALUES]:
        months[day[:7]] = f"{day} {value:g}"
    earlier = list(months.values())[-EARLIER_MONTHS:]
    lines = [f"Last prices of {known.id}: {', '.join(f'{day} {value:g}' for day, value in latest)}."]
    lines += [f"At the ends of the months before: {', '.join(earlier)}."] if earlier else []
    return "\n".join(lines)


def _series_payoffs(
    series: Series, cutoff: date, wager: FinancialTaskKind, plan: FinancialTaskPlan
) -> dict[str, float] | str:
    """Return what each option returned, or why the task is not well formed."""
    end = cutoff + timedelta(days=plan.horizon_days)
    if len(series.until(AsOf.day(cutoff))) < plan.min_history:
        return "too little history"
    before, after = _price(series, cutoff, plan), _price(series, end, plan)
    if before is None or after is None:
        return "no price at the start" if before is None else "no price at the end"
    if before <= 0 or after < 0:
        return "a price is not positive"
    payoffs = wager.payoffs(after / before)
    undecided = abs(after / before - 1) <= plan.min_move or best_option(payoffs) is None
    return "options pay the same" if undecided else payoffs


def _price(series: Series, day: date, plan: FinancialTaskPlan) -> float | None:
    """Return the last price on or before a day; None if it is stale."""
    index = int(np.searchsorted(series.days, np.datetime64(day, "D"), side="right")) - 1
    if index < 0 or np.datetime64(day, "D") - series.days[index] > np.timedelta64(plan.max_stale_days, "D"):
        return None
    return float(series.values[index])


options = FileFormat(
    read=lambda request: read_options(request.path),
    recognises=lambda path: first_fields(path) >= {"question", "options", "cutoff"},
)
"""The data set `options:FILE`, and any JSONL file whose first line is such a task."""
