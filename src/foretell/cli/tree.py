"""`foretell tree`: look at a proposition tree, check it, and write it in other forms."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foretell.cli.options import FILE_PATH
from foretell.operations.tree import TREE_FORMATS, format_tree
from foretell.runs import event_loop

if TYPE_CHECKING:
    from foretell.forecasters.tree.proposition import Tree
    from foretell.forecasters.tree.tree_file import TreeFile
    from foretell.operations.tree import TreeResult


# foretell tree "CLAIM": grow a tree for a claim.

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
@click.option("--out", type=FILE_PATH, help="The tree's file (default: in the home of foretell).")
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
    from foretell.cli.ask import NO_MODEL
    from foretell.cli.live_view import tree_live_view
    from foretell.operations.ask import TypedQuestion
    from foretell.operations.tree import TreeRequest, grow_tree
    from foretell.runs.settings import load_settings

    if model is None:
        click.echo(NO_MODEL, err=True)
        raise SystemExit(2)
    wish = TreeRequest(
        asked=TypedQuestion(text=claim, by=by, as_of=as_of, criteria=criteria),
        models=_models_by_role(model, roles),
        options={name: value for name, value in options.items() if value not in (None, False)},
        search=engines or tuple(filter(None, os.environ.get("FORETELL_SEARCH", "").split(","))),
        budget=budget,
        out=out,
    )
    with tree_live_view(shown=not as_json) as watch:
        harvest = event_loop.run(grow_tree(wish, load_settings(), watch=watch))
    _report_tree(harvest, html=html, as_json=as_json)


def _models_by_role(model: str, roles: tuple[str, ...]) -> dict[str, str]:
    from foretell.models.names import MODEL_ROLES
    from foretell.questions.errors import InputError

    cast = {"agent": model}
    for written in roles:
        role, equals, name = written.partition("=")
        if not equals or role not in MODEL_ROLES:
            raise InputError(f"cannot use {written!r}", column="--role", hint=f"roles are {', '.join(MODEL_ROLES)}")
        cast[role] = name
    return cast


def _report_tree(harvest: "TreeResult", *, html: bool, as_json: bool) -> None:
    from foretell.forecasters.tree.tree_file import tree_to_dict

    for warning in harvest.warnings:
        click.echo(f"warning: {warning}", err=True)
    if as_json:
        click.echo(json.dumps(tree_to_dict(harvest.tree), ensure_ascii=False, indent=1))
    else:
        _print_tree(harvest)
    click.echo(f"Wrote {harvest.path}", err=True)
    if html:
        from foretell.cli.options import write_text
        from foretell.report.tree_page import tree_page

        page = harvest.path.with_suffix(".html")
        write_text(page, tree_page(harvest.tree))
        click.echo(f"Wrote {page}", err=True)


def _print_tree(harvest: "TreeResult") -> None:
    from rich.console import Console
    from rich.text import Text

    from foretell.forecasters.tree.description import claim_marks, format_probability, one_line, outline

    console = Console(highlight=False)
    for line in outline(harvest.tree):
        told = "; ".join(["see above"] if line.again else claim_marks(line.node))
        text = Text(f"{'  ' * line.depth}{line.node.id} ")
        text.append(format_probability(line.node.p), style="bold")
        text.append(f" {one_line(line.node.claim)}")
        text.append(f" ({told})" if told else "", style="yellow")
        console.print(text)
    for note in harvest.tree.notes:
        click.echo(f"note: {one_line(note)}", err=True)
    usage = harvest.answer.usage
    told = f"{usage.calls} model calls, {usage.input_tokens + usage.output_tokens:,} tokens, ${usage.dollars:.4f}"
    console.print(Text(f"{told}. Every step: foretell show {harvest.run} {harvest.answer.question_id}", style="dim"))


TREE_FILE = click.Path(path_type=Path, dir_okay=False)
SCALINGS = ("min-max", "softmax", "clip")


class TreeGroup(click.Group):
    """Commands on trees; what is none of them goes to the command that takes it as its argument."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """`foretell tree TREE_FILE` shows the file; a sentence is a claim to grow a tree for."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            if Path(args[0]).is_file():
                args = ["show", *args]
            elif " " in args[0].strip():
                args = ["grow", *args]
        return super().resolve_command(ctx, args)


@click.group(cls=TreeGroup)
def tree() -> None:
    """Claims broken down into claims: a tree grown, shown, checked, and written in other forms.

    foretell tree "CLAIM" is short for foretell tree grow "CLAIM", foretell tree FILE for foretell tree show FILE.
    """


