"""What a kernel would otherwise work out anew at every start: compiled modules and the list of fonts.

A sandbox can write neither where the next one would find it, so it is done once outside, in the ordinary way: Python
and matplotlib write their own caches when they are first used.
"""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL
from importlib.util import cache_from_source, find_spec
from pathlib import Path

NEEDED = ("ipykernel", "IPython", "pandas", "matplotlib")
IMPORTS = ("ipykernel.kernelapp", "pandas", "matplotlib.pyplot", "matplotlib_inline.backend_inline")
PATIENCE = 120.0


async def prepare() -> Path | None:
    """See to it that the caches are there, as far as this user may write them; the list of fonts, if there is one."""
    present = [name for name in NEEDED if find_spec(name) is not None]
    if not all(map(_compiled, present)) or ("matplotlib" in present and font_list() is None):
        await _import_all()
    return font_list()


def font_list() -> Path | None:
    """Matplotlib's own list of the fonts of this machine, the newest if there are several."""
    own = os.environ.get("MPLCONFIGDIR")
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    found = (Path(own) if own else Path(cache) / "matplotlib").glob("fontlist-*.json")
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def _compiled(package: str) -> bool:
    found = find_spec(package)
    return found is not None and found.origin is not None and Path(cache_from_source(found.origin)).exists()


async def _import_all() -> None:
    """Whatever goes wrong here only makes kernels start more slowly."""
    lines = "\n".join(f"try: import {name}\nexcept ImportError: pass" for name in IMPORTS)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-c", lines), stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, cwd="/"
    )
    try:
        async with asyncio.timeout(PATIENCE):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
