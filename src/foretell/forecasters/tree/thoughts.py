"""Thoughts: a model names what to examine, a grounder examines it, and the model concludes from the results.

Chain (Wei et al. 2022): one thought after another. Tree (Yao et al. 2023): several next thoughts for each line; the
best lines are continued, and the conclusion is drawn from the best of all. Graph (Besta et al. 2024): the best thoughts
are merged into a new one, repeatedly. Forest (Bi et al. 2025): several trees from different standpoints, whose answers
are averaged. In all of them, every thought is examined by the same grounder that a proposition tree uses for its
leaves.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple, TypeVar

from foretell.forecasters.agent.agent import FORECAST
from foretell.forecasters.combine.aggregate import logit_mean
from foretell.forecasters.forecaster import Context, EventLog
from foretell.forecasters.tree.forecaster import AnalyzingForecaster, TargetResult, claim_line, source_list
from foretell.forecasters.tree.grounders.search import CONCLUSION_WITHOUT_SOURCES, grounding_from_answer
from foretell.forecasters.tree.grow.ground import FOR_LEAVES, GroundingPool, Leaf, LeafBudget, gather_or_cancel
from foretell.forecasters.tree.grow.prompting import (
    CHANCE,
    LONGEST_SENTENCE,
    TEXT,
    ClaimSurroundings,
    StructuredRequest,
    TreeQuestion,
    fill_prompts,
    sections,
)
from foretell.forecasters.tree.proposition import Grounding
from foretell.forecasters.tree.settings import ThoughtSettings
from foretell.forecasters.tree.wording import claim_faults, claim_similarity, tidy
from foretell.frozen import frozen
from foretell.models.model import ModelError
from foretell.models.names import ModelRole
from foretell.models.structured_output import UnusableReply, closed_object
from foretell.number_text import percent

T = TypeVar("T")

LONGEST_REPORTS = 24_000
"""Maximum length of all reports of a line together, in characters; it is split equally."""


@frozen
class Thought:
    """A statement that bears on the claim, and its grounding."""

    id: str
    claim: str
    why: str = ""
    p: float | None = None
    """Probability; None if it could not be grounded."""
    grounding: Grounding = field(default_factory=Grounding)

    def as_prompt(self, length: int) -> str:
        """Format the thought for a prompt, with at most `length` characters of the report."""
        grounding = self.grounding
        known = (
            f"Probability: {self.p:.3f}." if self.p is not None else f"It could not be examined ({grounding.error})."
        )
        factor = f"What decided it: {grounding.key_factor}" if grounding.key_factor else ""
        why = f"Why it was asked: {self.why}" if self.why else ""
        return "\n\n".join(filter(None, [self.claim, why, known, factor, grounding.report[:length]]))


Line = tuple[Thought, ...]
"""A sequence of thoughts; its id is that of its last thought."""


def _line_id(line: Line) -> str:
    return line[-1].id if line else ""


def _as_prompt(line: Line) -> str:
    length = LONGEST_REPORTS // max(1, len(line))
    return "\n\n".join(f"## {thought.id}\n\n{thought.as_prompt(length)}" for thought in line)


def _is_grounded(line: Line) -> bool:
    return any(thought.p is not None for thought in line)


@frozen
class ThoughtConclusion:
    """The conclusion drawn from a line of thoughts."""

    p: float
    grounding: Grounding
    line: Line


THOUGHT = closed_object({"claim": TEXT, "why": TEXT}, optional=("why",))
PROPOSED = closed_object(
    {"thoughts": {"type": "array", "items": THOUGHT}, "enough": {"type": "boolean"}}, optional=("enough",)
)
RATED = closed_object({"id": TEXT, "reason": TEXT, "value": CHANCE}, optional=("reason",))
SCORED = closed_object({"lines": {"type": "array", "items": RATED}})

ThoughtJob = tuple[int, ...]
"""Indices of the tree of thoughts, the level, the stage (proposals, groundings, ratings, conclusions), the line, and
the thought in it. Sorted jobs are in the order of their events."""


class ThoughtPosition(NamedTuple):
    """Indices of the tree of thoughts, of the level in it, and of the line at that level."""

    tree: int
    level: int
    branch: int

    def __str__(self) -> str:
        """Format the position as in ids and slots."""
        return f"{self.tree}.{self.level}.{self.branch}"

    def job(self, stage: int, number: int = 0) -> ThoughtJob:
        """Return the key of a job at this position."""
        return (self.tree, self.level, stage, self.branch, number)


class _Step(NamedTuple):
    """One model request: its purpose, its position, and the stage under which its events are logged."""

    name: str
    position: ThoughtPosition
    stage: int
    prompt: str
    role: ModelRole = "analyzer"


class NothingGrounded(Exception):
    """Raised if no thought could be grounded; the message says why."""


@frozen
class Thinker:
    """Thinks about one claim. Requests depend on positions and earlier answers, never on timing."""

    about: TreeQuestion
    context: Context
    pool: GroundingPool
    log: EventLog[ThoughtJob]
    share: float | None = None
    """Budget for grounding one thought, in dollars; None for no limit."""

    async def next_thoughts(
        self, line: Line, count: int, place: ThoughtPosition, standpoint: str = ""
    ) -> list[Thought]:
        """Return up to `count` grounded next thoughts; none if the line is sufficient or the model fails."""

        def read(answer: Mapping[str, Any]) -> list[Thought]:
            new: list[Thought] = []
            problems: list[str] = []
            for proposed in answer["thoughts"][:count]:
                problem = self._unfit(str(proposed["claim"]), [*line, *new])
                if problem:
                    problems.append(problem)
                else:
                    new.append(_thought(proposed, place, len(new) + 1))
            if not new and not answer.get("enough"):
                problem = "it names no step and does not say that the line says enough"
                raise UnusableReply("; ".join(problems) or problem)
            return new

        many = f"Name {count} different steps." if count > 1 else "Name one step."
        parts = (("The line of thought so far", _as_prompt(line)), ("Your task", many))
        prompt = fill_prompts("thoughts_propose", standpoint=standpoint)
        try:
            new = await self._ask(_Step("propose", place, 0, prompt), PROPOSED, read, *parts)
        except ModelError:
            return []
        return await self.examine(new, line, place)

    async def examine(self, thoughts: Sequence[Thought], line: Line, place: ThoughtPosition) -> list[Thought]:
        """Ground thoughts concurrently."""

        async def ground(thought: Thought, job: ThoughtJob) -> Thought:
            leaf = Leaf(
                id=thought.id,
                claim=thought.claim,
                tree_question=self.about,
                surroundings=ClaimSurroundings(path=(self.about.claim, *(before.claim for before in line))),
                slot=f"{self.about.slot}/{thought.id}/grounding",
                budget=LeafBudget(self.share),
            )
            result = await self.pool.ground(leaf, replace(self.context, emit=self.log.job(job)))
            return replace(thought, p=result.p, grounding=result.grounding)

        return await gather_or_cancel(ground(thought, place.job(1, number)) for number, thought in enumerate(thoughts))

    async def best(self, lines: Sequence[Line], keep: int, place: ThoughtPosition) -> list[Line]:
        """Return the best lines, best first; in the given order if rating fails."""
        grounded = [line for line in lines if _is_grounded(line)] or list(lines)
        if len(grounded) == 1:
            return grounded
        ids = [_line_id(line) for line in grounded]

        def read(answer: Mapping[str, Any]) -> dict[str, float]:
            values = {str(line["id"]).removeprefix("Line ").strip(): float(line["value"]) for line in answer["lines"]}
            missing = [id for id in ids if id not in values]
            if missing:
                raise UnusableReply(f"lines without a value: {', '.join(missing)}")
            return values

        described = tuple((f"Line {_line_id(line)}", _as_prompt(line)) for line in grounded)
        try:
            worth = await self._ask(_Step("rate", place, 2, fill_prompts("thoughts_score")), SCORED, read, *described)
        except ModelError:
            return grounded[:keep]
        return sorted(grounded, key=lambda line: -worth[_line_id(line)])[:keep]

    async def merge(self, thoughts: Line, place: ThoughtPosition) -> Thought:
        """Merge several thoughts into a new one."""

        def read(answer: Mapping[str, Any]) -> Thought:
            problem = self._unfit(str(answer["claim"]), thoughts)
            if problem:
                raise UnusableReply(problem)
            return _thought(answer, place, 1)

        step = _Step("merge", place, 0, fill_prompts("thoughts_merge"))
        return await self._ask(step, THOUGHT, read, ("What was looked into", _as_prompt(thoughts)))

    async def conclude(self, line: Line, place: ThoughtPosition) -> ThoughtConclusion:
        """Conclude the claim's probability from a line. Raises `NothingGrounded` if no thought was grounded."""
        if not _is_grounded(line):
            errors = dict.fromkeys(thought.grounding.error for thought in line if thought.grounding.error)
            raise NothingGrounded("; ".join(errors) or "no thought was proposed")

        def read(answer: Mapping[str, Any]) -> ThoughtConclusion:
            result = grounding_from_answer(answer, "")
            assert result.p is not None
            return ThoughtConclusion(p=result.p, grounding=result.grounding, line=line)

        step = _Step("conclude", place, 3, fill_prompts("thoughts_conclude"), role="grounder")
        return await self._ask(step, CONCLUSION_WITHOUT_SOURCES, read, ("What was looked into", _as_prompt(line)))

    def _unfit(self, claim: str, others: Sequence[Thought]) -> str:
        """Return why a thought is rejected; empty if it is accepted."""
        faults = claim_faults(claim)
        known = [self.about.claim, *(thought.claim for thought in others)]
        if not faults and any(claim_similarity(claim, other) == "same" for other in known):
            faults = ["it says what the claim or an earlier step says already"]
        return f'"{tidy(claim)[:200]}": {"; ".join(faults)}' if faults else ""

    async def _ask(
        self, step: _Step, schema: Mapping[str, Any], read: Callable[[Mapping[str, Any]], T], *parts: tuple[str, str]
    ) -> T:
        request = StructuredRequest(
            role=step.role,
            slot=f"{self.about.slot}/{step.position}/{step.name}",
            system=step.prompt + "\n\n" + fill_prompts("rules", **self.about.rule_values),
            user=sections(*self.about.sections(), ("The claim", self.about.claim), *parts),
            schema=schema,
        )
        emit = self.log.job(step.position.job(step.stage))
        return await request.ask(replace(self.context, emit=emit), read)


