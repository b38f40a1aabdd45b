"""Taking a claim apart: the analyzer adds children to the tree until it says so, or until there are enough leaves.

Algorithm 1 of Analytica (2026). One analysis sees the claim it starts from, what lies above and beside it, and what it
has added itself; it never sees more of a large tree.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foretell.forecasters.tree.growing.asking import TEXT, Asker, NoAnswer, Unfit, Wanted, shape
from foretell.forecasters.tree.growing.draft import Draft, Room
from foretell.forecasters.tree.growing.matter import Matter, Place
from foretell.forecasters.tree.growing.overlap import Overlap, alike, correlated
from foretell.forecasters.tree.prompts import sections, told
from foretell.forecasters.tree.proposition import Proposition
from foretell.llm.model import ModelError

CHILD = shape({"id": TEXT, "claim": TEXT}, optional=("id",))
EXPANSION = shape({"parent": TEXT, "causality": TEXT, "children": {"type": "array", "items": CHILD, "minItems": 1}})
SCHEMA = shape({"plan": TEXT, "expansions": {"type": "array", "items": EXPANSION}, "complete": {"type": "boolean"}})


@dataclass(frozen=True, kw_only=True)
class AnalyzeSettings:
    """How far one analysis goes."""

    steps: int = 5
    """Answers of the analyzer that are taken over."""
    correlations: bool = False
    """Ask a model which siblings move together; one call for every parent."""
    hint: str = "hint_linear"
    """Which text tells the analyzer how the children will be put together."""

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps = {self.steps}: an analysis needs at least one")


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """What came of one analysis."""

    root: str
    nodes: Mapping[str, Proposition]
    """The claim it started from, with its children, and every claim that was added, parents before children."""
    notes: tuple[str, ...] = ()
    """Overlaps, and what was left out or went wrong."""
    answers: int = 0
    """How often the analyzer was asked for more, one after the other."""

    @property
    def leaves(self) -> tuple[str, ...]:
        """Claims without children, in the order of the tree."""
        return tuple(id for id, node in self.nodes.items() if not node.children)


@dataclass(frozen=True, kw_only=True)
class Analyzer:
    """The analyzer of one tree."""

    asker: Asker
    matter: Matter
    settings: AnalyzeSettings

    async def analyze(self, root: Proposition, place: Place, room: Room) -> Analysis:
        """Grow children below one claim. Whatever the model does, it ends in an analysis; a note tells what failed."""
        draft = Draft(root, place, room)
        answers = 0
        while answers < self.settings.steps and not draft.full:
            try:
                complete = await self._step(draft, answers + 1)
            except ModelError as error:
                draft.note(f"the analysis of {root.id} ended early: {error}")
                break
            answers += 1
            if complete:
                break
        overlaps = await self._overlaps(draft)
        return Analysis(
            root=root.id,
            nodes=draft.nodes,
            notes=(*draft.notes, *map(str, overlaps)),
            answers=answers,
        )

    async def _step(self, draft: Draft, number: int) -> bool:
        """One answer, taken over as far as it can be; whether the tree is complete with it."""
        wanted = Wanted(
            role="analyzer",
            place=f"{draft.root}/analysis {number}",
            system=told("analyze", hint=told(self.settings.hint)) + "\n\n" + told("rules", today=self.matter.today),
            user=self._task(draft),
            schema=SCHEMA,
        )
        heard: list[Mapping[str, Any]] = []

        def read(found: Mapping[str, Any]) -> bool:
            heard.append(found)
            additions, problems = draft.read(found["expansions"])
            if not found["expansions"] and not found["complete"]:
                problems.append("it adds nothing and does not say that the tree is complete")
            if problems:
                raise Unfit("; ".join(problems[:8]))
            draft.take(additions)
            return bool(found["complete"])

        try:
            return await self.asker.ask(wanted, read)
        except NoAnswer:
            if not heard:
                raise
            return self._salvage(draft, heard[-1])

    def _salvage(self, draft: Draft, found: Mapping[str, Any]) -> bool:
        """What was usable in the last answer; with nothing in it the analysis ends here."""
        additions, problems = draft.read(found["expansions"])
        draft.take(additions)
        draft.note(f"of an answer on {draft.root} some claims were left out: {'; '.join(problems[:4])}")
        return bool(found["complete"]) or not additions

    def _task(self, draft: Draft) -> str:
        leaves = f"{draft.count} leaves" if draft.count > 1 else "one leaf"
        many = f"The tree has {leaves}; there is room for about {draft.wanted} more."
        deepest = f" Claims may be at most {draft.room.depth} levels deep." if draft.room.depth else ""
        return sections(
            *self.matter.sections(),
            draft.place.above(),
            draft.place.beside(),
            ("The tree so far", draft.outline()),
            ("Your task", f"Take {draft.root} apart further. {many}{deepest}"),
        )

    async def _overlaps(self, draft: Draft) -> list[Overlap]:
        claims = {id: node.claim for id, node in draft.nodes.items() if id != draft.root}
        found = alike(claims)
        if not self.settings.correlations:
            return found
        parents = [(id, node.children) for id, node in draft.nodes.items() if len(node.children) > 1]
        asked = [self._judged(draft, id, children) for id, children in parents]
        return found + [overlap for pairs in await asyncio.gather(*asked) for overlap in pairs]

    async def _judged(self, draft: Draft, parent: str, children: tuple[str, ...]) -> list[Overlap]:
        try:
            return await correlated(self.asker, parent, {id: draft.nodes[id].claim for id in children})
        except ModelError as error:
            draft.note(f"whether the children of {parent} are independent was not judged: {error}")
            return []
