import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.forecasters.tree.random_trees import claim, formula_tree, random_tree, tree_of, wide_tree

from foretell.forecasters.tree import arithmetic as package
from foretell.forecasters.tree.arithmetic.compiler import compile_tree
from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.arithmetic.sensitivity import beta_paths, sensitivities, tornado, tree_spread
from foretell.forecasters.tree.edits import SetP
from foretell.forecasters.tree.links import AverageLink, LinearLink
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.what_if import resynthesize
from foretell.questions.errors import InputError

SEEDS = st.integers(0, 2**32)


@given(SEEDS)
@settings(max_examples=80)
def test_slopes_equal_differences(seed: int):
    """P is linear in each input, so the slope is P at 1 minus P at 0, up to rounding."""
    tree = evaluated(random_tree(random.Random(seed), 4, 4))
    circuit = compile_tree(tree)
    slopes = {sensitivity.id: sensitivity.slope for sensitivity in sensitivities(tree)}
    for name in circuit.inputs:
        high, low = (circuit.probabilities({name: end})[tree.root] for end in (1.0, 0.0))
        assert slopes.get(name, 0.0) == pytest.approx(high - low, abs=1e-12)


def linear_tree() -> Tree:
    return evaluated(
        tree_of(
            claim("P0", children=("P1", "P2"), link=LinearLink(weights={"P1": 0.5, "P2": 0.3}, intercept=0.05)),
            claim("P1", children=("P3", "P4"), link=LinearLink(weights={"P3": 0.4, "P4": -0.2}, intercept=0.1)),
            claim("P2", children=("P3", "P5"), link=AverageLink()),
            claim("P3", p=0.5),
            claim("P4", p=0.2),
            claim("P5", p=0.9),
        )
    )


def test_beta_paths_add_up_to_the_slopes():
    paths = beta_paths(linear_tree())
    assert {path.claims: round(path.product, 12) for path in paths} == {
        ("P0", "P1", "P3"): 0.2,
        ("P0", "P2", "P3"): 0.15,
        ("P0", "P2", "P5"): 0.15,
        ("P0", "P1", "P4"): -0.1,
    }
    assert all(path.linear for path in paths)
    slopes = {sensitivity.id: sensitivity.slope for sensitivity in sensitivities(linear_tree())}
    assert slopes == pytest.approx({"P3": 0.35, "P4": -0.1, "P5": 0.15})


def test_paths_through_formulas_have_the_current_slope():
    tree = evaluated(formula_tree("P1 AND (P2 OR P3)", {"P1": 0.5, "P2": 0.5, "P3": 0.2}))
    products = {path.claims[-1]: path.product for path in beta_paths(tree)}
    assert products == pytest.approx({"P1": 0.6, "P2": 0.4, "P3": 0.25})
    assert not any(path.linear for path in beta_paths(tree))


def test_importance_is_the_expected_squared_change_if_the_truth_is_known():
    tree = evaluated(formula_tree("P1 AND P2", {"P1": 0.5, "P2": 0.9}))
    first = sensitivities(tree)[0]
    assert (first.id, first.slope) == ("P1", pytest.approx(0.9))
    # The answer moves from 0.45 to 0.9 or to 0, each with probability one half.
    assert first.importance == pytest.approx(0.45**2)
    assert sum(sensitivity.share for sensitivity in sensitivities(tree)) == pytest.approx(1)


def test_tornado_bars_equal_the_tree_at_both_ends():
    tree = linear_tree()
    bars = tornado(tree)
    assert [bar.id for bar in bars] == ["P3", "P5", "P4"]
    for bar in bars:
        ends = [resynthesize(tree, [SetP(id=bar.id, p=p)]).nodes["P0"].p for p in (0.0, 1.0)]
        assert [bar.at_low, bar.at_high] == ends
    narrow = tornado(tree, sd={"P5": 0.2})
    assert [(bar.id, bar.low, bar.high) for bar in narrow] == [("P5", pytest.approx(0.7), 1.0)]
    with pytest.raises(InputError, match="P1 is not an input"):
        tornado(tree, sd={"P1": 0.1})


def test_spread_of_a_linear_tree_is_the_sum_of_squares():
    spread = tree_spread(linear_tree(), {"P3": 0.1, "P5": 0.05})
    assert spread.sd == pytest.approx((0.035**2 + 0.0075**2) ** 0.5)
    assert spread.contributions == pytest.approx({"P3": 0.035**2, "P5": 0.0075**2})


def test_spread_of_a_product_uses_its_slopes():
    tree = evaluated(formula_tree("P1 AND P2", {"P1": 0.5, "P2": 0.4}))
    assert tree_spread(tree, {"P1": 0.1, "P2": 0.2}).sd ** 2 == pytest.approx(0.01 * 0.16 + 0.04 * 0.25)
    with pytest.raises(InputError, match="P9 is not an input"):
        tree_spread(tree, {"P9": 0.1})


def test_javascript_agrees_bit_for_bit(tmp_path: Path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    rng = random.Random(8)
    trees = [random_tree(rng, 5, 5) for _ in range(60)] + [wide_tree(rng, 300)]
    circuits = [compile_tree(tree) for tree in trees]
    cases = []
    for circuit in circuits:
        edits = {name: rng.random() for name in circuit.inputs}
        cases.append({"circuit": circuit.to_dict(), "inputs": edits, "values": circuit.run(edits)})
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    (tmp_path / "circuit.mjs").write_text(Path(package.__file__).with_name("circuit.js").read_text())
    (tmp_path / "check.mjs").write_text(
        "import {readFileSync} from 'fs'; import {run} from './circuit.mjs';\n"
        "const cases = JSON.parse(readFileSync('cases.json'));\n"
        "const wrong = cases.filter(c => !run(c.circuit.ops, c.inputs).every((v, i) => v === c.values[i]));\n"
        "console.log(cases.length, wrong.length);\n"
    )
    out = subprocess.run([node, "check.mjs"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert out.split() == [str(len(cases)), "0"]
