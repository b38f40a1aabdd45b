"""foretell study: experiments on the trials of real configurations."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foretell.app.commands.options import FILE

if TYPE_CHECKING:
    from foretell.arena.study import Material, Progress, Study

FOLDER, JSON = click.Path(path_type=Path, file_okay=False), click.Path(path_type=Path, allow_dash=True)


@click.command()
@click.argument("name", required=False)
@click.option("--data", "folder", type=FOLDER, help="Folder with PREFIXquestions, PREFIXresolutions and PREFIXtrials.")
@click.option("--prefix", default="ab_", show_default=True, help="What the names of those tables begin with.")
@click.option("--forecasts", "-f", type=FILE, help="Instead of --data: your own forecasts with their trials.")
@click.option("--outcomes", "-o", type=FILE, help="How they came out, with due and resolved_on.")
@click.option("--config", "chosen", multiple=True, help="Look at this configuration; may be repeated (default: all).")
@click.option("--price", type=click.Choice(["due", "freeze"]), default="due", show_default=True, help="Crowd's price.")
@click.option(
    "--prior", type=click.Choice(["past", "paper"]), default="past", show_default=True, help="Base rates to use."
)
@click.option("--paper-outcomes", is_flag=True, help="Answers as they stood when the BLF paper was written.")
@click.option("--draws", type=click.IntRange(100), default=2000, show_default=True, help="Bootstrap draws.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the bootstrap.")
@click.option("--out", type=FOLDER, help="Write page, Markdown, JSON and pictures into this folder.")
@click.option("--html", "html_path", type=FILE, help="Write the study as one HTML file.")
@click.option(
    "--json", "json_path", type=click.Path(path_type=Path, allow_dash=True), help="Write JSON (- for stdout)."
)
@click.option("--markdown", is_flag=True, help="Print Markdown instead of tables for the terminal.")
def study(
    name: str | None, out: Path | None, html_path: Path | None, json_path: Path | None, markdown: bool, **options: Any
) -> None:
    """Run the study NAME on the trials of many configurations; without NAME, list the studies.

    Every difference is paired and comes with an interval from resampling whole questions, and beside it one that
    resamples resolution days as well:

      foretell study trials --data tables --config pro-high-brave-c0-t1

      foretell study calibration -f forecasts.csv -o outcomes.csv --html calibration.html
    """
    from foretell.arena.studies.catalog import STUDIES, require_study, run_study

    if name is None:
        _list({key: told for key, (_, told) in STUDIES.items()})
        return
    require_study(name)
    from foretell.app.commands.backtest import progress_bar

    with progress_bar(name) as progress:
        found = run_study(name, _material(options, progress))
    if html_path is not None:
        _write_page(found, html_path)
    if json_path is not None:
        from foretell.app.commands.output import write_json

        write_json(found.to_dict(), json_path)
    if out is not None:
        _write_all(found, out)
    if str(json_path) != "-":
        _show(found, markdown=markdown)


def _list(studies: dict[str, str]) -> None:
    width = max(map(len, studies))
    for name, told in studies.items():
        click.echo(f"{name.ljust(width)}  {told}")
    click.echo("\nRun one with: foretell study NAME --data DIR")


def _material(options: dict[str, Any], progress: "Progress") -> "Material":
    from foretell.arena.study import Material
    from foretell.evaluate.bootstrap import Resampling
    from foretell.questions.problems import InputError

    how = Resampling(draws=options["draws"], seed=options["seed"])
    given: dict[str, Any] = {"chosen": options["chosen"], "resampling": how, "progress": progress}
    if options["folder"] is not None:
        from foretell.arena.trial_tables import PAPER, Known, trial_tables

        outcome = "paper_outcome" if options["paper_outcomes"] else "outcome"
        known = Known(price=options["price"], prior=options["prior"], outcome=outcome)
        folder, prefix = options["folder"], options["prefix"]
        return Material(
            tables=trial_tables(folder, prefix, known), paper=lambda: trial_tables(folder, prefix, PAPER), **given
        )
    if options["forecasts"] is None or options["outcomes"] is None:
        raise InputError("a study needs trials", hint="give --data DIR, or --forecasts and --outcomes")
    from foretell.arena.examples import read_examples

    return Material(tables=read_examples(options["forecasts"], options["outcomes"]), **given)


def _show(found: "Study", *, markdown: bool) -> None:
    from foretell.arena.report.study_text import markdown_study, print_study

    if markdown:
        click.echo(markdown_study(found), nl=False)
        return
    from rich.console import Console

    print_study(found, Console())


def _write_page(found: "Study", path: Path) -> None:
    from foretell.app.commands.output import write_text
    from foretell.arena.report.study_page import study_page

    write_text(path, study_page(found))
    click.echo(f"Wrote {path}", err=True)


def _write_all(found: "Study", folder: Path) -> None:
    """NAME.html, NAME.md, NAME.json and one .svg per picture."""
    from foretell.app.commands.output import write_json, write_text
    from foretell.arena.report.study_text import markdown_study

    folder.mkdir(parents=True, exist_ok=True)
    _write_page(found, folder / f"{found.name}.html")
    write_text(folder / f"{found.name}.md", markdown_study(found))
    write_json(found.to_dict(), folder / f"{found.name}.json")
    for picture in found.pictures:
        picture.figure.save(folder / f"{found.name}-{picture.name}.svg")
