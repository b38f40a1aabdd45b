"""Nothing that came later changes a forecast: every part that learns from the past is listed here and poisoned.

Poison: outcomes that became known on or after the due date are flipped, and later values of series, prices and values
printed in later questions are garbled. A forecast must stay what it was, reasons and all. Asked half a year later,
the same part must answer differently, which shows that the poison reaches it.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from tests.forecasters.stack.made import asked, events, forecast, rate, told, walk, warmer
from tests.studies.made_trials import made

import foretell.forecasters
from foretell.data.series import Series
from foretell.forecasters.base_rates import OutsideView, Past, PastAnswer
from foretell.forecasters.combine import (
    BestSoFar,
    EqualWeights,
    Examples,
    GreedySelection,
    PooledWeights,
    SkillWeights,
    rolling,
    side_by_side,
)
from foretell.forecasters.combine.default import Trust
from foretell.forecasters.stack import Stack
from foretell.forecasters.stack.stack import FAMILIES, trust_in_family
from foretell.forecasters.stack.temperature import PLACES, forecast_id
from foretell.questions import LastValue, Question, Snapshot, Target
from foretell.runs.combine import DefaultByDay
from foretell.studies import build_method
from foretell.studies.configurations import METHODS

DUE, LATER = date(2025, 6, 1), date(2025, 12, 7)
Said = Callable[[date, bool], object]
"""What a part says when asked on a day, from a clean past or a poisoned one."""


# A past with every kind of question.


def market(n: int, due: str) -> Question:
    thing, place = ("parade", "comet")[n % 2], ("Oslo", "Rome", "Lima")[n % 3]
    ends = str(date.fromisoformat(due) + timedelta(days=20 + n))
    price = Snapshot(at=due, last_price=0.2 + 0.02 * n)
    return Question(
        id=f"polymarket/{n}",
        source="polymarket",
        text=f"Will there be a {thing} in {place} before {ends}?",
        due=due,
        targets=(Target(id="yes", resolves_at=ends, snapshot=price),),
        closes_at=ends,
    )


def questions_of(due: str) -> list[Question]:
    ids = range(9)
    return [
        *(rate(f"S{i}", due) for i in ids),
        *(rate(f"T{i}", due, source="yfinance") for i in ids),
        *(events("Riots", f"Land {i}", due, float(i)) for i in ids),
        *(warmer(due, value=10.0 + i, station=f"m/TEMPERATURE/c.0700{i}.D") for i in ids),
        *(asked("wikipedia", kind, f"{kind} {i}", due) for i in ids for kind in ("fide_rank", "vaccine")),
        *(market(i, due) for i in range(24)),
    ]


def garbled(question: Question) -> Question:
    """With another printed value and other prices."""
    value = question.last_value
    targets = tuple(
        replace(t, snapshot=None if t.snapshot is None else Snapshot(at=t.snapshot.at, last_price=0.99))
        for t in question.targets
    )
    return replace(
        question, targets=targets, last_value=None if value is None else LastValue(value=1e3 + value.value, at=value.at)
    )


def past(poisoned: bool) -> Past:
    """Four rounds, the last of them asked after the due date."""
    rng, kept, answers = np.random.default_rng(5), list[Question](), list[PastAnswer]()
    for due in ("2025-01-05", "2025-03-02", "2025-05-04", "2025-06-15"):
        for question in questions_of(due):
            outcomes = rng.integers(0, 2, len(question.targets)).tolist()
            dated = replace(question, targets=tuple(replace(t, id=str(_ends(t))) for t in question.targets))
            later = poisoned and question.due.date() > DUE
            kept.append(garbled(dated) if later else dated)
            answers += [
                replace(one, outcome=1 - one.outcome) if poisoned and one.known_on >= DUE else one
                for one in told(dated, *outcomes)
            ]
    return Past.of(kept, answers)


def _ends(target: Target) -> date:
    assert target.resolves_at is not None
    return target.resolves_at.date()


PASTS = {poisoned: past(poisoned) for poisoned in (False, True)}


# The stack: each of its models, with and without the series it reads.

BILL = "the Federal Reserve's 3-month secondary market treasury bill rate"
AVERAGE = "the 90-day average of the Federal Reserve's Secured Overnight Financing Rate"
WEATHER = tuple(forecast_id(PLACES["07005"], lead) for lead in (1, 7))
RECORD = "m/TEMPERATURE/c.07009.D"
MONTHS = np.arange("2010-01", "2026-06", dtype="M8[M]").astype("M8[D]")
MONTHLY = Series(id="M1", days=MONTHS, values=np.cumsum(np.random.default_rng(9).normal(0, 1, len(MONTHS))))
WALKS = ("S1", "T1", "DGS1", "EFFR", "SOFR", *WEATHER, RECORD)
CLEAN = (*(walk(id, "2026-06-01", seed) for seed, id in enumerate(WALKS)), MONTHLY)
SERIES = {
    False: CLEAN,
    True: tuple(replace(one, values=np.where(one.days > np.datetime64(DUE), 1e6, one.values)) for one in CLEAN),
}


def questions_for_the_stack(due: str) -> list[Question]:
    return [
        rate("S1", due),
        rate("S2", due),
        rate("T1", due, source="yfinance"),
        rate("T2", due, source="yfinance"),
        events("Riots", "Land 4", due, 4.0),
        rate("DTB3", due, BILL),
        rate("SOFR90DAYAVG", due, AVERAGE),
        warmer(due, value=17.0, station="m/TEMPERATURE/c.07001.D"),
        warmer(due, value=17.0, station="m/TEMPERATURE/c.07005.D"),
        warmer(due, value=17.0, station=RECORD),
        rate("M1", due, days=(7, 40)),
        asked("wikipedia", "fide_rank", "fide_rank 3", due),
        asked("wikipedia", "vaccine", "vaccine 3", due),
    ]


def stack_on(place: int) -> Said:
    def said(day: date, poisoned: bool) -> object:
        question = questions_for_the_stack(str(day))[place]
        return forecast(question, Stack(), *SERIES[poisoned], past=PASTS[poisoned])

    return said


def trust_in(place: int) -> Said:
    return lambda day, poisoned: trust_in_family(FAMILIES[place], PASTS[poisoned], PASTS[poisoned], day)


# Base rates, and the outside view that is fitted to the wording of past questions.


def base_rate(day: date, poisoned: bool) -> object:
    question = rate("S2", str(day))
    return [PASTS[poisoned].rate(question, target, question.as_of) for target in question.targets]


def outside_view(day: date, poisoned: bool) -> object:
    return forecast(replace(market(2, str(day)), id="polymarket/new"), OutsideView(), past=PASTS[poisoned])


# Rules that combine or calibrate trials, and ensembles of several forecasters.


def examples_of(base: Examples, poisoned: bool) -> Examples:
    """Rounds from January on; with poison, later outcomes are flipped and later trials and prices say the opposite."""
    later = base.rows.due > np.datetime64(DUE)
    if not poisoned:
        return base
    trials = np.where(later, 1 - base.rows.trials, base.rows.trials)
    rows = replace(base.rows.with_trials(trials), price=np.where(later, 1 - base.rows.price, base.rows.price))
    flipped = base.known_on >= np.datetime64(DUE)
    return replace(base, rows=rows, outcome=np.where(flipped, 1 - base.outcome, base.outcome))


ALONE = made(rounds=12, size=20)
NAMES, SIDE = side_by_side(
    {
        name: made(rounds=12, size=20, noise=noise, method_seed=seed).rows
        for seed, (name, noise) in enumerate({"good": 0.3, "fair": 0.8, "bad": 2.0}.items(), 1)
    }
)
TOGETHER = replace(ALONE, rows=SIDE)
RULES = {name: (build_method(name), ALONE) for name in METHODS} | {
    "trust": (Trust(), ALONE),
    "best so far": (BestSoFar(names=NAMES), TOGETHER),
    "pooled": (PooledWeights(names=NAMES), TOGETHER),
    "greedy": (GreedySelection(names=NAMES), TOGETHER),
    "weights by skill": (SkillWeights(names=NAMES), TOGETHER),
}


def combined_by(name: str) -> Said:
    """The forecasts of the last round asked by a day, from a rule fitted on what was known before it."""

    def said(day: date, poisoned: bool) -> object:
        method, base = RULES[name]
        found = examples_of(base, poisoned)
        due = found.rows.due[found.rows.due <= np.datetime64(day)].max()
        asked_by_then = found.take(found.rows.due <= due)
        return rolling(method, asked_by_then).p[asked_by_then.rows.due == due].tolist()

    return said


def taught_default(day: date, poisoned: bool) -> object:
    found = examples_of(ALONE, poisoned)
    due = found.rows.due[found.rows.due <= np.datetime64(day)].max()
    return DefaultByDay(examples=found).probabilities(found.rows.take(found.rows.due == due)).tolist()


def learners() -> Iterator[tuple[str, Said]]:
    for place, question in enumerate(questions_for_the_stack(str(DUE))):
        yield f"stack {question.id.split('/')[-1]}", stack_on(place)
    for place, family in enumerate(FAMILIES):
        yield f"trust in {family.name}", trust_in(place)
    yield "base rate", base_rate
    yield "outside view", outside_view
    for name in RULES:
        yield f"rule {name}", combined_by(name)
    yield "default taught by runs", taught_default


LEARNERS = dict(learners())
ROBUST = {"rule best so far"}
"""Parts that may answer the same for a poisoned past all the same: the best forecaster can stay the best."""


@pytest.mark.parametrize("name", LEARNERS)
def test_what_came_later_changes_no_forecast(name: str) -> None:
    said = LEARNERS[name]
    assert said(DUE, False) == said(DUE, True)
    if name not in ROBUST:
        assert said(LATER, False) != said(LATER, True), "half a year later the poison is in the past and shows"


def test_every_part_that_learns_is_listed() -> None:
    """A class of foretell.forecasters that fits anything, and is not poisoned above, fails here."""
    listed = {type(one) for rule, _ in RULES.values() for one in _parts(rule)} | {type(one) for one in FAMILIES}
    bases = {"CombinationMethod", "PooledModel"}
    untaught = {EqualWeights}
    found = {kind for kind in _classes() if hasattr(kind, "fit") or hasattr(kind, "learnt")}
    missing = {kind.__name__ for kind in found - listed - untaught} - bases
    assert not missing, "list these in LEARNERS"


def _parts(rule: object) -> Sequence[object]:
    """A chain and its links; any other rule alone."""
    return (rule, *getattr(rule, "methods", ()))


def _classes() -> Iterator[type]:
    for module in pkgutil.walk_packages(foretell.forecasters.__path__, "foretell.forecasters."):
        loaded = importlib.import_module(module.name)
        yield from (one for one in vars(loaded).values() if isinstance(one, type) and one.__module__ == module.name)
