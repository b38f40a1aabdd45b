"""Records of standing questions with invented places and facts, as a watch writes them: for pages and their tests."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random

from foretell.questions.question import Question, Target
from foretell.runs.store import RunStore
from foretell.standing.confirm import confirm
from foretell.standing.record import (
    Look,
    NewEvidence,
    OutcomeProposal,
    OutcomeReading,
    Sharpening,
    StandingBelief,
    StandingQuestion,
)
from foretell.standing.store import StandingStore

BEGAN = datetime(2026, 2, 2, 8, tzinfo=UTC)
DAY = timedelta(days=1)
PLACES = ("Halvik", "Norland", "Estmark", "Verin", "Oren", "Aster", "Sund", "Marl", "Tessin", "Brandal")
EVENTS = (
    "the night train run again",
    "inflation fall below 2 %",
    "the governor leave",
    "the cell factory ship",
    "the dam be full",
    "the toll rise",
)


@dataclass(frozen=True, kw_only=True)
class MadeQuestion:
    """The course of one invented question."""

    number: int
    came: bool
    path: tuple[float, ...]
    """The forecasts, the first one when it was asked."""
    prices: tuple[float, ...] = ()
    """The price at each look; empty without a market."""
    rate: float | None = 0.4
    days: int = 60
    found: bool = True
    """Whether the deciding fact is among the evidence of the last update."""
    wrong_sign: bool = False
    proposed: bool = True
    category: str = "transport"

    @property
    def id(self) -> str:
        """The id of the standing question."""
        return f"made-{self.number:02}"

    @property
    def opened(self) -> datetime:
        """When it was asked."""
        return BEGAN + self.number * 3 * DAY

    @property
    def closes(self) -> datetime:
        """Its deadline."""
        return self.opened + self.days * DAY

    @property
    def text(self) -> str:
        """The question as it is asked."""
        place, event = PLACES[self.number % len(PLACES)], EVENTS[self.number % len(EVENTS)]
        return f"Will {event} in {place} before {self.closes.day} {self.closes:%B %Y}?"

    @property
    def fact(self) -> str:
        """The fact that decides."""
        return f"Office of {PLACES[self.number % len(PLACES)]} announces ruling number {self.number} on the matter."

    @property
    def reported(self) -> datetime:
        """When the deciding fact was published."""
        return self.opened + (self.days // 2) * DAY

    def standing(self) -> StandingQuestion:
        """Return the question as it is opened."""
        target = Target(id="yes", resolves_at=self.closes)
        question = Question(
            id=f"asked/{self.number}", source="asked", text=self.text, due=self.opened, targets=(target,),
            category=self.category, criteria="Decided by the register of the office.",
        )  # fmt: skip
        sharpening = Sharpening(
            original=f"Will {EVENTS[self.number % len(EVENTS)]} soon?",
            text=self.text,
            decides="the register of the office",
            edge_cases=("a trial run does not count",),
            no_means="no entry in the register by the deadline",
            base_rate_class="like rulings of the last ten years",
        )
        settings = {"models": {"agent": "openai:made-up"}, "watch": {"budget": 2.0, "day_budget": 0.1}}
        return StandingQuestion(
            id=self.id, question=question, opened_at=self.opened, settings=settings, sharpening=sharpening
        )

    def looks(self) -> list[tuple[Look, StandingBelief | None]]:
        """Return every look with the forecast it led to."""
        steps: list[tuple[Look, StandingBelief | None]] = []
        count = 2 * len(self.path)
        for n in range(count):
            at = self.opened + n * (self.days - 4) * DAY / count
            prices = {"yes": self.prices[min(n, len(self.prices) - 1)]} if self.prices else {}
            update = n % 2 == 0
            news = (self._evidence(n, at),) if n else ()
            look = Look(
                number=n + 1,
                at=at,
                triggers=("first",) if not n else ("document",) if update else ("clock",),
                prices=prices,
                news=news,
                bears=None if not n else update,
                why="" if not n else "It bears on the question." if update else "Article on next year's tariffs: old.",
                billed=0.0 if not n else 0.0004,
            )
            belief = self._belief(n, look) if update else None
            steps.append((look, belief))
        return steps

    def _evidence(self, n: int, at: datetime) -> NewEvidence:
        if self.found and n == 2 * (len(self.path) - 1):
            favours = "yes" if self.came != self.wrong_sign else ""
            return NewEvidence(
                key=f"fact-{self.number}", text=self.fact, url=f"https://register.example/{self.number}",
                published=min(at, self.reported), favours=favours or ("" if not self.wrong_sign else "yes"),
            )  # fmt: skip
        text = f"Report {n} from {PLACES[(self.number + n) % len(PLACES)]}."
        return NewEvidence(key=f"{self.number}-{n}", text=text, url=f"https://news.example/{self.number}/{n}")

    def _belief(self, n: int, look: Look) -> StandingBelief:
        p = self.path[n // 2]
        return StandingBelief(
            number=n // 2 + 1,
            look=look.number,
            at=look.at,
            p={"yes": p},
            ranges={"yes": (max(p - 0.12, 0.01), min(p + 0.12, 0.99))},
            evidence=look.news,
            rationale="The permit is granted.",
            prices=look.prices,
            base_rates={} if self.rate is None else {"yes": self.rate},
            billed=0.16 if not n else 0.022,
        )

    def proposal(self) -> OutcomeProposal:
        """Return what the resolver proposes after the deadline."""
        quote = OutcomeReading(
            reader="openai:made-up",
            outcome="yes" if self.came else "no",
            quote=self.fact,
            url=f"https://office.example/{self.number}",
            published=self.closes if self.came else self.reported,
            why="It meets the criteria.",
        )
        second = replace(quote, reader="anthropic:made-up", quote=f"{PLACES[0]} confirms.", url="https://a.example/2")
        return OutcomeProposal(
            at=self.closes + DAY, outcome={"yes": int(self.came)}, status="proposed", readings=(quote, second),
            why="The deciding source and a second text agree.", billed=0.01,
        )  # fmt: skip

    def keep(self, store: StandingStore, *, confirmed: bool = True) -> None:
        """Write the question into a store, as a watch and then the user would."""
        assert store.open(self.standing(), self.opened)
        for look, belief in self.looks():
            assert store.add_look(self.id, look, look.at + 5 * DAY, belief=belief)
        if self.proposed:
            store.add_proposal(self.id, self.proposal())
        if confirmed:
            confirm(store, self.id, "yes" if self.came else "no", self.closes + 2 * DAY)


def made_questions(count: int = 40, seed: int = 7) -> list[MadeQuestion]:
    """Return questions whose updates mostly go the right way; two thirds have a market."""
    rng = Random(seed)
    questions: list[MadeQuestion] = []
    for number in range(count):
        came = rng.random() < 0.45
        right = rng.random() < 0.8
        goal = came == right
        first = min(max(0.5 + rng.gauss(0, 0.15), 0.05), 0.95)
        path = [first]
        for _ in range(rng.choice((1, 2, 3, 4))):
            step = rng.uniform(0.02, 0.2) * (1 if goal else -1)
            path.append(min(max(path[-1] + step, 0.03), 0.97))
        prices = tuple(min(max(p + rng.gauss(0, 0.06), 0.02), 0.98) for p in path for _ in range(2))
        questions.append(
            MadeQuestion(
                number=number,
                came=came,
                path=tuple(round(p, 3) for p in path),
                prices=tuple(round(p, 3) for p in prices) if number % 3 else (),
                rate=0.4 if number % 5 else None,
                found=number % 4 != 1,
                wrong_sign=not right and number % 2 == 0,
                proposed=number % 7 != 3,
                category=("transport", "economy")[number % 2],
            )
        )
    return questions


def fill(store: RunStore, count: int = 40) -> StandingStore:
    """Write decided questions, one that waits for an answer, one that is watched and a cancelled one."""
    standing = StandingStore(store.database)
    for made in made_questions(count):
        made.keep(standing)
    waiting = MadeQuestion(number=90, came=True, path=(0.46, 0.36, 0.47, 0.7, 0.91), prices=(0.5, 0.42, 0.6, 0.92))
    waiting.keep(standing, confirmed=False)
    watched = MadeQuestion(number=91, came=False, path=(0.3, 0.4), proposed=False)
    watched.keep(standing, confirmed=False)
    cancelled = MadeQuestion(number=92, came=False, path=(0.3, 0.4), proposed=False)
    cancelled.keep(standing, confirmed=False)
    confirm(standing, cancelled.id, "cancelled", cancelled.closes)
    return standing
