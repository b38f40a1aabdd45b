"""Building contexts: propose searches, search behind the fence, drop copies, rank, summarise, and count all of it."""

from dataclasses import dataclass
from typing import Any

from foretell.forecasters.context.built import BuildSettings, Built, CannotBuild
from foretell.forecasters.context.context import Context, known_at
from foretell.forecasters.context.making import Making, Parts
from foretell.llm.canonical import content_key
from foretell.questions.clock import AsOf
from foretell.questions.question import Question

__all__ = ["BuildSettings", "Built", "CannotBuild", "ContextBuilder"]


@dataclass(frozen=True, kw_only=True)
class ContextBuilder(Parts):
    """Builds the context of any question at any moment.

    With a journal every search and every finished context is kept: a builder that was killed goes on where it was,
    and building again returns the same bytes. Model replies are kept by the journal the model stands behind.
    """

    async def context(self, question: Question, as_of: AsOf) -> Context:
        """The context alone."""
        return (await self.build(question, as_of)).context

    async def build(self, question: Question, as_of: AsOf) -> Built:
        """The context of a question at a moment, or `CannotBuild`."""
        question = known_at(question, as_of)
        try:
            bare = Context(question=question, as_of=as_of, searcher=self.name)
        except ValueError as error:
            raise CannotBuild(str(error)) from None

        async def made() -> dict[str, Any]:
            return (await Making(self, question, as_of).run()).to_dict()

        if self.journal is None:
            return Built.from_dict(await made())
        key = content_key(["built", bare.digest, vars(self.settings)])
        return Built.from_dict(await self.journal.once_json(key, "context", made))
