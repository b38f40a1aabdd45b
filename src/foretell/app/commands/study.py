"""foretell study: experiments on forecasts and on those who make them, each loaded only when it is called."""

import click

from foretell.app.lazy_group import LazyGroup

ANY = "NAME"
COMMANDS = {
    ANY: ("foretell.app.commands.study_trials:of_trials", "Studies of scores, on the trials of many configurations."),
    "habits": ("foretell.app.commands.study_runs:habits", "What do agents do on the way: beliefs, tools, ends, cost?"),
    "consistency": (
        "foretell.app.commands.study_runs:consistency",
        "Do the probabilities of one event fit each other?",
    ),
    "judge": ("foretell.app.commands.study_judge:judge", "A model marks the reasoning; do people agree with it?"),
    "recall": ("foretell.app.commands.study_recall:recall", "What does a model remember of past events?"),
    "intervention": (
        "foretell.app.commands.study_agent:intervention",
        "Does a belief steer what follows? Overwrite one and watch.",
    ),
    "smoke": (
        "foretell.app.commands.study_agent:smoke",
        "Is a model fit for a big run, and what will that cost? A few trials tell.",
    ),
}
"""Name → (module:attribute, one line of help); every other word is the name of a study of scores."""


class StudyGroup(LazyGroup):
    """Studies with options of their own; what is none of them is the name of a study of scores, or its options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Hand everything that is no command here to the studies of scores."""
        if args and args[0] not in COMMANDS and args[0] not in ctx.help_option_names:
            args = [ANY, *args]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table as it stands, without loading any command."""
        from foretell.arena.studies.catalog import STUDIES

        with formatter.section("Studies of runs and models"):
            formatter.write_dl([(name, told) for name, (_, told) in COMMANDS.items() if name != ANY])
        with formatter.section("Studies of scores (foretell study NAME --help)"):
            formatter.write_dl([(name, told) for name, (_, told) in STUDIES.items()])


@click.group(cls=StudyGroup, table=COMMANDS, invoke_without_command=True, subcommand_metavar="NAME …")
@click.pass_context
def study(context: click.Context) -> None:
    """Experiments on forecasts and on those who make them; without NAME, list them.

    Every number comes with its interval and with how many cases stand behind it. With --keep the result is kept for
    the web app.
    """
    if context.invoked_subcommand is not None:
        return
    from foretell.app.commands.study_trials import list_studies
    from foretell.arena.studies.catalog import STUDIES

    own = {name: told for name, (_, told) in COMMANDS.items() if name != ANY}
    list_studies({**own, **{name: told for name, (_, told) in STUDIES.items()}})
    click.echo("\nRun one with: foretell study NAME --data DIR or --run RUN (foretell study NAME --help tells more)")
