"""foretell study: experiments on forecasts and on those who make them, each loaded only when it is called."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foretell.cli.lazy_group import LazyGroup
from foretell.cli.options import FILE_PATH, Command

if TYPE_CHECKING:
    from foretell.metrics.bootstrap import Resampling
    from foretell.operations.model_studies import StudyBudget
    from foretell.report.study import StudyResult


ANY_STUDY = "NAME"
STUDY_COMMANDS = {
    ANY_STUDY: ("foretell.cli.study:trial_study", "Studies of scores, on the trials of many configurations."),
    "habits": ("foretell.cli.study_runs:habits", "What do agents do on the way: beliefs, tools, ends, cost?"),
    "consistency": (
        "foretell.cli.study_runs:consistency",
        "Do the probabilities of one event fit each other?",
    ),
    "judge": ("foretell.cli.study_runs:judge", "A model marks the reasoning; do people agree with it?"),
    "recall": ("foretell.cli.study_runs:recall", "What does a model remember of past events?"),
    "intervention": (
        "foretell.cli.study_runs:intervention",
        "Does a belief steer what follows? Overwrite one and watch.",
    ),
    "smoke": (
        "foretell.cli.study_runs:smoke",
        "Is a model fit for a big run, and what will that cost? A few trials tell.",
    ),
}
"""Name → (module:attribute, one line of help); every other word is the name of a study of scores."""


class StudyGroup(LazyGroup):
    """Studies with options of their own; what is none of them is the name of a study of scores, or its options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Hand everything that is no command here to the studies of scores."""
        if args and args[0] not in STUDY_COMMANDS and args[0] not in ctx.help_option_names:
            args = [ANY_STUDY, *args]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table as it stands, without loading any command."""
        from foretell.studies.registry import STUDIES

        with formatter.section("Studies of runs and models"):
            formatter.write_dl([(name, told) for name, (_, told) in STUDY_COMMANDS.items() if name != ANY_STUDY])
        with formatter.section("Studies of scores (foretell study NAME --help)"):
            formatter.write_dl([(name, told) for name, (_, told) in STUDIES.items()])


@click.group(cls=StudyGroup, table=STUDY_COMMANDS, invoke_without_command=True, subcommand_metavar="NAME …")
@click.pass_context
def study(context: click.Context) -> None:
    """Experiments on forecasts and on those who make them; without NAME, list them.

    Every number comes with its interval and with how many cases stand behind it. With --keep the result is kept for
    the web app.
    """
    if context.invoked_subcommand is not None:
        return
    from foretell.studies.registry import STUDIES

    own = {name: told for name, (_, told) in STUDY_COMMANDS.items() if name != ANY_STUDY}
    print_studies({**own, **{name: told for name, (_, told) in STUDIES.items()}})
    click.echo("\nRun one with: foretell study NAME --data DIR or --run RUN (foretell study NAME --help tells more)")


# What commands of studies that ask models share.

RUNS = click.option("--run", "runs", multiple=True, metavar="RUN", help="A run of this machine; may be repeated.")
BUDGET = click.option(
    "--budget", type=click.FloatRange(0, min_open=True), metavar="DOLLARS", help="Hard limit for the whole study."
)
SEARCH = click.option(
    "--search", "engines", multiple=True, help="Search engine: brave, exa, tavily, serper, asknews, gdelt, local."
)
ROUNDS = click.option("--round", "rounds", multiple=True, metavar="DATE", help="Only these rounds of the questions.")


@contextmanager
def study_budget(dollars: float | None) -> "Generator[StudyBudget]":
    """What a study may spend, with a bar that shows progress, spending and the time left."""
    from foretell.cli.run import progress_of_run
    from foretell.operations.model_studies import StudyBudget
    from foretell.runs.settings import load_settings

    with progress_of_run() as watch:
        yield StudyBudget.of(load_settings(), dollars, watch)


def resampling(options: dict[str, Any]) -> "Resampling":
    """How sure to be."""
    from foretell.metrics.bootstrap import Resampling

    return Resampling(draws=options["draws"], seed=options["seed"])


def print_spending(settings: "dict[str, Any]") -> None:
    """What the models' answers are worth; kept ones cost nothing again."""
    if "dollars" in settings:
        told = f"{settings['calls']} calls of models, ${settings['dollars']:.4f}"
        click.echo(f"{told}; asked again, kept replies cost nothing", err=True)


# Where the result of a study goes: terminal, Markdown, JSON, page, folder, and the studies that are kept.

STUDY_FOLDER = click.Path(path_type=Path, file_okay=False)
OUTPUT_FORMATS = (
    click.option("--draws", type=click.IntRange(100), default=2000, show_default=True, help="Bootstrap draws."),
    click.option("--seed", type=int, default=0, show_default=True, help="Seed of the bootstrap."),
    click.option("--out", type=STUDY_FOLDER, help="Write page, Markdown, JSON and pictures into this folder."),
    click.option("--html", "html_path", type=FILE_PATH, help="Write the study as one HTML file."),
    click.option(
        "--json", "json_path", type=click.Path(path_type=Path, allow_dash=True), help="Write JSON (- for stdout)."
    ),
    click.option("--markdown", is_flag=True, help="Print Markdown instead of tables for the terminal."),
    click.option("--keep", is_flag=True, help="Keep it by its name for the web app, in place of an earlier one."),
)


