"""`foretell tree`: look at a proposition tree, check it, and write it in other forms."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from foretell.cli.request_options import request_options
from foretell.operations.requests import TREE_FORMATS, TreeEditRequest, TreeRequest
from foretell.runs import event_loop

if TYPE_CHECKING:
    from foretell.forecasters.tree.proposition import Tree
    from foretell.forecasters.tree.tree_file import TreeFile


@click.command()
@request_options(TreeRequest)
@click.option("--json", "as_json", is_flag=True, help="Print the tree as JSON.")
def grow(request: TreeRequest, as_json: bool) -> None:
    """Grow a tree for CLAIM: take it apart, have the parts examined, put them together again.

    foretell tree "The ECB cuts its deposit rate by 31 March 2027." --closes 2027-03-31 --model openai:NAME
    """
    from foretell.cli.live_view import tree_live_view
    from foretell.forecasters.tree.description import one_line
    from foretell.operations.tree import grow as grow_async
    from foretell.runs.settings import load_settings

    with tree_live_view(shown=not as_json) as watch:
        result = event_loop.run(grow_async(request, load_settings(), watch=watch))
    for warning in result.warnings:
        click.echo(f"warning: {warning}", err=True)
    if as_json:
        click.echo(result.to_json())
    else:
        _print_tree(result.tree)
        usage = result.usage
        cost = f"{usage.calls} model calls, {usage.input_tokens + usage.output_tokens:,} tokens, ${usage.dollars:.4f}"
        click.echo(f"{cost}. Every step: foretell show {result.run} {result.forecast.question_id}")
    for note in (*map(one_line, result.tree.notes), *result.notes):
        click.echo(f"note: {note}", err=True)
    for path in result.files:
        click.echo(f"Wrote {path}", err=True)


def _print_tree(tree: "Tree") -> None:
    from rich.console import Console
    from rich.text import Text

    from foretell.operations.tree import tree_outline

    console = Console(highlight=False)
    for depth, id, p, claim, remark in tree_outline(tree):
        console.print(Text.assemble(f"{'  ' * depth}{id} ", (p, "bold"), f" {claim}", (remark, "yellow")))


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
    from foretell.forecasters.tree.tree_file import read_tree_file

    found = read_tree_file(file)
    _print_tree(found.tree)
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
@request_options(TreeEditRequest)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def edit(request: TreeEditRequest, as_json: bool) -> None:
    """Change the tree in TREE: numbers, words, links, claims added, moved or removed.

    Only the claims above a change are worked out anew. Those that a model judged keep their number and are marked
    until --rejudge has the model look at them again.
    """
    from foretell.operations.tree_edit import edit_tree

    result = edit_tree(request)
    click.echo(result.to_json() if as_json else str(result))
    click.echo(f"Wrote {result.path}", err=True)


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
    from foretell.operations.tree import format_tree

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
