"""The grounder `deep`: a deep-research model that can access the web only through our filtered search."""

import asyncio
import contextlib
import json
import secrets
import socket
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from foretell.forecasters.forecaster import Context
from foretell.forecasters.tree.grounders.search import SearchGrounder, cited_sources, grounding_from_answer, leaf_task
from foretell.forecasters.tree.grow.ground import CannotGround, GroundingResult, Leaf
from foretell.forecasters.tree.grow.prompting import (
    CHANCE,
    TEXT,
    StructuredRequest,
    fill_prompts,
    sections,
)
from foretell.frozen import frozen
from foretell.models.model import Reply, SystemMessage, ToolSpec, UserMessage
from foretell.models.names import ModelName
from foretell.models.structured_output import UnusableReply, closed_object, read_object
from foretell.questions.errors import MissingExtra
from foretell.questions.trace import ToolUsed, ignore_event
from foretell.tools.leakage_filter import AdmittedSource, FilteredTools
from foretell.tools.tool import LOOKUP_URL, WEB_SEARCH, ToolFailed, required_text

if TYPE_CHECKING:
    from foretell.data.connections import BoundedTools

# The two tools that deep-research models require, `search` and `fetch`, on top of a filtered toolbox.

SEARCH, FETCH = "search", "fetch"


SPECS = (
    ToolSpec(
        name=SEARCH,
        description="Search for reports, data and opinions published by the cutoff date. Returns results with an id, "
        "a title, an address and an excerpt.",
        parameters=closed_object({"query": {"type": "string", "description": "A few concrete words."}}),
    ),
    ToolSpec(
        name=FETCH,
        description="Read the full text of a result, as it stood by the cutoff date.",
        parameters=closed_object({"id": {"type": "string", "description": "The id of a result, or an address."}}),
    ),
)