def _thought(fields: Mapping[str, Any], place: ThoughtPosition, number: int) -> Thought:
    why = " ".join(str(fields.get("why") or "").split())[:LONGEST_SENTENCE]
    return Thought(id=f"T{place}.{number}", claim=tidy(str(fields["claim"])), why=why)


STANDPOINTS = (
    "",
    "Begin with precedents: how often things of this kind happened, and how alike the present case is.",
    "Begin with what would have to happen for the claim to come true, and who would have to do it.",
    "Begin with what could prevent it: obstacles, delays, opponents, rules.",
    "Begin with the numbers: levels, trends and spreads of the quantities the claim hangs on.",
    "Begin with what those who are closest to the matter expect, and why they might be wrong.",
)
"""Starting points of the trees in a forest; the first is unrestricted."""


async def think(thinker: Thinker, settings: ThoughtSettings) -> tuple[float, list[ThoughtConclusion]]:
    """Return the claim's probability and the conclusions behind it. Raises `NothingGrounded` or a `ModelError`."""
    match settings.kind:
        case "chain":
            # A chain is a tree with one branch.
            conclusions = [await _tree(thinker, replace(settings, width=1, keep=1))]
        case "tree":
            conclusions = [await _tree(thinker, settings)]
        case "graph":
            conclusions = [await _graph(thinker, settings)]
        case "forest":
            conclusions = await _forest(thinker, settings)
    return float(logit_mean([conclusion.p for conclusion in conclusions])), conclusions


