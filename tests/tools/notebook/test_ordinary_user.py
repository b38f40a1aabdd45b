"""The sandbox contains attacks for an ordinary user as well as for root."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.tools.notebook.conftest import Canaries

from foretell.tools.notebook.sandbox import becoming, python_environment

NOBODY = 65_534
ROOT = Path(__file__).parents[3]


def test_attacks_are_contained_for_an_ordinary_user(sandboxed: None, canaries: Canaries) -> None:
    with tempfile.TemporaryDirectory() as stage:
        # An ordinary user needs no switch.
        change = becoming(NOBODY, (*python_environment(), ROOT), Path(stage)) if os.geteuid() == 0 else []
        done = subprocess.run(
            [*change, sys.executable, "-B", "-m", "tests.tools.notebook.as_ordinary_user", json.dumps(canaries.names)],
            capture_output=True,
            text=True,
            cwd="/",
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}",
                "FORETELL_CANARY_KEY": "sk-canary",
            },
        )
    assert done.returncode == 0, done.stderr[-3_000:]
    told_back = json.loads(done.stdout)
    assert told_back["user"] != 0
    assert told_back["tried"] >= 45
    assert told_back["faults"] == {}
    canaries.check()
