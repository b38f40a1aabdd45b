"""The footer of every report names the command that wrote it, and contains no secret."""

import json
import re
import shlex
from collections.abc import Callable
from contextlib import closing
from html import unescape
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from tests.scoring.made_standings import arena

import foretell
from fakes.stored_run import StoredRunBuilder
from foretell.cli.commands import request_command
from foretell.cli.main import cli
from foretell.operations import score
from foretell.operations.arena import ArenaScores
from foretell.operations.grid import GridResult
from foretell.operations.requests.asking import AskRequest
from foretell.operations.requests.scoring import ScoreRequest
from foretell.operations.requests.setup import ServeRequest
from foretell.operations.table import OPERATIONS
from foretell.operations.tournament_results import TournamentResults
from foretell.report.arena_report import arena_report
from foretell.report.html import page
from foretell.report.provenance import Provenance, call_text, command_text, running_command
from foretell.report.study_result import StudyResult
from foretell.report.tournament_page import TournamentDay, markdown_summary, tournament_page
from foretell.runs.settings import Settings, load_settings
from foretell.runs.store import RunStore
from foretell.studies.inputs import StudyOptions

TREE = Path(__file__).parents[2] / "examples" / "trees" / "nvda.json"
PROGRAM = f"foretell {version('foretell')}"
CANARY = "sk-canary-0123456789abcdef"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fixed_clock: str) -> Path:
    """A working folder with its own home, two tables, and a fixed clock."""
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    outcome = rng.integers(0, 2, 40)
    lines = [
        f"{name},q{i},yes,{np.clip(0.5 + skill * (outcome[i] - 0.5) + rng.normal(0, 0.1), 0.01, 0.99):.3f}"
        for name, skill in (("good", 0.8), ("fair", 0.2))
        for i in range(40)
    ]
    Path("f.csv").write_text("\n".join(["forecaster,question,target,p", *lines]), encoding="utf-8")
    rows = [f"q{i},yes,{result},{'ab'[i % 2]}" for i, result in enumerate(outcome)]
    Path("o.csv").write_text("\n".join(["question,target,outcome,source", *rows]), encoding="utf-8")
    return tmp_path


def footer_of(document: str) -> str:
    """The text of a page's footer."""
    (text,) = re.findall(r'<footer class="made">(.*?)</footer>', document, re.DOTALL)
    return unescape(re.sub(r"<[^>]+>", "", text)).strip()


def run(words: list[str]) -> None:
    result = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output


def of_command(*arguments: str) -> Callable[[str], None]:
    """Write page.html and page.md, if there is one, with the command as a user runs it."""
    return lambda words: run([*words.split(), *arguments, *outs(words)])


def of_result(make: Callable[[], Any], *arguments: str) -> Callable[[str], None]:
    """Write them with the command, but with a given result, because computing it takes long."""

    def write(words: str) -> None:
        operation = OPERATIONS[words]

        def answer(request: Any) -> Any:
            return make()

        command = request_command(operation.request, answer, name=words, files=operation.files)
        result = CliRunner().invoke(command, [*arguments, *outs(words)], catch_exceptions=False)
        assert result.exit_code == 0, result.output

    return write


def outs(words: str) -> list[str]:
    suffixes = [suffix for suffix in (".html", ".md") if suffix in OPERATIONS[words].files]
    return [word for suffix in suffixes for word in ("--out", f"page{suffix}")]


def board() -> Any:
    return score.score(ScoreRequest(forecasts=Path("f.csv"), outcomes=Path("o.csv"), bootstrap="draws=200"))


def stored_run(words: str) -> None:
    with closing(RunStore(load_settings().store)) as store:
        run_id = StoredRunBuilder(questions=1, trials=1, steps=2).keep(store)
    of_command(run_id)(words)


STUDY = StudyResult(name="grid", title="T", sentences=("It is so.",), tables=(), settings={"draws": 300, "seed": 5})
PAGES: dict[str, tuple[Callable[[str], None], str]] = {
    "score": (
        of_command("-f", "f.csv", "-o", "o.csv", "--by", "source", "--bootstrap", "seed=3"),
        "seed 3, 2,000 draws",
    ),
    "compare": (
        of_command("good", "fair", "-f", "f.csv", "-o", "o.csv", "--bootstrap", "seed=3"),
        "seed 3, 2,000 draws",
    ),
    "tree show": (of_command(str(TREE)), ""),
    "tree grow": (of_result(lambda: foretell.show_tree(TREE), "It rains."), ""),
    "show": (stored_run, ""),
    "audit": (of_command("--filter", "rules"), ""),
    "record": (of_command(), ""),
    "arena score": (
        of_result(lambda: ArenaScores(report=arena_report(arena(events=40), bootstrap="draws=200")), "a.yaml"),
        "200",
    ),
    "grid": (
        of_result(lambda: GridResult(name="g", planned=(), budget=None, ended={}, study=STUDY), "g.yaml"),
        "seed 5, 300 draws",
    ),
    "tournament results": (
        of_result(lambda: TournamentResults(entered=(), boards={"forecastbench": board()})),
        "seed 0, 200 draws",
    ),
}
"""Words of a command that writes pages → how to write one, and what its footer says about resampling."""


def test_every_command_that_writes_pages_is_tested_here():
    assert {words for words, result in OPERATIONS.items() if ".html" in result.files} == {*PAGES, "demo"}


