"""Synthesis rules and grounders of other packages."""

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
from foretell.forecasters.forecaster import Context
from foretell.forecasters.tree.arithmetic.compiler import Gates
from foretell.forecasters.tree.arithmetic.evaluation import evaluate, evaluated
from foretell.forecasters.tree.arithmetic.gates import Body
from foretell.forecasters.tree.exports import bayes_net, link_in_numbers, link_in_words, to_bif, to_dot, to_problog
from foretell.forecasters.tree.forecaster import TreeForecaster
from foretell.forecasters.tree.grow.ground import GroundingResult, Leaf
from foretell.forecasters.tree.grow.synthesize import SynthesisRule
from foretell.forecasters.tree.links import FormulaLink, Link
from foretell.forecasters.tree.proposition import Grounding, Tree
from foretell.forecasters.tree.settings import TreeSettings
from foretell.forecasters.tree.text import InvalidTree, TreeProblem
from foretell.forecasters.tree.tree_file import check_file, read_tree, write_tree
from foretell.forecasters.tree.what_if import what_if
from foretell.models.model import Request
from foretell.models.providers.scripted import ScriptedModel
from foretell.models.structured_output import closed_object
from foretell.operations.requests.trees import TreeRequest
from foretell.questions.forecast import Forecast
from foretell.request import allowed_names


@dataclass(frozen=True, kw_only=True)
class AtLeastLink(Link):
    """True if at least `count` children are true."""

    kind: ClassVar[str] = "enough"
    count: float

    def problems(self, node: str, children: Sequence[str], *, intercept_limit: float) -> Iterator[TreeProblem]:
        """Check that the count is possible."""
        if self.count not in range(1, len(children) + 1):
            text = f"{self.count:g} is outside 1 to {len(children)}"
            yield TreeProblem(node=node, field="link.count", text=text)

    def compile(self, node: str, children: Sequence[str], gates: Gates) -> Body:
        """Require one of the combinations of `count` children."""
        groups = combinations(children, int(self.count))
        return gates.exactly(gates.any_of([gates.all_of(map(gates.var, group)) for group in groups]))

    def describe(self, children: Sequence[str]) -> str:
        """Describe the link in words."""
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
    """A grounder that needs no model."""

    name = "one-third"

    async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
        """Return a fixed probability."""
        return GroundingResult(p=1 / 3, grounding=Grounding(grounder=self.name))


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    entry_points = {
        kind: {name: EntryPoint(name, f"{__name__}:{attribute}", f"foretell.{kind}")}
        for kind, name, attribute in (
            ("synthesis_rules", "at-least", "AT_LEAST"),
            ("grounders", "one-third", "OneThird"),
        )
    }
    monkeypatch.setattr(plugins, "_announced", lambda kind: entry_points.get(kind, {}))


def shared() -> Tree:
    """Return a tree of two out of three children, two of which share a claim."""
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
    """Return the probability of the root with the rule as a formula, by enumerating all worlds."""
    formula = FormulaLink(expression="(P1 AND P2) OR (P1 AND P3) OR (P2 AND P3)")
    top = claim("P0", children=("P1", "P2", "P3"), link=formula)
    return by_worlds(Tree(root="P0", nodes={**tree.nodes, "P0": top}))["P0"]


def test_a_plugin_link_is_exact_with_shared_claims_and_in_what_if():
    tree = shared()
    assert tree.nodes["P0"].p == pytest.approx(worlds(tree))
    assert what_if(tree, {"P4": 0.1}).p == pytest.approx(worlds(what_if(tree, {"P4": 0.1}).tree))


def test_a_plugin_link_is_stored_in_files_and_validated(tmp_path: Path):
    path = tmp_path / "t.json"
    write_tree(path, shared())
    assert read_tree(path) == shared()
    path.write_text(path.read_text().replace('"count": 2.0', '"count": 7'))
    assert [str(problem) for problem in check_file(path)] == ["node P0, link.count: 7 is outside 1 to 3"]
    path.write_text(path.read_text().replace('"enough"', '"at_most"'))
    with pytest.raises(InvalidTree, match=r"link.kind: 'at_most' is not a kind of link.*average, judged.*enough"):
        read_tree(path)


def test_a_plugin_link_is_described_and_exported():
    tree = shared()
    assert link_in_words(tree.nodes["P0"]) == "True when at least 2 of P1, P2, P3 are."
    assert link_in_numbers(tree, tree.nodes["P0"]).startswith(f"{tree.nodes['P0'].p:.3f}, computed case by case")
    table = next(variable for variable in bayes_net(tree) if variable.id == "P0")
    assert table.chances == (1, 1, 1, 0, 1, 0, 0, 0)
    assert to_bif(tree)
    assert to_dot(tree)
    assert "1.0::p0 :- p1, p2, \\+ p3." in to_problog(tree)


def test_trees_are_grown_with_a_plugin_rule_and_grounder():
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
    trees: list[Tree] = []
    forecaster = TreeForecaster(
        grounder=grounder, settings=settings, store_tree=lambda question, trial, target, tree: trees.append(tree)
    )
    forecast = asyncio.run(forecaster.forecast(setup.question, setup.context))
    assert isinstance(forecast, Forecast)
    assert forecast.forecaster == "tree at-least one-third"
    assert {node.link for node in trees[0].nodes.values() if node.children} == {AtLeastLink(count=1)}
    assert evaluate(trees[0]).p == pytest.approx(1 - (2 / 3) ** 4)


def test_the_answer_schema_depends_on_the_children():
    schema = AT_LEAST.schema(("P1", "P2"))
    assert schema == closed_object(
        {"report": {"type": "string"}, "key_factor": {"type": "string"}, **AT_LEAST.fields(("P1", "P2"))}
    )


def test_requests_accept_and_list_plugin_grounders_and_rules():
    request = TreeRequest.read({"claim": "It rains.", "grounder": "one-third", "rule": "at-least"})
    assert request.settings()["options"] == {"grounder": "one-third", "rule": "at-least"}
    assert "one-third" in allowed_names(TreeRequest.model_fields["grounder"])
    assert "at-least" in allowed_names(TreeRequest.model_fields["rule"])
