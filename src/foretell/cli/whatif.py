"""`foretell whatif`: other numbers at some claims of a tree, and what that does to all the others."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from foretell.forecasters.tree.arithmetic.sensitivity import TornadoBar, TreeSpread
    from foretell.forecasters.tree.edits import Scenario
    from foretell.forecasters.tree.proposition import Tree
    from foretell.forecasters.tree.tree_file import TreeFile
    from foretell.forecasters.tree.what_if import WhatIfResult

UNNAMED = "as set"
SCHEMA = "foretell/whatif/1"


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--set", "sets", multiple=True, metavar="ID=P", help="Give a claim this probability; may be repeated.")
@click.option("--unpin", multiple=True, metavar="ID", help="Let a pinned claim follow its link again.")
@click.option("--scenario", "names", multiple=True, metavar="NAME", help="A scenario saved in FILE; may be repeated.")
@click.option("--all", "every", is_flag=True, help="All scenarios saved in FILE, compared.")
@click.option(
    "--sd", "sds", multiple=True, metavar="ID=SD", help="How unsure an input's probability is: adds the spread."
)
@click.option("--correlation", type=click.FloatRange(-1, 1), default=0.0, help="Between the errors of the --sd inputs.")
@click.option("--tornado", is_flag=True, help="The answer with every input at 0 and at 1 (or at ± SD).")
@click.option("--save", "save", metavar="NAME", help="Keep --set and --unpin in FILE as a scenario.")
@click.option(
    "--draws", type=click.IntRange(0), default=10_000, show_default=True, help="Draws for percentiles of --sd."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the draws.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def whatif(
    file: Path,
    sets: tuple[str, ...],
    unpin: tuple[str, ...],
    names: tuple[str, ...],
    every: bool,
    sds: tuple[str, ...],
    correlation: float,
    tornado: bool,
    save: str | None,
    draws: int,
    seed: int,
    as_json: bool,
) -> None:
    """What if some claims of the tree in FILE had other probabilities? Prints old and new for every claim that changes.

    A leaf gets the new probability. A claim with children is pinned: it holds that value whatever lies beneath it.
    P1:PA stands for the assumption in the formula of P1. Only the claims above are recomputed, and no model is asked;
    claims that a model judged keep their number and are marked.
    """
    import json

    from foretell.forecasters.tree.tree_file import read_tree_file
    from foretell.forecasters.tree.what_if import compare_scenarios

    found = read_tree_file(file)
    scenarios = _scenarios(found, sets, unpin, names, every, save)
    outcomes = compare_scenarios(found.tree, scenarios)
    tree = outcomes[0].tree if len(outcomes) == 1 else found.tree
    sd = _numbers(sds, "--sd")
    bars = _tornado(tree, sd) if tornado else []
    spread = _spread(tree, sd, correlation, draws, seed) if sd else None
    if save is not None:
        _save(file, found, scenarios)
    if as_json:
        body = _to_dict(found.tree, scenarios, outcomes, bars, spread)
        click.echo(json.dumps(body, ensure_ascii=False, indent=1))
        return
    _print_outcomes(found.tree, outcomes)
    _print_rest(bars, spread)


def _scenarios(
    found: "TreeFile",
    sets: Sequence[str],
    unpin: Sequence[str],
    names: Sequence[str],
    every: bool,
    save: str | None,
) -> "list[Scenario]":
    """Those that were named, then the one made of --set and --unpin."""
    from foretell.forecasters.tree.edits import Scenario, SetP, Unpin
    from foretell.questions.errors import InputError

    chosen = list(found.scenarios) if every else list(names)
    for name in chosen:
        if name not in found.scenarios:
            known = ", ".join(found.scenarios) or "there are none"
            raise InputError(f"no scenario {name!r} is saved", column="--scenario", hint=f"saved: {known}")
    edits = [SetP(id=id, p=p) for id, p in _numbers(sets, "--set").items()] + [Unpin(id=id) for id in unpin]
    if save is not None and not edits:
        raise InputError("there is nothing to save", column="--save", hint="say what changes with --set or --unpin")
    own = [Scenario(name=save or UNNAMED, edits=tuple(edits))] if edits else []
    return [found.scenarios[name] for name in chosen] + own


def _numbers(pairs: Sequence[str], option: str) -> dict[str, float]:
    """ID=NUMBER pairs."""
    from foretell.questions.errors import InputError

    found: dict[str, float] = {}
    for pair in pairs:
        id, sign, value = pair.partition("=")
        try:
            found[id.strip()] = float(value)
        except ValueError:
            sign = ""
        if not sign or not id.strip():
            raise InputError(f"{pair!r} is not ID=NUMBER", column=option, hint=f"write {option} P2.1=0.3")
    return found


def _tornado(tree: "Tree", sd: Mapping[str, float]) -> "list[TornadoBar]":
    from foretell.forecasters.tree.arithmetic.sensitivity import tornado

    return tornado(tree, sd=sd or None)


def _spread(tree: "Tree", sd: Mapping[str, float], correlation: float, draws: int, seed: int) -> "TreeSpread":
    import numpy as np

    from foretell.forecasters.tree.arithmetic.sensitivity import tree_spread

    return tree_spread(tree, sd, correlation=correlation, draws=draws, rng=np.random.default_rng(seed))


def _save(file: Path, found: "TreeFile", scenarios: "Sequence[Scenario]") -> None:
    from foretell.forecasters.tree.tree_file import write_tree

    kept = found.with_scenario(scenarios[-1])
    write_tree(file, kept.tree, kept.scenarios)
    click.echo(f"Saved {scenarios[-1].name!r} in {file}", err=True)


def _to_dict(
    tree: "Tree",
    scenarios: "Sequence[Scenario]",
    outcomes: "Sequence[WhatIfResult]",
    bars: "Sequence[TornadoBar]",
    spread: "TreeSpread | None",
) -> dict[str, Any]:
    from dataclasses import asdict

    from foretell.forecasters.tree.tree_json import to_dict

    body: dict[str, Any] = {
        "schema": SCHEMA,
        "root": tree.root,
        "p": tree.nodes[tree.root].p,
        "scenarios": [
            {
                "name": outcome.name,
                "edits": [to_dict(edit) for edit in scenario.edits],
                "p": outcome.p,
                "changes": [asdict(change) for change in outcome.changes],
                "stale": list(outcome.stale),
                "held": list(outcome.held),
            }
            for scenario, outcome in zip(scenarios, outcomes, strict=True)
        ],
    }
    if bars:
        body["tornado"] = [asdict(bar) for bar in bars]
    if spread is not None:
        body["spread"] = asdict(spread)
    return body


def _print_outcomes(tree: "Tree", outcomes: "Sequence[WhatIfResult]") -> None:
    """Old and new for every claim that changed in one of the scenarios; a column for each."""
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    from foretell.forecasters.tree.description import format_probability, one_line

    rows: dict[str, str] = {}
    for outcome in outcomes:
        rows |= {change.id: change.claim for change in outcome.changes}
    if not rows:
        click.echo(f"{tree.root} {format_probability(tree.nodes[tree.root].p)}: nothing changes")
        return
    heads = [Column(Text(one_line(outcome.name))) for outcome in outcomes]
    table = Table("claim", "was", *heads, Column("", overflow="fold"), box=None)
    order = [id for id in tree.nodes if id in rows] + [id for id in rows if id not in tree.nodes]
    for id in order:
        was = tree.nodes[id].p if id in tree.nodes else None
        now = [outcome.tree.nodes[id].p if id in outcome.tree.nodes else None for outcome in outcomes]
        cells = [format_probability(p) if p != was else "·" for p in now]
        table.add_row(id, format_probability(was), *cells, Text(one_line(rows[id])))
    Console(highlight=False).print(table)
    for outcome in outcomes:
        for id in outcome.stale:
            click.echo(f"note: {id} was judged before the change in {outcome.name!r} and keeps its number", err=True)
        for id in outcome.held:
            click.echo(f"note: {id} leaves [0, 1] in {outcome.name!r} and is held at the end of it", err=True)


def _print_rest(bars: "Sequence[TornadoBar]", spread: "TreeSpread | None") -> None:
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    from foretell.forecasters.tree.description import format_probability, one_line

    console = Console(highlight=False)
    if bars:
        table = Table("input", "from", "to", "answer", "", Column("", overflow="fold"), box=None)
        for bar in bars:
            ends = (
                format_probability(bar.low),
                format_probability(bar.high),
                format_probability(bar.at_low),
                format_probability(bar.at_high),
            )
            table.add_row(bar.id, *ends, Text(one_line(bar.claim)))
        console.print(table)
    if spread is not None:
        exact = f", {spread.exact:.4f} with curvature" if spread.exact is not None else ""
        between = ""
        if spread.low is not None and spread.high is not None:
            between = (
                f"; nine times in ten between {format_probability(spread.low)} and {format_probability(spread.high)}"
            )
        click.echo(f"answer {format_probability(spread.p)} ± {spread.first_order:.4f}{exact}{between}")
