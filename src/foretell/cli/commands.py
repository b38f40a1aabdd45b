"""Commands generated from requests: options from the fields, help from the docstring, the result printed or saved."""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from inspect import getdoc, iscoroutine
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

import click
from pydantic.fields import FieldInfo

from foretell.cli.moved import moved_command, moved_option
from foretell.cli.progress import VIEWS
from foretell.operations.table import OPERATIONS
from foretell.plugins import load_object
from foretell.questions.errors import InputError
from foretell.report.provenance import command_text, running_command
from foretell.request import OperationRequest, allowed_names, flags, hints, is_list, on_command_line, plain_type

if TYPE_CHECKING:
    from foretell.report.result import Result

GROUPS = {
    "tree": """Trees of claims: grow, show, edit and update them, and ask what if.

    foretell tree is short for foretell tree list.""",
    "models": """Language models: which ones you can use, their prices and abilities.

    foretell models is short for foretell models list.""",
    "runs": """Your runs: list, stop, edit, score or delete them.

    foretell runs is short for foretell runs list.""",
    "calibrate": """Learn from resolved forecasts how to combine and correct the next ones.

    The result is a small file. It cannot be scored on the questions it was fitted on.""",
    "arena": """A live leaderboard: real events, the same information for everyone, forecasts and scores.

    An arena is described by a file, arena.yaml; foretell init arena writes one. `run` does everything; each stage can
    also be run by itself, as often as you like, by several processes at once.""",
    "data": """Question sets: show any of them, download public ones, build your own.

    foretell data is short for foretell data list.""",
    "corpus": "Your own dated documents: add them and search them as of a date.",
    "tournament": "Tournaments: take part by forecasting the open questions, and score what you submitted.",
}
"""Name of a command group → its help text."""
View = Callable[[], AbstractContextManager[Mapping[str, Any]]]
"""Context manager that shows progress while an operation runs and yields the arguments by which it reports progress."""


@cache
def operation_command(words: str) -> click.Command:
    """Return the command of an operation, or the group of all commands that start with these words.

    >>> sorted(operation_command("corpus").commands)
    ['add', 'search']
    """
    if (operation := OPERATIONS.get(words)) is not None:
        return request_command(
            operation.request,
            operation.answer,
            name=words,
            files=operation.files,
            default_file=operation.default_file,
            view=VIEWS.get(words),
        )
    kind = ListGroup if f"{words} list" in OPERATIONS else CommandGroup
    group = kind(words.rpartition(" ")[2], help=GROUPS[words])
    inner = (other.removeprefix(f"{words} ") for other in OPERATIONS if other.startswith(f"{words} "))
    for name in dict.fromkeys(rest.partition(" ")[0] for rest in inner):
        group.add_command(operation_command(f"{words} {name}"), name)
    return group


