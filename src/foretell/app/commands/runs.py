"""foretell runs: what was run on this machine."""

import click


@click.command()
def runs() -> None:
    """List the runs on this machine, the newest first."""
    from rich.console import Console
    from rich.table import Column, Table

    from foretell.app.settings import load_settings
    from foretell.arena.store import Store

    settings = load_settings()
    store = Store(settings.store)
    found = store.runs()
    store.close()
    if not found:
        click.echo("no runs yet; try: foretell ask, or foretell run SPEC.yaml")
        return
    table = Table(
        Column("run", no_wrap=True, overflow="fold"),
        "created",
        "questions",
        "forecaster",
        "model",
        "trials",
        "forecasts",
        "failed",
        box=None,
    )
    for row in found:
        table.add_row(
            row.id,
            row.created,
            str(row.spec["questions"]["dataset"])[:40],
            row.spec["forecaster"],
            row.spec["models"].get("agent", ""),
            str(row.spec["trials"]),
            str(row.done),
            str(row.failed),
        )
    Console().print(table)
