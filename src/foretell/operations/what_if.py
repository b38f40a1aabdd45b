"""What if some claims of a tree had other probabilities? The answer is computed exactly, without a model."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from foretell.forecasters.tree.arithmetic.sensitivity import (
    Sensitivity,
    TornadoBar,
    TreeSpread,
    sensitivities,
    tornado,
    tree_spread,
)
from foretell.forecasters.tree.edits import Scenario, number_edits
from foretell.forecasters.tree.exports import one_line
from foretell.forecasters.tree.links import JudgedLink
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.tree_file import TreeFile, to_dict, write_tree
from foretell.forecasters.tree.what_if import ClaimChange, WhatIfResult, compare_scenarios
from foretell.frozen import frozen
from foretell.number_text import percent
from foretell.operations.requests.trees import WhatIfRequest
from foretell.questions.errors import InputError
from foretell.report.result import Result
from foretell.report.terminal import show_text
from foretell.runs.settings import Settings
from foretell.runs.tree_files import open_tree

UNNAMED = "as set"
"""The name of the scenario that the request itself describes."""
ALL = "all"
"""The name that selects all saved scenarios."""
SCHEMA = "foretell/whatif/1"
INPUTS_SHOWN = 20
"""How many of the most important inputs are shown."""


@frozen
class ScenarioComparison(Result):
    """A tree under one or more scenarios, each compared with the tree as it is."""

    tree: Tree
    """The tree without any scenario."""
    scenarios: tuple[Scenario, ...]
    outcomes: tuple[WhatIfResult, ...]
    """The result of each scenario."""
    depends_on: tuple[Sensitivity, ...] = ()
    """The most important inputs, under the scenario if there is only one."""
    bars: tuple[TornadoBar, ...] = ()
    spread: TreeSpread | None = None
    saved: str | None = None
    """The name under which the scenario was saved in the tree's file."""

    @property
    def p(self) -> float | None:
        """The probability of the root: under the scenario if there is only one, otherwise as it is."""
        return self.outcomes[0].p if len(self.outcomes) == 1 else self.tree.nodes[self.tree.root].p

    @property
    def changes(self) -> tuple[ClaimChange, ...]:
        """Every claim that changes in one of the scenarios."""
        return tuple(change for outcome in self.outcomes for change in outcome.changes)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per changed claim, with a column for each scenario."""
        claims: dict[str, str] = {}
        for outcome in self.outcomes:
            claims |= {change.id: change.claim for change in outcome.changes}
        nodes = self.tree.nodes
        order = [id for id in nodes if id in claims] + [id for id in claims if id not in nodes]
        return [
            {
                "id": id,
                "was": nodes[id].p if id in nodes else None,
                **{other.name: other.tree.nodes[id].p if id in other.tree.nodes else None for other in self.outcomes},
                "claim": claims[id],
            }
            for id in order
        ]

    def to_dict(self) -> dict[str, Any]:
        """Old and new probabilities, what else was requested, and notes on claims that keep outdated numbers."""
        root = self.tree.nodes[self.tree.root]
        body: dict[str, Any] = {
            "schema": SCHEMA,
            "root": root.id,
            "claim": root.claim,
            "p": root.p,
            "scenarios": [
                {
                    "name": outcome.name,
                    "edits": [to_dict(edit) for edit in scenario.edits],
                    "p": outcome.p,
                    "changes": [
                        {**asdict(change), "fields": list(change.fields)}
                        for change in sorted(outcome.changes, key=lambda change: -abs(change.moved))
                    ],
                    "stale": list(outcome.stale),
                    "held": list(outcome.held),
                }
                for scenario, outcome in zip(self.scenarios, self.outcomes, strict=True)
            ],
            "depends_on": [
                {"id": bar.id, "claim": bar.claim, "p": bar.p, "slope": bar.slope} for bar in self.depends_on
            ],
        }
        if self.bars:
            body["tornado"] = [asdict(bar) for bar in self.bars]
        if self.spread is not None:
            body["spread"] = asdict(self.spread)
        if self.saved is not None:
            body["saved"] = self.saved
        return body

    @property
    def notes(self) -> list[str]:
        """Claims that keep an outdated number, or are held at 0 or 1."""
        messages: list[str] = []
        for outcome in self.outcomes:
            name = repr(outcome.name)
            for id in outcome.stale:
                judged = isinstance(outcome.tree.nodes[id].link, JudgedLink)
                messages.append(
                    f"{id} was judged before the change in {name} and keeps its number"
                    if judged
                    else f"the rule of {id} was set before the change in {name}"
                )
            messages += [f"{id} leaves [0, 1] in {name} and is limited to it" for id in outcome.held]
        return messages

    @property
    def warnings(self) -> list[str]:
        """The notes, and the name under which the scenario was saved."""
        return [*self.notes, *([f"Saved {self.saved!r}"] if self.saved is not None else [])]

    def print(self, console: "Console") -> None:
        """Old and new values of every changed claim, a column per scenario; then tornado and spread."""
        if rows := self.rows():
            heads = [Column(Text(one_line(outcome.name))) for outcome in self.outcomes]
            table = Table("claim", "was", *heads, Column("", overflow="fold"), box=None)
            for row in rows:
                now = [row[outcome.name] for outcome in self.outcomes]
                cells = [percent(p, 1) if p != row["was"] else "·" for p in now]
                table.add_row(row["id"], percent(row["was"], 1), *cells, Text(one_line(row["claim"])))
            console.print(table, highlight=False)
        else:
            root = self.tree.nodes[self.tree.root]
            show_text(console, f"{root.id} {percent(root.p, 1)}: nothing changes\n")
        if self.bars:
            table = Table("input", "from", "to", "answer", "", Column("", overflow="fold"), box=None)
            for bar in self.bars:
                ends = (percent(p, 1) for p in (bar.low, bar.high, bar.at_low, bar.at_high))
                table.add_row(bar.id, *ends, Text(one_line(bar.claim)))
            console.print(table, highlight=False)
        if (spread := self.spread) is not None:
            show_text(console, f"answer {percent(spread.p, 1)} ± {100 * spread.sd:.1f} points\n")


def what_if(request: WhatIfRequest, settings: Settings | None = None) -> ScenarioComparison:
    """Compare other probabilities for some claims of a tree (a `Tree`, its file or its JSON) with the tree as it is.

    A leaf gets the new probability. A claim with children is overridden by it, regardless of the claims below. With
    `save`, the scenario is stored in the tree's file. Raises InputError if a claim or scenario does not exist.
    """
    file, path = open_tree(request.tree, settings)
    scenarios = _scenarios(file, request)
    outcomes = compare_scenarios(file.tree, scenarios)
    tree = outcomes[0].tree if len(outcomes) == 1 else file.tree
    if request.save is not None:
        if path is None:
            raise InputError(
                "a scenario can only be saved in a tree with a file", column="--save", hint="give the tree's file"
            )
        stored = file.with_scenario(scenarios[-1])
        write_tree(path, stored.tree, stored.scenarios)
    return ScenarioComparison(
        tree=file.tree,
        scenarios=tuple(scenarios),
        outcomes=tuple(outcomes),
        depends_on=tuple(sensitivities(tree)[:INPUTS_SHOWN]),
        bars=tuple(tornado(tree, sd=request.sd or None)) if request.tornado else (),
        spread=tree_spread(tree, request.sd) if request.sd else None,
        saved=request.save,
    )


def numbers_by_name(texts: Iterable[str]) -> dict[str, float]:
    """Return texts of the form ID=NUMBER as numbers by id.

    >>> numbers_by_name(["P2.1=0.3"])
    {'P2.1': 0.3}
    """
    numbers: dict[str, float] = {}
    for text in texts:
        id, _, value = text.rpartition("=")
        try:
            numbers[id.strip()] = float(value)
        except ValueError:
            raise InputError(f"{text[:80]!r} is not ID=NUMBER", column="set", hint="write P2.1=0.3") from None
    return numbers


def _scenarios(file: TreeFile, request: WhatIfRequest) -> list[Scenario]:
    """Return the named scenarios, then the one made from `set`."""
    chosen = list(file.scenarios) if ALL in request.scenarios else list(request.scenarios)
    for name in chosen:
        if name not in file.scenarios:
            known = ", ".join(file.scenarios) or "there are none"
            raise InputError(f"no scenario {name!r} is saved", column="--scenario", hint=f"saved: {known}")
    edits = number_edits(request.set)
    if request.save is not None and not edits:
        raise InputError("there is nothing to save", column="--save", hint="give the changes with --set")
    own = [Scenario(name=request.save or UNNAMED, edits=tuple(edits))] if edits else []
    return [file.scenarios[name] for name in chosen] + own
