"""Every way out for strangers' words: terminals, print, notes, tracebacks, tables, JSON, figures and streams."""

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
from foretell.cli import cli
from foretell.cli.main import NoteHandler
from foretell.data import UNSAFE, for_log
from foretell.operations import Result
from foretell.report import (
    StudyColumn,
    StudyResult,
    StudyRow,
    StudyTable,
    TournamentDay,
    TournamentRow,
    console,
    element,
    markdown_summary,
    markdown_text,
    show_exception,
)
from foretell.scoring import rows_as_html, rows_as_text

HOSTILE = (
    "\x1b]52;c;ZWNobw==\x07 \x1b[2J\x9b1;1H\x9d0;owned\x9c \u202egnp.exe [link=https://evil.example]x[/link] <b>|`"
)
SOURCE = Path(foretell.__file__).parent


def colourless(text: str) -> str:
    """Without the colours that are ours."""
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def test_questions_of_strangers_steer_nothing_on_any_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    told = CliRunner().invoke(cli, ["data", "show", "mine.jsonl", "--out", "set"], catch_exceptions=False)
    assert "quarantined" in told.output
    assert not UNSAFE.search(told.output)
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
        told = CliRunner().invoke(cli, typed)
        assert told.exit_code == 2
        assert not UNSAFE.search(told.output)
    assert not UNSAFE.search(str(foretell.ask(HOSTILE, criteria=HOSTILE, price=0.4, model="none")))


def test_printing_a_result_in_python_steers_nothing() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Own(Result):
        """Has words of its own."""

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


def test_brackets_of_strangers_are_no_markup() -> None:
    out = io.StringIO()
    console(file=out, force_terminal=True, width=200).print(f"{HOSTILE} :bomb:")
    assert "[link=https://evil.example]x[/link]" in colourless(out.getvalue())
    assert ":bomb:" in out.getvalue()
    assert "\x1b]8" not in out.getvalue()


def test_notes_logs_and_tracebacks_steer_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    NoteHandler().emit(logging.LogRecord("x", 30, "x", 1, "closed: %s", (f"{HOSTILE}\nERROR forged",), None))
    try:
        raise RuntimeError(HOSTILE)
    except RuntimeError as error:
        show_exception(type(error), error, error.__traceback__)
    told = capsys.readouterr().err
    assert not UNSAFE.search(told)
    assert told.count("note:") == 1
    assert "\nERROR forged" not in told
    assert "RuntimeError" in told
    assert for_log(f"a\r\nb{HOSTILE}").startswith("a b")


def test_the_command_shows_unforeseen_errors_without_their_sequences(tmp_path: Path) -> None:
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


def test_figures_and_markdown_hold_no_markup_of_strangers() -> None:
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


def test_a_stream_of_events_has_no_message_of_strangers() -> None:
    pytest.importorskip("fastapi")
    from foretell.web import streaming

    message = streaming._message("told", {"text": f"x\n\nevent: end\ndata: {HOSTILE}\r\n\u2028"}, 7)  # pyright: ignore[reportPrivateUsage]
    assert [line.split(":")[0] for line in message.splitlines() if line] == ["id", "event", "data"]


def test_no_other_way_out_is_opened() -> None:
    """Whoever writes to a terminal or a table does it through the functions that make strangers' words harmless."""
    texts = {file.relative_to(SOURCE).as_posix(): file.read_text(encoding="utf-8") for file in SOURCE.rglob("*.py")}
    echoing = {name for name, text in texts.items() if re.search(r"click\.s?echo\(", text)}
    assert echoing <= {"report/terminal.py", "cli/main.py"}
    consoles = {name for name, text in texts.items() if re.search(r"(?<![\w.\"])Console\((?!\))", text)}
    assert consoles <= {"report/terminal.py"}
    tables = {name for name, text in texts.items() if re.search(r"csv\.(?:writer|DictWriter)\(", text)}
    assert tables == {"data/untrusted.py"}
