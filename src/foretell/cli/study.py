"""The command `foretell study`, with one subcommand for each study."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foretell.cli.commands import request_command
from foretell.cli.moved import moved_command
from foretell.cli.progress import run_progress
from foretell.operations.table import STUDY
from foretell.report.terminal import echo

if TYPE_CHECKING:
    from foretell.report.study_result import StudyResult
    from foretell.studies.inputs import Study


class StudyGroup(click.Group):
    """A group with one command per registered study, built from the study's options when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all studies without loading them."""
        from foretell import plugins

        return plugins.names("studies")

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """Return the command of a study; a former name fails with the new one, an unknown one with the nearest."""
        from foretell.studies.inputs import load_study

        if cmd_name not in self.list_commands(ctx) and (message := moved_command(f"study {cmd_name}")):
            ctx.fail(message)
        return study_command(load_study(cmd_name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the name and the question of each study."""
        from foretell.studies.inputs import study_questions

        with formatter.section("Studies"):
            formatter.write_dl(list(study_questions().items()))


@click.group(cls=StudyGroup, invoke_without_command=True, subcommand_metavar="NAME …")
@click.pass_context
def study(context: click.Context) -> None:
    """Experiments on forecasts and forecasters; without NAME, list them.

    Studies of forecasts take stored runs, files of forecasts, or the runs of a grid. Every number comes with its
    interval and its number of cases. --section NAME shows one part of a study.
    """
    if context.invoked_subcommand is not None:
        return
    from foretell.studies.inputs import study_questions

    formatter = context.make_formatter()
    formatter.write_dl(list(study_questions().items()))
    echo(formatter.getvalue(), nl=False)
    echo("\nRun one with: foretell study NAME (foretell study NAME --help lists its options)")


def study_command(chosen: "Study") -> click.Command:
    """Create the command of a study from its options."""

    def answer(request: Any, **reporting: Any) -> "StudyResult":
        from foretell.operations.studies import run_study

        result = run_study(chosen, request, **reporting)
        for file in result.files:
            Path(file.name).write_text(file.text, encoding="utf-8", newline="")
            echo(f"Wrote {file.name}", err=True)
        return result

    return request_command(
        chosen.options, answer, name=f"study {chosen.name}", help=chosen.help, files=STUDY, view=run_progress
    )