tree.add_command(grow)


@tree.command()
@click.argument("file", type=TREE_FILE)
@click.option("--inputs", is_flag=True, help="Also what the answer hangs on: slope and share of every input.")
@click.option("--paths", is_flag=True, help="Also the ways from the root to each leaf, with the product of the slopes.")
def show(file: Path, inputs: bool, paths: bool) -> None:
    """Print the tree in FILE with every probability, worked out from its leaves."""
    from rich.console import Console
    from rich.text import Text

    from foretell.forecasters.tree.description import claim_marks, format_probability, one_line, outline
    from foretell.forecasters.tree.tree_file import read_tree_file

    found = read_tree_file(file)
    console = Console(highlight=False)
    for line in outline(found.tree):
        told = "; ".join(["see above"] if line.again else claim_marks(line.node))
        text = Text(f"{'  ' * line.depth}{line.node.id} ")
        text.append(format_probability(line.node.p), style="bold")
        text.append(f" {one_line(line.node.claim)}")
        text.append(f" ({told})" if told else "", style="yellow")
        console.print(text)
    if inputs:
        _show_inputs(found.tree)
    if paths:
        _show_paths(found.tree)
    _warn(found)


def _show_inputs(tree: "Tree") -> None:
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    from foretell.forecasters.tree.arithmetic.sensitivity import sensitivities
    from foretell.forecasters.tree.description import format_probability, one_line

    table = Table("input", "p", "slope", "share", Column("claim", overflow="fold"), box=None)
    for row in sensitivities(tree):
        cells = (row.id, format_probability(row.p), f"{row.slope:+.3f}", f"{row.share:.0%}")
        table.add_row(*cells, Text(one_line(row.claim)))
    Console().print(table)


def _show_paths(tree: "Tree") -> None:
    from foretell.forecasters.tree.arithmetic.sensitivity import beta_paths

    for path in beta_paths(tree):
        steps = " × ".join(f"{slope:.3g}" for slope in path.slopes)
        click.echo(f"{path.product:+.4f}  {' → '.join(path.claims)}  ({steps})")


def _warn(found: "TreeFile") -> None:
    for problem in found.warnings:
        click.echo(f"note: {problem}", err=True)


@tree.command()
@click.argument("file", type=TREE_FILE)
def check(file: Path) -> None:
    """Say everything that is wrong with FILE, and everything worth knowing. Exit code 1 if it cannot be used."""
    from foretell.forecasters.tree.tree_file import check_file

    problems = check_file(file)
    for problem in problems:
        click.echo(f"{'note' if problem.warning else 'error'}: {problem.with_pointer()}")
    errors = sum(not problem.warning for problem in problems)
    click.echo(f"{file}: {errors} error{'s' * (errors != 1)}" if errors else f"{file}: sound")
    if errors:
        raise SystemExit(1)


@tree.command()
@click.argument("file", type=TREE_FILE)
@click.option("--to", "form", type=click.Choice(TREE_FORMATS), required=True, help="What to write.")
@click.option("--out", "-o", type=TREE_FILE, help="File to write to (default: standard output).")
@click.option(
    "--scaling",
    type=click.Choice(SCALINGS),
    help="For problog, bif and xmlbif: scale linear weights that are no conditional chance, instead of refusing.",
)
def export(file: Path, form: str, out: Path | None, scaling: str | None) -> None:
    """Write the tree in FILE as a logic program, a Bayes net, a graph or a report.

    problog, bif and xmlbif give the same probabilities as the tree. That takes linear links with weights and intercept
    in [0, 1] that add up to 1 at most; other trees are refused unless you choose a --scaling, which changes numbers.
    """
    from foretell.cli.options import write_text
    from foretell.forecasters.tree.arithmetic.scaling import scale_tree
    from foretell.forecasters.tree.tree_file import TreeFile, read_tree_file

    found = read_tree_file(file)
    if scaling is not None:
        before = found.tree.nodes[found.tree.root].p
        found = TreeFile(tree=scale_tree(found.tree, scaling), scenarios=found.scenarios)
        after = found.tree.nodes[found.tree.root].p
        click.echo(f"scaled by {scaling}: the root was {before:.4f}, is {after:.4f}", err=True)
    text = format_tree(found, form)
    if out is None:
        click.echo(text, nl=False)
    else:
        write_text(out, text)
        click.echo(f"Wrote {out}", err=True)
