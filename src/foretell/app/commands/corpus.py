"""`foretell corpus`: dated documents of one's own, to search as of a date."""

from pathlib import Path

import click


def _usual_place() -> Path:
    """Where runs look for it as well."""
    from foretell.app.settings import load_settings

    return load_settings().corpus


CORPUS = click.option(
    "--corpus",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    default=_usual_place,
    show_default="corpus.db in FORETELL_HOME",
    envvar="FORETELL_CORPUS",
    show_envvar=True,
    help="The file that holds the corpus.",
)


@click.group()
def corpus() -> None:
    """Your own dated documents: bring them in, search them as of a date."""


@corpus.command("import")
@click.argument("sources", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@CORPUS
def import_documents(sources: tuple[Path, ...], path: Path) -> None:
    """Import files or folders (.txt, .md, .html, .jsonl, .warc, .warc.gz) into the corpus.

    What is in it already is not stored twice.
    """
    from foretell.sources.corpus.files import read_documents
    from foretell.sources.corpus.store import Corpus, Counts

    path.parent.mkdir(parents=True, exist_ok=True)
    store = Corpus(path)
    counts = sum((store.add(read_documents(source)) for source in sources), Counts())
    click.echo(f"{counts.added} added, {counts.known} already there, {len(store)} in {path}")
    if counts.undated:
        click.echo(f"{counts.undated} have no date: a backtest never sees them", err=True)
    store.close()


@corpus.command()
@click.argument("query")
@click.option("--as-of", "day", metavar="DATE", help="Show only what was dated by the end of this day.")
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="How many to show.")
@CORPUS
def search(query: str, day: str | None, limit: int, path: Path) -> None:
    """Search the corpus, best matches first."""
    from foretell.questions.clock import AsOf
    from foretell.questions.problems import InputError
    from foretell.sources.corpus.store import Corpus

    try:
        # Without a date there is no cutoff: every document is shown, whatever it says of its age.
        as_of = AsOf.day(day) if day else AsOf.day("9999-12-31", mode="live")
    except ValueError as error:
        raise InputError(str(error), column="--as-of") from None
    store = Corpus(path, must_exist=True)
    found = store.search(query, as_of, limit)
    for one in found:
        dated = one.document.published or one.document.captured
        click.echo(f"{dated:%Y-%m-%d}" if dated else "undated", nl=False)
        click.echo(f"  {one.document.title}\n            {one.document.url}\n            {one.snippet}")
    if not found:
        click.echo("nothing found", err=True)
    store.close()
