"""Grounding leaves: each gets a probability from a grounder, many at once; one that fails never takes the tree along.

Algorithm 2 of Analytica (2026), its leaves.
"""

import asyncio
import logging
from dataclasses import dataclass, field, replace
from typing import Protocol

from foretell.data.untrusted import for_log
from foretell.forecasters.forecaster import Context
from foretell.forecasters.tree.grow.budget import LeafBudget
from foretell.forecasters.tree.grow.prompting import ClaimSurroundings, TreeQuestion
from foretell.forecasters.tree.proposition import Grounding
from foretell.models.model import BudgetExceeded
from foretell.questions.errors import InputError
from foretell.questions.question import Question, Target
from foretell.questions.trace import NodeGrounded

AT_ONCE = 20
MOST_AT_ONCE = 1000

CRITERIA = "It is decided by whether the claim, as it is worded, is true."

log = logging.getLogger(__name__)


class CannotGround(Exception):
    """A grounder came to no probability; the text says why. It may come to one when tried again."""


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """One claim to ground, and everything a grounder may know about it."""

    id: str
    claim: str
    tree_question: TreeQuestion
    surroundings: ClaimSurroundings = field(default_factory=ClaimSurroundings)
    slot: str = ""
    """Question, trial, tree, leaf and attempt: tells equal requests apart, the same in every run."""
    budget: LeafBudget = field(default_factory=LeafBudget)

    @property
    def fenced(self) -> Question:
        """The question behind the tree in the words of the claim: what a toolbox is made for.

        It keeps that question's fence, its series and its id: what a tool found for one leaf is not fetched again for
        another.
        """
        whole = self.tree_question.question
        words = f"The claim is a part of the analysis of: {whole.text}\n\n{whole.criteria}\n\n{whole.background}"
        return replace(whole, text=self.claim, criteria=CRITERIA, background=words.strip())

    @property
    def question(self) -> Question:
        """The claim as a binary question of its own."""
        whole = self.tree_question.question
        target = next((one for one in whole.targets if one.id == self.tree_question.target), whole.targets[0])
        own = Target(id="yes", resolves_at=target.resolves_at)
        alone = replace(self.fenced, id=f"{whole.id}#{self.tree_question.target}#{self.id}", targets=(own,))
        return replace(alone, exclusivity="independent", subtype="", series=None, last_value=None)


@dataclass(frozen=True, kw_only=True)
class GroundingResult:
    """What came of grounding a leaf."""

    p: float | None
    """None where it failed for good."""
    grounding: Grounding
    attempts: int = 1

    def __post_init__(self) -> None:
        if self.p is not None and not 0 <= self.p <= 1:
            raise ValueError(f"p = {self.p} is not a probability")


class Grounder(Protocol):
    """Finds out how likely a claim is."""

    @property
    def name(self) -> str:
        """As it stands in the tree."""
        ...

    async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
        """Probability, report and sources, or `CannotGround`."""
        ...


@dataclass(frozen=True, kw_only=True)
class GroundSettings:
    """How leaves are grounded."""

    at_once: int = AT_ONCE
    retries: int = 3
    """How often a failed leaf is tried again, from its beginning."""
    seconds: float = 1800.0
    """Longest time for one attempt."""

    def __post_init__(self) -> None:
        if not 1 <= self.at_once <= MOST_AT_ONCE:
            raise InputError(f"{self.at_once} leaves at once is outside 1 to {MOST_AT_ONCE}")
        if self.retries < 0 or self.seconds <= 0:
            raise InputError("grounding needs a count of retries >= 0 and some time")


class GroundingPool:
    """Grounds leaves side by side, as many at once as the settings allow. For one event loop."""

    def __init__(self, grounder: Grounder, settings: GroundSettings) -> None:
        self.grounder = grounder
        self.settings = settings
        self._places = asyncio.Semaphore(settings.at_once)

    async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
        """The leaf's grounding, or after the last attempt one that holds the error in place of a probability."""
        async with self._places:
            result = await self._ground(leaf, context)
        context.emit(
            NodeGrounded(
                node=leaf.id,
                tree=leaf.tree_question.target,
                p=result.p,
                grounder=result.grounding.grounder,
                attempts=result.attempts,
                error=result.grounding.error,
            )
        )
        return result

    async def _ground(self, leaf: Leaf, context: Context) -> GroundingResult:
        problem = ""
        attempt = 0
        for attempt in range(1, self.settings.retries + 2):
            tried = replace(leaf, slot=f"{leaf.slot}/attempt {attempt}")
            try:
                async with asyncio.timeout(self.settings.seconds):
                    result = await self.grounder.ground(tried, leaf.budget.metered(context))
                return replace(result, attempts=attempt)
            except InputError:
                raise  # A person has to act: every other leaf would fail of it too.
            except BudgetExceeded as error:
                problem = str(error)
                break
            except TimeoutError:
                problem = f"no answer within {self.settings.seconds:g} s"
            except Exception as error:  # the boundary of a leaf: whatever a grounder does, the tree goes on
                log.info("leaf %s, attempt %d: %s", for_log(leaf.id), attempt, for_log(error))
                problem = str(error) or type(error).__name__
        error = f"{problem} ({attempt} attempts)" if attempt > 1 else problem
        return GroundingResult(p=None, grounding=Grounding(grounder=self.grounder.name, error=error), attempts=attempt)
