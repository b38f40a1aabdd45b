"""The command line: a table of commands, each loaded only when it is called."""

import logging
import sys

import click

from foretell.app.lazy_group import LazyGroup

COMMANDS = {
    "ask": ("foretell.app.commands.ask:ask", "Ask one question: a researched probability with its reasons."),
    "tree": ("foretell.app.commands.tree:tree", "Take a claim apart into claims, judge them, put them together."),
    "whatif": ("foretell.app.commands.whatif:whatif", "Change a tree's numbers and see what follows, at once."),
    "demo": ("foretell.app.commands.demo:demo", "A first real job: 400+ questions, scored, no key and no network."),
    "score": ("foretell.app.commands.score:score", "Score a table of forecasts against a table of outcomes."),
    "compare": ("foretell.app.commands.compare:compare", "Which of two forecasters is better, and by more than noise?"),
    "leaderboard": ("foretell.app.commands.leaderboard:leaderboard", "An HTML page that ranks all forecasters."),
    "errors": ("foretell.app.commands.errors:errors", "Where a forecaster wins and loses, as an HTML page."),
    "plan": ("foretell.app.commands.plan:plan", "How many questions it takes to see a gain of a given size."),
    "backtest": ("foretell.app.commands.backtest:backtest", "Run forecasters over a question set as of each date."),
    "run": ("foretell.app.commands.run:run", "Run the agent over many questions; crash-proof, resumable."),
    "runs": ("foretell.app.commands.runs:runs", "List the runs on this machine."),
    "worker": ("foretell.app.commands.worker:worker", "Answer cells of runs that many machines share."),
    "show": ("foretell.app.commands.show:show", "What a run found, and every step to it."),
    "replay": ("foretell.app.commands.replay:replay", "Run again from the journal alone, offline, and compare."),
    "audit": (
        "foretell.app.commands.audit:audit",
        "Did the future leak into a run? A second model judges what was seen.",
    ),
    "calibrate": (
        "foretell.app.commands.calibrate:calibrate",
        "Learn from past trials how to combine new ones; apply it; prove it.",
    ),
    "study": ("foretell.app.commands.study:study", "Experiments on forecasts and on those who make them."),
    "arena": ("foretell.app.commands.arena:arena", "A living benchmark: events, contexts, forecasts, results."),
    "export": ("foretell.app.commands.export:export", "Write a run's forecasts as a board wants them."),
    "data": ("foretell.app.commands.data:data", "Download and inspect public question sets."),
    "corpus": (
        "foretell.app.commands.corpus:corpus",
        "Your own dated documents: import them, search them as of a date.",
    ),
    "questions": ("foretell.app.commands.questions:questions", "Check a file of questions and show what is in it."),
    "fetch": ("foretell.app.commands.fetch:fetch", "The open questions of a platform, as a file to run."),
    "submit": (
        "foretell.app.commands.submit:submit",
        "Hand forecasts in to Metaculus, Prophet Arena or ForecastBench.",
    ),
    "ledger": ("foretell.app.commands.ledger:ledger", "What was handed in, and proof that the record stands."),
    "serve": ("foretell.app.commands.serve:serve", "Everything here in a browser: ask, watch, what-if, leaderboards."),
    "site": ("foretell.app.commands.site:site", "The same pages as files that open from disk."),
    "mcp": ("foretell.app.commands.mcp:mcp", "Serve foretell to assistants over MCP."),
    "init": ("foretell.app.commands.init:init", "Begin something of your own: a bot."),
    "dev": ("foretell.app.commands.dev:dev", "For developers: fake services on this machine."),
}
"""Command name → (module:attribute, one line of help). The help stands here so that --help loads no command."""


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"foretell {version('foretell')}")
        ctx.exit()


@click.group(cls=LazyGroup, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Show the version."
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
        from foretell.questions.problems import InputError

        if not isinstance(error, InputError):
            raise
        click.echo(f"foretell: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
