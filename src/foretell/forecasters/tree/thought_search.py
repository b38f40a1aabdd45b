"""What models do for a line of thought: say what to look into, look into it, rate lines, join thoughts, conclude."""

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, get_args

from foretell.forecasters.agent.settings import Clamp
from foretell.forecasters.combine.aggregate import logit_mean
from foretell.forecasters.forecaster import Context
from foretell.forecasters.tree.grounders.plain import CONCLUSION_WITHOUT_SOURCES, grounding_from_answer
from foretell.forecasters.tree.grow.budget import LeafBudget
from foretell.forecasters.tree.grow.claims import claim_faults, claim_likeness, tidy
from foretell.forecasters.tree.grow.event_log import JobKey, ThoughtEventLog, ThoughtPosition, job_key
from foretell.forecasters.tree.grow.ground import GroundingPool, GroundSettings, Leaf
from foretell.forecasters.tree.grow.prompting import (
    CHANCE,
    LONGEST_SENTENCE,
    TEXT,
    StructuredClient,
    StructuredRequest,
    TreeQuestion,
    UnfitAnswer,
    fill_prompts,
    object_schema,
    sections,
)
from foretell.forecasters.tree.grow.prompting import ClaimSurroundings as Surroundings
from foretell.models.model import ModelError
from foretell.questions.errors import InputError
from foretell.questions.trace import EmitEvent, NodeGrounded

# Thoughts and lines of them, as values.

LONGEST_REPORTS = 24_000
"""Characters of all reports of a line together, shared out equally."""


@dataclass(frozen=True, kw_only=True)
class Thought:
    """A statement that bears on the claim, and what came of looking into it."""

    id: str
    claim: str
    why: str = ""
    p: float | None = None
    """None where nothing could be found out."""
    report: str = ""
    key_factor: str = ""
    sources: tuple[str, ...] = ()
    error: str = ""

    def told(self, room: int) -> str:
        """As a model reads it."""
        known = f"Probability: {self.p:.3f}." if self.p is not None else f"It could not be examined ({self.error})."
        factor = f"What decided it: {self.key_factor}" if self.key_factor else ""
        asked = f"Why it was asked: {self.why}" if self.why else ""
        return "\n\n".join(filter(None, [self.claim, asked, known, factor, self.report[:room]]))


@dataclass(frozen=True, kw_only=True)
class ThoughtPath:
    """Thoughts that follow one another."""

    thoughts: tuple[Thought, ...] = ()

    @property
    def id(self) -> str:
        """That of its last thought; empty before the first."""
        return self.thoughts[-1].id if self.thoughts else ""

    @property
    def claims(self) -> tuple[str, ...]:
        """What was looked into."""
        return tuple(thought.claim for thought in self.thoughts)

    @property
    def grounded(self) -> bool:
        """Whether anything was found out."""
        return any(thought.p is not None for thought in self.thoughts)

    def then(self, *thoughts: Thought) -> "ThoughtPath":
        """The line, longer by these."""
        return ThoughtPath(thoughts=(*self.thoughts, *thoughts))

    def told(self) -> str:
        """As a model reads it."""
        room = LONGEST_REPORTS // max(1, len(self.thoughts))
        return "\n\n".join(f"## {thought.id}\n\n{thought.told(room)}" for thought in self.thoughts)


@dataclass(frozen=True, kw_only=True)
class ThoughtConclusion:
    """What a line of thought comes down to."""

    p: float
    report: str
    key_factor: str
    line: ThoughtPath


# How far thoughts go.

ThoughtKind = Literal["chain", "tree", "graph", "forest"]
THOUGHT_KINDS: tuple[ThoughtKind, ...] = get_args(ThoughtKind)


