"""The command line: a table of commands, each imported only when it is called."""

import gc
import logging
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from types import TracebackType
from typing import Any

import click

SECTIONS = {
    "Forecast": {
        "ask": "Ask one question and get a researched probability with reasons.",
        "record": "Your own questions: how good you were; confirm an outcome.",
        "tree": "Break a claim into smaller claims, estimate each, combine them.",
        "run": "Run a forecaster on many questions; continue a stored run.",
        "backtest": "Test forecasters on past questions, each as of its own date.",
        "grid": "Run an experiment with several settings, or list them.",
    },
    "Measure": {
        "score": "Score forecasts against their outcomes.",
        "compare": "Which forecaster is better, and is it more than chance?",
        "calibrate": "Learn from past outcomes how to correct and combine forecasts.",
        "study": "Ready-made experiments on forecasts and forecasters.",
        "audit": "Did a run see the future? A second model checks what it read.",
    },
    "Runs": {
        "runs": "List your runs: progress and scores; edit, stop or delete them.",
        "show": "Show a run's answers and every step; write a report.",
        "replay": "Recompute a run or a tree's notebooks offline, and compare.",
        "worker": "Work on runs that several machines share.",
    },
    "Questions and data": {
        "data": "Show, download and build question sets.",
        "corpus": "Add your own dated documents and search them as of a date.",
    },
    "Arena and tournaments": {
        "arena": "Run a live leaderboard: collect events, forecast, score.",
        "tournament": "Take part in a tournament: forecast open questions and submit.",
        "submit": "Submit forecasts to Metaculus, Prophet Arena or ForecastBench.",
        "ledger": "Show what was submitted and verify the record.",
    },
    "Browser and assistants": {
        "serve": "Open foretell in your browser, or write its pages as files.",
        "mcp": "Give AI assistants access to foretell (MCP).",
    },
    "Set up and try": {
        "demo": "See everything in a minute; no key, no network.",
        "init": "Create a settings file for a run, grid, arena or bot.",
        "practice": "Try everything with simulated models and services.",
        "doctor": "Check your set-up and services; show how to fix problems.",
        "models": "List models with prices and abilities.",
    },
}
"""Heading → command → one line of help. Kept here so that --help imports no command."""
COMMANDS = {name: line for section in SECTIONS.values() for name, line in section.items()}
PLACES = {
    "worker": "foretell.cli.serve:worker",
    "study": "foretell.cli.study:study",
    "serve": "foretell.cli.serve:serve",
    "demo": "foretell.cli.serve:demo",
    "mcp": "foretell.cli.serve:mcp",
    "practice": "foretell.cli.serve:practice",
}
"""Hand-written commands → "module:attribute"; all others are generated from the table of operations."""


class HarmlessContext(click.Context):
    """A context that removes control characters from error messages, which may contain untrusted file names."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> Any:
        """Sanitize the message. It is done here to add no stack frame between a command and a model."""
        if isinstance(error, click.ClickException):
            from foretell.data.untrusted import for_terminal

            error.message = for_terminal(error.message)  # pyright: ignore[reportAttributeAccessIssue] - it is shown next
        return super().__exit__(kind, error, at)


class CommandTable(click.Group):
    """Lists the commands in `COMMANDS`, and imports one when it is called."""

    context_class = HarmlessContext

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command and return it."""
        if cmd_name in PLACES:
            module, attribute = PLACES[cmd_name].split(":")
            return getattr(import_module(module), attribute)
        if cmd_name not in COMMANDS:
            return None
        from foretell.cli.commands import operation_command

        return operation_command(cmd_name)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[Any, Any, list[str]]:
        """Name the replacement of a former command, and the nearest command for a misspelled one."""
        name = args[0]
        if name not in {*COMMANDS, *PLACES} and not name.startswith("-"):
            from difflib import get_close_matches

            from foretell.cli.moved import moved_command

            if message := moved_command(name):
                ctx.fail(message)

            near = get_close_matches(name, COMMANDS, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"{ctx.command_path} --help lists all commands."
            ctx.fail(f"No such command {name!r}. {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print the table without loading any command."""
        widest = max(map(len, COMMANDS))
        for heading, commands in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), line) for name, line in commands.items()])


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"foretell {version('foretell')}")
        ctx.exit()