@frozen
class SearchAndFetch:
    """Implements the tools search and fetch. Results are identified by URL, which means the same in every toolbox."""

    toolbox: FilteredTools

    async def use(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """Run a tool; return the answer as JSON text (or an error message) and whether it succeeded."""
        try:
            if name == SEARCH:
                return json.dumps(await self._search(required_text(arguments, "query")), ensure_ascii=False), True
            if name == FETCH:
                return json.dumps(await self._fetch(required_text(arguments, "id")), ensure_ascii=False), True
        except ToolFailed as error:
            return str(error), False
        return f"There is no tool {name!r}; there are {SEARCH} and {FETCH}.", False

    async def _search(self, query: str) -> dict[str, Any]:
        if WEB_SEARCH not in {spec.name for spec in self.toolbox.specs()}:
            raise ToolFailed("Searching is not possible here.")
        seen = await self.toolbox.use(WEB_SEARCH, {"query": query})
        sources = [self.toolbox.sources[id] for id in seen.source_ids]
        return {"results": [{**_head(source), "text": source.shown} for source in sources]}

    async def _fetch(self, id: str) -> dict[str, Any]:
        sources = self.toolbox.sources
        known = next((own for own in sources.ids if id in (own, sources[own].url)), None)
        if known is None and LOOKUP_URL in {spec.name for spec in self.toolbox.specs()} and "://" in id:
            seen = await self.toolbox.use(LOOKUP_URL, {"url": id})
            if seen.failed or not seen.source_ids:
                raise ToolFailed(seen.text)
            known = seen.source_ids[0]
        if known is None:
            raise ToolFailed(f"There is no result {id[:200]!r}: fetch what a search has shown.")
        ((admitted, text),) = await sources.read([known])
        published = admitted.published.date().isoformat() if admitted.published is not None else ""
        return {**_head(admitted), "text": text, "metadata": {"published": published}}


def _head(source: AdmittedSource) -> dict[str, str]:
    return {"id": source.url or source.id, "title": source.title, "url": source.url}


# Our filtered search as an MCP server on this machine, for models that do their research by themselves.
#
# It listens on loopback only. A remote provider reaches it through a tunnel with the given public address. Each leaf
# has its own token, which is valid only while the leaf is researched and gives access only to the leaf's toolbox.

PATH = "/mcp"
MAX_BODY_BYTES = 100_000
"""Maximum size of a request body in bytes; a request holds only a query or a URL."""


@frozen
class SearchServerAddress:
    """URL and token that give a provider access to the tools of a leaf."""

    url: str
    token: str


class SearchServer:
    """Serves toolboxes by token. Created by `open_search_server`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._by_token: dict[str, SearchAndFetch] = {}
        self._by_slot: dict[str, SearchServerAddress] = {}

    @contextmanager
    def serve(self, slot: str, toolbox: FilteredTools) -> Generator[SearchServerAddress]:
        """Serve a toolbox while the context is open; the provider's client looks it up by the slot of its request."""
        address = SearchServerAddress(url=self.url, token=secrets.token_urlsafe(32))
        self._by_token[address.token] = SearchAndFetch(toolbox=toolbox)
        self._by_slot[slot] = address
        try:
            yield address
        finally:
            del self._by_token[address.token], self._by_slot[slot]

    def address_for(self, slot: str) -> SearchServerAddress | None:
        """Return the address of the tools for a request's slot; None if it has none."""
        return self._by_slot.get(slot)

    def by_header(self, authorization: str) -> SearchAndFetch | None:
        """Return the tools of the bearer token in an Authorization header; None if the token is not valid."""
        scheme, _, token = authorization.partition(" ")
        return self._by_token.get(token.strip()) if scheme.lower() == "bearer" else None


@asynccontextmanager
async def open_search_server(*, public_url: str | None = None, port: int = 0) -> AsyncGenerator[SearchServer]:
    """Open a server on loopback; `public_url` is the URL of a tunnel to it, without a path."""
    if find_spec("mcp") is None:
        raise MissingExtra("serving the search to a deep-research model", "mcp")
    import uvicorn

    from foretell.data.connections import server_config

    class Quiet(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Generator[None]:
            """Install no signal handlers, because the application itself handles Ctrl-C."""
            yield

    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.bind(("127.0.0.1", port))
    own = f"http://127.0.0.1:{listening.getsockname()[1]}"
    search = SearchServer((public_url or own).rstrip("/") + PATH)
    app = _app(search, public_url)
    server = Quiet(server_config(app, app.connections, log_level="critical", lifespan="on"))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        yield search
    finally:
        server.should_exit = True
        with contextlib.suppress(asyncio.CancelledError):
            await serving
        listening.close()


def _app(search: SearchServer, public_url: str | None) -> "BoundedTools":
    """Build the MCP server, which accepts only requests with a valid token."""
    from mcp.server.lowlevel.server import Server
    from mcp.server.transport_security import TransportSecuritySettings
    from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool

    from foretell.data.connections import BoundedTools

    async def list_tools(_context: Any, _params: Any) -> Any:
        tools = [
            Tool(name=spec.name, description=spec.description, input_schema=dict(spec.parameters)) for spec in SPECS
        ]
        return ListToolsResult(tools=tools)

    async def call_tool(context: Any, params: Any) -> Any:
        tools = search.by_header(context.request.headers.get("authorization", ""))
        text, worked = ("The token is not valid any more.", False)
        if tools is not None:
            text, worked = await tools.use(params.name, params.arguments or {})
        return CallToolResult(content=[TextContent(type="text", text=text)], is_error=not worked)

    server: Any = Server("foretell", on_list_tools=list_tools, on_call_tool=call_tool)
    public_host = urlsplit(public_url).netloc if public_url else ""
    hosts = ["127.0.0.1:*", "localhost:*", *([public_host] if public_host else [])]
    security = TransportSecuritySettings(enable_dns_rebinding_protection=True, allowed_hosts=hosts)
    inner = server.streamable_http_app(
        streamable_http_path=PATH, json_response=True, stateless_http=True, transport_security=security
    )

    return BoundedTools(
        inner,
        max_body=MAX_BODY_BYTES,
        knows_token=lambda header: search.by_header(header.decode("latin-1")) is not None,
    )


EXTRACT = closed_object({"key_factor": TEXT, "p": CHANCE})
OWN_STEPS = 12
"""Maximum number of rounds of our own loop, which is used if no deep-research model does the work."""


def is_deep_research_model(model: str) -> bool:
    """Whether a model can do research on the provider's side, with tools that it calls on a server.

    >>> is_deep_research_model("openai:gpt-6.1-sol"), is_deep_research_model("google:gemini-4-argon")
    (True, False)
    """
    return ModelName.read(model).provider == "openai"


@frozen
class DeepResearchGrounder:
    """Grounds claims with a deep-research model, or with our own loop if the model cannot reach our search."""

    server: SearchServer | None = None
    """Server that offers the search; None means that only our own loop is used."""
    model: str | None = None
    """Model as `provider:name`; None uses the model of the grounder role."""
    name: str = "deep"

    async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
        """Research the claim and return its grounding."""
        model = self.model or context.models.name("grounder")
        if self.server is None or not is_deep_research_model(model):
            inner = replace(context, models=context.models.with_model("grounder", model))
            return await SearchGrounder(steps=OWN_STEPS, name=self.name).ground(leaf, inner)
        reply = await self._research(leaf, context, model, self.server)
        toolbox = context.tools_for(leaf.tool_question)
        await self._retrace(reply, toolbox, context)
        return await self._read(reply, leaf, context, toolbox)

    async def _research(self, leaf: Leaf, context: Context, model: str, server: SearchServer) -> Reply:
        slot = f"{leaf.slot}/research"
        system = fill_prompts("ground_role", "ground_deep", "rules", **leaf.tree_question.rule_values)
        messages = (SystemMessage(text=system), UserMessage(text=leaf_task(leaf)))
        request = replace(context.request("grounder", messages, slot=slot), model=model, tools=SPECS)
        # Texts that the leakage filter blocks are reported when the provider's calls are retraced, also in a replay.
        toolbox = replace(context, emit=ignore_event).tools_for(leaf.tool_question)
        with server.serve(slot, toolbox):
            return await context.model("grounder").complete(request)

    async def _retrace(self, reply: Reply, toolbox: FilteredTools, context: Context) -> None:
        """Repeat the provider's tool calls in order, from the journal, so that they are recorded in the trace."""
        tools = SearchAndFetch(toolbox=toolbox)
        for step, call in enumerate(reply.calls, start=1):
            try:
                arguments = read_object(call.arguments)
            except UnusableReply:
                continue
            before = len(toolbox.sources)
            text, worked = await tools.use(call.name, arguments)
            shown = toolbox.sources.ids[before:]
            context.emit(
                ToolUsed(step=step, tool=call.name, arguments=arguments, result=text, sources=shown, failed=not worked)
            )

    async def _read(self, reply: Reply, leaf: Leaf, context: Context, toolbox: FilteredTools) -> GroundingResult:
        if not reply.text.strip():
            raise CannotGround("the research ended without a report")
        report, fields = _parts(reply.text)
        try:
            grounding_from_answer({**fields, "report": report}, "")
        except UnusableReply:
            fields = {**fields, **await self.extract(report, leaf, context)}
        grounder = toolbox.marked_name(self.name)
        return grounding_from_answer({**fields, "report": report}, grounder, cited_sources(fields, toolbox.sources))

    async def extract(self, report: str, leaf: Leaf, context: Context) -> Mapping[str, Any]:
        """Ask another model for the probability implied by a report that states none."""
        request = StructuredRequest(
            role="judge",
            slot=f"{leaf.slot}/extract",
            system=fill_prompts("extract"),
            user=sections(("Claim", leaf.claim), ("Report", report)),
            schema=EXTRACT,
        )
        return await request.ask(context, lambda answer: answer)


def _parts(text: str) -> tuple[str, dict[str, Any]]:
    """Split a reply into the report and the JSON object at its end, if any."""
    start = text.rfind("{")
    while start >= 0:
        try:
            fields = read_object(text[start:])
        except UnusableReply:
            fields = {}
        if "p" in fields:
            report = text[:start].rstrip().removesuffix("```json").rstrip("`\n ")
            return report or text, fields
        start = text.rfind("{", 0, start)
    return text, {}