@dataclass(frozen=True, kw_only=True)
class ThoughtSettings:
    """One of the four, and its size."""

    kind: ThoughtKind = "chain"
    depth: int = 3
    """Thoughts that follow one another."""
    width: int = 3
    """Thoughts that are tried at every step; a chain has one."""
    keep: int = 2
    """Lines that are followed up; in a graph, thoughts that are joined into one."""
    trees: int = 3
    """Of a forest."""
    attempts: int = 3
    """How often an answer that cannot be used is asked for."""
    ground: GroundSettings = field(default_factory=GroundSettings)
    dollars: float | None = None
    """What one question may cost."""
    clamp: Clamp = field(default_factory=Clamp)
    shortcut: bool = True
    """Of two exclusive options only the first is thought about; the other has what is left."""

    def __post_init__(self) -> None:
        if self.kind not in THOUGHT_KINDS:
            raise InputError(f"there is no {self.kind!r} of thoughts", hint=f"kinds are {', '.join(THOUGHT_KINDS)}")
        for name in ("depth", "width", "keep", "trees", "attempts"):
            if getattr(self, name) < 1:
                raise InputError(f"thoughts need a {name} of at least 1")

    @property
    def name(self) -> str:
        """As it stands in tables."""
        return f"{self.kind} of thoughts"

    @property
    def most(self) -> int:
        """Thoughts that are looked into at most.

        >>> [ThoughtSettings(kind=kind).most for kind in THOUGHT_KINDS]
        [3, 15, 5, 45]
        """
        tree = self.width + (self.depth - 1) * self.keep * self.width
        return {"chain": self.depth, "tree": tree, "graph": self.width + self.depth - 1, "forest": self.trees * tree}[
            self.kind
        ]


# Several jobs at once, none of them left behind.

T = TypeVar("T")


