"""`python -m foretell.practice.exchange`: the simulated exchange, until interrupted, for other processes to read."""

import argparse
import asyncio
import contextlib
import signal

from foretell.practice.exchange.chance import SimulationSettings
from foretell.practice.exchange.server import KALSHI, PAGES, SITE, SimulatedExchange
from foretell.practice.exchange.world import SimulatedWorld
from foretell.practice.services import ENGINES


def main() -> None:
    """Listen, say where, and serve."""
    usual = SimulationSettings()
    parser = argparse.ArgumentParser(prog="python -m foretell.practice.exchange", description=__doc__)
    parser.add_argument("--clock", required=True, help="file:PATH, a file that holds the simulated moment")
    parser.add_argument("--seed", type=int, default=usual.seed)
    parser.add_argument("--days", type=int, default=usual.days)
    parser.add_argument("--events-per-day", type=float, default=usual.events_per_day)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before every reply")
    parser.add_argument("--site", default=SITE, help="what the addresses of news begin with; `here`: this server")
    asyncio.run(_serve(parser.parse_args()))


async def _serve(options: argparse.Namespace) -> None:
    settings = SimulationSettings(seed=options.seed, days=options.days, events_per_day=options.events_per_day)
    # Pages are named, not numbered: a fence refuses hosts that are only a number.
    here = f"http://localhost:{options.port}{PAGES}"
    if options.site == "here" and not options.port:
        raise SystemExit("--site here needs --port")
    exchange = SimulatedExchange(
        SimulatedWorld(settings), options.clock, site=here if options.site == "here" else options.site
    )
    stopped = asyncio.Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(sign, stopped.set)
    async with exchange.server(port=options.port, latency=options.latency) as server:
        print(f"FORETELL_KALSHI_URL={server.url}{KALSHI}", flush=True)
        for engine in ENGINES:
            print(f"FORETELL_{engine.upper()}_URL={server.url}/{engine}", flush=True)
        print(f"serving a world from {settings.start} to {settings.ends}", flush=True)
        await stopped.wait()


if __name__ == "__main__":
    main()
