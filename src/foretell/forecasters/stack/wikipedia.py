"""Things that stay as they are until something happens: records, diseases without a vaccine, ratings.

What happens, happens at a rate λ a year: P(changed within h days) = 1 − exp(−λ·h/365), which is the same for every
question of a template and coherent over its dates by itself.
"""

from dataclasses import dataclass
from datetime import date
from typing import Literal

import numpy as np

from foretell.data.series.series import Series
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.combine.rows import Days, Strings
from foretell.forecasters.stack.source_model import (
    EffectPriors,
    Estimate,
    LearntEffects,
    PastCases,
    PooledCases,
    PooledSourceModel,
    dated,
    horizons,
)
from foretell.metrics.arrays import Bools, Floats, Ints
from foretell.questions.question import Question, Target

Says = Literal["changed", "unchanged"]
TEMPLATES: dict[tuple[str, str], Says] = {
    ("wikipedia", "vaccine"): "changed",
    ("wikipedia", "fide_elo"): "changed",
    ("wikipedia", "swimming"): "unchanged",
}
"""By source and template: what a yes means."""
PRIOR_EVENTS, PRIOR_YEARS = 0.5, 15.0
"""Half an event in fifteen years of watching, before any is watched: such templates are about rare changes."""
YEAR = 365.0


@dataclass(frozen=True, kw_only=True)
class RareChanges:
    """Templates about a change that is rare and lasts."""

    name: str = "rate of change"

    def covers(self, question: Question) -> bool:
        """The templates of the table."""
        return (question.source, question.subtype) in TEMPLATES and dated(question)

    def study(self, past: Past) -> "ChangeHistory":
        """Every earlier question of the templates, as a stretch of watching."""
        lessons = [x for x in past.resolved if self.covers(x.question)]
        template = np.array([f"{x.question.source} {x.question.subtype}" for x in lessons], str)
        yes = np.array([x.outcome == 1 for x in lessons], np.bool_)
        means = np.array([TEMPLATES[x.question.source, x.question.subtype] == "changed" for x in lessons], np.bool_)
        return ChangeHistory(
            known_on=np.array([x.known_on for x in lessons], "M8[D]"),
            template=template,
            asking=np.array([f"{x.question.id}@{x.question.due.date()}" for x in lessons], str),
            changed=yes == means,
            horizon=np.array([x.horizon for x in lessons], np.float64),
        )


@dataclass(frozen=True, kw_only=True)
class ChangeHistory:
    """Past cases, to be read up to a day."""

    known_on: Days
    template: Strings
    asking: Strings
    changed: Bools
    horizon: Floats

    def as_of(self, day: date) -> "ChangeRate":
        """Events and years of watching known before the day, by template."""
        known = self.known_on < np.datetime64(day, "D")
        found: dict[str, tuple[float, float]] = {}
        for template in np.unique(self.template[known]):
            rows = np.flatnonzero(known & (self.template == template))
            found[str(template)] = self._watched(rows)
        return ChangeRate(watched=found)

    def _watched(self, rows: Ints) -> tuple[float, float]:
        """Each asking counts once, by its longest date known; a change is put in the middle of its stretch."""
        longest: dict[str, int] = {}
        for row in rows:
            best = longest.get(str(self.asking[row]))
            if best is None or self.horizon[row] > self.horizon[best]:
                longest[str(self.asking[row])] = int(row)
        last = np.array(list(longest.values()), np.int64)
        changed = self.changed[last]
        years = self.horizon[last] / YEAR * np.where(changed, 0.5, 1.0)
        return float(changed.sum()), float(years.sum())


@dataclass(frozen=True, kw_only=True)
class ChangeRate:
    """How often things changed, as known on a day."""

    watched: dict[str, tuple[float, float]]

    def estimate(self, question: Question, record: Series | None = None) -> Estimate:
        """Exponential waiting, the rate's own doubt included: 1 − (1 + h/(Y + Y₀))^−(k + k₀)."""
        events, years = self.watched.get(f"{question.source} {question.subtype}", (0.0, 0.0))
        ahead = horizons(question) / YEAR
        stays = (1 + ahead / (years + PRIOR_YEARS)) ** -(events + PRIOR_EVENTS)
        says = TEMPLATES[question.source, question.subtype]
        words = (
            f"{events:.0f} changes in {years:.0f} years of watching such things: the chance of one until the last date "
            f"is {1 - stays[-1]:.1%}."
        )
        return Estimate(p=1 - stays if says == "changed" else stays, rationale=words)


# Places on a ranking list that is published once a month: will somebody stand as high or higher later?

BELIEFS = EffectPriors(
    slope=(1.0, -0.6, 1.0, 2.0),
    slope_sd=(1.0, 0.5, 1.0, 1.0),
    group_sd={"player": 0.6, "asking": 1.0},
    shared=frozenset({"asking"}),
)
"""Columns: the level, log(1 + lists to come), no list before the date, first place (nobody can pass the first but by
falling is it lost). `asking`: the dates of one question tell one story."""


@dataclass(frozen=True, kw_only=True)
class RankModel:
    """FIDE rankings."""

    name: str = "ranking lists"

    def covers(self, question: Question) -> bool:
        """The template about a player's rank."""
        return question.source == "wikipedia" and question.subtype == "fide_rank" and dated(question)

    def study(self, past: Past) -> PooledSourceModel:
        """All earlier outcomes of the template."""
        lessons = [x for x in past.resolved if self.covers(x.question)]
        taught = PastCases(
            cases=_cases([(x.question, x.target) for x in lessons]),
            outcome=np.array([x.outcome for x in lessons], np.float64),
            known_on=np.array([x.known_on for x in lessons], "M8[D]"),
            beliefs=BELIEFS,
        )
        return PooledSourceModel(taught=taught, make=lambda learnt: RankEstimator(learnt=learnt))


@dataclass(frozen=True, kw_only=True)
class RankEstimator:
    """How long places are kept, as known on a day."""

    learnt: LearntEffects

    def estimate(self, question: Question, record: Series | None = None) -> Estimate:
        """Less likely with every list that is still to come."""
        p = self.learnt.pooled.chances(_cases([(question, target) for target in question.targets]))
        own = int(np.sum(self.learnt.cases.labels["player"] == question.id))
        words = (
            f"A place is kept until the next monthly list and then lost with time: {p[0]:.0%} at the first date, "
            f"{p[-1]:.0%} at the last, from {len(self.learnt.outcome)} outcomes of such questions, {own} of them of "
            "this player."
        )
        return Estimate(p=p, rationale=words)


def lists_between(due: date, end: date) -> int:
    """Monthly lists, published on the first, after the due day up to the end.

    >>> lists_between(date(2025, 10, 26), date(2025, 11, 2)), lists_between(date(2025, 11, 9), date(2025, 11, 16))
    (1, 0)
    """
    return (end.year - due.year) * 12 + end.month - due.month


def _cases(asked: list[tuple[Question, Target]]) -> PooledCases:
    columns = np.zeros((len(asked), 4))
    for row, (question, target) in enumerate(asked):
        due, end = question.due.date(), (target.resolves_at or question.due).date()
        lists = lists_between(due, end)
        first = question.last_value is not None and question.last_value.value == 1
        columns[row] = (1.0, np.log1p(lists), float(lists == 0), float(first))
    player = np.array([question.id for question, _ in asked], str)
    asking = np.array([f"{question.id}@{question.due.date()}" for question, _ in asked], str)
    return PooledCases(start=np.zeros(len(asked)), columns=columns, labels={"player": player, "asking": asking})
