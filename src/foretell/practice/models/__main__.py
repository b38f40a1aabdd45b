"""`python -m foretell.practice.models`: fake model providers until they are interrupted."""

import argparse
import asyncio
import contextlib
import signal
from importlib import import_module
from typing import Any

from foretell.practice.models.server import PracticeModels, Script


def main() -> None:
    """Listen, say where, and serve."""
    parser = argparse.ArgumentParser(prog="python -m foretell.practice.models", description=__doc__)
    parser.add_argument("--port", type=int, default=8091, help="0 takes a free one")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before every reply")
    parser.add_argument("--brain", help="module:function from a request to a reply; improvises without")
    options = parser.parse_args()
    _run(_serve(options))


def _run(work: Any) -> None:
    try:
        import uvloop  # pyright: ignore[reportMissingImports] - faster where it is installed
    except ImportError:
        asyncio.run(work)
    else:
        uvloop.run(work)


async def _serve(options: argparse.Namespace) -> None:
    fake = PracticeModels(_brain(options.brain), latency=options.latency)
    await fake.start(options.port, options.host)
    print(f"fake providers listen on {fake.url}", flush=True)
    stopped = asyncio.Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(sign, stopped.set)
    await stopped.wait()
    await fake.stop()


def _brain(written: str | None) -> Script | None:
    if written is None:
        return None
    module, _, name = written.partition(":")
    return getattr(import_module(module), name)


if __name__ == "__main__":
    main()