class CommandGroup(click.Group):
    """A group whose help lists each command with its whole first sentence, and that knows its former commands."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[Any, Any, list[str]]:
        """Resolve the command; a former one fails with its new name."""
        if args and args[0] not in self.commands and (message := moved_command(f"{words_of(ctx)} {args[0]}")):
            ctx.fail(message)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one entry per command."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, command.get_short_help_str(limit=200)) for name, command in self.commands.items()]
            )


class ListGroup(CommandGroup):
    """A group whose default command is `list`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, inserting `list` if they name no command."""
        word = args[0] if args and not args[0].startswith("-") else None
        takes_words = any(isinstance(param, click.Argument) for param in self.commands["list"].params)
        former = word is not None and moved_command(f"{words_of(ctx)} {word}") is not None
        # A word that is no command is a mistake, unless it can be an argument of `list`.
        named = word in self.commands or former or (word is not None and not takes_words)
        asks_help = args[:1] and args[0] in ctx.help_option_names
        return super().parse_args(ctx, args if named or asks_help else ["list", *args])


HEADINGS = {
    "": "Options",
    "question": "About the question",
    "tree": "How the tree grows",
    "models": "Models, sampling and limits",
    "settings": "Settings",
    "statistics": "Intervals and bets",
}
"""Group of fields → its heading in the help."""


class RequestCommand(click.Command):
    """A command that groups its options under headings and answers an old spelling with the new one."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the ungrouped options first, because they matter most, then one section per group of fields."""
        groups: dict[str, list[tuple[str, str]]] = {group: [] for group in HEADINGS}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)) is not None:
                group = hints(param.info).get("group", "") if isinstance(param, FieldOption) else ""
                groups[group].append(record)
        for group, records in groups.items():
            if records:
                with formatter.section(HEADINGS[group]):
                    formatter.write_dl(records)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; an error about an old spelling says what to type instead."""
        words = list(args)
        try:
            for first, second in pairwise(words):
                # If files are arguments, the output file would be read as another input.
                if first == "--json" and second.endswith(".json") and not Path(second).exists():
                    raise click.UsageError(f"unexpected extra argument ({second})", ctx)
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            message = new_spelling(error, words, words_of(ctx))
            if (
                message is None
                and "extra argument" in error.message
                and any(isinstance(param, click.Argument) for param in self.params)
            ):
                message = f"{error.message}. Put quotes around a text that contains spaces."
            if message is None:
                raise
            raise click.UsageError(message, error.ctx) from None


def words_of(ctx: click.Context) -> str:
    """Return the words of a command without the name of the program."""
    names: list[str] = []
    while ctx.parent is not None:  # The root may be called `python -m foretell`.
        names.insert(0, ctx.info_name or "")
        ctx = ctx.parent
    return " ".join(names)


def new_spelling(error: click.UsageError, words: Sequence[str], command: str = "") -> str | None:
    """Return what to type instead of the old spelling that caused an error; None if the error has another cause.

    >>> new_spelling(click.UsageError("Got unexpected extra argument (x.json)"), ["--json", "x.json"])
    '--json takes no file: it prints JSON; use --out x.json'
    """
    if isinstance(error, click.NoSuchOption):
        return moved_option(command, error.option_name)
    if words and (message := moved_command(f"{command} {words[0]}")):
        return message
    after = [second for first, second in pairwise(words) if first == "--json"]
    if after and "extra argument" in error.message and after[0] in error.message:
        rest = " to standard output by itself" if after[0] == "-" else f"; use --out {after[0]}"
        return f"--json takes no file: it prints JSON{rest}"
    return None


def request_command(
    kind: type[OperationRequest],
    answer: str | Callable[..., Any],
    *,
    name: str | None = None,
    help: str | None = None,
    files: tuple[str, ...] = (),
    default_file: str | None = None,
    view: View | None = None,
    service: bool = False,
) -> click.Command:
    """Create a command with one option or argument for each field of a request.

    Args:
        kind: The request class; its docstring is the help.
        answer: The function to call with the request, or its "module:attribute". It returns a result or None.
        name: The words of the command.
        help: The help of the command, if it is not the docstring of the request.
        files: Suffixes of the files that the result can be written to.
        default_file: A file that is written if no other output is requested.
        view: Shows progress while the operation runs.
        service: Whether it runs until it is stopped, and so has no result to print.
    """

    def called(*, as_json: bool = False, out_files: tuple[Path, ...] = (), **values: Any) -> None:
        request = read_request(kind, values)
        function = load_object(answer) if isinstance(answer, str) else answer
        # A service works for others, so its command is not named in the results.
        with running_command("" if service else command_text(name or "", request, out_files)):
            with nullcontext({}) if view is None else view() as reporting:
                result = function(request, **reporting)
                if iscoroutine(result):
                    from foretell.runs import event_loop

                    # Inline, to keep stack traces between a command and a model short.
                    with event_loop.runner() as loop:
                        result = loop.run(result)
            if result is not None:
                default_files = (Path(default_file),) if default_file and not as_json else ()
                show_result(result, as_json=as_json, out=out_files or default_files)

    params = [field_parameter(field, info) for field, info in kind.model_fields.items() if on_command_line(info)]
    params += [out_option(files, default_file)] if files else []
    params += [] if service else [json_option()]
    return RequestCommand(name, params=params, callback=called, help=help or getdoc(kind))


def read_request(kind: type[OperationRequest], values: Mapping[str, Any]) -> Any:
    """Parse the values of a command line as a request; errors name options as the user spelled them."""
    fields = kind.model_fields
    try:
        return kind.read({name: _value(values[name], info) for name, info in fields.items() if name in values})
    except InputError as error:
        name, _, rest = (error.column or "").partition(".")
        if name not in fields:
            raise
        shown = name.upper() if hints(fields[name]).get("argument") else flags(name, fields[name])[-1]
        raise error.at(column=f"{shown} {rest}".strip()) from None


def _value(value: Any, info: FieldInfo) -> Any:
    """Convert a value from click to what the request expects; None if nothing was given."""
    if value is None or value == ():
        return None
    if not _by_name(info):
        return value
    pairs: dict[str, str] = {}
    for pair in value:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise InputError(f"{pair!r} is not of the form NAME=VALUE")
        pairs[name] = text
    return pairs


# Fields as options.


class FieldOption(click.Option):
    """An option whose help lists the allowed names, which are looked up when the help is shown."""

    info: FieldInfo

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option's spelling, and its help with the allowed names."""
        record, names = super().get_help_record(ctx), allowed_names(self.info)
        return record if record is None or not names else (record[0], f"{record[1]}  [{', '.join(names)}]")


