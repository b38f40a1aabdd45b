"""Where forecasters get the context of a question: from a store, from a builder, or from the question alone."""

import asyncio
from collections.abc import Iterable
from typing import Protocol

from foretell.forecasters.context.context import Context, key_of, known_at
from foretell.forecasters.forecaster import CannotForecast
from foretell.questions.clock import AsOf
from foretell.questions.question import Question

Key = tuple[str, str, str]


class Contexts(Protocol):
    """Knows what is shown about a question at a moment: the same to all who ask."""

    async def of(self, question: Question, as_of: AsOf) -> Context:
        """The context, or `CannotForecast` where there is none."""
        ...


class QuestionAlone:
    """No sources: the question, and the quotes it carries."""

    async def of(self, question: Question, as_of: AsOf) -> Context:
        """The question as of the moment."""
        try:
            return Context(question=known_at(question, as_of), as_of=as_of)
        except ValueError as error:
            raise CannotForecast(str(error)) from None


class StoredContexts:
    """Contexts that were made before, by question, round and moment."""

    def __init__(self, contexts: Iterable[Context]) -> None:
        self._kept: dict[Key, Context] = {}
        for context in contexts:
            if self._kept.setdefault(context.key, context) != context:
                raise ValueError(f"two contexts differ for question {context.question.id} at {context.as_of}")

    def __len__(self) -> int:
        return len(self._kept)

    async def of(self, question: Question, as_of: AsOf) -> Context:
        """The stored one."""
        found = self._kept.get(key_of(question, as_of))
        if found is None:
            raise CannotForecast(f"no context is stored for question {question.id} at {as_of}")
        return found


class Builds(Protocol):
    """Makes contexts."""

    async def context(self, question: Question, as_of: AsOf) -> Context:
        """A new context."""
        ...


class BuiltContexts:
    """Built on first use, once for all trials and forecasters of a process; a failure is tried anew by the next."""

    def __init__(self, builder: Builds) -> None:
        self._builder = builder
        self._made: dict[Key, Context] = {}
        self._turns: dict[Key, asyncio.Lock] = {}

    async def of(self, question: Question, as_of: AsOf) -> Context:
        """The context, built if need be."""
        key = key_of(question, as_of)
        async with self._turns.setdefault(key, asyncio.Lock()):
            if key not in self._made:
                self._made[key] = await self._builder.context(question, as_of)
        return self._made[key]
