"""foretell tree "CLAIM": grow a tree for a claim."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foretell.app import loop
from foretell.app.commands.options import FILE

if TYPE_CHECKING:
    from foretell.app.growing import Harvest

RULES = ("linear", "logic", "vanilla", "average", "random", "noisy-or", "inhibited-noisy-or")
GROUNDERS = ("search", "agent", "notebook", "deep", "plain", "auto")


@click.command()
@click.argument("claim")
@click.option("--by", metavar="DATE", help="When it will be known.")
@click.option("--as-of", metavar="DATE", help="Grow it as if it were that day: nothing later is seen.")
@click.option("--criteria", default="", help="How exactly it is decided.")
@click.option("--model", envvar="FORETELL_MODEL", show_envvar=True, help="provider:name of the models.")
@click.option("--role", "roles", multiple=True, metavar="ROLE=MODEL", help="Another model for one role; repeatable.")
@click.option(
    "--search", "engines", multiple=True, help="Search engine: brave, exa, tavily, serper, asknews, gdelt, local."
)
@click.option(
    "--grounder", type=click.Choice(GROUNDERS), default="search", show_default=True, help="Who judges leaves."
)
@click.option("--rule", type=click.Choice(RULES), default="linear", show_default=True, help="How children are joined.")
@click.option("--leaves", type=click.IntRange(2, 100), default=10, show_default=True, help="Enough for one analysis.")
@click.option(
    "--rounds", type=click.IntRange(1, 6), default=1, show_default=True, help="Analyse leaves again so often."
)
@click.option("--nodes", type=click.IntRange(3), default=5000, show_default=True, help="Most claims in all.")
@click.option("--at-once", type=click.IntRange(1, 1000), default=20, show_default=True, help="Leaves judged at a time.")
@click.option("--deep-model", metavar="MODEL", help="A model that researches by itself, for --grounder deep or auto.")
@click.option("--correlations", is_flag=True, help="Have a model check which siblings are not independent.")
@click.option("--bayes-net", is_flag=True, help="Ask for weights that are those of a Bayes net.")
@click.option("--scaling", type=click.Choice(["min-max", "softmax", "clip"]), help="Scale weights to those of one.")
@click.option("--unsandboxed", is_flag=True, help="Run notebooks without a sandbox, with all your rights.")
@click.option("--budget", type=float, metavar="DOLLARS", help="Hard limit; what is not examined then is marked.")
@click.option("--out", type=FILE, help="The tree's file (default: in the home of foretell).")
@click.option("--html", is_flag=True, help="Also write a report in HTML beside it.")
@click.option("--json", "as_json", is_flag=True, help="Print the tree as JSON.")
def grow(
    claim: str,
    by: str | None,
    as_of: str | None,
    criteria: str,
    model: str | None,
    roles: tuple[str, ...],
    engines: tuple[str, ...],
    budget: float | None,
    out: Path | None,
    html: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Grow a tree for CLAIM: take it apart, have the parts examined, put them together again.

    foretell tree "The ECB cuts its deposit rate by 31 March 2027." --by 2027-03-31 --model openai:NAME --search brave
    """
    from foretell.app.asking import Asked
    from foretell.app.commands.ask import NO_MODEL
    from foretell.app.growing import Wish, grow_claim
    from foretell.app.growth_view import growth_view
    from foretell.app.settings import load_settings

    if model is None:
        click.echo(NO_MODEL, err=True)
        raise SystemExit(2)
    wish = Wish(
        asked=Asked(text=claim, by=by, as_of=as_of, criteria=criteria),
        models=_cast(model, roles),
        options={name: value for name, value in options.items() if value not in (None, False)},
        search=engines or tuple(filter(None, os.environ.get("FORETELL_SEARCH", "").split(","))),
        budget=budget,
        out=out,
    )
    with growth_view(shown=not as_json) as watch:
        harvest = loop.run(grow_claim(wish, load_settings(), watch=watch))
    _tell(harvest, html=html, as_json=as_json)


def _cast(model: str, roles: tuple[str, ...]) -> dict[str, str]:
    from foretell.llm.roles import ROLES
    from foretell.questions.problems import InputError

    cast = {"agent": model}
    for written in roles:
        role, equals, name = written.partition("=")
        if not equals or role not in ROLES:
            raise InputError(f"cannot use {written!r}", column="--role", hint=f"roles are {', '.join(ROLES)}")
        cast[role] = name
    return cast


def _tell(harvest: "Harvest", *, html: bool, as_json: bool) -> None:
    from foretell.forecasters.tree.files.tree_file import tree_to_dict

    for warning in harvest.warnings:
        click.echo(f"warning: {warning}", err=True)
    if as_json:
        click.echo(json.dumps(tree_to_dict(harvest.tree), ensure_ascii=False, indent=1))
    else:
        _print(harvest)
    click.echo(f"Wrote {harvest.path}", err=True)
    if html:
        from foretell.app.commands.output import write_text
        from foretell.arena.report.tree_page import tree_page

        page = harvest.path.with_suffix(".html")
        write_text(page, tree_page(harvest.tree))
        click.echo(f"Wrote {page}", err=True)


def _print(harvest: "Harvest") -> None:
    from rich.console import Console
    from rich.text import Text

    from foretell.forecasters.tree.export.names import one_line
    from foretell.forecasters.tree.export.outline import marks, outline
    from foretell.forecasters.tree.export.words import number

    console = Console(highlight=False)
    for line in outline(harvest.tree):
        told = "; ".join(["see above"] if line.again else marks(line.node))
        text = Text(f"{'  ' * line.depth}{line.node.id} ")
        text.append(number(line.node.p), style="bold")
        text.append(f" {one_line(line.node.claim)}")
        text.append(f" ({told})" if told else "", style="yellow")
        console.print(text)
    for note in harvest.tree.notes:
        click.echo(f"note: {one_line(note)}", err=True)
    usage = harvest.answer.usage
    told = f"{usage.calls} model calls, {usage.input_tokens + usage.output_tokens:,} tokens, ${usage.dollars:.4f}"
    console.print(Text(f"{told}. Every step: foretell show {harvest.run} {harvest.answer.question_id}", style="dim"))
