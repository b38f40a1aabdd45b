"""Drawing events: what they are about, how likely they are at first, and when everything happens."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from foretell.fakes.exchange import names
from foretell.fakes.exchange.chance import HOUR, Chance
from foretell.fakes.exchange.event import Life, SimEvent, Wording, moment
from foretell.fakes.exchange.settings import WorldSettings
from foretell.fakes.exchange.subjects import Kind, Sort, Subject, subjects

DAY = 24 * HOUR
KINDS: tuple[tuple[Kind, float], ...] = (("yes-no", 0.55), ("race", 0.2), ("ladder", 0.25))
BUSY, QUIET = 12_000.0, 90.0
"""Contracts of a typical market in an ordinary event and in one that hardly anybody trades."""
UNLIKELY = (0.9, 2.4)
"""Shape of the beta distribution of first probabilities: as on real markets, about one thing in four happens."""
SPAN = (-0.7, 1.9)
"""Of the thresholds of a ladder around the level it starts from, in usual moves."""
RUNGS = (3, 6)
RUNNERS = (3, 6)


@dataclass(frozen=True, kw_only=True)
class Maker:
    """Makes events from settings and chance."""

    settings: WorldSettings
    chance: Chance

    def event(self, number: int, announced: int, rng: np.random.Generator) -> SimEvent:
        """A new event that is announced at an hour."""
        kind = rng.choice([kind for kind, _ in KINDS], p=[share for _, share in KINDS])
        choices = subjects(kind)
        subject = choices[int(rng.integers(len(choices)))]
        opens = announced + HOUR * int(rng.integers(1, 7))
        length = math.exp(rng.uniform(0.0, math.log(self.settings.longest)))
        closes = opens + HOUR * max(12, round(24 * length))
        life = self._life(number, announced, opens, closes)
        said = names.made_up(rng)
        root = _letters(next(iter(_named(subject.topic, said).values()), "X"))
        series = f"KX{root}{subject.tag}{number}"
        return self._made(number, subject, said, series, life, rng)

    def week(self, number: int, subject: Subject, said: dict[str, str], opens: int, level: float) -> SimEvent:
        """This week's event of a series that goes on from where it stood."""
        closes = opens + 6 * DAY + 12 * HOUR
        life = Life(
            announced=opens,
            opens=opens,
            closes=closes,
            known=closes + 2 * HOUR,
            determined=closes + 3 * HOUR,
            finalized=closes + 5 * HOUR,
        )
        series = f"KX{_letters(said['place'])}{subject.tag}"
        rng = self.chance.at(opens, number, "week")
        return self._made(number, subject, {**said, "level": str(level)}, series, life, rng)

    def _life(self, number: int, announced: int, opens: int, closes: int) -> Life:
        length = closes - opens

        def early(rng: np.random.Generator) -> float | None:
            happens, share = rng.random() < self.settings.early, rng.uniform(0.25, 0.85)
            return opens + HOUR * max(6, round(share * length / HOUR)) if happens else None

        def later(after: int, hours: int, what: str) -> int:
            found = self.chance.moment(lambda rng: after + HOUR * int(rng.integers(1, hours)), number, what)
            return round(max(after, self.chance.turn) // HOUR * HOUR + HOUR if found is None else found)

        soon = self.chance.moment(early, number, "early")
        known = later(closes, 12, "known") if soon is None else round(soon)
        determined = later(known, 6, "determined")
        void = bool(self.chance.at(determined, number, "void").random() < self.settings.void)
        finalized = later(determined, 30, "finalized")
        return Life(
            announced=announced,
            opens=opens,
            closes=closes,
            known=known,
            determined=determined,
            finalized=finalized,
            void=void,
        )

    def _made(
        self, number: int, subject: Subject, said: dict[str, str], series: str, life: Life, rng: np.random.Generator
    ) -> SimEvent:
        closes = moment(life.closes)
        told = said | {"day": f"{closes.day} {closes:%B %Y}"}
        words = Wording(
            title=subject.title.format(**told),
            topic=subject.topic.format(**told),
            claim=subject.claim.format(**told),
            unit=subject.unit,
            category=subject.category,
            period=told["day"] if subject.kind in ("race", "weekly") else "",
        )
        ticker = f"{series}-{closes:%y%b%d}".upper()
        thin = subject.kind != "weekly" and bool(rng.random() < self.settings.thin)
        parts = _markets(subject, words, told, rng)
        return SimEvent(
            number=number,
            kind=subject.kind,
            ticker=ticker,
            series=series,
            words=words,
            tickers=tuple(f"{ticker}-{place}" for place in range(1, len(parts["labels"]) + 1)),
            life=life,
            before_close=float(rng.choice([0.9, 0.75, 0.45], p=[0.5, 0.3, 0.2])),
            traded=(QUIET if thin else BUSY) * math.exp(0.8 * rng.standard_normal()),
            thin=thin,
            chance=self.chance,
            **parts,
        )


def _markets(subject: Subject, words: Wording, told: dict[str, str], rng: np.random.Generator) -> dict[str, Any]:
    """Labels, rules and the walk behind them."""
    if subject.kind == "race":
        return _race(subject, words, rng)
    if subject.kind == "yes-no":
        from scipy.special import ndtri

        rule = f"The market resolves to Yes if {words.claim} by {told['day']}."
        return {
            "labels": (words.claim[:1].upper() + words.claim[1:],),
            "rules": (rule,),
            "starts": (float(ndtri(rng.beta(*UNLIKELY))),),
            "thresholds": (0.0,),
        }
    return _ladder(subject, words, float(told.get("level", 0.0)), rng)


def _race(subject: Subject, words: Wording, rng: np.random.Generator) -> dict[str, Any]:
    count = int(rng.integers(*RUNNERS))
    labels = tuple(dict.fromkeys(_runner(subject.sort, rng) for _ in range(count)))
    rules = tuple(f"The market resolves to Yes if it is {label}: {words.topic}." for label in labels)
    starts = tuple(float(start) for start in 0.9 * rng.standard_normal(len(labels)))
    return {"labels": labels, "rules": rules, "starts": starts, "thresholds": ()}


def _ladder(subject: Subject, words: Wording, level: float, rng: np.random.Generator) -> dict[str, Any]:
    level = level or subject.level * math.exp(0.15 * rng.standard_normal())
    move = subject.move * level
    digits = max(0, 1 - math.floor(math.log10(move)))
    count = int(rng.integers(*RUNGS))
    ends = [round(level + move * z, digits) for z in np.linspace(*SPAN, count) + rng.uniform(-0.25, 0.25)]
    labels = tuple(f"Above {end:.{digits}f} {subject.unit}" for end in ends)
    rules = tuple(f"The market resolves to Yes if {words.topic}: {label.lower()}." for label in labels)
    thresholds = tuple((end - level) / move for end in ends)
    walk: dict[str, Any] = {"starts": (0.0,), "thresholds": thresholds, "level": level, "move": move}
    return {"labels": labels, "rules": rules, **walk}


def _runner(sort: Sort, rng: np.random.Generator) -> str:
    return {"person": names.person, "firm": names.firm, "team": names.team, "thing": names.stem}[sort](rng)


def _named(text: str, said: dict[str, str]) -> dict[str, str]:
    """The names that a text uses, in its order."""
    used = [name for name in said if f"{{{name}}}" in text]
    return {name: said[name] for name in sorted(used, key=lambda name: text.index(f"{{{name}}}"))}


def _letters(name: str) -> str:
    return "".join(letter for letter in name.upper() if letter.isascii() and letter.isalpha())[:8]
