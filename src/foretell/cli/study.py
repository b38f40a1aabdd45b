"""foretell study: experiments on forecasts and on those who make them, one command for all of them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from foretell.report.study import StudyResult
    from foretell.request import OperationRequest
    from foretell.studies.registry import Study

TREE = "tree"
"""`foretell study tree noise` is `foretell study tree-noise`, and `foretell study tree` lists the studies of trees."""


class StudyGroup(click.Group):
    """One command per registered study, made from its options when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All studies, without loading them."""
        from foretell import plugins

        return plugins.names("studies")

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """The command of a study; an unknown name is refused with the nearest one."""
        from foretell.studies.registry import load_study

        return study_command(load_study(cmd_name))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read `tree noise` as tree-noise and `tree stability` as stability."""
        if args == [TREE]:
            args, ctx.meta[TREE] = [], True
        elif args and args[0] == TREE:
            names, rest = self.list_commands(ctx), args[1:2]
            whole = "-".join(args[:2])
            args = [rest[0] if rest and whole not in names and rest[0] in names else whole, *args[2:]]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Name and question of each."""
        from foretell.studies.registry import study_questions

        with formatter.section("Studies"):
            formatter.write_dl(list(study_questions().items()))


@click.group(cls=StudyGroup, invoke_without_command=True, subcommand_metavar="NAME …")
@click.pass_context
def study(context: click.Context) -> None:
    """Experiments on forecasts and on those who make them; without NAME, list them.

    Every number comes with its interval and with how many cases it rests on. With --keep the result is saved for the
    web app.
    """
    if context.invoked_subcommand is not None:
        return
    from foretell.studies.registry import study_questions

    formatter = context.make_formatter()
    formatter.write_dl(list(study_questions(".trees." if context.meta.get(TREE) else "").items()))
    click.echo(formatter.getvalue(), nl=False)
    click.echo("\nRun one with: foretell study NAME (foretell study NAME --help lists its options)")


def study_command(chosen: "Study") -> click.Command:
    """The command of a study: its own options, and where the result goes."""
    from foretell.cli.request_options import request_options

    @click.command(chosen.name, help=chosen.help)
    @request_options(chosen.options)
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    @click.option(
        "--out",
        "outs",
        multiple=True,
        type=click.Path(path_type=Path),
        help="Write a file (.html .md .json .csv .parquet .svg .png .pdf), or all of them into a folder; repeatable.",
    )
    @click.option("--keep", is_flag=True, help="Save it by its name for the web app, in place of an earlier one.")
    @click.pass_context
    def command(context: click.Context, request: "OperationRequest", **options: Any) -> None:
        result = _run(chosen, request)
        show_study(result, as_json=options["as_json"], outs=options["outs"], keep=options["keep"])
        if not result.ok:
            context.exit(1)

    return command


def _run(chosen: "Study", options: Any) -> "StudyResult":
    from foretell.cli.run import progress_of_run
    from foretell.operations.studies import run_study

    with progress_of_run() as watch:
        return run_study(chosen, options, watch=watch)


def show_study(result: "StudyResult", *, as_json: bool, outs: tuple[Path, ...], keep: bool = False) -> None:
    """Print the result and write it to the files that were asked for."""
    from rich.console import Console

    from foretell.report.study_report import write_study

    for file in result.files:
        Path(file.name).write_text(file.text, encoding="utf-8", newline="")
        click.echo(f"Wrote {file.name}", err=True)
    for path in outs:
        for written in write_study(result, path):
            click.echo(f"Wrote {written}", err=True)
    if as_json:
        click.echo(result.to_json())
    else:
        result.print(Console())
    for warning in result.warnings:
        click.echo(warning, err=True)
    if keep:
        from foretell.operations.saved_studies import save_study
        from foretell.runs.settings import load_settings

        click.echo(f"Saved in {save_study(load_settings(), result)}", err=True)
