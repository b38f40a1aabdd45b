"""foretell data inspect-log: the logs of Inspect AI as tables of forecasts."""

from pathlib import Path

import click


@click.command("inspect-log")
@click.argument("log", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=Path("inspect"), show_default=True)
@click.option("--name", metavar="FORECASTER", help="Who forecast (default: the model of each log).")
def inspect_log(log: Path, out: Path, name: str | None) -> None:
    """Turn an Inspect AI LOG (.eval or .json, or a folder of them) into the tables that `foretell score` reads.

    foretell data inspect-log logs/ --out run; foretell score -f run/forecasts.csv -o run/outcomes.csv
    """
    from foretell.app.inspect_door.logs import read_inspect_log

    found = read_inspect_log(log, name=name)
    for path in found.write(out):
        click.echo(f"Wrote {path}")
    if found.failures:
        first = found.failures[0]
        told = f"{len(found.failures)} samples hold no forecast, e.g. {first['question']}: {first['error']}"
        click.echo(told, err=True)