def field_parameter(name: str, info: FieldInfo) -> click.Parameter:
    """Create the option or argument of a field."""
    shown = hints(info)
    annotation, many = plain_type(info), is_list(info)
    kind = _click_type(annotation)
    if shown.get("argument"):
        count = -1 if many else 1
        return click.Argument([name], type=kind, required=info.is_required(), nargs=count, metavar=shown.get("metavar"))
    default = None if info.is_required() else info.get_default(call_default_factory=True)
    text = info.description or ""
    if not isinstance(default, bool | Mapping) and default not in (None, "", ()) and str(default):
        usual = ", ".join(map(str, default)) if isinstance(default, tuple) else default
        text = f"{text}  [default: {usual}]"
    if shown.get("env"):
        # Not click's own envvar: the request reads the variable, so that all interfaces behave the same.
        text = f"{text}  [env: {shown['env']}]"
    spelled = list(flags(name, info))
    more: Any
    if kind is bool and "alone" not in shown:
        spelled[-1] += f"/--no-{spelled[-1].removeprefix('--')}" if default else ""
        more = {"is_flag": True}
    else:
        pair = get_origin(annotation) is tuple and not many
        more = {"type": kind, "multiple": many or _by_name(info), "nargs": len(get_args(annotation)) if pair else 1}
        more |= {"metavar": shown.get("metavar") or ("NAME=VALUE" if _by_name(info) else None)}
        more |= {"is_flag": False, "flag_value": shown["alone"]} if "alone" in shown else {}
    option = FieldOption([*spelled, name], default=None, required=info.is_required(), help=text, **more)
    option.info = info
    return option


def _click_type(annotation: Any) -> Any:
    """Return the click type of a field's values."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return click.Choice([str(argument) for argument in arguments])
    if origin in (tuple, list):
        return _click_type(arguments[0])
    if annotation is Path:
        return click.Path(path_type=Path)
    return annotation if annotation in (int, float, bool) and origin not in (Union, UnionType) else str


def _by_name(info: FieldInfo) -> bool:
    """Whether a field is a mapping, given as NAME=VALUE pairs."""
    origin = get_origin(info.annotation)
    return isinstance(origin, type) and issubclass(origin, Mapping)


# Shared by all commands: `--json`, `--out`, and printing a result.


def json_option() -> click.Option:
    """Create the flag `--json`."""
    return click.Option(["--json", "as_json"], is_flag=True, help="Print the result as JSON.")


def out_option(suffixes: tuple[str, ...], default: str | None = None) -> click.Option:
    """Create the option `--out FILE`. The suffix sets the format and is checked before the command does anything.

    The empty suffix means a folder of tables.
    """
    named = [suffix for suffix in suffixes if suffix]
    known = " or ".join(filter(None, (", ".join(named[:-1]), named[-1]))) if named else ""
    folder = "" in suffixes

    def check(_: click.Context, __: click.Parameter, paths: tuple[Path, ...]) -> tuple[Path, ...]:
        for path in paths:
            if path.suffix not in suffixes:
                problem = f"end in {known}{', or be a folder' if folder else ''}" if known else "be a folder"
                raise click.BadParameter(f"{path} should {problem}")
        return paths

    help = f"Also write the result to a file that ends in {known}" if known else "Folder for the files"
    help += ", or its tables into a folder; may be repeated." if folder and known else "; may be repeated."
    help += f"  [default: {default}]" if default else ""
    kind = click.Path(path_type=Path, dir_okay=folder)
    return click.Option(["--out", "out_files"], type=kind, metavar="FILE", multiple=True, callback=check, help=help)


def show_result(result: "Result", *, as_json: bool = False, out: tuple[Path, ...] = ()) -> None:
    """Write a result to its files, then print it; warnings go to the error stream."""
    from foretell.report.terminal import console, echo

    if out:
        from foretell.report.document import write_outputs

        for path in write_outputs(result, out):
            echo(f"Wrote {path}", err=True)
    for warning in result.warnings:
        echo(f"note: {warning}", err=True)
    if as_json:
        echo(result.to_json())
    else:
        result.print(console())
    if result.exit_code:
        sys.exit(result.exit_code)
