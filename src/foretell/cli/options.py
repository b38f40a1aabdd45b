"""What all commands share: `--json`, `--out`, printing a result, progress."""

import json
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from foretell.operations.result import Result
    from foretell.runs.backtest import BacktestProgress

Command = TypeVar("Command", bound=Callable[..., Any])

FILE_PATH = click.Path(path_type=Path, dir_okay=False)


def prints_result(*suffixes: str, default: Path | None = None) -> Callable[[Command], Command]:
    """Give a command `--json` and, where files can be written, `--out`; the command returns a result to be printed.

    Args:
        suffixes: Formats that the result can be written in, such as ".json".
        default: A file that is written where nothing else is asked for.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def called(*, as_json: bool, out: tuple[Path, ...] = (), **values: Any) -> None:
            result = command(**values)
            if result is not None:
                files = out or ((default,) if default is not None and not as_json else ())
                show_result(result, as_json=as_json, out=files)

        if suffixes:
            called = out_option(*suffixes, default=default)(called)
        return json_option(called)  # pyright: ignore[reportReturnType]

    return decorate


def json_option(command: Command) -> Command:
    """`--json`: a flag."""
    return click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")(command)


def out_option(*suffixes: str, default: Path | None = None) -> Callable[[Command], Command]:
    """`--out FILE`: a file to write, its format said by its suffix, which is checked before anything is done."""

    def check(context: click.Context, _: click.Parameter, paths: tuple[Path, ...]) -> tuple[Path, ...]:
        for path in paths:
            if path.suffix not in suffixes:
                folder = "" if path.suffix else _folder_hint(context.command, path)
                raise click.BadParameter(f"{path} should end in {_alternatives(suffixes)}{folder}")
        return paths

    help = f"Write the result to a file that ends in {_alternatives(suffixes)}; may be repeated."
    help += f"  [default: {default}]" if default else ""
    return click.option("--out", type=FILE_PATH, metavar="FILE", multiple=True, callback=check, help=help)


def show_result(result: "Result", *, as_json: bool = False, out: tuple[Path, ...] = ()) -> None:
    """Write a result to its files, then print it; what a user should know besides goes to the error stream."""
    if out:
        from foretell.report.outputs import write_outputs

        for path in write_outputs(result, out):
            click.echo(f"Wrote {path}", err=True)
    for warning in result.warnings:
        click.echo(f"note: {warning}", err=True)
    if as_json:
        click.echo(result.to_json())
    else:
        from foretell.report.terminal import console

        result.print(console())
    if not result.ok:
        sys.exit(1)


def write_json(data: Any, path: Path) -> None:
    """To a file, or to standard output for `-`."""
    text = json.dumps(data, ensure_ascii=False, indent=1)
    if str(path) == "-":
        click.echo(text)
    else:
        write_text(path, text)


def write_text(path: Path, text: str) -> None:
    """The file appears whole or not at all."""
    from foretell.data.atomic_file import write_atomically

    write_atomically(path, text.encode())


@contextmanager
def progress_bar(what: str) -> "Generator[BacktestProgress]":
    """A bar with the time left on the error stream, shown only to a person at a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        task = bars.add_task(what, total=None)

        def advance(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total)

        yield advance


def _folder_hint(command: click.Command, path: Path) -> str:
    """What to say instead where a folder was meant."""
    flags = [flag for option in command.params for flag in option.opts if flag in ("--tables", "--folder")]
    return f"; for a folder say {flags[0]} {path}" if flags else ""


def _alternatives(suffixes: tuple[str, ...]) -> str:
    """Suffixes as a sentence has them.

    >>> _alternatives((".json", ".csv", ".html")), _alternatives((".json",))
    ('.json, .csv or .html', '.json')
    """
    *others, last = suffixes
    return f"{', '.join(others)} or {last}" if others else last