async def gather_or_cancel(jobs: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """What the jobs come to, in their order; where one fails for good, the others are given up."""
    tasks = [asyncio.create_task(job) for job in jobs]
    try:
        return [await task for task in tasks]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


THOUGHT = object_schema({"claim": TEXT, "why": TEXT}, optional=("why",))
PROPOSED = object_schema(
    {"thoughts": {"type": "array", "items": THOUGHT}, "enough": {"type": "boolean"}}, optional=("enough",)
)
RATED = object_schema({"id": TEXT, "reason": TEXT, "value": CHANCE}, optional=("reason",))
SCORED = object_schema({"lines": {"type": "array", "items": RATED}})


@dataclass(frozen=True, kw_only=True)
class Thinker:
    """Thinks about one claim. Requests depend on places and earlier answers, never on who was quicker."""

    claim: str
    matter: TreeQuestion
    context: Context
    crew: GroundingPool
    minutes: ThoughtEventLog
    slot: str
    attempts: int = 3
    share: float | None = None
    """Dollars for looking into one thought."""

    async def propose(
        self, line: ThoughtPath, count: int, place: ThoughtPosition, standpoint: str = ""
    ) -> list[Thought]:
        """At most so many thoughts to go on with; none where the line says enough already."""
        many = f"Name {count} different steps." if count > 1 else "Name one step."
        wanted = self._wanted(
            f"{_written(place)}/propose",
            fill_prompts("thoughts_propose", standpoint=standpoint) + "\n\n" + self._rules(),
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
                raise UnfitAnswer("; ".join(problems) or "it names no step and does not say that the line says enough")
            return new

        return await self._asker(self.minutes.of(job_key(place, 0))).ask(wanted, read)

    async def look_into(self, thoughts: Sequence[Thought], line: ThoughtPath, place: ThoughtPosition) -> list[Thought]:
        """The thoughts with what the grounder found, side by side."""
        jobs = [self._ground(one, line, job_key(place, 1, number)) for number, one in enumerate(thoughts)]
        return await gather_or_cancel(jobs)

    async def rate(self, lines: Sequence[ThoughtPath], place: ThoughtPosition) -> dict[str, float]:
        """By the id of each line, how much it is worth for judging the claim."""
        told_lines = "\n\n".join(f"# Line {line.id}\n\n{line.told()}" for line in lines)
        wanted = self._wanted(
            f"{_written(place)}/rate",
            fill_prompts("thoughts_score") + "\n\n" + self._rules(),
            sections(*self._head()) + "\n\n" + told_lines,
            SCORED,
        )
        ids = [line.id for line in lines]

        def read(found: Mapping[str, Any]) -> dict[str, float]:
            values = {str(one["id"]).removeprefix("Line ").strip(): float(one["value"]) for one in found["lines"]}
            missing = [id for id in ids if id not in values]
            if missing:
                raise UnfitAnswer(f"lines without a value: {', '.join(missing)}")
            return {id: values[id] for id in ids}

        return await self._asker(self.minutes.of(job_key(place, 2))).ask(wanted, read)

    async def merge(self, thoughts: Sequence[Thought], place: ThoughtPosition) -> Thought:
        """One new thought out of several."""
        wanted = self._wanted(
            f"{_written(place)}/merge",
            fill_prompts("thoughts_merge") + "\n\n" + self._rules(),
            sections(*self._head(), ("What was looked into", ThoughtPath(thoughts=tuple(thoughts)).told())),
            THOUGHT,
        )

        def read(found: Mapping[str, Any]) -> Thought:
            problem = _unfit(str(found["claim"]), [self.claim, *(thought.claim for thought in thoughts)])
            if problem:
                raise UnfitAnswer(problem)
            return _thought(found, place, 1)

        return await self._asker(self.minutes.of(job_key(place, 0))).ask(wanted, read)

    async def conclude(self, line: ThoughtPath, place: ThoughtPosition) -> ThoughtConclusion:
        """The probability of the claim itself, in the light of a line."""
        wanted = StructuredRequest(
            role="grounder",
            place=f"{_written(place)}/conclude",
            system=fill_prompts("thoughts_conclude") + "\n\n" + self._rules(),
            user=sections(*self._head(), ("What was looked into", line.told())),
            schema=CONCLUSION_WITHOUT_SOURCES,
        )

        def read(found: Mapping[str, Any]) -> ThoughtConclusion:
            said = grounding_from_answer(found, "")
            assert said.p is not None
            return ThoughtConclusion(
                p=said.p, report=said.grounding.report, key_factor=said.grounding.key_factor, line=line
            )

        return await self._asker(self.minutes.of(job_key(place, 3))).ask(wanted, read)

    async def _ground(self, thought: Thought, line: ThoughtPath, job: JobKey) -> Thought:
        emit = self.minutes.of(job)
        leaf = Leaf(
            id=thought.id,
            claim=thought.claim,
            matter=self.matter,
            place=Surroundings(path=(self.claim, *line.claims)),
            slot=f"{self.slot}/{thought.id}/grounding",
            purse=LeafBudget(thought.id, self.share),
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
        return fill_prompts("rules", today=self.matter.today)

    def _wanted(self, place: str, system: str, user: str, schema: Mapping[str, Any]) -> StructuredRequest:
        return StructuredRequest(role="analyzer", place=place, system=system, user=user, schema=schema)

    def _asker(self, emit: EmitEvent) -> StructuredClient:
        return StructuredClient(context=replace(self.context, emit=emit), slot=self.slot, attempts=self.attempts)


def _thought(found: Mapping[str, Any], place: ThoughtPosition, number: int) -> Thought:
    why = " ".join(str(found.get("why") or "").split())[:LONGEST_SENTENCE]
    return Thought(id=f"T{_written(place)}.{number}", claim=tidy(str(found["claim"])), why=why)


def _unfit(claim: str, others: Sequence[str]) -> str:
    """Why a thought cannot be looked into by itself, or need not be; empty where it can."""
    faults = claim_faults(claim)
    if not faults and any(claim_likeness(claim, other) == "same" for other in others):
        faults = ["it says what the claim or an earlier step says already"]
    return f'"{tidy(claim)[:200]}": {"; ".join(faults)}' if faults else ""


def _written(place: ThoughtPosition) -> str:
    """As ids and slots have it."""
    return ".".join(map(str, place))


# Four ways to think about a claim: along one line, in a tree, in a graph, in several trees.
#
# Chain (Wei et al. 2022): one thought after the other. Tree (Yao et al. 2023): several next thoughts for each line,
# lines rated, the best ones followed up, the best of all concluded from. Graph (Besta et al. 2024): the best thoughts
# are joined into a new one, and again. Forest (Bi et al. 2025): several trees from different standpoints, their answers
# averaged. All of them have every thought looked into by the same grounder that a proposition tree has for its leaves.

STANDPOINTS = (
    "",
    "Begin with precedents: how often things of this kind happened, and how alike the present case is.",
    "Begin with what would have to happen for the claim to come true, and who would have to do it.",
    "Begin with what could prevent it: obstacles, delays, opponents, rules.",
    "Begin with the numbers: levels, trends and spreads of the quantities the claim hangs on.",
    "Begin with what those who are closest to the matter expect, and why they might be wrong.",
)
"""Where the trees of a forest set out from; the first is free."""


class NothingGrounded(Exception):
    """No thought could be looked into; the text says why."""


async def think(thinker: Thinker, settings: ThoughtSettings) -> tuple[float, list[ThoughtConclusion]]:
    """The probability of the claim, and what it was concluded from; `NothingGrounded` or a `ModelError` without any."""
    match settings.kind:
        case "chain":
            found = [await chain_of_thoughts(thinker, settings)]
        case "tree":
            found = [await tree_of_thoughts(thinker, settings)]
        case "graph":
            found = [await graph_of_thoughts(thinker, settings)]
        case "forest":
            found = await forest_of_thoughts(thinker, settings)
    return float(logit_mean([one.p for one in found])), found


async def chain_of_thoughts(thinker: Thinker, settings: ThoughtSettings) -> ThoughtConclusion:
    """One thought after the other, until there is enough."""
    line = ThoughtPath()
    for level in range(1, settings.depth + 1):
        new = await _next(thinker, line, 1, (1, level, 1))
        if not new:
            break
        line = line.then(*new)
    return await _conclude(thinker, line, (1, settings.depth + 1, 1))


async def tree_of_thoughts(
    thinker: Thinker, settings: ThoughtSettings, number: int = 1, standpoint: str = ""
) -> ThoughtConclusion:
    """Breadth first, the best lines kept at every level. A line that says enough stays in the race as it is."""
    lines = [ThoughtPath()]
    for level in range(1, settings.depth + 1):
        steps = [
            _next(thinker, line, settings.width, (number, level, branch), standpoint)
            for branch, line in enumerate(lines, start=1)
        ]
        grown = await gather_or_cancel(steps)
        if not any(grown):
            break
        longer = [[line.then(one) for one in new] or [line] for line, new in zip(lines, grown, strict=True)]
        found = [line for some in longer for line in some if line.thoughts]
        lines = await _best(thinker, found, settings.keep if level < settings.depth else 1, (number, level, 1))
    return await _conclude(thinker, lines[0], (number, settings.depth + 1, 1))


async def graph_of_thoughts(thinker: Thinker, settings: ThoughtSettings) -> ThoughtConclusion:
    """Thoughts side by side; the best are joined into a new one, which is looked into and takes part from then on."""
    pool = await _next(thinker, ThoughtPath(), settings.width, (1, 1, 1))
    for level in range(2, settings.depth + 1):
        known = [one for one in pool if one.p is not None]
        if len(known) < 2:
            break
        best = await _best(thinker, [ThoughtPath(thoughts=(one,)) for one in known], settings.keep, (1, level, 1))
        parts = [line.thoughts[0] for line in best]
        try:
            joined = await thinker.merge(parts, (1, level, 1))
        except ModelError:
            break
        pool += await thinker.look_into([joined], ThoughtPath(thoughts=tuple(parts)), (1, level, 1))
    return await _conclude(thinker, ThoughtPath(thoughts=tuple(pool)), (1, settings.depth + 1, 1))


async def forest_of_thoughts(thinker: Thinker, settings: ThoughtSettings) -> list[ThoughtConclusion]:
    """Trees side by side, each from its standpoint; one that comes to nothing is left out."""
    views = [STANDPOINTS[number % len(STANDPOINTS)] for number in range(settings.trees)]

    async def one(number: int, view: str) -> ThoughtConclusion | str:
        try:
            return await tree_of_thoughts(thinker, settings, number, view)
        except (ModelError, NothingGrounded) as error:
            return str(error)

    ended = await gather_or_cancel(one(number, view) for number, view in enumerate(views, start=1))
    found = [end for end in ended if isinstance(end, ThoughtConclusion)]
    if not found:
        raise NothingGrounded("; ".join(dict.fromkeys(map(str, ended))))
    return found


async def _next(
    thinker: Thinker, line: ThoughtPath, count: int, place: ThoughtPosition, standpoint: str = ""
) -> list[Thought]:
    """The next thoughts of a line, looked into; none where the line says enough or the model fails."""
    try:
        new = await thinker.propose(line, count, place, standpoint)
    except ModelError:
        return []
    return await thinker.look_into(new, line, place)


async def _best(thinker: Thinker, lines: Sequence[ThoughtPath], keep: int, place: ThoughtPosition) -> list[ThoughtPath]:
    """The lines that are worth most, best first; in the order given where nobody rates them."""
    told = [line for line in lines if line.grounded] or list(lines)
    if len(told) == 1:
        return told
    try:
        worth = await thinker.rate(told, place)
    except ModelError:
        return told[:keep]
    return sorted(told, key=lambda line: -worth[line.id])[:keep]


async def _conclude(thinker: Thinker, line: ThoughtPath, place: ThoughtPosition) -> ThoughtConclusion:
    if not line.grounded:
        errors = dict.fromkeys(thought.error for thought in line.thoughts if thought.error)
        raise NothingGrounded("; ".join(errors) or "no thought was proposed")
    return await thinker.conclude(line, place)
