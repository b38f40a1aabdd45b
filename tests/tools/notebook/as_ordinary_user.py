"""Run by a test as another user: runs the probes and some of the worst attacks, and prints the results as JSON."""

import asyncio
import json
import os
import sys
from typing import Any

from tests.tools.notebook.conftest import TIGHT
from tests.tools.notebook.hostile_notebooks import DESTROYERS, PROBES

from foretell.questions.as_of import AsOf
from foretell.tools.notebook.pool import KernelPool
from foretell.tools.notebook.session import open_notebook

CUTOFF = AsOf.day("2025-10-26")
WORST = {
    *("fork bomb", "memory of many processes", "large files without names", "countless temporary files"),
    *("loop in C", "leaving at once"),
}


async def main(names: dict[str, str]) -> dict[str, Any]:
    faults: dict[str, str | None] = {}
    async with KernelPool(warm=1, preload=(), limits=TIGHT) as pool:
        async with open_notebook(pool, CUTOFF) as session:
            for attack in PROBES:
                step = await session.run([attack.cell(names)], seconds=attack.seconds)
                faults[attack.name] = attack.fault(step.results[-1])
        for attack in DESTROYERS:
            if attack.name in WORST:
                async with open_notebook(pool, CUTOFF) as session:
                    step = await session.run([attack.cell(names)], seconds=attack.seconds)
                    faults[attack.name] = attack.fault(step.results[-1])
    return {"user": os.geteuid(), "tried": len(faults), "faults": {name: text for name, text in faults.items() if text}}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