async def _tree(
    thinker: Thinker, settings: ThoughtSettings, number: int = 1, standpoint: str = ""
) -> ThoughtConclusion:
    """Beam search: keep the best lines at every level. A sufficient line stays as it is."""
    lines: list[Line] = [()]
    for level in range(1, settings.depth + 1):
        steps = [
            thinker.next_thoughts(line, settings.width, ThoughtPosition(number, level, branch), standpoint)
            for branch, line in enumerate(lines, start=1)
        ]
        grown = await gather_or_cancel(steps)
        if not any(grown):
            break
        longer = [[(*line, thought) for thought in new] or [line] for line, new in zip(lines, grown, strict=True)]
        candidates = [line for branch_lines in longer for line in branch_lines if line]
        keep = settings.keep if level < settings.depth else 1
        lines = await thinker.best(candidates, keep, ThoughtPosition(number, level, 1))
    return await thinker.conclude(lines[0], ThoughtPosition(number, settings.depth + 1, 1))


async def _graph(thinker: Thinker, settings: ThoughtSettings) -> ThoughtConclusion:
    """Merge the best thoughts into a new one, ground it, add it to the pool, and repeat."""
    pool = await thinker.next_thoughts((), settings.width, ThoughtPosition(1, 1, 1))
    for level in range(2, settings.depth + 1):
        place = ThoughtPosition(1, level, 1)
        known = [thought for thought in pool if thought.p is not None]
        if len(known) < 2:
            break
        best = await thinker.best([(thought,) for thought in known], settings.keep, place)
        parts = tuple(line[0] for line in best)
        try:
            joined = await thinker.merge(parts, place)
        except ModelError:
            break
        pool += await thinker.examine([joined], parts, place)
    return await thinker.conclude(tuple(pool), ThoughtPosition(1, settings.depth + 1, 1))


