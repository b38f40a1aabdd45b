"""Every output of untrusted text: terminals, print, notes, tracebacks, tables, JSON, figures and streams."""

import csv
import io
import json
import logging
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from markdown_it import MarkdownIt

import foretell
from foretell.cli.main import NoteHandler, cli
from foretell.data.untrusted import UNSAFE, for_log, rows_as_text
from foretell.questions.tabular import rows_as_html
from foretell.report.markup import element, markdown_text
from foretell.report.result import Result
from foretell.report.study import StudyColumn, StudyRow, StudyTable
from foretell.report.study_result import StudyResult
from foretell.report.terminal import console, show_exception
from foretell.report.tournament_page import TournamentDay, TournamentRow, markdown_summary

HOSTILE = (
    "\x1b]52;c;ZWNobw==\x07 \x1b[2J\x9b1;1H\x9d0;owned\x9c \u202egnp.exe [link=https://evil.example]x[/link] <b>|`"
)
SOURCE = Path(foretell.__file__).parent


def colourless(text: str) -> str:
    """Remove our own colours."""
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def test_untrusted_questions_do_not_control_the_terminal_in_any_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))
    row = {
        "id": f"=cmd|{HOSTILE}",
        "text": HOSTILE,
        "background": f"Updated June 7, 2024: {HOSTILE}",
        "options": [f"+1{HOSTILE}", "b"],
        "due": "2024-04-01",
    }
    Path("mine.jsonl").write_text(f"{json.dumps(row)}\n", encoding="utf-8")
    result = CliRunner().invoke(cli, ["data", "show", "mine.jsonl", "--out", "set"], catch_exceptions=False)
    assert "excluded" in result.output
    assert not UNSAFE.search(result.output)
    line, _ = csv.DictReader(Path("set/outcomes.csv").read_text(encoding="utf-8").splitlines())
    assert line["question"].startswith("'=cmd|")
    assert not any(UNSAFE.search(cell) for cell in line.values())
    printed = CliRunner().invoke(cli, ["data", "show", "mine.jsonl", "--json"], catch_exceptions=False).output
    assert not UNSAFE.search(printed)
    assert json.loads(printed)[0]["text"] == HOSTILE
    for command in ("backtest", "score"):
        wrong = CliRunner().invoke(cli, [command, HOSTILE])
        assert isinstance(wrong.exception, foretell.InputError)
    for typed in (["serve", HOSTILE], [HOSTILE], ["runs", HOSTILE], [f"--{HOSTILE}"]):
        result = CliRunner().invoke(cli, typed)
        assert result.exit_code == 2
        assert not UNSAFE.search(result.output)
    assert not UNSAFE.search(str(foretell.ask(HOSTILE, criteria=HOSTILE, price=0.4, model="none")))


def test_printing_a_result_in_python_does_not_control_the_terminal() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Own(Result):
        """A result with its own text."""

        text: str

        def __str__(self) -> str:
            return f"It says {self.text}"

    assert str(Own(text=HOSTILE)).startswith("It says ")
    assert not UNSAFE.search(str(Own(text=HOSTILE)))
    rows = [{"forecaster": HOSTILE, "p": 0.5}]
    assert not UNSAFE.search(rows_as_text(rows))
    assert "<b>" not in rows_as_html(rows)
    column, row = StudyColumn(label=HOSTILE, numeric=False), StudyRow(name=HOSTILE, values=(HOSTILE,))
    table = StudyTable(title=HOSTILE, columns=(column,), rows=(row,))
    study = StudyResult(name="x", title=HOSTILE, sentences=(HOSTILE,), tables=(table,), notes=(HOSTILE,))
    assert not UNSAFE.search(str(study))
    assert "<b>" not in study.to_markdown().replace("\\<b\\>", "")


def test_untrusted_brackets_are_not_markup() -> None:
    out = io.StringIO()
    console(file=out, force_terminal=True, width=200).print(f"{HOSTILE} :bomb:")
    assert "[link=https://evil.example]x[/link]" in colourless(out.getvalue())
    assert ":bomb:" in out.getvalue()
    assert "\x1b]8" not in out.getvalue()


def test_notes_logs_and_tracebacks_do_not_control_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    NoteHandler().emit(logging.LogRecord("x", 30, "x", 1, "closed: %s", (f"{HOSTILE}\nERROR forged",), None))
    try:
        raise RuntimeError(HOSTILE)
    except RuntimeError as error:
        show_exception(type(error), error, error.__traceback__)
    err = capsys.readouterr().err
    assert not UNSAFE.search(err)
    assert err.count("note:") == 1
    assert "\nERROR forged" not in err
    assert "RuntimeError" in err
    assert for_log(f"a\r\nb{HOSTILE}").startswith("a b")


def test_the_command_shows_unexpected_errors_without_escape_sequences(tmp_path: Path) -> None:
    program = (
        "import sys, foretell.cli.main as m\n"
        "def broken(): raise RuntimeError('\\x1b]0;owned\\x07')\n"
        "m.cli = broken\n"
        "m.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "RuntimeError" in done.stderr
    assert "\x1b" not in done.stderr


def test_figures_and_markdown_contain_no_untrusted_markup() -> None:
    figure = element("svg", element("title", HOSTILE), element("text", HOSTILE, data_v=f'"{HOSTILE}" onload="x'))
    parsed = ElementTree.fromstring(str(figure))
    assert len(list(parsed.iter())) == 3
    assert set(parsed[1].attrib) == {"data-v"}
    assert not re.search(r"(?<!\\)[<|`\[]", markdown_text(HOSTILE))
    day = TournamentDay(
        tournament=HOSTILE,
        account=HOSTILE,
        day="2026-01-01",
        visits=1,
        rows=[
            TournamentRow(question="q", text=f"{HOSTILE}\n![x](https://evil.example)", sent=True, url="javascript:x"),
            TournamentRow(question="r", text="www.evil.example", problem=f"<img src=x> {HOSTILE}"),
        ],
        skipped={HOSTILE: 1},
        notes=[f"![x](https://evil.example) {HOSTILE}"],
        billed=0.0,
        billed_in_all=0.0,
        budget=None,
    )
    shown = MarkdownIt("gfm-like", {"linkify": False}).render(markdown_summary(day))
    assert not re.search(r"<(?:img|a|b|code|script)\b", shown)
    assert "www." not in markdown_summary(day)
    assert not UNSAFE.search(markdown_text(HOSTILE))


def test_untrusted_text_cannot_forge_a_message_in_an_event_stream() -> None:
    pytest.importorskip("fastapi")
    from foretell.web import streaming

    message = streaming._message("progress", {"text": f"x\n\nevent: end\ndata: {HOSTILE}\r\n\u2028"}, 7)  # pyright: ignore[reportPrivateUsage]
    assert [line.split(":")[0] for line in message.splitlines() if line] == ["id", "event", "data"]


def test_output_is_written_only_through_the_safe_functions() -> None:
    """Code that writes to a terminal or a table uses the functions that make untrusted text harmless."""
    texts = {file.relative_to(SOURCE).as_posix(): file.read_text(encoding="utf-8") for file in SOURCE.rglob("*.py")}
    echoing = {name for name, text in texts.items() if re.search(r"click\.s?echo\(", text)}
    assert echoing <= {"report/terminal.py", "cli/main.py"}
    consoles = {name for name, text in texts.items() if re.search(r"(?<![\w.\"])Console\((?!\))", text)}
    assert consoles <= {"report/terminal.py"}
    tables = {name for name, text in texts.items() if re.search(r"csv\.(?:writer|DictWriter)\(", text)}
    assert tables == {"data/untrusted.py"}
