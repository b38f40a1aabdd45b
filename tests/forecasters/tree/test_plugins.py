"""Synthesis rules and grounders of other packages: one class and one line, and everything works with them."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from itertools import combinations
from pathlib import Path
from string import Template
from typing import ClassVar

import pytest
from tests.forecasters.tree.random_trees import by_worlds, claim, tree_of
from tests.forecasters.tree.scripted_tree import TreeSetup

from foretell import plugins
from foretell.forecasters import Context
from foretell.forecasters.tree import (
    Body,
    FormulaLink,
    Gates,
    Grounding,
    GroundingResult,
    InvalidTree,
    Leaf,
    Link,
    SynthesisRule,
    Tree,
    TreeForecaster,
    TreeProblem,
    TreeSettings,
    bayes_net,
    check_file,
    evaluate,
    evaluated,
    link_in_numbers,
    link_in_words,
    read_tree,
    to_bif,
    to_dot,
    to_problog,
    write_tree,
)
from foretell.forecasters.tree.what_if import what_if
from foretell.models import Request, closed_object
from foretell.models.providers import ScriptedModel
from foretell.operations import TreeRequest
from foretell.questions import Forecast
from foretell.request import allowed_names


@dataclass(frozen=True, kw_only=True)
class AtLeastLink(Link):
    """True when at least so many children are."""

    kind: ClassVar[str] = "at_least"
    count: float

    def problems(self, node: str, children: Sequence[str], *, intercept_limit: float) -> Iterator[TreeProblem]:
        """The count is one of the possible ones."""
        if self.count not in range(1, len(children) + 1):
            text = f"{self.count:g} is outside 1 to {len(children)}"
            yield TreeProblem(node=node, field="link.count", text=text)

    def compile(self, node: str, children: Sequence[str], gates: Gates) -> Body:
        """One of the combinations of so many children."""
        groups = combinations(children, int(self.count))
        return gates.exactly(gates.any_of([gates.all_of(map(gates.var, group)) for group in groups]))

    def describe(self, children: Sequence[str]) -> str:
        """In words."""
        return f"True when at least {self.count:g} of {', '.join(children)} are."


AT_LEAST = SynthesisRule(
    name="at-least",
    link=AtLeastLink,
    prompts=(Template("How many of $children must come true for the claim to come true?"),),
    hint=Template("Choose children of which a certain number suffices."),
    fields=lambda children: {"count": {"type": "integer", "minimum": 1, "maximum": len(children)}},
    read=lambda answer: AtLeastLink(count=float(answer["count"])),
)


class OneThird:
    """A grounder that needs nothing."""

    name = "one-third"

    async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
        """Always the same."""
        return GroundingResult(p=1 / 3, grounding=Grounding(grounder=self.name))


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {
        kind: {name: EntryPoint(name, f"{__name__}:{attribute}", f"foretell.{kind}")}
        for kind, name, attribute in (
            ("synthesis_rules", "at-least", "AT_LEAST"),
            ("grounders", "one-third", "OneThird"),
        )
    }
    monkeypatch.setattr(plugins, "_announced", lambda kind: found.get(kind, {}))


def shared() -> Tree:
    """Two of three, where two of the three rest on the same claim."""
    return evaluated(
        tree_of(
            claim("P0", children=("P1", "P2", "P3"), link=AtLeastLink(count=2.0)),
            claim("P1", children=("P4", "P3"), link=FormulaLink(expression="P4 AND P3")),
            claim("P2", children=("P4",), link=FormulaLink(expression="NOT P4")),
            claim("P3", p=0.3),
            claim("P4", p=0.6),
        )
    )


def worlds(tree: Tree) -> float:
    """The same tree with the rule written out as a formula, by going through every world."""
    formula = FormulaLink(expression="(P1 AND P2) OR (P1 AND P3) OR (P2 AND P3)")
    top = claim("P0", children=("P1", "P2", "P3"), link=formula)
    return by_worlds(Tree(root="P0", nodes={**tree.nodes, "P0": top}))["P0"]


def test_its_values_are_exact_where_branches_share_claims_and_follow_what_if():
    tree = shared()
    assert tree.nodes["P0"].p == pytest.approx(worlds(tree))
    assert what_if(tree, {"P4": 0.1}).p == pytest.approx(worlds(what_if(tree, {"P4": 0.1}).tree))


def test_files_hold_it_and_problems_name_it(tmp_path: Path):
    path = tmp_path / "t.json"
    write_tree(path, shared())
    assert read_tree(path) == shared()
    path.write_text(path.read_text().replace('"count": 2.0', '"count": 7'))
    assert [str(problem) for problem in check_file(path)] == ["node P0, link.count: 7 is outside 1 to 3"]
    path.write_text(path.read_text().replace('"at_least"', '"at_most"'))
    with pytest.raises(InvalidTree, match=r"link.kind: 'at_most' is not a kind of link.*average, judged, at_least"):
        read_tree(path)


def test_words_and_exports_know_it():
    tree = shared()
    assert link_in_words(tree.nodes["P0"]) == "True when at least 2 of P1, P2, P3 are."
    assert link_in_numbers(tree, tree.nodes["P0"]).startswith(f"{tree.nodes['P0'].p:.3f}, worked out case by case")
    table = next(variable for variable in bayes_net(tree) if variable.id == "P0")
    assert table.chances == (1, 1, 1, 0, 1, 0, 0, 0)
    assert to_bif(tree)
    assert to_dot(tree)
    assert "1.0::p0 :- p1, p2, \\+ p3." in to_problog(tree)


def test_trees_are_grown_with_it_and_with_a_grounder_of_another_package():
    setup = TreeSetup()
    play = setup.model

    async def answer(request: Request):
        if request.slot.endswith("synthesis/0"):
            return await ScriptedModel([json.dumps({"report": "r", "key_factor": "k", "count": 1})]).complete(request)
        return await play.complete(request)

    class Both:
        complete = staticmethod(answer)

    setup.model = Both()
    grounder = plugins.load("grounders", "one-third")()
    settings = TreeSettings(rule="at-least")
    kept: list[Tree] = []
    forecaster = TreeForecaster(
        grounder=grounder, settings=settings, store_tree=lambda question, trial, target, tree: kept.append(tree)
    )
    found = asyncio.run(forecaster.forecast(setup.question, setup.context))
    assert isinstance(found, Forecast)
    assert found.forecaster == "tree at-least one-third"
    assert {node.link for node in kept[0].nodes.values() if node.children} == {AtLeastLink(count=1)}
    assert evaluate(kept[0]).p == pytest.approx(1 - (2 / 3) ** 4)


def test_an_answer_schema_is_made_for_the_children():
    schema = AT_LEAST.schema(("P1", "P2"))
    assert schema == closed_object(
        {"report": {"type": "string"}, "key_factor": {"type": "string"}, **AT_LEAST.fields(("P1", "P2"))}
    )


def test_every_door_takes_them_and_names_those_there_are():
    request = TreeRequest.read({"claim": "It rains.", "grounder": "one-third", "rule": "at-least"})
    assert request.settings()["options"] == {"grounder": "one-third", "rule": "at-least"}
    assert "one-third" in allowed_names(TreeRequest.model_fields["grounder"])
    assert "at-least" in allowed_names(TreeRequest.model_fields["rule"])
