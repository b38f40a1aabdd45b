"""foretell site: the pages of this machine as files."""

from pathlib import Path

import click


@click.command()
@click.argument("out", type=click.Path(path_type=Path, file_okay=False))
@click.option("--run", "runs", multiple=True, help="Only this run; may be repeated.")
@click.option("--tree", "trees", multiple=True, help="Only this tree; may be repeated.")
@click.option("--arena", "arenas", multiple=True, help="Only this arena; may be repeated.")
@click.option("--most", type=click.IntRange(1), default=20_000, show_default=True, help="Pages to write at most.")
def site(out: Path, runs: tuple[str, ...], trees: tuple[str, ...], arenas: tuple[str, ...], most: int) -> None:
    """Write the pages that `foretell serve` shows into the folder OUT, as a site that opens from disk.

    Trees keep their what-if. Nothing in it needs a server or the network: put it on any static host, or send it along.
    """
    import asyncio

    from foretell.app.commands.backtest import progress_bar
    from foretell.app.settings import load_settings
    from foretell.questions.problems import MissingExtra

    try:
        from foretell.app.site.crawl import Chosen, write_site
        from foretell.app.web import server  # noqa: F401  # pyright: ignore[reportUnusedImport] - is the extra there?
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("fastapi", "jinja2", "markupsafe", "starlette"):
            raise
        raise MissingExtra("foretell site", "web") from None
    chosen = Chosen(runs=runs, trees=trees, arenas=arenas, most=most)
    with progress_bar("pages") as progress:
        done = asyncio.run(write_site(out, load_settings(), chosen=chosen, progress=progress))
    for one in done.broken[:10]:
        click.echo(f"note: no page at {one}", err=True)
    click.echo(f"Wrote {done.pages} pages, {done.size / 1e6:.1f} MB: open {out / 'index.html'}")