async def _forest(thinker: Thinker, settings: ThoughtSettings) -> list[ThoughtConclusion]:
    """Grow several trees, each from its own standpoint; failed ones are left out."""

    async def grow(number: int) -> ThoughtConclusion | str:
        try:
            return await _tree(thinker, settings, number, STANDPOINTS[(number - 1) % len(STANDPOINTS)])
        except (ModelError, NothingGrounded) as error:
            return str(error)

    ended = await gather_or_cancel(grow(number) for number in range(1, settings.trees + 1))
    ends = [end for end in ended if isinstance(end, ThoughtConclusion)]
    if not ends:
        raise NothingGrounded("; ".join(dict.fromkeys(map(str, ended))))
    return ends


@frozen
class ThoughtsForecaster(AnalyzingForecaster):
    """Forecasts with a chain, tree, graph or forest of thoughts."""

    settings: ThoughtSettings = field(default_factory=ThoughtSettings)

    async def _analyze(self, about: TreeQuestion, context: Context, pool: GroundingPool, count: int) -> TargetResult:
        """Analyse one target; the budget is split equally among thoughts."""
        log = EventLog[ThoughtJob](self.on_event)
        dollars = self.dollars
        thinker = Thinker(
            about=replace(about, slot=f"{about.question.id}/trial {context.trial}/thoughts {about.target}"),
            context=context,
            pool=pool,
            log=log,
            share=None if dollars is None else FOR_LEAVES * dollars / (self.settings.max_thoughts * count),
        )
        p, error, rationale = None, "", ""
        try:
            p, conclusions = await think(thinker, self.settings)
            rationale = "\n\n".join(_reasons(about.target, conclusion) for conclusion in conclusions)
        except (NothingGrounded, ModelError) as problem:
            error = f"no conclusion about {about.target}: {str(problem) or type(problem).__name__}"
        events = tuple(log.events(sorted(log.jobs)))
        return TargetResult(p=p, error=error, rationale=rationale, events=events, usage=log.usage())

    def _how(self, results: list[TargetResult]) -> str:
        return f"concluded from a {self.settings.name}"


def _reasons(target: str, conclusion: ThoughtConclusion) -> str:
    """Rationale: the conclusion and the thoughts behind it."""
    line = conclusion.line
    listed = "\n".join(claim_line(thought.id, thought.claim, thought.p, thought.grounding) for thought in line)
    sources = source_list([(thought.id, source) for thought in line for source in thought.grounding.sources])
    head = f"{FORECAST}{target} {percent(conclusion.p, 1)}."
    found = (conclusion.grounding.key_factor, conclusion.grounding.report)
    return "\n\n".join(filter(None, [head, *found, f"Looked into:\n{listed}", sources]))
