"""Builds the reference pages of the documentation: commands, Python and conformance. mkdocs.yml names this file."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
API_HEAD = """# Python reference

Every public name of `foretell` and `foretell.types`, with its signature. [Python](python.md) shows how they
work together.
"""


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Add the generated pages to those in the folder of the documentation."""
    for name, text in (("commands.md", commands()), ("api.md", api()), ("conformance.md", conformance())):
        files.append(File.generated(config, name, content=text))
    return files


def commands() -> str:
    """The help of every command."""
    arguments = [sys.executable, "-m", "foretell", "--reference"]
    return subprocess.run(arguments, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def api() -> str:
    """The public names in alphabetical order, functions first."""
    import foretell.types

    names = sorted(foretell.__all__, key=lambda name: (name[0].isupper(), name.lower()))
    typed = [f"::: foretell.types.{name}" for name in foretell.types.__all__]
    functions = [*(f"::: foretell.{name}" for name in names), "::: foretell.operations.answers.score_answers"]
    return "\n".join([API_HEAD, *functions, "", *typed, ""])


def conformance() -> str:
    """What the tests check about each outside service."""
    sys.path.insert(0, str(ROOT / "tests"))
    from conformance.table import all_checks, table

    return table(all_checks())