def _print_reference(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        root = click.Context(ctx.command, info_name="foretell", **ctx.command.context_settings)
        click.echo("\n".join([REFERENCE, *_reference(ctx.command, root)]), nl=False)
        ctx.exit()


def _reference(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yield the help of all commands in a group as Markdown."""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            below = click.Context(inner, info_name=name, parent=context, terminal_width=100)
            yield f"## {below.command_path}\n\n```text\n{inner.get_help(below)}\n```\n"
            yield from _reference(inner, below)


REFERENCE = """# Commands

Every command and option, as `--help` prints it. Input that cannot be used ends in one line on standard error and exit
code 2; nothing is written then. If a model gave no answer or only a fallback answer, the exit code of `ask`, `run` and
`tree` is 3.

Options have the same meaning in every command: `--json` prints the result as JSON; `--out FILE` also writes it to a
file whose suffix sets the format (repeat it for several files; the printed output stays the same); `-f` and `-o` name
the tables of forecasts and outcomes, `--by` names columns, `--closes` a date, `--concurrency` how much is done at once
and `--trials` how often a question is asked. A former spelling is an error that names the new one.
"""
_AT_ONCE: Any = {"is_flag": True, "is_eager": True, "expose_value": False}


@click.group(cls=CommandTable, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", callback=_print_version, help="Show the version.", **_AT_ONCE)
@click.option("--reference", callback=_print_reference, help="Print the help of all commands as Markdown.", **_AT_ONCE)
def cli() -> None:
    """Forecast the future, see the reasons, and measure how good the forecasts are.

    Start with: foretell demo
    """


class NoteHandler(logging.Handler):
    """A handler that prints log messages as notes on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message on one line."""
        from foretell.data.untrusted import for_log

        click.echo(f"note: {for_log(record.getMessage())}", err=True)


def print_all_characters() -> None:
    """Make files and pipes UTF-8, and print a mark for what a terminal or an encoding chosen by the user lacks.

    Windows writes to files and pipes in the encoding of the region, in which results could not be printed.
    """
    for stream in (sys.stdout, sys.stderr):
        if (change := getattr(stream, "reconfigure", None)) and stream.encoding.lower() not in ("utf-8", "utf8"):
            kept = stream.isatty() or "PYTHONIOENCODING" in os.environ
            change(errors="replace") if kept else change(encoding="utf-8")


def main() -> None:
    """Run the command line. Bad input ends in one line on stderr and exit code 2, never in a stack trace."""
    print_all_characters()
    # Loading modules makes many objects and hardly any garbage: searching it as often as usual costs a tenth of a call.
    gc.set_threshold(1_000_000, 50, 100)
    # Before it builds its first model, pydantic would look for its plugins in the metadata of every installed package.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # Commands report errors themselves; the library's log is for programs that ask for it.
    logging.getLogger("foretell").addHandler(logging.NullHandler())
    # Notes for the user: a closed service, a first check of a model, a full disk, a changed clock, an old variable, a
    # watched question that cannot be read.
    for name in ("data.service_limits", "models.check", "models.database", "clock", "settings", "standing.store"):
        logging.getLogger(f"foretell.{name}").addHandler(NoteHandler())
    try:
        cli()
    except Exception as error:
        # Imported here: at the top it would make --help 20% slower.
        from foretell.questions.errors import InputError, storage_error_in

        error = error if isinstance(error, InputError) else storage_error_in(error) or error
        if isinstance(error, UnicodeEncodeError) and any("\udc80" <= letter <= "\udcff" for letter in error.object):
            # Python represents bytes of names and arguments that are outside the encoding of the region like this.
            problem = (
                f"a name of a file or an argument is not in {sys.getfilesystemencoding()}, this terminal's encoding"
            )
            error = InputError(problem, hint="set PYTHONUTF8=1")
        from foretell.report.terminal import echo, show_exception

        if not isinstance(error, InputError):
            sys.excepthook = show_exception
            raise

        echo(f"foretell: {error}", err=True)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
