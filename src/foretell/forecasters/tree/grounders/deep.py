"""The deep-research grounder: a model that does long research by itself, with our fenced search as its only window."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from foretell.forecasters.agent.context import AgentContext, Watched
from foretell.forecasters.agent.reading import Unusable, read_object
from foretell.forecasters.tree.grounders.bridge import Bridge
from foretell.forecasters.tree.grounders.conclusion import cited, concluded
from foretell.forecasters.tree.grounders.offered import SPECS, Offered
from foretell.forecasters.tree.grounders.plain import task_of
from foretell.forecasters.tree.grounders.searching import Searching
from foretell.forecasters.tree.growing.asking import CHANCE, TEXT, Asker, Unfit, Wanted, seeded, shape
from foretell.forecasters.tree.growing.ground import CannotGround, Grounded, Leaf
from foretell.forecasters.tree.prompts import sections, told
from foretell.llm.message import Reply, System, User
from foretell.llm.names import ModelName
from foretell.questions.event import ToolUsed, ignore
from foretell.tools.fence import Fenced

RESEARCHERS = ("deep-research",)
"""Parts of the names of models that research by themselves and ask a server for their tools."""
EXTRACT = shape({"key_factor": TEXT, "p": CHANCE})


def researches(model: str) -> bool:
    """Whether a model does its research on the provider's side, with tools it fetches from a server.

    >>> researches("openai:o4-mini-deep-research"), researches("openai:gpt-5-mini")
    (True, False)
    """
    name = ModelName.read(model)
    return name.provider == "openai" and any(part in name.name for part in RESEARCHERS)


@dataclass(frozen=True, kw_only=True)
class Deep:
    """Hands a claim to a deep-research model. Where that cannot reach our search, our own loop does the work."""

    bridge: Bridge | None = None
    """Where the search is served; None leaves only our own loop."""
    model: str | None = None
    """`provider:name`; None takes the model of the grounder's role."""
    loop: Searching = field(default_factory=lambda: Searching(steps=12, label="deep"))

    @property
    def name(self) -> str:
        """As it stands in the tree."""
        return "deep"

    async def ground(self, leaf: Leaf, context: AgentContext) -> Grounded:
        """Report and probability of the research."""
        model = self.model or context.models.name("grounder")
        if self.bridge is None or not researches(model):
            inner = replace(context, models=context.models.with_model("grounder", model))
            return await self.loop.ground(leaf, inner)
        reply = await self._research(leaf, context, model, self.bridge)
        toolbox = context.toolbox(leaf.fenced, context)
        await self._retrace(reply, toolbox, context)
        return await self._read(reply, leaf, context, toolbox)

    async def _research(self, leaf: Leaf, context: AgentContext, model: str, bridge: Bridge) -> Reply:
        slot = f"{leaf.slot}/research"
        system = told("ground_role", "ground_deep", "rules", today=leaf.matter.today)
        messages = (System(text=system), User(text=task_of(leaf)))
        asked = context.models.request("grounder", messages, slot=slot)
        asked = replace(asked, model=model, tools=SPECS, settings=seeded(asked.settings, context))
        # What the fence withholds from the provider is told when its calls are retraced, also in a replay.
        toolbox = context.toolbox(leaf.fenced, replace(context, emit=ignore))
        with bridge.offer(slot, toolbox):
            return await Watched(context.model, context.emit, "grounder", context.prices).complete(asked)

    async def _retrace(self, reply: Reply, toolbox: Fenced, context: AgentContext) -> None:
        """Make the provider's calls once more, in their order: the journal has the results, and all goes on record."""
        offered = Offered(toolbox=toolbox)
        for step, call in enumerate(reply.calls, start=1):
            try:
                arguments = read_object(call.arguments)
            except Unusable:
                continue
            before = len(toolbox.shelf)
            text, worked = await offered.use(call.name, arguments)
            shown = toolbox.shelf.ids[before:]
            context.emit(
                ToolUsed(step=step, tool=call.name, arguments=arguments, result=text, sources=shown, failed=not worked)
            )

    async def _read(self, reply: Reply, leaf: Leaf, context: AgentContext, toolbox: Fenced) -> Grounded:
        if not reply.text.strip():
            raise CannotGround("the research ended without a report")
        report, found = _parts(reply.text)
        try:
            concluded({**found, "report": report}, "")
        except Unfit:
            found = {**found, **await self._extract(report, leaf, context)}
        grounder = f"{self.name}+clairvoyant" if toolbox.clairvoyant else self.name
        return concluded({**found, "report": report}, grounder, cited(found, toolbox.shelf))

    async def _extract(self, report: str, leaf: Leaf, context: AgentContext) -> Mapping[str, Any]:
        """The probability that a report without one comes down to, asked of another model."""
        wanted = Wanted(
            role="judge",
            place="extract",
            system=told("extract"),
            user=sections(("Claim", leaf.claim), ("Report", report)),
            schema=EXTRACT,
        )
        return await Asker(context=context, slot=leaf.slot).ask(wanted, lambda found: found)


def _parts(text: str) -> tuple[str, dict[str, Any]]:
    """The report, and the object at its end; where there is none, an empty one."""
    start = text.rfind("{")
    while start >= 0:
        try:
            found = read_object(text[start:])
        except Unusable:
            found = {}
        if "p" in found:
            report = text[:start].rstrip().removesuffix("```json").rstrip("`\n ")
            return report or text, found
        start = text.rfind("{", 0, start)
    return text, {}
