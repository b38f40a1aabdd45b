"""Thoughts: a model names what to examine, a grounder examines it, and the model concludes from what was found."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from foretell.forecasters.agent.settings import Clamp
from foretell.forecasters.combine.aggregate import logit_mean
from foretell.forecasters.forecaster import Context
from foretell.forecasters.tree.forecaster import gather_or_cancel
from foretell.forecasters.tree.grounders.plain import CONCLUSION_WITHOUT_SOURCES, grounding_from_answer
from foretell.forecasters.tree.grow.budget import LeafBudget
from foretell.forecasters.tree.grow.claims import claim_faults, claim_likeness, tidy
from foretell.forecasters.tree.grow.event_log import EventLog, ThoughtJob, ThoughtPosition, thought_job
from foretell.forecasters.tree.grow.ground import GroundingPool, GroundSettings, Leaf
from foretell.forecasters.tree.grow.prompting import (
    CHANCE,
    LONGEST_SENTENCE,
    TEXT,
    ClaimSurroundings,
    StructuredClient,
    StructuredRequest,
    TreeQuestion,
    UnfitAnswer,
    fill_prompts,
    object_schema,
    sections,
)
from foretell.forecasters.tree.proposition import Grounding
from foretell.models.model import ModelError
from foretell.models.names import ModelRole
from foretell.questions.errors import InputError

T = TypeVar("T")

LONGEST_REPORTS = 24_000
"""Characters of all reports of a line together, shared out equally."""


@dataclass(frozen=True, kw_only=True)
class Thought:
    """A statement that bears on the claim, and what came of examining it."""

    id: str
    claim: str
    why: str = ""
    p: float | None = None
    """None where nothing could be found out."""
    grounding: Grounding = field(default_factory=Grounding)

    def as_prompt(self, length: int) -> str:
        """As a model reads it, with so many characters of the report."""
        found = self.grounding
        known = f"Probability: {self.p:.3f}." if self.p is not None else f"It could not be examined ({found.error})."
        factor = f"What decided it: {found.key_factor}" if found.key_factor else ""
        why = f"Why it was asked: {self.why}" if self.why else ""
        return "\n\n".join(filter(None, [self.claim, why, known, factor, found.report[:length]]))


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

    def extended(self, *thoughts: Thought) -> "ThoughtPath":
        """The line, longer by these."""
        return ThoughtPath(thoughts=(*self.thoughts, *thoughts))

    def as_prompt(self) -> str:
        """As a model reads it."""
        length = LONGEST_REPORTS // max(1, len(self.thoughts))
        return "\n\n".join(f"## {thought.id}\n\n{thought.as_prompt(length)}" for thought in self.thoughts)


@dataclass(frozen=True, kw_only=True)
class ThoughtConclusion:
    """What a line of thought comes down to."""

    p: float
    grounding: Grounding
    line: ThoughtPath


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
    def max_thoughts(self) -> int:
        """Thoughts that are looked into at most.

        >>> [ThoughtSettings(kind=kind).max_thoughts for kind in THOUGHT_KINDS]
        [3, 15, 5, 45]
        """
        tree = self.width + (self.depth - 1) * self.keep * self.width
        return {"chain": self.depth, "tree": tree, "graph": self.width + self.depth - 1, "forest": self.trees * tree}[
            self.kind
        ]


THOUGHT = object_schema({"claim": TEXT, "why": TEXT}, optional=("why",))
PROPOSED = object_schema(
    {"thoughts": {"type": "array", "items": THOUGHT}, "enough": {"type": "boolean"}}, optional=("enough",)
)
RATED = object_schema({"id": TEXT, "reason": TEXT, "value": CHANCE}, optional=("reason",))
SCORED = object_schema({"lines": {"type": "array", "items": RATED}})


class _Step(NamedTuple):
    """One request: what for, where, and at which stage of that position its events are logged."""

    name: str
    position: ThoughtPosition
    stage: int
    role: ModelRole = "analyzer"


@dataclass(frozen=True, kw_only=True)
class Thinker:
    """Thinks about one claim. Requests depend on places and earlier answers, never on who was quicker."""

    claim: str
    tree_question: TreeQuestion
    context: Context
    pool: GroundingPool
    log: EventLog[ThoughtJob]
    slot: str
    attempts: int = 3
    share: float | None = None
    """Dollars for looking into one thought."""

    async def propose(
        self, line: ThoughtPath, count: int, place: ThoughtPosition, standpoint: str = ""
    ) -> list[Thought]:
        """At most so many thoughts to go on with; none where the line says enough already."""

        def read(answer: Mapping[str, Any]) -> list[Thought]:
            new: list[Thought] = []
            problems: list[str] = []
            for one in answer["thoughts"][:count]:
                others = [self.claim, *line.claims, *(thought.claim for thought in new)]
                problem = _unfit(str(one["claim"]), others)
                if problem:
                    problems.append(problem)
                else:
                    new.append(_thought(one, place, len(new) + 1))
            if not new and not answer.get("enough"):
                raise UnfitAnswer("; ".join(problems) or "it names no step and does not say that the line says enough")
            return new

        many = f"Name {count} different steps." if count > 1 else "Name one step."
        user = sections(*self._head(), ("The line of thought so far", line.as_prompt()), ("Your task", many))
        prompt = fill_prompts("thoughts_propose", standpoint=standpoint)
        return await self._ask(_Step("propose", place, 0), prompt, user, PROPOSED, read)

    async def examine(self, thoughts: Sequence[Thought], line: ThoughtPath, place: ThoughtPosition) -> list[Thought]:
        """The thoughts with what the grounder found, side by side."""
        jobs = [self._ground(one, line, thought_job(place, 1, number)) for number, one in enumerate(thoughts)]
        return await gather_or_cancel(jobs)

    async def rate(self, lines: Sequence[ThoughtPath], place: ThoughtPosition) -> dict[str, float]:
        """By the id of each line, how much it is worth for judging the claim."""
        described = "\n\n".join(f"# Line {line.id}\n\n{line.as_prompt()}" for line in lines)
        ids = [line.id for line in lines]

        def read(answer: Mapping[str, Any]) -> dict[str, float]:
            values = {str(one["id"]).removeprefix("Line ").strip(): float(one["value"]) for one in answer["lines"]}
            missing = [id for id in ids if id not in values]
            if missing:
                raise UnfitAnswer(f"lines without a value: {', '.join(missing)}")
            return {id: values[id] for id in ids}

        user = sections(*self._head()) + "\n\n" + described
        return await self._ask(_Step("rate", place, 2), fill_prompts("thoughts_score"), user, SCORED, read)

    async def merge(self, thoughts: Sequence[Thought], place: ThoughtPosition) -> Thought:
        """One new thought out of several."""

        def read(answer: Mapping[str, Any]) -> Thought:
            problem = _unfit(str(answer["claim"]), [self.claim, *(thought.claim for thought in thoughts)])
            if problem:
                raise UnfitAnswer(problem)
            return _thought(answer, place, 1)

        joined = ThoughtPath(thoughts=tuple(thoughts))
        user = sections(*self._head(), ("What was looked into", joined.as_prompt()))
        return await self._ask(_Step("merge", place, 0), fill_prompts("thoughts_merge"), user, THOUGHT, read)

    async def conclude(self, line: ThoughtPath, place: ThoughtPosition) -> ThoughtConclusion:
        """The probability of the claim itself, in the light of a line."""

        def read(answer: Mapping[str, Any]) -> ThoughtConclusion:
            result = grounding_from_answer(answer, "")
            assert result.p is not None
            return ThoughtConclusion(p=result.p, grounding=result.grounding, line=line)

        user = sections(*self._head(), ("What was looked into", line.as_prompt()))
        step = _Step("conclude", place, 3, role="grounder")
        return await self._ask(step, fill_prompts("thoughts_conclude"), user, CONCLUSION_WITHOUT_SOURCES, read)

    async def _ground(self, thought: Thought, line: ThoughtPath, job: ThoughtJob) -> Thought:
        leaf = Leaf(
            id=thought.id,
            claim=thought.claim,
            tree_question=self.tree_question,
            surroundings=ClaimSurroundings(path=(self.claim, *line.claims)),
            slot=f"{self.slot}/{thought.id}/grounding",
            budget=LeafBudget(thought.id, self.share),
        )
        result = await self.pool.ground(leaf, replace(self.context, emit=self.log.job(job)))
        return replace(thought, p=result.p, grounding=result.grounding)

    def _head(self) -> tuple[tuple[str, str], ...]:
        return (*self.tree_question.sections(), ("The claim", self.claim))

    async def _ask(
        self, step: _Step, prompt: str, user: str, schema: Mapping[str, Any], read: Callable[[Mapping[str, Any]], T]
    ) -> T:
        context = replace(self.context, emit=self.log.job(thought_job(step.position, step.stage)))
        client = StructuredClient(context=context, slot=self.slot, attempts=self.attempts)
        request = StructuredRequest(
            role=step.role,
            slot_suffix=f"{_dotted(step.position)}/{step.name}",
            system=prompt + "\n\n" + fill_prompts("rules", today=self.tree_question.today),
            user=user,
            schema=schema,
        )
        return await client.ask(request, read)


def _thought(found: Mapping[str, Any], place: ThoughtPosition, number: int) -> Thought:
    why = " ".join(str(found.get("why") or "").split())[:LONGEST_SENTENCE]
    return Thought(id=f"T{_dotted(place)}.{number}", claim=tidy(str(found["claim"])), why=why)


def _unfit(claim: str, others: Sequence[str]) -> str:
    """Why a thought cannot be looked into by itself, or need not be; empty where it can."""
    faults = claim_faults(claim)
    if not faults and any(claim_likeness(claim, other) == "same" for other in others):
        faults = ["it says what the claim or an earlier step says already"]
    return f'"{tidy(claim)[:200]}": {"; ".join(faults)}' if faults else ""


def _dotted(place: ThoughtPosition) -> str:
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
        line = line.extended(*new)
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
        longer = [[line.extended(one) for one in new] or [line] for line, new in zip(lines, grown, strict=True)]
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
        pool += await thinker.examine([joined], ThoughtPath(thoughts=tuple(parts)), (1, level, 1))
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
    return await thinker.examine(new, line, place)


async def _best(thinker: Thinker, lines: Sequence[ThoughtPath], keep: int, place: ThoughtPosition) -> list[ThoughtPath]:
    """The lines that are worth most, best first; in the order given where nobody rates them."""
    grounded = [line for line in lines if line.grounded] or list(lines)
    if len(grounded) == 1:
        return grounded
    try:
        worth = await thinker.rate(grounded, place)
    except ModelError:
        return grounded[:keep]
    return sorted(grounded, key=lambda line: -worth[line.id])[:keep]


async def _conclude(thinker: Thinker, line: ThoughtPath, place: ThoughtPosition) -> ThoughtConclusion:
    if not line.grounded:
        errors = dict.fromkeys(thought.grounding.error for thought in line.thoughts if thought.grounding.error)
        raise NothingGrounded("; ".join(errors) or "no thought was proposed")
    return await thinker.conclude(line, place)
