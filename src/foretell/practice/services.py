"""The practice world: every outside service at once, on this machine."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count, repeat

from foretell.practice.forecastbench import PracticeBucket, serve_rounds
from foretell.practice.models.scripts import arena_script
from foretell.practice.models.server import PracticeModels, Script
from foretell.practice.sample_data import data_services
from foretell.practice.server import PracticeServer, ServerRequest, ServerResponse, json_response
from foretell.practice.web import (
    ENGINES,
    PageVersion,
    SampleWebPage,
    sample_world,
    search_server,
    wayback_server,
    web_server,
    wikipedia_server,
)
from foretell.questions.as_of import instant

KEY = "practice"
"""Taken by every service that wants a key."""
PORTS = 15
"""Servers that are started: requests are paced by host and port, so every service has its own."""
STOP = "/practice/stop"
BENCHMARK, BUCKETS = "/forecastbench", "/buckets"
EXAMPLE_PAGE = SampleWebPage(
    url="https://example.com/",
    title="Example Domain",
    text="This domain is for use in examples.",
    versions=(PageVersion(at=instant("2026-01-02"), text="This domain is for use in documentation examples."),),
)
"""Everybody's page for trying out an archive; `foretell services check` asks for it."""


@dataclass(frozen=True, kw_only=True)
class ServiceOptions:
    """How the services are started."""

    now: datetime
    """The day it is in the practice world."""
    port: int = 0
    """The first of `PORTS` ports in a row; 0 takes free ones."""
    latency: float = 0.0
    """Seconds before every answer."""
    script: Script = arena_script
    """What the models reply."""
    pages: tuple[SampleWebPage, ...] = ()
    """That search engines find beside those of the practice web; they keep their addresses, so a trace can be kept."""


@asynccontextmanager
async def all_services(
    options: ServiceOptions, stop: Callable[[], None] | None = None
) -> AsyncGenerator[dict[str, str]]:
    """Serves while in use; hands over the base address of each service by its name.

    Args:
        options: How they are started.
        stop: Called when somebody posts to `STOP` at the address of the models.
    """
    ports = count(options.port) if options.port else repeat(0)

    def stop_all(_request: ServerRequest) -> ServerResponse:
        if stop is None:
            return json_response({"error": "this world is stopped by whoever started it"}, 405)
        stop()
        return json_response({"stopped": True})

    async with AsyncExitStack() as stack:

        async def start(server: PracticeServer) -> str:
            server.port, server.latency = next(ports), options.latency
            return (await stack.enter_async_context(server)).url

        provider = PracticeModels(options.script)
        provider.route("POST", STOP, stop_all)
        models = await start(provider)
        # Pages are named, not numbered: the fence refuses hosts that are only a number.
        web = web_server(sample_world(options.now))
        serve_rounds(web, BENCHMARK, options.now)
        PracticeBucket(KEY).serve(web, BUCKETS)
        pages = (await start(web)).replace("127.0.0.1", "localhost")
        world = sample_world(options.now, pages, options.pages)
        search = await start(search_server(world, KEY))
        archive = replace(world, pages=[*world.pages, EXAMPLE_PAGE])
        others = {"wikipedia": wikipedia_server(world), "wayback": wayback_server(archive)}
        others |= {name: service.server() for name, service in data_services(options.now, KEY).items()}
        yield {
            "openai": f"{models}/v1",
            "openrouter": f"{models}/api/v1",
            "anthropic": models,
            "google": models,
            **{engine: f"{search}/{engine}" for engine in ENGINES},
            "pages": pages,
            "forecastbench": f"{pages}{BENCHMARK}",
            "buckets": f"{pages}{BUCKETS}",
            **{name: await start(server) for name, server in others.items()},
        }
