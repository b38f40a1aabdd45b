"""How long trees take to grow: 21, 85, 341 and 1,365 claims with 1,000 workers and a provider of fixed latency.

Each claim is broken down into four, round after round, and every leaf is researched: one search, then the conclusion.
All calls go over HTTP to one fake provider in its own process, with journal, limits, leakage filter and events on, as
in `foretell tree`. The critical path is the minimum time: the analyses from the root down, the two calls of a leaf, and
the syntheses up to the root, in sequence, at the provider's latency. The paper (Analytica 2026, Table 1)
reports 12.0 times the time for 54.0 times the claims.

    python benchmarks/tree_growth.py [--latency SECONDS] [--rounds 5]
"""

import argparse
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fakes.models import FakeModelProcess
from foretell.forecasters.forecaster import Context, Models, attempt
from foretell.forecasters.tree.forecaster import CLAIM, TreeForecaster
from foretell.forecasters.tree.grounders.search import SearchGrounder
from foretell.forecasters.tree.settings import TreeSettings
from foretell.models.budget import Budget
from foretell.models.journal import Journal
from foretell.models.limits import ModelLimits
from foretell.models.model import ToolSpec
from foretell.models.names import ModelRoles
from foretell.models.router import ModelRouter
from foretell.questions.as_of import AsOf, instant
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, Target
from foretell.questions.trace import TraceEvent, TreeGrown
from foretell.runs.event_loop import run as run_on_loop
from foretell.tools.leakage_filter import FilteredTools
from foretell.tools.leakage_rules import LeakageRules
from foretell.tools.tool import SourceItem, ToolMaterial
from foretell.tools.web import SEARCH_SPEC

BRAIN = "foretell.practice.models.scripts:tree_script"
WORKERS = 1000
CHILDREN = 4
MODEL = f"openai:planner-{CHILDREN}"
PASSAGE = "The council met on the matter and will meet again before the summer recess, its speaker said. " * 4


@dataclass(frozen=True)
class Search:
    """Returns the same five pages immediately, because search engines run on other machines."""

    spec: ToolSpec = SEARCH_SPEC

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        """Return the same pages for every query."""
        pages = tuple(
            SourceItem(title=f"Report {n}", text=PASSAGE, url=f"https://news.example/{n}", published=as_of.at)
            for n in range(5)
        )
        return ToolMaterial(heading="Results", items=pages)


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Times of one tree."""

    rounds: int
    nodes: int
    calls: int
    wall: float
    cpu: float
    critical: float


def toolbox(question: Question, context: Context) -> FilteredTools:
    return FilteredTools.around(
        [Search()], LeakageRules(as_of=context.as_of, question=question, emit=context.emit), None
    )


async def grown(url: str, latency: float, rounds: int, folder: Path) -> Timing:
    question = Question(
        id=f"tree {rounds}",
        source="own",
        text="The harbour bridge opens by 31 December 2026.",
        due=instant("2026-07-01T12:00:00Z"),
        targets=(Target(id="yes"),),
        subtype=CLAIM,
    )
    events: list[TraceEvent] = []
    limits = {"openai": ModelLimits(at_once=2 * WORKERS)}
    with closing(Journal(folder / f"{rounds}.db")) as journal:
        async with ModelRouter(
            {"OPENAI_API_KEY": "x"}, journal=journal, limits=limits, addresses={"openai": f"{url}/v1"}
        ) as router:
            context = Context(
                as_of=question.as_of_in("live"),
                models=Models(roles=ModelRoles(agent=MODEL), model=router.within(Budget("run")), prices=router.prices),
                tools=toolbox,
                emit=events.append,
            )
            settings = TreeSettings(rounds=rounds, concurrency=WORKERS)
            began, used = time.monotonic(), time.process_time()
            forecaster = TreeForecaster(grounder=SearchGrounder(), settings=settings)
            answer = await attempt(forecaster, question, context)
            wall, cpu = time.monotonic() - began, time.process_time() - used
    assert isinstance(answer, Forecast), answer
    (tree,) = [event.document for event in events if isinstance(event, TreeGrown)]
    return Timing(
        rounds=rounds,
        nodes=len(tree["nodes"]),
        calls=answer.usage.calls,
        wall=wall,
        cpu=cpu,
        critical=(2 * rounds + 2) * latency,
    )


def describe(timing: Timing, first: Timing, peak: int) -> str:
    sizes = f"{timing.nodes:6,}  {timing.nodes / first.nodes:8.1f}  {timing.wall / first.wall:6.2f}"
    cost = f"{timing.calls:5,}  {timing.cpu / timing.calls * 1000:9.1f} ms"
    return f"{sizes}  {timing.wall / timing.critical:20.2f}  {cost}  {peak:7,}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=2.0, help="seconds of every call")
    parser.add_argument("--rounds", type=int, default=5, help="of the largest tree")
    options = parser.parse_args()
    timings: list[Timing] = []
    print("claims  × claims  × time  wall ÷ critical path  calls  CPU per call  at once")
    with (
        FakeModelProcess(script=BRAIN, latency=options.latency) as provider,
        tempfile.TemporaryDirectory() as folder,
    ):
        # The first tree only warms up modules, connections and the provider.
        run_on_loop(grown(provider.url, options.latency, 1, Path(folder)))
        for rounds in range(2, options.rounds + 1):
            provider.reset()
            timing = run_on_loop(grown(provider.url, options.latency, rounds, Path(folder)))
            timings.append(timing)
            print(describe(timing, timings[0], provider.stats()["peak"]))
    last = timings[-1]
    claims, times, path = last.nodes / timings[0].nodes, last.wall / timings[0].wall, last.wall / last.critical
    print(f"{claims:.0f} × the claims in {times:.1f} × the time, {path:.2f} × the critical path")
    verdict = "as promised" if times <= 12 and path <= 1.5 else "NOT as promised"
    print(f"{verdict}: at most 12 × the time for 54 × the claims, at most 1.5 × the critical path")


if __name__ == "__main__":
    main()
