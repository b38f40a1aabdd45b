"""Where the result of a study goes: terminal, Markdown, JSON, page, folder, and the studies that are kept."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foretell.app.commands.options import FILE, F

if TYPE_CHECKING:
    from foretell.arena.study import Study

FOLDER = click.Path(path_type=Path, file_okay=False)
WAYS = (
    click.option("--draws", type=click.IntRange(100), default=2000, show_default=True, help="Bootstrap draws."),
    click.option("--seed", type=int, default=0, show_default=True, help="Seed of the bootstrap."),
    click.option("--out", type=FOLDER, help="Write page, Markdown, JSON and pictures into this folder."),
    click.option("--html", "html_path", type=FILE, help="Write the study as one HTML file."),
    click.option(
        "--json", "json_path", type=click.Path(path_type=Path, allow_dash=True), help="Write JSON (- for stdout)."
    ),
    click.option("--markdown", is_flag=True, help="Print Markdown instead of tables for the terminal."),
    click.option("--keep", is_flag=True, help="Keep it by its name for the web app, in place of an earlier one."),
)


def study_options(command: F) -> F:
    """The options that all studies share: how sure to be, and where the result goes."""
    for option in reversed(WAYS):
        command = option(command)
    return command


def deliver(found: "Study", options: Mapping[str, Any]) -> None:
    """Write and print the study as the options say."""
    if options["html_path"] is not None:
        _write_page(found, options["html_path"])
    if options["json_path"] is not None:
        from foretell.app.commands.output import write_json

        write_json(found.to_dict(), options["json_path"])
    if options["out"] is not None:
        _write_all(found, options["out"])
    if str(options["json_path"]) != "-":
        _show(found, markdown=options["markdown"])
    if options["keep"]:
        from foretell.app.kept_studies import keep_study
        from foretell.app.settings import load_settings

        click.echo(f"Kept in {keep_study(load_settings(), found)}", err=True)


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
