"""foretell arena init: the file of a new arena."""

from importlib.resources import files
from pathlib import Path
from string import Template

import click


@click.command()
@click.argument("place", type=click.Path(path_type=Path), default=Path())
@click.option("--name", help="Of the arena (default: that of its folder).")
@click.option("--force", is_flag=True, help="Overwrite a file that is there.")
def init(place: Path, name: str | None, force: bool) -> None:
    """Write arena.yaml, with every field explained, into the folder PLACE; or PLACE itself, if it ends in .yaml.

    As it stands it needs no key: Kalshi's public events, forecasters without models, and the market to beat.
    """
    from foretell.app.commands.output import write_text
    from foretell.arena.live.spec import FILE_NAME, read_arena
    from foretell.questions.problems import InputError

    file = place if place.suffix in (".yaml", ".yml") else place / FILE_NAME
    if file.exists() and not force:
        raise InputError("there is one already", path=file, hint="--force overwrites it")
    file.parent.mkdir(parents=True, exist_ok=True)
    text = files("foretell.app.commands").joinpath("arena.yaml").read_text(encoding="utf-8")
    write_text(file, Template(text).substitute(name=name or _plain(file)))
    spec = read_arena(file)
    click.echo(f"Wrote {file}: arena {spec.name} with {', '.join(spec.entries)}")
    click.echo(f"next: foretell arena run {file.parent}", err=True)


def _plain(file: Path) -> str:
    """A name out of where the file is.

    >>> _plain(Path("/srv/My Arena/arena.yaml")), _plain(Path("/srv/x/cup.yaml"))
    ('my-arena', 'cup')
    """
    import re

    told = file.resolve().parent.name if file.stem == "arena" else file.stem
    return re.sub(r"[^a-z0-9_-]+", "-", told.casefold()).strip("-_") or "arena"
