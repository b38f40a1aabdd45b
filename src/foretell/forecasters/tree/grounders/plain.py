"""Grounding without research: a model answers from what it knows, or numbers are given beforehand."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from foretell.forecasters.agent.context import AgentContext
from foretell.forecasters.tree.grounders.conclusion import WITHOUT_SOURCES, concluded
from foretell.forecasters.tree.growing.asking import Asker, Wanted
from foretell.forecasters.tree.growing.ground import CannotGround, Grounded, Leaf
from foretell.forecasters.tree.prompts import sections, told
from foretell.forecasters.tree.proposition import Grounding


def task_of(leaf: Leaf) -> str:
    """A leaf as every grounder's model is told: the claim, and what it is a part of."""
    return sections(
        ("Claim", leaf.claim),
        ("What it is a part of", leaf.matter.question.text),
        ("Today", f"Today is {leaf.matter.today}."),
    )


@dataclass(frozen=True, kw_only=True)
class Plain:
    """One question to the model, no tools. The quickest and cheapest grounder, blind to all that is new."""

    @property
    def name(self) -> str:
        """As it stands in the tree."""
        return "plain"

    async def ground(self, leaf: Leaf, context: AgentContext) -> Grounded:
        """What the model thinks of the claim."""
        wanted = Wanted(
            role="grounder",
            place="plain",
            system=told("ground_role", "ground_plain", "rules", today=leaf.matter.today),
            user=task_of(leaf),
            schema=WITHOUT_SOURCES,
        )
        asker = Asker(context=context, slot=leaf.slot)
        return await asker.ask(wanted, lambda found: concluded(found, self.name))


@dataclass(frozen=True, kw_only=True)
class Given:
    """Numbers from a table by claim, or from a function: for tests, for simulations, and for experts' own numbers."""

    p: Mapping[str, float] | Callable[[Leaf], float]
    label: str = "given"

    @property
    def name(self) -> str:
        """As it stands in the tree."""
        return self.label

    async def ground(self, leaf: Leaf, context: AgentContext) -> Grounded:
        """The number, or `CannotGround` where there is none."""
        found = self.p(leaf) if callable(self.p) else self.p.get(leaf.claim)
        if found is None:
            raise CannotGround(f"no number is given for {leaf.claim!r}")
        return Grounded(p=float(found), grounding=Grounding(grounder=self.name))
