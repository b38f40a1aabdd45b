"""The examples of the README and the documentation run, page by page, as a reader would type them.

Blocks marked `bash` and `python` are run, in their order, in one empty folder per page, without a network and without
keys. A block marked `text` that comes after one marked `bash` is what the commands of the page printed up to there; a
line with a single … stands for what is left out. Blocks marked `sh` are only checked for commands and options that
exist: they need a key or a network.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fakes.processes import forked_on_path
from foretell import plugins
from foretell.models.facts import facts_of

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.S | re.M)
MODEL = re.compile(r"\b(?:openai|openrouter|anthropic|google|xai):([a-z][a-z0-9/-]+-[a-z0-9./-]*[a-z0-9])")
SECONDS = 120
CHANGING = re.compile(
    r"\b[0-9a-f]{10,64}\b|localhost:\d+|file://[^\s,]+|\S+/(?=practice/)|[\d,]+ tokens|\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*"
)
"""Ids, ports, folders, sizes of prompts and times of day, which differ from run to run."""
TOKEN = re.compile(r"\d[\d,]*\.?\d*|\w+|[^\w\s]")


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return the language and the text of every block."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def examples(page: Path) -> list[tuple[str, str]]:
    return [(language, text) for language, text in blocks(page) if language in ("bash", "python")]


def tokens(text: str) -> list[str]:
    return TOKEN.findall(CHANGING.sub("changing", text))


def same(shown: str, printed: str) -> bool:
    """Whether two tokens are equal; the last digit of a number may depend on the processor."""
    if shown == printed:
        return True
    try:
        a, b = (float(token.replace(",", "")) for token in (shown, printed))
    except ValueError:
        return False
    return "." in shown and abs(a - b) <= 1.01 * 10 ** -len(shown.partition(".")[2])


def missing_part(shown: str, printed: str) -> str | None:
    """Return the first part of a block, between lines with a …, that was not printed after the part before it."""
    there, start = tokens(printed), 0
    for part in re.split(r"^…$", shown, flags=re.M):
        wanted = tokens(part)
        places = range(start, len(there) - len(wanted) + 1)
        found = (at for at in places if all(map(same, wanted, there[at : at + len(wanted)])))
        if (at := next(found, None)) is None:
            return part
        start = at + len(wanted)
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, programs = tmp_path / "work", tmp_path / "bin"
    folder.mkdir()
    programs.mkdir()
    monkeypatch.chdir(folder)
    for name in [name for name in os.environ if name.endswith(("_API_KEY", "_TOKEN")) or name.startswith("FORETELL_")]:
        monkeypatch.delenv(name)
    for name, value in {"FORETELL_HOME": tmp_path / "home", "FORETELL_NETWORK": "off", "COLUMNS": 100}.items():
        monkeypatch.setenv(name, str(value))
    path = (str(programs), str(Path(sys.executable).parent), os.environ["PATH"])
    monkeypatch.setenv("PATH", os.pathsep.join(path))
    monkeypatch.setattr(plugins, "_REGISTERED", {})  # What a page registers is gone after it.
    names: dict[str, object] = {}
    printed, notes, before = "", "", ""
    with forked_on_path(programs):
        for language, text in blocks(page):
            if language == "python":
                exec(compile(text, str(page), "exec"), names)
            elif language == "bash":
                done = subprocess.run(
                    ["bash", "-euo", "pipefail", "-c", text], capture_output=True, text=True, timeout=SECONDS
                )
                assert done.returncode == 0, f"{text}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
                printed, notes = printed + done.stdout, notes + done.stderr
            elif language == "text" and before == "bash":
                missing = missing_part(text, printed + notes)
                assert missing is None, f"not printed:\n{missing}\n{printed}\n{notes}"
            before = language


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_an_example_that_runs(page: Path) -> None:
    assert examples(page)


def test_templates_and_examples_name_forecasters_and_rules_as_they_are_called_now() -> None:
    named = re.compile(r"(?:(forecaster|Without a model)|rule): (\[[^]]*\]|(?<=model: )[\w, -]+|[\w-]+)")
    found = [
        (path.name, former)
        for path in [*(ROOT / "src/foretell/operations").rglob("*.yaml"), *(ROOT / "examples").rglob("*.yaml")]
        for forecaster, listed in named.findall(path.read_text(encoding="utf-8"))
        for former in plugins.FORMER_NAMES["forecasters" if forecaster else "synthesis_rules"]
        if former in re.findall(r"[\w-]+", listed)
    ]
    assert found == []


def test_no_page_example_or_template_uses_a_model_that_is_switched_off() -> None:
    templates = [*(ROOT / "src/foretell/operations").rglob("*"), *(ROOT / "examples").rglob("*.yaml")]
    named: set[str] = set()
    for path in [*PAGES, *(path for path in templates if path.suffix in (".yaml", ".py", ".md"))]:
        named |= set(MODEL.findall(path.read_text(encoding="utf-8")))
    assert len(named) > 5
    assert not [name for name in sorted(named) if facts_of(name).ends is not None]
