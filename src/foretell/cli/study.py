"""The command `foretell study`, with one subcommand for each study."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foretell.cli.commands import RequestCommand, field_parameter, json_option, read_request
from foretell.report.terminal import echo

if TYPE_CHECKING:
    from foretell.studies.inputs import Study

TREE = "tree"
"""`foretell study tree noise` is `foretell study tree-noise`, and `foretell study tree` lists the studies of trees."""
SHORT_NAMES = {"audit": "audit", "calibration_report": "calibration-report"}
"""Studies that are also top-level or group commands: `foretell audit` and `foretell calibrate report`."""


class StudyGroup(click.Group):
    """A group with one command per registered study, built from the study's options when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all studies without loading them."""
        from foretell import plugins

        return plugins.names("studies")

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """Return the command of a study; an unknown name fails with the nearest match."""
        from foretell.studies.inputs import load_study

        return study_command(load_study(cmd_name))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, reading `tree noise` as tree-noise and `tree stability` as stability."""
        if args == [TREE]:
            args, ctx.meta[TREE] = [], True
        elif args and args[0] == TREE:
            names, rest = self.list_commands(ctx), args[1:2]
            whole = "-".join(args[:2])
            args = [rest[0] if rest and whole not in names and rest[0] in names else whole, *args[2:]]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the name and the question of each study."""
        from foretell.studies.inputs import study_questions

        with formatter.section("Studies"):
            formatter.write_dl(list(study_questions().items()))


@click.group(cls=StudyGroup, invoke_without_command=True, subcommand_metavar="NAME …")
@click.pass_context
def study(context: click.Context) -> None:
    """Experiments on forecasts and forecasters; without NAME, list them.

    Every number comes with its interval and with how many cases it rests on. With --keep the result is saved for the
    web app.
    """
    if context.invoked_subcommand is not None:
        return
    from foretell.studies.inputs import study_questions

    formatter = context.make_formatter()
    formatter.write_dl(list(study_questions(".tree_" if context.meta.get(TREE) else "").items()))
    echo(formatter.getvalue(), nl=False)
    echo("\nRun one with: foretell study NAME (foretell study NAME --help lists its options)")


def study_command(chosen: "Study") -> click.Command:
    """Create the command of a study: its own options, and options for where the result goes."""

    def called(*, as_json: bool, outs: tuple[Path, ...], keep: bool, **values: Any) -> None:
        from foretell.cli.progress import run_progress
        from foretell.operations.studies import run_study, save_study
        from foretell.report.document import write_study
        from foretell.report.provenance import command_text, made_by
        from foretell.report.terminal import console
        from foretell.runs.settings import load_settings

        request = read_request(chosen.options, values)
        with made_by(command_text(f"study {chosen.name}", request, outs)), run_progress() as reporting:
            result = run_study(chosen, request, **reporting)
        for file in result.files:
            Path(file.name).write_text(file.text, encoding="utf-8", newline="")
        written = [file.name for file in result.files]
        written += [path for out in outs for path in write_study(result, out)]
        for path in written:
            echo(f"Wrote {path}", err=True)
        if as_json:
            echo(result.to_json())
        else:
            result.print(console())
        for warning in result.warnings:
            echo(warning, err=True)
        if keep:
            echo(f"Saved in {save_study(load_settings(), result)}", err=True)
        if not result.ok:
            sys.exit(1)

    outs = click.Option(
        ["--out", "outs"],
        multiple=True,
        type=click.Path(path_type=Path),
        help="Also write a file (.html .md .json .csv .parquet .svg .png .pdf), or all into a folder; may be repeated.",
    )
    keep = click.Option(["--keep"], is_flag=True, help="Save the result for the web app, replacing an earlier one.")
    params = [field_parameter(name, info) for name, info in chosen.options.model_fields.items()]
    return RequestCommand(chosen.name, params=[*params, json_option(), outs, keep], callback=called, help=chosen.help)


def __getattr__(name: str) -> click.Command:
    """Return the command of a study under its short name, loaded when it is called."""
    if name not in SHORT_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from foretell.studies.inputs import load_study

    return study_command(load_study(SHORT_NAMES[name]))
