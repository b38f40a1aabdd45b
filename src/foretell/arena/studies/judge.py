"""How well forecasts are reasoned: a model marks five sides of each from 1 to 5, by a fixed rubric."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from foretell.arena.studies.rubric import DIMENSIONS, HIGHEST, LOWEST, REFERENCE, Reference, instruction
from foretell.arena.studies.side_by_side import side_by_side
from foretell.arena.study import Progress, quietly
from foretell.forecasters.agent.rationale import without_numbers
from foretell.forecasters.context.asking import ask_until, closed
from foretell.forecasters.context.context import Context
from foretell.forecasters.context.rendering import BOTH, View, render
from foretell.llm.answer import BadAnswer
from foretell.llm.canonical import content_key
from foretell.llm.message import Request, Settings, System, User
from foretell.llm.model import Model, ModelError
from foretell.questions.forecast import Forecast

LONGEST_REASONS = 12_000
LONGEST_WHY = 1_000
_MARK = closed({"reason": {"type": "string"}, "score": {"type": "integer", "minimum": LOWEST, "maximum": HIGHEST}})
SCHEMA = closed(dict.fromkeys(DIMENSIONS, _MARK))


@dataclass(frozen=True, kw_only=True)
class Case:
    """One forecast to be marked: what was shown, what was answered, and why."""

    context: Context
    forecast: Forecast
    view: View = BOTH
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
class Marked:
    """The marks of one case, or why there are none."""

    case: Case
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
    reference: Reference = REFERENCE
    settings: Settings = field(default_factory=Settings)
    """The temperature is 0 whatever they say."""
    attempts: int = 3

    async def judge(self, cases: Sequence[Case], progress: Progress = quietly) -> list[Marked]:
        """The marks of every case, in their order."""
        return await side_by_side(cases, self._mark, progress)

    def request(self, case: Case) -> Request:
        """What the model is asked."""
        return Request(
            model=self.name,
            messages=(System(text=instruction(self.reference)), User(text=case.task())),
            schema=SCHEMA,
            settings=replace(self.settings, temperature=0.0),
            slot="reasoning judge",
        )

    async def _mark(self, case: Case) -> Marked:
        try:
            found = await ask_until(self.model, self.request(case), read_marks, attempts=self.attempts)
        except ModelError as error:
            return Marked(case=case, problem=str(error))
        return Marked(
            case=case,
            scores={name: score for name, (score, _) in found.items()},
            reasons={name: why for name, (_, why) in found.items()},
        )


def read_marks(said: Mapping[str, Any]) -> dict[str, tuple[int, str]]:
    """Mark and reason of every dimension, or `BadAnswer` with what is wrong.

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
        raise BadAnswer("; ".join(wrong))
    return found


def _mark_of(given: Any) -> int | None:
    """A whole number in range, also written as 4.0, "4" or "4/5"."""
    if isinstance(given, str):
        head = given.strip()[:10].removesuffix(f"/{HIGHEST}").strip()
        given = float(head) if head.replace(".", "", 1).isdecimal() else None
    if isinstance(given, bool) or not isinstance(given, int | float) or given % 1:
        return None
    return int(given) if LOWEST <= given <= HIGHEST else None
