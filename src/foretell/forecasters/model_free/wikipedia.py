"""Questions about states that last until an event changes them: records, diseases without a vaccine, ratings.

Events happen at a rate of λ a year: P(changed within h days) = 1 − exp(−λ·h/365). This is the same for every question
of a template and inherently coherent over its dates.
"""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Literal

import numpy as np

from foretell.data.series.series import Series
from foretell.forecasters.base_rates.past import Past, PastTarget
from foretell.forecasters.model_free.source_model import (
    NO_OTHERS,
    Case,
    EffectPriors,
    Estimate,
    OtherSeries,
    PooledCases,
    PooledModel,
    ReadsOwnSeries,
    dated,
    horizons,
)
from foretell.frozen import frozen
from foretell.number_text import percent
from foretell.questions.question import Question, SeriesRef

TEMPLATES: dict[tuple[str, str], Literal["changed", "unchanged"]] = {
    ("wikipedia", "vaccine"): "changed",
    ("wikipedia", "fide_elo"): "changed",
    ("wikipedia", "swimming"): "unchanged",
}
"""What a yes means, by source and template."""
PRIOR_EVENTS, PRIOR_YEARS = 0.5, 15.0
"""Prior: half an event in fifteen years of observation."""
YEAR = 365.0


@frozen
class RareChanges(ReadsOwnSeries):
    """Templates about a change that is rare and permanent."""

    name: str = "rate of change"

    def record_of(self, question: Question) -> SeriesRef | None:
        """Return None: the page is the same until the change."""
        return None

    def covers(self, question: Question) -> bool:
        """Whether the question's template is in `TEMPLATES` and every target has a date."""
        return (question.source, question.subtype) in TEMPLATES and dated(question)

    def estimate(
        self, question: Question, past: Past, day: date, record: Series | None = None, others: OtherSeries = NO_OTHERS
    ) -> Estimate:
        """Exponential waiting time, including the uncertainty of the rate: 1 − (1 + h/(Y + Y₀))^−(k + k₀)."""
        template = (question.source, question.subtype)
        events, years = past.cached((self.name, template, day), lambda: self._observed(template, past, day))
        stays = (1 + horizons(question) / YEAR / (years + PRIOR_YEARS)) ** -(events + PRIOR_EVENTS)
        words = (
            f"{events:.0f} changes in {years:.0f} years of observation: the chance of one until the last date "
            f"is {percent(1 - stays[-1], 1)}."
        )
        return Estimate(p=1 - stays if TEMPLATES[template] == "changed" else stays, rationale=words)

    def _observed(self, template: tuple[str, str], past: Past, day: date) -> tuple[float, float]:
        """Count the changes and the years of observation known before the day.

        Each asking counts once, by its last known date; a change is assumed in the middle of its interval.
        """
        longest: dict[tuple[str, date], PastTarget] = {}
        for answer in past.cached(
            (self.name, "lessons"), lambda: [x for x in past.resolved if self.covers(x.question)]
        ):
            question = answer.question
            if answer.known_on < day and (question.source, question.subtype) == template:
                asking = (question.id, question.due.date())
                if asking not in longest or answer.horizon > longest[asking].horizon:
                    longest[asking] = answer
        yes = 1 if TEMPLATES[template] == "changed" else 0
        changed = np.array([answer.outcome == yes for answer in longest.values()], np.bool_)
        years = (
            np.array([answer.horizon for answer in longest.values()], np.float64) / YEAR * np.where(changed, 0.5, 1.0)
        )
        return float(changed.sum()), float(years.sum())


# Ranks on a list that is published once a month: whether a player has the same or a better rank later.


EARLY_LIST = timedelta(days=2)
"""A list is dated the first of a month and may be published this long before."""


class RankModel(PooledModel):
    """Questions about FIDE rankings."""

    name = "ranking lists"
    beliefs = EffectPriors(
        slope=(1.0, -0.6, 1.0, 2.0, -1.0),
        slope_sd=(1.0, 0.5, 1.0, 1.0, 1.0),
        group_sd={"player": 0.6, "asking": 1.0},
        shared=frozenset({"asking"}),
    )
    """Columns: the level, log(1 + lists to come), no list before the date, first place (which cannot improve), and no
    list before the date unless it is published early. `asking`: the dates of one question are correlated."""

    def covers(self, question: Question) -> bool:
        """Whether the question uses the template about a player's rank."""
        return question.source == "wikipedia" and question.subtype == "fide_rank" and dated(question)

    def estimate(
        self, question: Question, past: Past, day: date, record: Series | None = None, others: OtherSeries = NO_OTHERS
    ) -> Estimate:
        """Estimate the chance of keeping the rank, which decreases with every list still to come."""
        learnt = self.learnt(past, day)
        p = learnt.pooled.chances(self.cases([(question, target, None) for target in question.targets]))
        own = int(np.sum(learnt.cases.labels["player"] == question.id))
        words = (
            "A rank is kept until the next monthly list and may be lost after that: "
            f"{percent(p[0])} at the first date, {percent(p[-1])} at the last, "
            f"from {len(learnt.outcome)} outcomes of such questions, {own} of them of this player."
        )
        return Estimate(p=p, rationale=words)

    def cases(self, targets: Sequence[Case]) -> PooledCases:
        """Build rows by player; lists, published on the first of a month, are counted from the due day to the date."""
        columns = np.zeros((len(targets), len(self.beliefs.slope)))
        for row, (question, target, _) in enumerate(targets):
            due, end = question.due.date(), (target.resolves_at or question.due).date()
            lists = (end.year - due.year) * 12 + end.month - due.month
            first = question.last_value is not None and question.last_value.value == 1
            early = lists == 0 and (end + EARLY_LIST).month != end.month
            columns[row] = (1.0, np.log1p(lists), float(lists == 0), float(first), float(early))
        player = np.array([question.id for question, _, _ in targets], str)
        asking = np.array([f"{question.id}@{question.due.date()}" for question, _, _ in targets], str)
        return PooledCases(start=np.zeros(len(targets)), columns=columns, labels={"player": player, "asking": asking})