def study_options(command: Command) -> Command:
    """The options that all studies share: how sure to be, and where the result goes."""
    for option in reversed(OUTPUT_FORMATS):
        command = option(command)
    return command


def write_study(found: "StudyResult", options: Mapping[str, Any]) -> None:
    """Write and print the study as the options say."""
    if options["html_path"] is not None:
        _write_page(found, options["html_path"])
    if options["json_path"] is not None:
        from foretell.cli.options import write_json

        write_json(found.to_dict(), options["json_path"])
    if options["out"] is not None:
        _write_all(found, options["out"])
    if str(options["json_path"]) != "-":
        _show(found, markdown=options["markdown"])
    if options["keep"]:
        from foretell.operations.saved_studies import save_study
        from foretell.runs.settings import load_settings

        click.echo(f"Kept in {save_study(load_settings(), found)}", err=True)


def _show(found: "StudyResult", *, markdown: bool) -> None:
    from foretell.report.study_report import markdown_study, print_study

    if markdown:
        click.echo(markdown_study(found), nl=False)
        return
    from rich.console import Console

    print_study(found, Console())


def _write_page(found: "StudyResult", path: Path) -> None:
    from foretell.cli.options import write_text
    from foretell.report.study_report import study_page

    write_text(path, study_page(found))
    click.echo(f"Wrote {path}", err=True)


def _write_all(found: "StudyResult", folder: Path) -> None:
    """NAME.html, NAME.md, NAME.json and one .svg per picture."""
    from foretell.cli.options import write_json, write_text
    from foretell.report.study_report import markdown_study

    folder.mkdir(parents=True, exist_ok=True)
    _write_page(found, folder / f"{found.name}.html")
    write_text(folder / f"{found.name}.md", markdown_study(found))
    write_json(found.to_dict(), folder / f"{found.name}.json")
    for picture in found.pictures:
        picture.figure.save(folder / f"{found.name}-{picture.name}.svg")


# foretell study NAME: studies of scores, on the trials of real configurations and on trees in made-up worlds.


@click.command("NAME")
@click.argument("words", metavar="", nargs=-1)
@click.option(
    "--data", "folder", type=STUDY_FOLDER, help="Folder with PREFIXquestions, PREFIXresolutions and PREFIXtrials."
)
@click.option("--prefix", default="ab_", show_default=True, help="What the names of those tables begin with.")
@click.option("--forecasts", "-f", type=FILE_PATH, help="Instead of --data: your own forecasts with their trials.")
@click.option("--outcomes", "-o", type=FILE_PATH, help="How they came out, with due and resolved_on.")
@click.option("--run", "runs", multiple=True, help="Instead of --data: a run of this machine; may be repeated.")
@click.option(
    "--trees",
    type=STUDY_FOLDER,
    multiple=True,
    help="For tree noise and tree weights: a folder of tree files; may be repeated.",
)
@click.option("--costs", type=FILE_PATH, help="For frontier and tree roles: forecaster, dollars and perhaps seconds.")
@click.option("--cast", type=FILE_PATH, help="For tree roles: forecaster, analyzer, grounder and synthesizer.")
@click.option("--worlds", type=click.IntRange(2), help="How many made-up worlds, where nothing else is given.")
@click.option("--leaves", type=click.IntRange(1), help="Leaves of the trees in made-up worlds.")
@click.option("--config", "chosen", multiple=True, help="Look at this configuration; may be repeated (default: all).")
@click.option("--price", type=click.Choice(["due", "freeze"]), default="due", show_default=True, help="Crowd's price.")
@click.option(
    "--prior", type=click.Choice(["past", "paper"]), default="past", show_default=True, help="Base rates to use."
)
@click.option("--paper-outcomes", is_flag=True, help="Answers as they stood when the BLF paper was written.")
@study_options
def trial_study(words: tuple[str, ...], **options: Any) -> None:
    """Run a study of the trials of many configurations; foretell study lists their names.

    Every difference is paired and comes with an interval from resampling whole questions, and beside it one that
    resamples resolution days as well:

      foretell study trials --data tables --config pro-high-brave-c0-t1

      foretell study calibration -f forecasts.csv -o outcomes.csv --html calibration.html

    Studies of trees (foretell study tree lists them) need no data and no model: where nothing is given they play in a
    made-up world whose truth is known.

      foretell study tree noise

      foretell study tree frontier --run 3f2a --run 91bc
    """
    from foretell.operations.study_data import TREES, study_material, study_named
    from foretell.studies.registry import SIMULATED, STUDIES, run_study

    if words in ((), (TREES,)):
        print_studies({key: told for key, (_, told) in STUDIES.items() if not words or key in SIMULATED})
        return

    name = study_named(words, [one for one in STUDY_COMMANDS if one != ANY_STUDY])
    from foretell.cli.backtest import progress_bar

    with progress_bar(name) as progress:
        found = run_study(name, study_material(name, options, progress))
    write_study(found, options)


def print_studies(studies: dict[str, str]) -> None:
    """Name and question of each, one line each."""
    width = max(map(len, studies))
    for name, told in studies.items():
        click.echo(f"{name.ljust(width)}  {told}")
