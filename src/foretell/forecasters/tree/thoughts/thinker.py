"""What models do for a line of thought: say what to look into, look into it, rate lines, join thoughts, conclude."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from foretell.forecasters.agent.context import AgentContext
from foretell.forecasters.tree.grounders.conclusion import WITHOUT_SOURCES, concluded
from foretell.forecasters.tree.growing.asking import CHANCE, LONGEST_SENTENCE, TEXT, Asker, Unfit, Wanted, shape
from foretell.forecasters.tree.growing.claims import faults_of, tidy
from foretell.forecasters.tree.growing.ground import Crew, Leaf
from foretell.forecasters.tree.growing.matter import Matter
from foretell.forecasters.tree.growing.matter import Place as Surroundings
from foretell.forecasters.tree.growing.overlap import likeness
from foretell.forecasters.tree.growing.spending import Purse
from foretell.forecasters.tree.prompts import sections, told
from foretell.forecasters.tree.thoughts.line import Conclusion, Line, Thought
from foretell.forecasters.tree.thoughts.minutes import Job, Minutes, Place, key
from foretell.forecasters.tree.thoughts.side_by_side import side_by_side
from foretell.questions.event import Emit, NodeGrounded

THOUGHT = shape({"claim": TEXT, "why": TEXT}, optional=("why",))
PROPOSED = shape({"thoughts": {"type": "array", "items": THOUGHT}, "enough": {"type": "boolean"}}, optional=("enough",))
RATED = shape({"id": TEXT, "reason": TEXT, "value": CHANCE}, optional=("reason",))
SCORED = shape({"lines": {"type": "array", "items": RATED}})


@dataclass(frozen=True, kw_only=True)
class Thinker:
    """Thinks about one claim. Requests depend on places and earlier answers, never on who was quicker."""

    claim: str
    matter: Matter
    context: AgentContext
    crew: Crew
    minutes: Minutes
    slot: str
    attempts: int = 3
    share: float | None = None
    """Dollars for looking into one thought."""

    async def propose(self, line: Line, count: int, place: Place, standpoint: str = "") -> list[Thought]:
        """At most so many thoughts to go on with; none where the line says enough already."""
        many = f"Name {count} different steps." if count > 1 else "Name one step."
        wanted = self._wanted(
            f"{_written(place)}/propose",
            told("thoughts_propose", standpoint=standpoint) + "\n\n" + self._rules(),
            sections(*self._head(), ("The line of thought so far", line.told()), ("Your task", many)),
            PROPOSED,
        )

        def read(found: Mapping[str, Any]) -> list[Thought]:
            new: list[Thought] = []
            problems: list[str] = []
            for one in found["thoughts"][:count]:
                others = [self.claim, *line.claims, *(thought.claim for thought in new)]
                problem = _unfit(str(one["claim"]), others)
                if problem:
                    problems.append(problem)
                else:
                    new.append(_thought(one, place, len(new) + 1))
            if not new and not found.get("enough"):
                raise Unfit("; ".join(problems) or "it names no step and does not say that the line says enough")
            return new

        return await self._asker(self.minutes.of(key(place, 0))).ask(wanted, read)

    async def look_into(self, thoughts: Sequence[Thought], line: Line, place: Place) -> list[Thought]:
        """The thoughts with what the grounder found, side by side."""
        jobs = [self._ground(one, line, key(place, 1, number)) for number, one in enumerate(thoughts)]
        return await side_by_side(jobs)

    async def rate(self, lines: Sequence[Line], place: Place) -> dict[str, float]:
        """By the id of each line, how much it is worth for judging the claim."""
        told_lines = "\n\n".join(f"# Line {line.id}\n\n{line.told()}" for line in lines)
        wanted = self._wanted(
            f"{_written(place)}/rate",
            told("thoughts_score") + "\n\n" + self._rules(),
            sections(*self._head()) + "\n\n" + told_lines,
            SCORED,
        )
        ids = [line.id for line in lines]

        def read(found: Mapping[str, Any]) -> dict[str, float]:
            values = {str(one["id"]).removeprefix("Line ").strip(): float(one["value"]) for one in found["lines"]}
            missing = [id for id in ids if id not in values]
            if missing:
                raise Unfit(f"lines without a value: {', '.join(missing)}")
            return {id: values[id] for id in ids}

        return await self._asker(self.minutes.of(key(place, 2))).ask(wanted, read)

    async def merge(self, thoughts: Sequence[Thought], place: Place) -> Thought:
        """One new thought out of several."""
        wanted = self._wanted(
            f"{_written(place)}/merge",
            told("thoughts_merge") + "\n\n" + self._rules(),
            sections(*self._head(), ("What was looked into", Line(thoughts=tuple(thoughts)).told())),
            THOUGHT,
        )

        def read(found: Mapping[str, Any]) -> Thought:
            problem = _unfit(str(found["claim"]), [self.claim, *(thought.claim for thought in thoughts)])
            if problem:
                raise Unfit(problem)
            return _thought(found, place, 1)

        return await self._asker(self.minutes.of(key(place, 0))).ask(wanted, read)

    async def conclude(self, line: Line, place: Place) -> Conclusion:
        """The probability of the claim itself, in the light of a line."""
        wanted = Wanted(
            role="grounder",
            place=f"{_written(place)}/conclude",
            system=told("thoughts_conclude") + "\n\n" + self._rules(),
            user=sections(*self._head(), ("What was looked into", line.told())),
            schema=WITHOUT_SOURCES,
        )

        def read(found: Mapping[str, Any]) -> Conclusion:
            said = concluded(found, "")
            assert said.p is not None
            return Conclusion(p=said.p, report=said.grounding.report, key_factor=said.grounding.key_factor, line=line)

        return await self._asker(self.minutes.of(key(place, 3))).ask(wanted, read)

    async def _ground(self, thought: Thought, line: Line, job: Job) -> Thought:
        emit = self.minutes.of(job)
        leaf = Leaf(
            id=thought.id,
            claim=thought.claim,
            matter=self.matter,
            place=Surroundings(path=(self.claim, *line.claims)),
            slot=f"{self.slot}/{thought.id}/grounding",
            purse=Purse(thought.id, self.share),
        )
        found = await self.crew.ground(leaf, replace(self.context, emit=emit))
        known = found.grounding
        emit(
            NodeGrounded(
                node=thought.id,
                tree=self.matter.target,
                p=found.p,
                grounder=known.grounder,
                attempts=found.attempts,
                error=known.error,
            )
        )
        return replace(
            thought,
            p=found.p,
            report=known.report,
            key_factor=known.key_factor,
            sources=known.sources,
            error=known.error,
        )

    def _head(self) -> tuple[tuple[str, str], ...]:
        return (*self.matter.sections(), ("The claim", self.claim))

    def _rules(self) -> str:
        return told("rules", today=self.matter.today)

    def _wanted(self, place: str, system: str, user: str, schema: Mapping[str, Any]) -> Wanted:
        return Wanted(role="analyzer", place=place, system=system, user=user, schema=schema)

    def _asker(self, emit: Emit) -> Asker:
        return Asker(context=replace(self.context, emit=emit), slot=self.slot, attempts=self.attempts)


def _thought(found: Mapping[str, Any], place: Place, number: int) -> Thought:
    why = " ".join(str(found.get("why") or "").split())[:LONGEST_SENTENCE]
    return Thought(id=f"T{_written(place)}.{number}", claim=tidy(str(found["claim"])), why=why)


def _unfit(claim: str, others: Sequence[str]) -> str:
    """Why a thought cannot be looked into by itself, or need not be; empty where it can."""
    faults = faults_of(claim)
    if not faults and any(likeness(claim, other) == "same" for other in others):
        faults = ["it says what the claim or an earlier step says already"]
    return f'"{tidy(claim)[:200]}": {"; ".join(faults)}' if faults else ""


def _written(place: Place) -> str:
    """As ids and slots have it."""
    return ".".join(map(str, place))
