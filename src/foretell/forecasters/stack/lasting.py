"""Things that stay as they are until something happens: records, diseases without a vaccine, ratings.

What happens, happens at a rate λ a year: P(changed within h days) = 1 − exp(−λ·h/365), which is the same for every
question of a template and coherent over its dates by itself.
"""

from dataclasses import dataclass
from datetime import date
from typing import Literal

import numpy as np

from foretell.evaluate.arrays import Bools, Floats, Ints
from foretell.forecasters.combine.rows import Days, Strings
from foretell.forecasters.stack.family import Estimate, dated, horizons
from foretell.forecasters.stack.past import Past
from foretell.questions.question import Question
from foretell.sources.series import Series

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
class Lasting:
    """Templates about a change that is rare and lasts."""

    name: str = "rate of change"

    def covers(self, question: Question) -> bool:
        """The templates of the table."""
        return (question.source, question.subtype) in TEMPLATES and dated(question)

    def study(self, past: Past) -> "Watched":
        """Every earlier question of the templates, as a stretch of watching."""
        lessons = [x for x in past.lessons if self.covers(x.question)]
        template = np.array([f"{x.question.source} {x.question.subtype}" for x in lessons], str)
        yes = np.array([x.outcome == 1 for x in lessons], np.bool_)
        means = np.array([TEMPLATES[x.question.source, x.question.subtype] == "changed" for x in lessons], np.bool_)
        return Watched(
            known_on=np.array([x.known_on for x in lessons], "M8[D]"),
            template=template,
            asking=np.array([f"{x.question.id}@{x.question.due.date()}" for x in lessons], str),
            changed=yes == means,
            horizon=np.array([x.horizon for x in lessons], np.float64),
        )


@dataclass(frozen=True, kw_only=True)
class Watched:
    """Past cases, to be read up to a day."""

    known_on: Days
    template: Strings
    asking: Strings
    changed: Bools
    horizon: Floats

    def as_of(self, day: date) -> "Rate":
        """Events and years of watching known before the day, by template."""
        known = self.known_on < np.datetime64(day, "D")
        found: dict[str, tuple[float, float]] = {}
        for template in np.unique(self.template[known]):
            rows = np.flatnonzero(known & (self.template == template))
            found[str(template)] = self._watched(rows)
        return Rate(watched=found)

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
class Rate:
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
        return Estimate(p=1 - stays if says == "changed" else stays, words=words)
