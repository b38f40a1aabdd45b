"""The loop: ask, revise the belief, act, until an answer is submitted or a limit is reached."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from foretell.forecasters.agent.ending import Ending, Stop, standing
from foretell.forecasters.agent.form import Stated
from foretell.forecasters.agent.history import History, restated
from foretell.forecasters.agent.job import Job
from foretell.forecasters.agent.reading import Action, Turn, Unusable, belief_in, read_reply
from foretell.forecasters.agent.salvage import salvaged
from foretell.forecasters.agent.statement import Statement
from foretell.llm.message import Reply, Request, User
from foretell.llm.model import BudgetSpent, ModelError
from foretell.questions.event import BeliefRevised, ToolUsed
from foretell.tools.fence import Observation
from foretell.tools.names import SUBMIT

UNUSABLE = "(unusable reply)"
"""Stands for the tool in the event of a reply that asked for nothing that could be done."""
PLAINLY = "Leave the tools aside. Answer now with one JSON object that holds nothing but `{}`, your best numbers."
NO_BUDGET = Observation(text="the budget is spent", failed=True)


class Trial:
    """One run of the loop. It holds what changes: the conversation, the standing belief, the step."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.belief = job.belief
        self.number = 0
        self._history = History(job.request.messages)
        self._ends_at = 0.0

    async def run(self) -> Ending:
        """Step until something ends it; every way to end is a value."""
        self._ends_at = _now() + self.job.settings.seconds
        clock = asyncio.timeout_at(self._ends_at)
        try:
            async with clock:
                while (ending := await self.step()) is None:
                    pass
                return ending
        except TimeoutError:
            return self._stand(Stop.TIME if clock.expired() else Stop.MODEL)
        except BudgetSpent as spent:
            return self._stand(Stop.BUDGET, str(spent))
        except ModelError as error:
            return self._stand(Stop.MODEL, str(error))

    async def step(self) -> Ending | None:
        """One generation tells the belief with all results so far taken in, and what to do next."""
        self.number += 1
        last = self.number >= self.job.steps or _now() > self._ends_at - self.job.reserve
        names = (SUBMIT,) if last else self.job.offer.named(self.job.allowed(self.number))
        turn = await self._ask(names)
        if isinstance(turn, Ending):
            return turn
        notes = self._revise(turn)
        if turn.final is not None:
            return self._submit(turn)
        return await self._act(self._pushed(turn), notes)

    async def _ask(self, names: Sequence[str]) -> Turn | Ending:
        """A turn that can be carried out: an unusable reply is asked for again with what was wrong, a few times."""
        unusable: list[Reply] = []
        problem = ""
        for attempt in range(self.job.settings.again + 1):
            reply = await self.job.model.complete(self._request(names, attempt))
            try:
                return read_reply(reply, self.job.offer, names)
            except Unusable as error:
                problem = str(error)
            unusable.insert(0, reply)
            self._believe(belief_in(reply, self.job.offer))
            self._history.object_to(reply, problem, names)
            self._tell(UNUSABLE, {"attempt": attempt + 1}, Observation(text=problem, failed=True))
        return await self._salvage(unusable, problem, last=tuple(names) == (SUBMIT,))

    def _request(self, names: Sequence[str], attempt: int) -> Request:
        slot = f"{self.job.request.slot}/step {self.number}/{attempt}"
        messages = self._history.messages
        if self.job.settings.asking == "schema":
            return replace(self.job.request, messages=messages, schema=self.job.offer.schema(names), slot=slot)
        # Asked freely at first: forcing a call switches the thinking of some models off.
        force = names[0] if len(names) == 1 else "*" if attempt else None
        return replace(self.job.request, messages=messages, tools=self.job.offer.tools, force=force, slot=slot)

    def _revise(self, turn: Turn) -> tuple[str, ...]:
        """Take the stated belief over; what the model must know about that comes back."""
        if self.job.offer.variant.belief and turn.statement is None:
            return (*turn.notes, "updated_belief was missing: your last belief stands")
        return (*turn.notes, *self._believe(turn.statement))

    def _believe(self, statement: Statement | None) -> tuple[str, ...]:
        if statement is None:
            return ()
        seen = self.number - 1
        sources = self.job.toolbox.shelf.ids
        self.belief, notes = self.belief.revise(statement, self.job.offer.form, step=seen, sources=sources)
        self._tell_belief()
        return notes

    def _pushed(self, turn: Turn) -> Turn:
        push = self.job.push
        if push is None or push.step != self.number or self.job.offer.form.thresholds is not None:
            return turn
        self.belief = self.belief.overwrite(push.p, self.job.offer.form)
        self._tell_belief()
        return restated(turn, self.job.offer.form.write(self.belief.stated), self.job.offer)

    async def _act(self, turn: Turn, notes: Sequence[str]) -> Ending | None:
        """Carry out the actions and add what came of them to the conversation."""
        seen = await asyncio.gather(*(self._use(action) for action in turn.actions))
        for action, observation in zip(turn.actions, seen, strict=True):
            self._tell(action.tool, action.arguments, observation or NO_BUDGET)
        done = [observation.text for observation in seen if observation is not None]
        if len(done) < len(seen):
            return self._stand(Stop.BUDGET, "while a tool was at work")
        done[-1] += self._footer(notes)
        self._history.add(turn, done)
        return None

    async def _use(self, action: Action) -> Observation | None:
        """What a tool showed; None where the budget ran out in it."""
        try:
            return await self.job.toolbox.use(action.tool, action.arguments)
        except BudgetSpent:
            return None
        except ModelError as error:
            return Observation(text=f"{action.tool} failed: {error}. Try another way.", failed=True)

    def _footer(self, notes: Sequence[str]) -> str:
        told = f"\n\n(Step {self.number} of {self.job.steps} is done"
        return told + "".join(f"; {note}" for note in notes) + ".)"

    def _submit(self, turn: Turn) -> Ending:
        assert turn.final is not None
        p = self.job.offer.form.coherent(turn.final.p)
        self._tell(SUBMIT, {"p": p, "reason": turn.reason}, Observation(text="submitted"))
        return self._end(Stop.SUBMITTED, p=p, distribution=turn.final.distribution, reason=turn.reason)

    async def _salvage(self, unusable: Sequence[Reply], problem: str, *, last: bool) -> Ending:
        """The number in the model's text if there is only one way to read it, else the belief as it stands.

        Where the model never formed one, it is asked a last time, for the numbers alone.
        """
        stop = Stop.SALVAGED
        found = salvaged(unusable, self.job.offer.form)
        if found is None and self.belief.origin != "model":
            stop, found = Stop.PLAIN, await self._ask_plainly()
        if found is None:
            return self._stand(Stop.STEPS if last else Stop.UNUSABLE, problem)
        p = self.job.offer.form.coherent(found.p)
        return self._end(stop, p=p, distribution=found.distribution, detail=problem)

    async def _ask_plainly(self) -> Stated | None:
        """No tools, no belief, no conversation: the question, what was found, and a schema that holds the numbers."""
        offer = replace(self.job.offer, form=replace(self.job.offer.form, percent=True))
        found = self._history.found()
        told = "\n\n".join(filter(None, [found and f"What was found:\n{found}", PLAINLY.format(offer.form.field)]))
        messages = (*self.job.request.messages, User(text=told))
        slot = f"{self.job.request.slot}/step {self.number}/plain"
        request = replace(self.job.request, messages=messages, schema=offer.numbers_alone(), slot=slot)
        try:
            return salvaged([await self.job.model.complete(request)], offer.form)
        except ModelError:
            return None

    def _stand(self, stop: Stop, detail: str = "") -> Ending:
        return standing(stop, self.belief, detail=detail, steps=self.number)

    def _end(self, stop: Stop, **told: Any) -> Ending:
        return Ending(stop=stop, belief=self.belief, steps=self.number, **told)

    def _tell(self, tool: str, arguments: Mapping[str, Any], seen: Observation) -> None:
        event = ToolUsed(
            step=self.number,
            tool=tool,
            arguments=arguments,
            result=seen.text,
            sources=seen.source_ids,
            failed=seen.failed,
        )
        self.job.emit(event)

    def _tell_belief(self) -> None:
        belief = self.belief
        self.job.emit(BeliefRevised(step=belief.step, p=belief.p, reason=belief.reason, belief=belief.as_json()))


def _now() -> float:
    return asyncio.get_running_loop().time()
