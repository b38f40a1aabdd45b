"""The command line: a table of commands, each loaded only when it is called."""

import logging
import sys

import click

from foretell.cli.lazy_group import LazyGroup

COMMANDS = {
    "ask": ("foretell.cli.ask:ask", "Ask one question: a researched probability with its reasons."),
    "tree": ("foretell.cli.tree:tree", "Take a claim apart into claims, judge them, put them together."),
    "whatif": ("foretell.cli.whatif:whatif", "Change a tree's numbers and see what follows, at once."),
    "demo": ("foretell.cli.backtest:demo", "A first real job: 400+ questions, scored, no key and no network."),
    "score": ("foretell.cli.score:score", "Score a table of forecasts against a table of outcomes."),
    "compare": ("foretell.cli.score:compare", "Which forecaster is better, and by more than noise?"),
    "errors": ("foretell.cli.score:errors", "Where a forecaster wins and loses."),
    "plan": ("foretell.cli.score:plan", "How many questions it takes to see a gain of a given size."),
    "backtest": ("foretell.cli.backtest:backtest", "Run forecasters over a question set as of each date."),
    "run": ("foretell.cli.run:run", "Run the agent over many questions; crash-proof, resumable."),
    "runs": ("foretell.cli.show:runs", "List the runs on this machine."),
    "worker": ("foretell.cli.run:worker", "Answer cells of runs that many machines share."),
    "show": ("foretell.cli.show:show", "What a run found, and every step to it."),
    "replay": ("foretell.cli.show:replay", "Run again from the journal alone, offline, and compare."),
    "audit": (
        "foretell.cli.audit:audit",
        "Did the future leak into a run? A second model judges what was seen.",
    ),
    "calibrate": (
        "foretell.cli.calibrate:calibrate",
        "Learn from past trials how to combine new ones; apply it; prove it.",
    ),
    "study": ("foretell.cli.study:study", "Experiments on forecasts and on those who make them."),
    "arena": ("foretell.cli.arena:arena", "A living benchmark: events, contexts, forecasts, results."),
    "export": ("foretell.cli.submit:export", "Write a run's forecasts as a board wants them."),
    "data": ("foretell.cli.data:data", "Download public question sets, build your own."),
    "corpus": (
        "foretell.cli.data:corpus",
        "Your own dated documents: import them, search them as of a date.",
    ),
    "questions": ("foretell.cli.questions:questions", "Check a file of questions and show what is in it."),
    "fetch": ("foretell.cli.questions:fetch", "The open questions of a platform, as a file to run."),
    "submit": (
        "foretell.cli.submit:submit",
        "Submit forecasts to Metaculus, Prophet Arena or ForecastBench.",
    ),
    "ledger": ("foretell.cli.submit:ledger", "What was submitted, and proof that the record stands."),
    "serve": ("foretell.cli.serve:serve", "Everything here in a browser: ask, watch, what-if, leaderboards."),
    "site": ("foretell.cli.serve:site", "The same pages as files that open from disk."),
    "mcp": ("foretell.cli.serve:mcp", "Serve foretell to assistants over MCP."),
    "init": ("foretell.cli.init:init", "Begin something of your own: a bot."),
    "practice": ("foretell.cli.practice:practice", "Try everything: models, markets and inboxes on this machine."),
}
"""Command name → (module:attribute, one line of help). The help stands here so that --help loads no command."""
MOVED = {"dev": "practice", "leaderboard": "score -f FORECASTS -o OUTCOMES --out board.html"}
"""Old command → the one that does it now."""


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"foretell {version('foretell')}")
        ctx.exit()


def _print_reference(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from foretell.cli.help_pages import command_reference

        assert isinstance(ctx.command, click.Group)
        click.echo(command_reference(ctx.command), nl=False)
        ctx.exit()


@click.group(cls=LazyGroup, table=COMMANDS, moved=MOVED, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Show the version."
)
@click.option(
    "--reference",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_reference,
    help="Print the help of all commands as Markdown.",
)
def cli() -> None:
    """Probabilities for the future, the reasons behind them, and proof of how good they are.

    Start with: foretell demo
    """


def main() -> None:
    """Entry point. Bad input ends in one line on stderr and exit code 2, never in a stack trace."""
    # What goes wrong is told by the commands; the library's log is for programs that ask for it.
    logging.getLogger("foretell").addHandler(logging.NullHandler())
    try:
        cli()
    except Exception as error:
        # Imported only now: the values behind it would cost --help a fifth of its time.
        from foretell.questions.errors import InputError

        if not isinstance(error, InputError):
            raise
        click.echo(f"foretell: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