@pytest.mark.parametrize("words", PAGES)
def test_pages_and_markdown_name_the_command_that_wrote_them(words: str, folder: Path, fixed_clock: str):
    write, drawn = PAGES[words]
    write(words)
    document = Path("page.html").read_text(encoding="utf-8")
    footer = footer_of(document)
    assert footer.startswith(f"Made by {PROGRAM} on {fixed_clock} with foretell {words}")
    assert "--out page.html" in footer
    assert drawn in footer
    assert ("draws" in footer) == bool(drawn)
    if ".md" in OPERATIONS[words].files:
        last = Path("page.md").read_text(encoding="utf-8").rstrip().splitlines()[-1]
        assert last.replace("`", "") == footer
    write(words)
    if words != "show":  # It would be another run.
        assert Path("page.html").read_text(encoding="utf-8") == document


def test_the_command_in_a_footer_writes_the_same_page_again(folder: Path):
    Path("my tables").mkdir()
    for name in ("f.csv", "o.csv"):
        Path(name).rename(Path("my tables") / name)
    tables = ["my tables/f.csv", "-o", "my tables/o.csv"]
    run(["score", *tables, "--by", "source", "--bootstrap", "draws=300,seed=2", "--out", "b.html"])
    document = Path("b.html").read_text(encoding="utf-8")
    _, command = footer_of(document).split(" with foretell ")
    Path("b.html").unlink()
    run(shlex.split(command.partition(". Intervals")[0]))
    assert Path("b.html").read_text(encoding="utf-8") == document


def test_a_page_written_later_in_python_names_the_call_that_made_its_result(folder: Path):
    settings = Settings(home=folder / "home")
    with closing(RunStore(settings.store)) as store:
        first, second = (StoredRunBuilder(questions=1, trials=n, steps=2).keep(store) for n in (1, 2))
    results = [foretell.show(result, settings=settings) for result in (first, second)]
    pages = [(footer_of(result.to_html()), result.to_markdown()) for result in results]
    for run_id, texts in zip((first, second), pages, strict=True):
        assert all(f"foretell show {run_id}" in text for text in texts)


def test_a_study_keeps_its_command(folder: Path):
    command = "foretell study calibration --bootstrap draws=200 --forecasts f.csv --outcomes o.csv --section line"
    run([*command.split()[1:], "--out", "s.html", "--out", "s.json"])
    footer = footer_of(Path("s.html").read_text(encoding="utf-8"))
    assert f"with {command} --out s.html" in footer
    assert "seed 0, 200 draws" in footer
    assert json.loads(Path("s.json").read_text(encoding="utf-8"))["command"].startswith(command)
    options: Any = {"forecasts": "f.csv", "outcomes": "o.csv", "bootstrap": "draws=200", "section": "line"}
    assert foretell.study("calibration", **options).command == command


def test_a_study_by_an_own_function_names_the_call():
    def my_study(inputs: Any, options: StudyOptions) -> StudyResult:
        return StudyResult(name="mine", title="T", sentences=("It is so.",), tables=())

    assert foretell.study(my_study, bootstrap="draws=200").command == (
        "foretell.study(<my_study>, bootstrap='draws=200')"
    )


def test_a_page_of_a_tournament_names_its_command(fixed_clock: str):
    day = TournamentDay(
        tournament="t", account="a", day="2026-07-01", visits=1, rows=(), skipped={}, notes=(),
        billed=0, billed_in_all=0,
        budget=None,
    )  # fmt: skip
    with running_command("foretell tournament run metaculus:t"):
        assert fixed_clock in footer_of(tournament_page(day))
        assert "`foretell tournament run metaculus:t`" in markdown_summary(day)


@pytest.mark.parametrize(
    "command",
    [
        command_text("serve", ServeRequest(token=CANARY)),
        call_text("study", "x", api_key=CANARY),
        command_text("ask", AskRequest(question="Will it?", model=f"openai:m@https://me:{CANARY}@host.example/v1")),
        f"foretell data show 'https://{CANARY}@host.example/x'",
        f"foretell data show 'https://host.example/x?limit=3&api_key={CANARY}'",
        f"foretell ask 'Is {CANARY} my key?'",
    ],
)
def test_no_secret_is_in_a_footer(command: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    if "my key" not in command:
        monkeypatch.delenv("OPENAI_API_KEY")
    with running_command(command):
        document, text = page("T"), Provenance.now().to_markdown()
    assert "•••" in footer_of(document)
    assert "canary" not in document + text


def test_a_token_set_in_the_environment_is_not_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FORETELL_TOKEN", CANARY)
    assert CANARY not in command_text("serve", ServeRequest.read({"port": 8001}))


def test_markup_in_a_command_is_text():
    evil = command_text("ask", AskRequest(question="</code><script>alert(1)</script> `x` [a](http://b.example)"))
    with running_command(evil):
        document, text = page("T"), Provenance.now().to_markdown()
    assert "<script>alert" not in document
    assert "<script>alert" in unescape(document)
    assert "with `` foretell ask" in text


def test_a_path_in_the_users_home_does_not_name_the_user(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", "/home/alice")
    request = ScoreRequest(forecasts=Path("/home/alice/my work/f.csv"), by=("source", "kind"), gamma=1)
    assert (
        command_text("score", request)
        == "foretell score --forecasts ~/'my work/f.csv' --by source --by kind --gamma 1.0"
    )


def test_outside_any_command_the_footer_names_program_and_date(fixed_clock: str):
    assert footer_of(page("T")) == f"Made by {PROGRAM} on {fixed_clock}."
    with running_command("foretell demo"), running_command("foretell score"):
        assert "foretell demo" in footer_of(page("T"))
